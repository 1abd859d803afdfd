"""The state of every collection below a root, as JSON values."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

from tidemark.api.opened import OpenCollection
from tidemark.api.pinned import Pinned, find
from tidemark.definition.windows.explained import explained_windows
from tidemark.errors import TidemarkError
from tidemark.jobs.queries.history import Entry, history, is_outcome
from tidemark.jobs.queries.whole_status import whole_status
from tidemark.model.arrangement import Arrangement
from tidemark.model.batch import TraceBatch, UnsealedBatch
from tidemark.model.collection import NAME, Collection
from tidemark.model.instant import format_duration, format_instant
from tidemark.storage import open_store
from tidemark.storage.log.log import Head

Ask = Callable[[str], bool]
"""Whether something of a collection is for who asks."""
COLLECTIONS = 50
"""Most collections on one page, which a browser reloads every few seconds: each is read from the store."""
CHANGES = 12
"""Newest versions shown of each collection: about one run."""
LOOKED_THROUGH = 5 * CHANGES
"""Versions among which these are looked for."""


def nobody(name: str) -> bool:
    """Nobody may."""
    return False


@dataclass(frozen=True)
class Overview:
    """Some entries, by name, and whether collections come after them."""

    entries: list[dict[str, Any]]
    more: bool


def overview(root: str, may_read: Ask, may_see_logs: Ask = nobody, *, after: str = "") -> Overview:
    """One entry for each of the first COLLECTIONS that `may_read` admits and whose name is greater than `after`.

    A broken one is an entry with `error`. No other collection is read, but for one that says whether more come, and the
    inputs of those shown. Which files are refused, and why, is for who `may_see_logs`.
    """
    names = [name for name in open_store(root).folders("") if name > after and NAME.fullmatch(name)]
    found = _Found(root)
    described = (_entry_of(found, name, may_read, may_see_logs) for name in names if may_read(name))
    entries = list(islice((entry for entry in described if entry is not None), COLLECTIONS + 1))
    return Overview(entries[:COLLECTIONS], len(entries) > COLLECTIONS)


def describe(root: str, name: str, may_read: Ask, may_see_logs: Ask = nobody) -> dict[str, Any] | None:
    """A collection's status, batches and newest changes; None where there is none.

    Of the inputs of a derived one that `may_read` does not admit it says how far they were consumed, which is the
    collection's own, and nothing else. Which files are refused, and why, is for who `may_see_logs`.
    """
    return _entry_of(_Found(root), name, may_read, may_see_logs)


class _Found:
    """The collections below a root, each looked for once."""

    def __init__(self, root: str) -> None:
        self._root = root
        self._found: dict[str, Pinned | None] = {}

    def collection(self, name: str) -> Pinned | None:
        """Raises what reading it raises."""
        if name not in self._found:
            self._found[name] = find(self._root, name)
        return self._found[name]

    def head(self, name: str) -> Head | None:
        """Its newest head; None for one that is not there, or cannot be read: its own entry says why."""
        try:
            found = self.collection(name)
        except TidemarkError:
            return None
        return None if found is None else found.head


def _entry_of(found: _Found, name: str, may_read: Ask, may_see_logs: Ask) -> dict[str, Any] | None:
    try:
        pinned = found.collection(name)
        if pinned is None:
            return None
        return _described(OpenCollection(pinned), found, may_read, logs=may_see_logs(name))
    except TidemarkError as error:
        return {"collection": name, "error": f"{error.kind}: {error}"}


def _described(opened: OpenCollection, found: _Found, may_read: Ask, *, logs: bool) -> dict[str, Any]:
    state = opened.state
    whole = whole_status(opened.store, opened.log, opened.pinned_head, found.head)
    status = whole.as_dict()
    if logs and whole.waiting_for:
        status["waiting_for_words"] = whole.waiting_for.in_full
    if status["follows"]:
        status["follows"] = _shown(status["follows"], may_read)
    return {
        **status,
        "start": _begins(state.collection, found, may_read, set()) or state.since,
        "windows": _windows(state.collection),
        "by_load": _by_load(state.collection),
        "end": _ends(state.collection, found, may_read, set()),
        "batches": _batches(state),
        "quarantine": [_taken_out(batch, state) for batch in state.quarantined],
        "changes": [_shown_change(entry, logs=logs) for entry in islice(_changes(opened), CHANGES)],
    }


def _windows(collection: Collection) -> str | None:
    """What windows a collection is defined by, in words; None if it is not."""
    windows = collection.derived.definition.windows if collection.is_derived else None
    return None if windows is None else explained_windows(windows)[0]


def _by_load(collection: Collection) -> tuple[str, str] | None:
    """When batches are cut before an interval is over, and how long files are left alone, in words; None: never."""
    batching = None if collection.is_derived else collection.landed.batching
    return None if batching is None else (str(batching), format_duration(batching.settle))


def _begins(collection: Collection, found: _Found, may_read: Ask, seen: set[str]) -> int | None:
    """Where what it holds begins: of a derived collection where the first of its inputs does; None if none is there."""
    if not collection.is_derived:
        return collection.start
    seen.add(collection.name)
    heads = [found.head(name) for name in collection.derived.inputs if name not in seen and may_read(name)]
    inputs = [head.state.collection for head in heads if head is not None and head.arrangement is not None]
    begins = [_begins(each, found, may_read, seen) for each in inputs]
    return min((time for time in begins if time is not None), default=None)


def _ends(collection: Collection, found: _Found, may_read: Ask, seen: set[str]) -> int | None:
    """Where what it holds ends: of a derived collection where the last of its inputs does; None if one has no end, or
    is not to be read."""
    if not collection.is_derived:
        return collection.landed.end
    seen.add(collection.name)
    heads = [found.head(name) if may_read(name) else None for name in collection.derived.inputs if name not in seen]
    inputs = [head.state.collection if head and head.arrangement else None for head in heads]
    ends = [None if each is None else _ends(each, found, may_read, seen) for each in inputs]
    return None if None in ends else max((end for end in ends if end is not None), default=None)


def _shown(follows: dict[str, Any], may_read: Ask) -> dict[str, Any]:
    """How a collection follows its inputs, without the state of those that are not to be read."""
    nothing = {"readable": 0, "readable_text": None, "complete_below": 0, "complete_below_text": None}
    hidden = {one["name"] for one in follows["inputs"] if not may_read(one["name"])}
    inputs = [{**one, **nothing, "status": "hidden"} if one["name"] in hidden else one for one in follows["inputs"]]
    return {**follows, "inputs": inputs, "why": "" if hidden else follows["why"]}


def _changes(opened: OpenCollection) -> Iterator[Entry]:
    """What became of attempts, newest first."""
    return history(
        opened.log, limit=LOOKED_THROUGH, upto=opened.version, is_shown=is_outcome, zone=opened.state.collection.zone
    )


def _shown_change(entry: Entry, *, logs: bool) -> dict[str, Any]:
    """A change, with its detail for who may see logs."""
    return (entry if logs else replace(entry, detail="")).as_dict()


def _batches(state: Arrangement) -> list[dict[str, Any]]:
    """Live batches with the interval each stands for; the unsealed ones have no level, nor what drains left of them
    because its time is still to come."""
    trace = [_entry(b, b.level, b.description.lower, b.description.upper, state) for b in state.trace]
    unsealed = [_entry(b, None, b.interval.lower, b.interval.upper, state) for b in state.pending]
    ahead = [_entry(b, None, b.interval.lower, b.interval.upper, state) | {"ahead": True} for b in state.ahead]
    return [*trace, *unsealed, *ahead]


def _taken_out(batch: UnsealedBatch, state: Arrangement) -> dict[str, Any]:
    """A batch in quarantine; what the seal has passed is not put back."""
    may = batch.first_time >= state.seal and not state.collection.is_derived
    return {
        "id": batch.id,
        "interval": str(batch.interval.in_zone(state.collection.zone)),
        "rows": batch.rows,
        "may_be_released": may,
    }


def _entry(
    batch: TraceBatch | UnsealedBatch, level: int | None, lower: int, upper: int, state: Arrangement
) -> dict[str, Any]:
    return {
        "id": batch.id,
        "level": level,
        "lower": lower,
        "upper": upper,
        "interval": f"[{format_instant(lower)}, {format_instant(upper)})",
        "rows": batch.rows,
        "bytes": batch.bytes,
        "certified": state.is_certified(batch),
        "ahead": False,
    }
