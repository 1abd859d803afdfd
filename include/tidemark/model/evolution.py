"""How the columns of a collection may change once it has rows: value columns are added, widened, renamed and dropped.

A column is its id. Rows at rest hold the key and then every value column there ever was, in order of id: what is added
comes last, and what is dropped stays, null from then on. So rows never change their order, and parts written under an
earlier declaration merge with later ones (arrow/rows/fields.py reads them as today's columns). A name that comes back
after a drop is a new column: old values do not.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from tidemark.errors import InvalidUsage
from tidemark.model import column_names
from tidemark.model.collection import MAX_PRECISION, Collection, Column, ColumnType, DecimalType, ValueType
from tidemark.model.instant import format_duration, format_instant

_WIDENINGS = frozenset(
    {
        (ColumnType.BOOL, ColumnType.INT),
        (ColumnType.BOOL, ColumnType.FLOAT),
        (ColumnType.INT, ColumnType.FLOAT),
        (ColumnType.DATE, ColumnType.TIMESTAMP),
    }
)
INT_DIGITS = 19
"""Digits of the longest int."""
EXACT_IN_FLOAT = 2**53
"""Up to here, and down to its negative, a float holds every int."""
DAY = 86_400_000_000


def widens(held: ValueType, asked: ValueType) -> bool:
    """Whether a change of type keeps distinct values distinct and in order; of ints and dates those within `bounds_of`.

    A decimal gets wider by digits before the point, behind it, or both; by none fewer on either side. What may get
    wider in two steps may do so in one, as a part may be as old as the first of several declarations.
    """
    if isinstance(asked, DecimalType):
        if isinstance(held, DecimalType):
            return held != asked and asked.whole_digits >= held.whole_digits and asked.scale >= held.scale
        return held in (ColumnType.BOOL, ColumnType.INT) and asked.whole_digits > 0
    return (held, asked) in _WIDENINGS


def bounds_of(held: ValueType, asked: ValueType) -> tuple[int, int] | None:
    """The least and greatest value (int, or days of a date) that a widening keeps exact; None if it keeps all."""
    if held is ColumnType.INT and isinstance(asked, DecimalType) and asked.whole_digits < INT_DIGITS:
        return -(10**asked.whole_digits) + 1, 10**asked.whole_digits - 1
    if (held, asked) == (ColumnType.INT, ColumnType.FLOAT):
        return -EXACT_IN_FLOAT, EXACT_IN_FLOAT
    if (held, asked) == (ColumnType.DATE, ColumnType.TIMESTAMP):
        return -(2**63) // DAY + 1, (2**63 - 1) // DAY
    return None


def widened(held: Collection, asked: Collection) -> Iterator[tuple[Column, Column]]:
    """The value columns whose type changed, as they were and as they are to be."""
    new = {column.id: column for column in asked.stored_value}
    yield from ((old, new[old.id]) for old in held.stored_value if old.type != new[old.id].type)


def differences(held: Collection, new: Collection) -> list[str]:
    """What became of the value columns, one line each."""
    old, names = {column.id: column for column in held.value}, {column.name for column in held.dropped}
    lines = []
    for column in new.value:
        was = old.get(column.id)
        if was is None:
            again = " again: its old values do not come back" if column.name in names else ""
            lines.append(f"added {column.name} {column.type}{again}")
            continue
        if was.name != column.name:
            lines.append(f"renamed {was.name} to {column.name}")
        if was.type != column.type:
            lines.append(f"widened {column.name} from {was.type} to {column.type}")
    return lines + [f"dropped {column.name} {column.type}" for column in new.dropped if column.id in old]


def evolved(held: Collection, asked: Collection) -> Collection:
    """What a state with the declaration `held` declares once `asked` is brought in; `held` itself if nothing changed.

    `asked` comes from a file: its columns count by name, their order does not. Raises InvalidUsage for a change that
    rows at rest cannot follow, with both values and what would be needed.
    """
    _check_frozen(held, asked)
    names = [column.name for column in asked.columns]
    column_names.check(names, kept={column.name for column in held.columns})
    sources = _sources(held, asked)
    taken = {source.id for source in sources.values() if source}
    gone = tuple(column for column in held.value if column.id not in taken)
    last = max(column.id for column in (*held.key, *held.stored_value))
    value = []
    for column in asked.value:
        source = sources[column.name]
        last += source is None
        value.append(replace(column, id=source.id if source else last))
    value.sort(key=lambda column: column.id)
    dropped = tuple(sorted((*held.dropped, *gone), key=lambda column: column.id))
    hidden = _evolved_hidden(held, asked, last)
    lost = {column.id for column in held.hidden} - {column.id for column in hidden}
    dropped = tuple(sorted((*dropped, *(c for c in held.hidden if c.id in lost)), key=lambda column: column.id))
    changed = (tuple(value), hidden, dropped) != (held.value, held.hidden, held.dropped)
    new = replace(
        asked,
        key=held.key,
        value=tuple(value),
        hidden=hidden,
        dropped=dropped,
        schema=held.schema + changed,
        renames=(),
    )
    check_successor(held, new)
    return new


def _evolved_hidden(held: Collection, asked: Collection, last: int) -> tuple[Column, ...]:
    """The hidden columns asked for: those held, if they are the same, else all of them anew, numbered above `last`.
    They are nobody's but ours. What one describes follows from all of them together: under one name and type may be
    another sum."""
    if _described(held.hidden) == _described(asked.hidden):
        return held.hidden
    return tuple(replace(column, id=last + 1 + at) for at, column in enumerate(asked.hidden))


def started(asked: Collection) -> Collection:
    """What a new collection declares: nothing was called otherwise before. InvalidUsage for a reserved name."""
    column_names.check([column.name for column in asked.columns])
    return replace(asked, renames=())


def check_successor(held: Collection, new: Collection) -> None:
    """Raise InvalidUsage unless rows at rest under `held` can be read under `new`: every column kept by its id, of its
    type or a wider one, others behind them, and the order of facts the same."""
    _check_frozen(held, new)
    kept = {column.id: column for column in new.stored_value}
    for old in held.stored_value:
        column = kept.pop(old.id, None)
        if column is None or (old in held.dropped and old not in new.dropped):
            raise InvalidUsage(f"column {old.name} of {held.name}, number {old.id}, is neither kept nor dropped")
        if column.type != old.type and not widens(old.type, column.type):
            raise _refused(
                held,
                f"value column {old.name}",
                str(old.type),
                str(column.type),
                f"{_nearest_wider(old.type, column.type)}add a column of another name, or {_anew(held)}",
            )
    last = max(column.id for column in (*held.key, *held.stored_value))
    if early := [column.name for column in kept.values() if column.id <= last]:
        raise InvalidUsage(f"column {early[0]} of {held.name} is new, and must be numbered above {last}")
    _check_coordinates(held, new)
    _check_layout(held, new)


def _nearest_wider(held: ValueType, asked: ValueType) -> str:
    """The decimal that holds the values of both, if there is one, as the first half of an advice."""
    if not (isinstance(held, DecimalType) and isinstance(asked, DecimalType)):
        return ""
    whole, scale = max(held.whole_digits, asked.whole_digits), max(held.scale, asked.scale)
    return f"{DecimalType(whole + scale, scale)} would hold both; or " if whole + scale <= MAX_PRECISION else ""


def _check_frozen(held: Collection, asked: Collection) -> None:
    for what, old, new in (
        ("name", held.name, asked.name),
        ("origin", held.origin.kind, asked.origin.kind),
        ("key", _described(held.key), _described(asked.key)),
        *_frozen_of_landed(held, asked),
    ):
        if old != new:
            raise _refused(held, what, old, new, _anew(held))


def _frozen_of_landed(held: Collection, asked: Collection) -> Iterator[tuple[str, str, str]]:
    """Where intervals begin, and what source rows say. A derived collection may be defined otherwise: what differs by
    that is the next thing it is corrected by."""
    if held.is_derived or asked.is_derived:
        return
    yield "start", format_instant(held.landed.start), format_instant(asked.landed.start)
    yield "envelope", str(held.landed.source.envelope), str(asked.landed.source.envelope)


def _check_layout(held: Collection, new: Collection) -> None:
    """Rows at rest are in order of it."""
    if _placed_by(held) != _placed_by(new):
        raise _refused(held, "layout", _layout_text(held), _layout_text(new), _anew(held))


def _placed_by(of: Collection) -> tuple[int, int] | None:
    return None if of.layout is None else (of.column(of.layout.by).id, of.layout.every)


def _layout_text(of: Collection) -> str:
    return f"by {of.layout.by}, every {format_duration(of.layout.every)}" if of.layout else "none"


def _check_coordinates(held: Collection, new: Collection) -> None:
    """The same source columns give the times and break ties as before, renamed perhaps."""
    if held.is_derived:
        return
    now = {column.id: column.name for column in new.stored_value}
    renamed = {column.name: now[column.id] for column in held.value}
    order_by = (held.landed.source.order_by, new.landed.source.order_by)
    for what, old, asked in (
        ("time", held.landed.time, new.landed.time),
        ("event_time", held.landed.event_time, new.landed.event_time),
        ("order_by", *order_by),
    ):
        expected = renamed.get(old or "", old)
        if asked != expected:
            shown = old or "nothing" if expected == old else f"{old} (now {expected})"
            raise _refused(held, what, shown, asked or "nothing", _anew(held))
    if order_by[0] and order_by[1]:
        types = held.type_of(order_by[0]), new.type_of(order_by[1])
        if types[0] != types[1] and not widens(*types):
            raise _refused(held, f"order_by column {order_by[0]}", str(types[0]), str(types[1]), _anew(held))


def _sources(held: Collection, asked: Collection) -> dict[str, Column | None]:
    """For each value column asked for the one held that it is, or None if it is new."""
    live = {column.name: column for column in held.value}
    old_names = {new: old for old, new in asked.renames}
    wanted = {column.name for column in asked.value}
    return {column.name: _source(held, column, old_names.get(column.name), live, wanted) for column in asked.value}


def _source(
    held: Collection, column: Column, was: str | None, live: dict[str, Column], wanted: Iterable[str]
) -> Column | None:
    name = column.name
    if name in live:
        if was in live and was not in wanted:
            raise InvalidUsage(
                f"column {name} of {held.name} was {was}, but the collection has both; "
                f"drop one of them first, by a file without `was: {was}`"
            )
        return live[name]
    for old in held.dropped:
        if old.name == name and old.type != column.type:
            needed = "call the column otherwise"
            raise _refused(held, f"dropped column {name}", str(old.type), str(column.type), needed)
    if was is None:
        return None
    if was in wanted:
        raise InvalidUsage(f"column {name} of {held.name} was {was}, which is still listed; list one of them")
    if was not in live:
        raise InvalidUsage(
            f"column {name} of {held.name} was {was}, but the collection has neither; "
            f"its value columns are {', '.join(live) or 'none'}: correct `was`, or remove it to add {name} as new"
        )
    return live[was]


def _anew(held: Collection) -> str:
    also = "" if held.is_derived else " and ingest the files again"
    return f"declare a collection of another name{also} to have it so"


def _refused(held: Collection, what: str, old: str, new: str, needed: str) -> InvalidUsage:
    return InvalidUsage(f"{what} of collection {held.name} cannot change from {old} to {new}; {needed}")


def _described(columns: Iterable[Column]) -> str:
    return ", ".join(f"{column.name} {column.type}" for column in columns)
