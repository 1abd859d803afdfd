"""Documents of older formats, brought into today's shape before they are validated.

Each step takes documents of one format to the next, as plain dicts and lists, and never imports today's types: it is
true for ever of what was written then. A document is taken through all steps from its own format on.

To change the shape of something stored (docs/decisions/0031): describe it in docs/format.md; unless FORMAT is
unreleased, raise it and append a mapping to STEPS; add the step for that kind of document. tests/compat/test_shapes.py
reports when a shape has changed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Any

FORMAT = 4
"""The on-disk format this code writes, and the newest it reads (docs/format.md)."""


class Kind(StrEnum):
    """The kinds of documents: objects of JSON that Tidemark reads again."""

    VERSION = "version"
    PLAN = "collector's plan"
    PARTS = "table of parts"
    LEDGER = "object of the ledger"
    READ = "record of a read"
    COMMITS = "commit times"


Step = Callable[[Any], Any]


def upgraded(kind: Kind, document: Any, written_in: int) -> Any:
    """`document`, written in format `written_in`, as FORMAT has it; without the member `format`."""
    for steps in STEPS[written_in - 1 :]:
        if kind in steps:
            document = steps[kind](document)
    return document


def as_it_is(kind: Kind, written_in: int) -> bool:
    """Whether documents of this kind have not changed their shape since format `written_in`."""
    return not any(kind in steps for steps in STEPS[written_in - 1 :])


def _parts_1_to_2(parts: list[Any]) -> dict[str, Any]:
    """A table was the list of its parts."""
    return {"parts": parts}


def _ledger_1_to_2(block: list[Any] | dict[str, Any]) -> dict[str, Any]:
    """A leaf was the list of its entries; an object was a node."""
    return {"kind": "leaf", "entries": block} if isinstance(block, list) else {"kind": "node", **block}


def _version_1_to_2(version: dict[str, Any]) -> dict[str, Any]:
    """Every collection was made of landed files, and said so field by field; some fields had other names. What was
    learned was known once it was complete: the seal said both."""
    change = _renamed(version["change"], _NAMES_OF_CHANGES_1)
    if change["kind"] == "sealed":
        change["complete_below"] = change["upper"]
    if change["kind"] in ("ingested", "trimmed") and change["batch"]:
        change["batch"] = _unsealed_1_to_2(change["batch"])
    version = version | {"change": change}
    if version.get("checkpoint"):
        state = _renamed(version["checkpoint"], _NAMES_OF_STATES_1)
        state["complete_below"] = state["seal"]
        state |= {name: [_unsealed_1_to_2(batch) for batch in state[name]] for name in ("unsealed", "quarantined")}
        version["checkpoint"] = state
    for holder in (version["change"], version.get("checkpoint") or {}):
        if "collection" in holder:
            holder["collection"] = _collection_1_to_2(holder["collection"])
    return version


def _unsealed_1_to_2(batch: dict[str, Any]) -> dict[str, Any]:
    """Whether a batch brought late rows was not recorded. Those of one that did were learned at the seal of then, which
    is its first time. So that is said of all: for one that brought none that is a tick too many, at the most."""
    return batch | {"learned_at": batch["first_time"] or None}


_NAMES_OF_CHANGES_1 = {"wanted": "requested_seal", "dump": "snapshot"}
_NAMES_OF_STATES_1 = {
    "wanted": "requested_seal",
    "forgotten": "forgotten_below",
    "dumps": "snapshots",
    "vouched": "frontier_certificate",
}


def _renamed(document: dict[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    return {names.get(name, name): value for name, value in document.items()}


_LANDED_1 = ("source", "start", "end", "time", "event_time", "schedule", "grace", "late", "inputs")


def _collection_1_to_2(collection: dict[str, Any]) -> dict[str, Any]:
    landed = {name: collection[name] for name in _LANDED_1 if name in collection}
    others = {name: value for name, value in collection.items() if name not in landed}
    return others | {"origin": {"kind": "landed", **landed}}


def _parts_2_to_3(table: dict[str, Any]) -> dict[str, Any]:
    """A table was one object, whatever its size."""
    return {"kind": "leaf", **table}


STEPS: tuple[Mapping[Kind, Step], ...] = (
    {Kind.VERSION: _version_1_to_2, Kind.PARTS: _parts_1_to_2, Kind.LEDGER: _ledger_1_to_2},
    {Kind.PARTS: _parts_2_to_3},
    {},
)
"""What becomes of documents of format 1, then of format 2, and so on. A kind that is not named stays as it is."""
