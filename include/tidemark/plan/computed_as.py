"""What the rows of a derived collection follow from besides the rows of its inputs, as its consumptions record it; and
why what was computed from something else says nothing any more."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence

from tidemark.model.collection import Collection, Column
from tidemark.model.derived import Derived
from tidemark.model.window.aggregate import Function
from tidemark.model.window.kinds import Session
from tidemark.plan.arrivals import judged_by
from tidemark.plan.event_times import reads_event_times

_ON_EVENT_TIMES = ".event_time"
"""What the record of a definition has behind it if its windows are on event times."""
_EXACT = ".exact"
"""What it has behind that if `approx_distinct` is exact where it was a sketch until 0.6: in sessions."""
_JUDGED_BY = ".judged by "
"""What it has behind that, before a schedule, if in which window a row counts follows from that."""


def computed_as(collection: Collection, inputs: Sequence[Collection]) -> str:
    """What the rows of a derived collection follow from (`Collection.computed_as`), over such inputs: `event_time` is
    another thing once the input has a column of that name, and with another schedule rows came at another time."""
    over = any(reads_event_times(collection.derived, given) for given in inputs)
    schedules = [schedule for given in inputs if (schedule := judged_by(collection.derived, given))]
    by = "".join(f"{_JUDGED_BY}{schedule}" for schedule in schedules)
    exact = _EXACT if _counts_exactly(collection.derived) else ""
    return collection.computed_as + (_ON_EVENT_TIMES if over else "") + exact + by


def _counts_exactly(derived: Derived) -> bool:
    windows = derived.definition.windows
    if windows is None or not isinstance(windows.kind, Session):
        return False
    return any(one.function is Function.APPROX_DISTINCT for one in windows.aggregates)


def identity_of(columns: Iterable[Sequence[Column]]) -> str:
    """Another one for input columns of another name, number or type: what follows from them may be other rows."""
    read = [[(column.name, column.id, str(column.type)) for column in each] for each in columns]
    return hashlib.sha256(json.dumps(read, separators=(",", ":")).encode()).hexdigest()[:8]


def differs(recorded: str, collection: Collection, inputs: Sequence[Collection]) -> str:
    """Why what was computed as recorded says nothing of what is to be stored; "" if it does."""
    wanted, derived = computed_as(collection, inputs), collection.derived
    fingerprint, dot, rest = recorded.partition(".")
    if fingerprint == derived.before_null_was_a_value != derived.fingerprint:
        if can_be_null := [name for name in _by(derived) if not _is_key(name, inputs)]:
            return f"rows without {', '.join(can_be_null)} count in windows since 0.4"
        recorded = f"{derived.fingerprint}{dot}{rest}"
    if recorded == wanted:
        return ""
    if recorded.partition(".")[0] != derived.fingerprint:
        return "another definition"
    known, what = (said.partition(_JUDGED_BY)[0] for said in (recorded, wanted))
    if known == what:
        return "its input has another schedule, by which rows are late"
    known, what = (said.removesuffix(_EXACT) for said in (known, what))
    if known == what:
        return "approx_distinct in sessions is exact now"
    if known.removesuffix(_ON_EVENT_TIMES) == what.removesuffix(_ON_EVENT_TIMES):
        return "a column event_time came or went"
    if known.split(".")[:2] == what.split(".")[:2]:
        return "columns of its inputs changed"
    return "it is kept in other columns"


def _by(derived: Derived) -> tuple[str, ...]:
    windows = derived.definition.windows
    return windows.by if windows is not None else ()


def _is_key(name: str, inputs: Sequence[Collection]) -> bool:
    """Whether a column is never null: a key of a collection that lands."""
    return all(not source.is_derived and name in [column.name for column in source.key] for source in inputs)
