"""What the fields of a collection file say about each other's columns."""

from __future__ import annotations

from collections.abc import Sequence

from tidemark.config import debezium, full_snapshots, readings
from tidemark.config.declaration import Declaration
from tidemark.config.document import Loc
from tidemark.config.nearest import nearest
from tidemark.errors import InvalidUsage
from tidemark.model import column_names, only
from tidemark.model.condition.text import parse

UPDATES = "updates"


def condition_problem(declared: Declaration) -> tuple[Loc, str] | None:
    """What is wrong about `delete_when` and `only` by themselves; None if nothing is."""
    source = declared.source
    for name, text, read in (("delete_when", source.delete_when, parse), ("only", source.only, only.parsed)):
        try:
            if text:
                read(text)
            if name == "only" and text:
                only.check_fields(text, source.envelope, declared.name, declared.key, declared.value)
        except InvalidUsage as error:
            return ("source", name), str(error)
    return None


def problem(declared: Declaration, read: Sequence[str]) -> tuple[Loc, str] | None:
    """What is wrong about the columns, and where; None if nothing is. `read` are those of the source."""
    return (
        readings.problem(declared)
        or debezium.problem(declared)
        or full_snapshots.problem(declared)
        or _names(declared)
        or _described(declared, read)
        or _renamed(declared)
        or _timelines(declared)
    )


def _names(declared: Declaration) -> tuple[Loc, str] | None:
    def loc(at: int) -> Loc:
        return ("key", at) if at < len(declared.key) else ("value", at - len(declared.key))

    names = [*declared.key, *declared.value]
    seen: set[str] = set()
    for at, name in enumerate(names):
        if name in seen:
            return loc(at), f"column {name} is named twice in key and value"
        seen.add(name)
    if wrong := column_names.problem(names):
        return loc(wrong[0]), wrong[1]
    return None


def _described(declared: Declaration, read: Sequence[str]) -> tuple[Loc, str] | None:
    known = set(read)
    for name in declared.columns:
        if name not in known and declared.source.envelope == UPDATES and name == (declared.source.diff or "diff"):
            return ("columns", name), f"column {name} is the diff of the updates, a whole number always; leave it out"
        if name not in known:
            return ("columns", name), f"column {name} is in no other field{nearest(name, list(read))}"
    return None


def _renamed(declared: Declaration) -> tuple[Loc, str] | None:
    value = set(declared.value)
    new_names: dict[str, list[str]] = {}
    for name, was in declared.renames.items():
        new_names.setdefault(was, []).append(name)
    for name, was in declared.renames.items():
        if name not in value:
            return ("columns", name), f"column {name} is not a value column; only those are renamed by was"
        others = [new for new in new_names[was] if new != name]
        if was == name or others:
            twice = others[0] if others else name
            return ("columns", name), f"column {name} was {was}, and {twice} too; correct was"
    return None


def _timelines(declared: Declaration) -> tuple[Loc, str] | None:
    value = set(declared.value)
    for at, name in enumerate(declared.timelines):
        if name not in value:
            return ("timelines", at), f"timeline {name} is not a value column{nearest(name, declared.value)}"
    return None
