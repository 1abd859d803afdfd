"""What became of each gate run, kept as JSON so that its page can be made when somebody opens it.

Kept beside the collections of a root, `<root>/_gates/<collection>/<gate>/<name>.json`, or below TIDEMARK_DOCS (a path
or s3://bucket/prefix). A name is the time it was kept in microseconds, a digest of the attempt that ran the gate, and
the outcome: nothing of a run's own spelling is part of a path. Of each gate the newest KEEP results stay.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tidemark.errors import InvalidUsage
from tidemark.model.collection import NAME, Gate
from tidemark.quality.suites import CRITICAL
from tidemark.storage.stores.private import open_private
from tidemark.storage.stores.store import Missing, ObjectStore

FOLDER = "_gates"
"""No collection is called so: their names start with a letter."""
KEEP = 500
"""Results kept of each gate of a collection: more than a year of daily runs."""
MOST_BYTES = 1 << 20
"""Bytes of one result. Rows beyond are left out, then checks that passed."""
MOST_EVIDENCE = MOST_BYTES // 4
"""Bytes of the evidence in a result that is too large: some 1,000 batches. More is left out."""
OUTCOMES = ("passed", "failed", "refused", "nothing")
"""`refused` is a gate that could not run, `nothing` one that found nothing it had not certified."""
_RESULT_NAME = re.compile(rf"(\d{{16}})-([0-9a-f]{{32}})-({'|'.join(OUTCOMES)})")


@dataclass(frozen=True)
class Ran:
    """Who ran a gate: a try of a task of Airflow, or (with nothing but `attempt`) somebody else."""

    attempt: str
    run_id: str = ""
    task_id: str = ""
    map_index: int = -1
    try_number: int = 0

    @property
    def is_first(self) -> bool:
        """Whether it is known that no try of the same run was before."""
        return self.try_number == 1

    @property
    def digest(self) -> str:
        """The same for every gate that one try of one task ran, and for no other's."""
        identity = [self.run_id, self.task_id, self.map_index, self.try_number] if self.run_id else [self.attempt]
        return hashlib.sha256(json.dumps(identity).encode()).hexdigest()[:32]


def ran(attempt: str) -> Ran:
    """Who an attempt's token names (airflow/launch.py makes Airflow's: run, task, map index, try, something random)."""
    pieces = attempt.rsplit("/", 4)
    if len(pieces) < 5 or not re.fullmatch(r"-?\d{1,9}", pieces[2]) or not re.fullmatch(r"\d{1,9}", pieces[3]):
        return Ran(attempt)
    return Ran(attempt, pieces[0], pieces[1], int(pieces[2]), int(pieces[3]))


@dataclass(frozen=True)
class ResultName:
    """The name of a kept result, split into its parts."""

    name: str
    kept_at: int
    digest: str
    outcome: str


def result_name(text: str) -> ResultName | None:
    """The name, split into its parts; None for what is none."""
    match = _RESULT_NAME.fullmatch(text)
    return ResultName(text, int(match[1]), match[2], match[3]) if match else None


def results_url(root: str) -> str | None:
    """Where the results of a root's collections are kept: TIDEMARK_DOCS, else in the root itself; None for a root in
    memory."""
    if chosen := os.environ.get("TIDEMARK_DOCS"):
        return chosen
    return None if root.startswith("memory:") or root.rstrip("/") in ("", "s3:") else f"{root.rstrip('/')}/{FOLDER}"


def results_of(root: str) -> Results | None:
    """The results of a root's collections, or None where none are kept. Nothing is contacted yet."""
    url = results_url(root)
    return Results(open_private(url)) if url else None


def results_of_collection(url: str) -> Results | None:
    """The results of the collection at `url`, kept beside it; None for one in memory, unless TIDEMARK_DOCS is set."""
    return results_of(url.rstrip("/").rpartition("/")[0])


@dataclass(frozen=True)
class Results:
    """The kept results below one place. Every method raises what its store raises."""

    store: ObjectStore

    def keep(self, document: Mapping[str, Any], who: Ran, outcome: str, now: int) -> str:
        """Keep a result (with at least `collection` and `gate`) and forget the oldest beyond KEEP; returns its address.

        `now` is in microseconds since the epoch.
        """
        folder = _folder(document["collection"], document["gate"])
        key = f"{folder}{now:016d}-{who.digest}-{outcome}.json"
        entry = {**document, "outcome": outcome, "kept_at": now, **vars(who)}
        self.store.create(key, _bounded(entry))
        for old in [name.name for name in self.names(document["collection"], document["gate"])][KEEP:]:
            self.store.delete(f"{folder}{old}.json")
        return f"{self.store.url}/{key}"

    def names(self, collection: str, gate: str) -> Iterator[ResultName]:
        """What is kept of a gate, newest first."""
        folder = _folder(collection, gate)
        keys = reversed(self.store.keys(folder))
        found = (result_name(key.removeprefix(folder).removesuffix(".json")) for key in keys)
        return (name for name in found if name is not None)

    def forget(self, collection: str) -> None:
        """Remove all that is kept of a collection, which was dropped."""
        for gate in Gate:
            for name in self.names(collection, gate):
                self.store.delete(f"{_folder(collection, gate)}{name.name}.json")

    def load(self, collection: str, gate: str, name: ResultName) -> dict[str, Any] | None:
        """A kept result; None if it is gone, or was torn when the machine's power went."""
        try:
            document = json.loads(self.store.read(f"{_folder(collection, gate)}{name.name}.json"))
        except (Missing, ValueError, RecursionError):
            return None
        return document if _sound(document) else None


def _folder(collection: str, gate: str) -> str:
    if not NAME.fullmatch(collection) or gate not in list(Gate):
        raise InvalidUsage(f"{collection!r} and {gate!r} are not a collection and a gate")
    return f"{collection}/{gate}/"


def _sound(document: Any) -> bool:
    """Whether it is what `keep` wrote, and not something else that has such a name."""
    if not isinstance(document, dict) or not isinstance(document.get("kept_at"), int):
        return False
    results, batches, upper = (document.get(name) for name in ("results", "batches", "upper"))
    if not isinstance(results, list) or not isinstance(batches, list) or not isinstance(upper, int | None):
        return False
    rows = [row for result in results if isinstance(result, dict) for row in result.get("rows") or ()]
    return all(isinstance(each, dict) for each in (*results, *rows))


def _bounded(document: dict[str, Any]) -> bytes:
    """The document as JSON of at most MOST_BYTES: without rows where they are too many, then without what passed."""
    data = _encoded(document)
    if len(data) <= MOST_BYTES:
        return data
    budget, kept = MOST_BYTES // 2, []
    for result in sorted(document["results"], key=lambda result: bool(result["passed"])):
        smaller = result if len(_encoded(result)) <= budget else {**result, "rows": [], "rows_left_out": True}
        budget -= len(_encoded(smaller))
        if budget < 0:
            break
        kept.append(smaller)
    batches = document["batches"][: MOST_BYTES // 4096]
    left_out = len(document["results"]) - len(kept)
    smaller = {"results": kept, "batches": batches, "results_left_out": left_out}
    if len(_encoded(document.get("evidence"))) > MOST_EVIDENCE:
        smaller["evidence"] = None
    return _encoded({**document, **smaller})


def _encoded(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


def wrong_batches(document: Mapping[str, Any]) -> set[str]:
    """The batches of which a kept result says that they did not pass."""
    results = document.get("results") or ()
    return {one.get("batch", "") for one in results if not one.get("passed") and one.get("severity") == CRITICAL}
