"""How the columns of a collection may change once it has rows: value columns are added, widened, renamed and dropped.

A column is its id. Rows at rest hold the key and then every value column there ever was, in order of id: what is added
comes last, and what is dropped stays, null from then on. So rows never change their order, and parts written under an
earlier declaration merge with later ones (arrow/rows/fields.py reads them as today's columns). A name that comes back
after a drop is a new column: old values do not.
"""

from __future__ import annotations

from collections.abc import Collection as Names
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from tidemark.errors import InvalidUsage
from tidemark.model import column_names
from tidemark.model.collection import MAX_PRECISION, Collection, Column, ColumnType, DecimalType, ValueType
from tidemark.model.epoch import first_and_last
from tidemark.model.instant import format_duration
from tidemark.model.local_time import format_local
from tidemark.model.ordering import as_ordered, newly_ordered, with_names
from tidemark.model.place import described
from tidemark.model.publication import TableFormat

_WIDENINGS = frozenset(
    {
        (ColumnType.BOOL, ColumnType.INT),
        (ColumnType.BOOL, ColumnType.FLOAT),
        (ColumnType.INT, ColumnType.FLOAT),
        (ColumnType.DATE, ColumnType.TIMESTAMP),
    }
)
_TAKEN_AS = frozenset({(ColumnType.STRING, ColumnType.JSON), (ColumnType.INT, ColumnType.FLOAT)})
"""What a definition may give where another type is declared."""
INT_DIGITS = 19
"""Digits of the longest int."""
_ISO = "ISO 8601"
EXACT_IN_FLOAT = 2**53
"""Up to here, and down to its negative, a float holds every int."""
DAY = 86_400_000_000


def widens(old: ValueType, asked: ValueType) -> bool:
    """Whether a change of type keeps distinct values distinct and in order; of ints and dates those within `bounds_of`.

    A decimal gets wider by digits before the point, behind it, or both; by none fewer on either side. What may get
    wider in two steps may do so in one, as a part may be as old as the first of several declarations.
    """
    if isinstance(asked, DecimalType):
        if isinstance(old, DecimalType):
            return old != asked and asked.whole_digits >= old.whole_digits and asked.scale >= old.scale
        return old in (ColumnType.BOOL, ColumnType.INT) and asked.whole_digits > 0
    return (old, asked) in _WIDENINGS


def bounds_of(old: ValueType, asked: ValueType) -> tuple[int, int] | None:
    """The least and greatest value (int, or days of a date) that a widening keeps exact; None if it keeps all."""
    if old is ColumnType.INT and isinstance(asked, DecimalType) and asked.whole_digits < INT_DIGITS:
        return -(10**asked.whole_digits) + 1, 10**asked.whole_digits - 1
    if (old, asked) == (ColumnType.INT, ColumnType.FLOAT):
        return -EXACT_IN_FLOAT, EXACT_IN_FLOAT
    if (old, asked) == (ColumnType.DATE, ColumnType.TIMESTAMP):
        return -(2**63) // DAY + 1, (2**63 - 1) // DAY
    return None


def holds(value_type: ValueType, declared: ValueType) -> bool:
    """Whether a column of the type `declared` takes all values that a definition gives as `value_type`."""
    if value_type == declared or (value_type, declared) in _TAKEN_AS:
        return True
    if not isinstance(declared, DecimalType):
        return False
    if value_type is ColumnType.INT:
        return declared.whole_digits >= INT_DIGITS
    return isinstance(value_type, DecimalType) and _common_decimal(value_type, declared) == declared


def following(current: Sequence[Column], columns: Sequence[Column]) -> tuple[Column, ...]:
    """The columns that a definition gives, with the types that a collection of it gets that has the columns `current`.

    A column stays as it is where it holds the values of the definition, and gets wider where it can. Where it cannot,
    it has the type of the definition, which `evolved` refuses.
    """
    types = {column.name: column.type for column in current}
    return tuple(replace(column, type=_following(types.get(column.name), column.type)) for column in columns)


def _following(old: ValueType | None, new: ValueType) -> ValueType:
    if old is None or widens(old, new):
        return new
    if holds(new, old):
        return old
    return _common_decimal(old, new) or new


def _common_decimal(old: ValueType, new: ValueType) -> DecimalType | None:
    """The narrowest decimal that holds all values of two types; None if there is none."""
    if not isinstance(old, DecimalType) or not isinstance(new, DecimalType):
        return None
    whole, scale = max(old.whole_digits, new.whole_digits), max(old.scale, new.scale)
    return DecimalType(whole + scale, scale) if whole + scale <= MAX_PRECISION else None


def widened(current: Collection, asked: Collection) -> Iterator[tuple[Column, Column]]:
    """The value columns whose type changed, as they were and as they are to be."""
    new = {column.id: column for column in asked.stored_value}
    yield from ((old, new[old.id]) for old in current.stored_value if old.type != new[old.id].type)


def differences(current: Collection, new: Collection) -> list[str]:
    """What became of the value columns, one line each."""
    old, names = {column.id: column for column in current.value}, {column.name for column in current.dropped}
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


def evolved(current: Collection, asked: Collection) -> Collection:
    """What a state with the declaration `current` declares once `asked` is brought in; `current` if nothing changed.

    `asked` comes from a file: its columns count by name, their order does not. Raises InvalidUsage for a change that
    rows at rest cannot follow, with both values and what would be needed.
    """
    _check_frozen(current, asked)
    asked = as_ordered(current, asked)
    names = [column.name for column in asked.columns]
    column_names.check(names, kept={column.name for column in current.columns})
    sources = _sources(current, asked)
    taken = {source.id for source in sources.values() if source}
    gone = tuple(column for column in current.value if column.id not in taken)
    last = max(column.id for column in (*current.key, *current.stored_value))
    value = []
    for column in asked.value:
        source = sources[column.name]
        last += source is None
        value.append(replace(column, id=source.id if source else last))
    value.sort(key=lambda column: column.id)
    dropped = tuple(sorted((*current.dropped, *gone), key=lambda column: column.id))
    hidden = _evolved_hidden(current, asked, last)
    lost = {column.id for column in current.hidden} - {column.id for column in hidden}
    dropped = tuple(sorted((*dropped, *(c for c in current.hidden if c.id in lost)), key=lambda column: column.id))
    changed = (tuple(value), hidden, dropped) != (current.value, current.hidden, current.dropped)
    new = replace(
        asked,
        key=current.key,
        value=tuple(value),
        hidden=hidden,
        dropped=dropped,
        schema=current.schema + changed,
        renames=_exchanged(asked.renames),
    )
    check_successor(current, new)
    return new


def _evolved_hidden(current: Collection, asked: Collection, last: int) -> tuple[Column, ...]:
    """The hidden columns asked for: those of `current`, if they are the same, else all of them as new ones, numbered
    above `last`. They are nobody's but ours. What one describes follows from all of them together: under one name and
    type may be another sum."""
    if _described(current.hidden) == _described(asked.hidden):
        return current.hidden
    return tuple(replace(column, id=last + 1 + at) for at, column in enumerate(asked.hidden))


def started(asked: Collection, current: Collection | None = None) -> Collection:
    """What a new collection declares, or `current` without rows: nothing was called otherwise before.

    Raises:
        InvalidUsage: A name is reserved, or messages would be in no order.
    """
    column_names.check([column.name for column in asked.columns])
    return replace(newly_ordered(asked, current), renames=_exchanged(asked.renames))


def check_successor(current: Collection, new: Collection) -> None:
    """Raise InvalidUsage unless rows at rest under `current` can be read under `new`: every column kept by its id, of
    its type or a wider one, others behind them, and the order of facts the same."""
    _check_frozen(current, new)
    kept = {column.id: column for column in new.stored_value}
    for old in current.stored_value:
        column = kept.pop(old.id, None)
        if column is None or (old in current.dropped and old not in new.dropped):
            raise InvalidUsage(f"column {old.name} of {current.name}, number {old.id}, is neither kept nor dropped")
        if column.type != old.type and not widens(old.type, column.type):
            raise _refused(
                current,
                f"value column {old.name}",
                str(old.type),
                str(column.type),
                f"{_nearest_wider(old.type, column.type)}{_instead(current, old)}, or {_advice(current)}",
            )
    last = max(column.id for column in (*current.key, *current.stored_value))
    if early := [column.name for column in kept.values() if column.id <= last]:
        raise InvalidUsage(f"column {early[0]} of {current.name} is new, and must be numbered above {last}")
    _check_coordinates(current, new)
    _check_readings(current, new)
    _check_layout(current, new)


def _instead(current: Collection, column: Column) -> str:
    if not current.is_derived:
        return "add a column of another name"
    return f"write CAST(… AS {_SQL_TYPES.get(column.type, column.type)}) AS {column.name} in its definition"


_SQL_TYPES: dict[ValueType, str] = {
    ColumnType.INT: "bigint",
    ColumnType.FLOAT: "double",
    ColumnType.BYTES: "binary",
    ColumnType.JSON: "string",
}
"""What Spark SQL calls a type, where that is another name."""


def _nearest_wider(old: ValueType, asked: ValueType) -> str:
    """The decimal that holds the values of both, if there is one, as the first half of an advice."""
    common = _common_decimal(old, asked)
    return "" if common is None else f"{common} would hold both; or "


def _check_frozen(current: Collection, asked: Collection) -> None:
    check_begun(current, asked)
    if current.is_derived and [column.name for column in current.key] == [column.name for column in asked.key]:
        for column, other in zip(current.key, asked.key, strict=True):
            if column.type != other.type:
                needed = f"{_instead(current, column)}, or {_advice(current)}"
                raise _refused(current, f"key column {column.name}", str(column.type), str(other.type), needed)
    for what, old, new in (
        ("key", _described(current.key), _described(asked.key)),
        *_envelopes(current, asked),
    ):
        if old != new:
            raise _refused(current, what, old, new, _advice(current))


def check_begun(current: Collection, new: Collection) -> None:
    """Raise InvalidUsage for what cannot change once intervals are counted: name, origin, and where they begin."""
    for what, before, after in (
        ("name", current.name, new.name),
        ("origin", current.origin.kind, new.origin.kind),
        ("timezone", current.zone, new.zone),
        ("start", format_local(current.start, current.zone), format_local(new.start, new.zone)),
    ):
        if before != after:
            raise _refused(current, what, before, after, _advice(current))


def _envelopes(current: Collection, new: Collection) -> Iterator[tuple[str, str, str]]:
    """What source rows say. A derived collection may be defined otherwise: what differs by that is the next thing it
    is corrected by."""
    if not current.is_derived:
        yield "envelope", str(current.landed.source.envelope), str(new.landed.source.envelope)


def _check_layout(current: Collection, new: Collection) -> None:
    """Rows at rest are in order of it."""
    if _placed_by(current) != _placed_by(new):
        raise _refused(current, "layout", _layout_text(current), _layout_text(new), _advice(current))


def _placed_by(of: Collection) -> tuple[int, int] | None:
    return None if of.layout is None else (of.column(of.layout.by).id, of.layout.every)


def _layout_text(of: Collection) -> str:
    return f"by {of.layout.by}, every {format_duration(of.layout.every)}" if of.layout else "none"


def _check_coordinates(current: Collection, new: Collection) -> None:
    """The same source columns give the times and break ties as before, renamed perhaps."""
    if current.is_derived:
        return
    now = {column.id: column.name for column in new.stored_value}
    renamed = {column.name: now[column.id] for column in current.value}
    for what, old, asked in (
        ("time", current.landed.time, new.landed.time),
        ("event_time", current.landed.event_time, new.landed.event_time),
    ):
        new_name = renamed.get(old or "", old)
        if asked != new_name:
            was = old or "nothing" if new_name == old else f"{old} (now {new_name})"
            raise _refused(current, what, was, asked or "nothing", _advice(current))
    before, now_by = current.landed.source, new.landed.source
    expected = with_names(before.order_by, renamed)
    if (now_by.order_by or None) != (expected or None):
        was = described(before.order_by)
        was += "" if expected == before.order_by else f" (now {described(expected)})"
        raise _refused(current, "order_by", was, described(now_by.order_by), _advice(current))
    for name, new_name in zip(before.order_columns, now_by.order_columns, strict=True):
        types = current.type_of(name), new.type_of(new_name)
        if types[0] != types[1] and (current.has_places or not widens(*types)):
            raise _refused(current, f"order_by column {name}", str(types[0]), str(types[1]), _advice(current))


def newly_bounded(current: Collection, new: Collection) -> Iterator[tuple[Column, tuple[int, int]]]:
    """The columns for which a declaration says, as the first one, what becomes of far times.

    Yields:
        A column, and the bounds of times that are not far. A value at rest beyond them was taken as it was.
    """
    if current.is_derived:
        return
    now = {column.id: column.name for column in new.stored_value}
    for column in current.columns:
        was = current.landed.source.beyond_of(column.name)
        if was is None and new.landed.source.beyond_of(now.get(column.id, column.name)) is not None:
            yield column, first_and_last("days" if column.type is ColumnType.DATE else "us")


def newly_published(current: Collection, new: Collection) -> Iterator[tuple[Column, tuple[int, int], TableFormat]]:
    """The columns that a declaration publishes, as the first one, in a table that has the years 1 to 9999 alone.

    Yields:
        A column, the bounds of the times that the table has, and the table's format.
    """
    for column in current.columns:
        if not any(table.format.is_within_years(column.type) for table in current.publish):
            for format in (table.format for table in new.publish if table.format.is_within_years(column.type)):
                yield column, first_and_last("days" if column.type is ColumnType.DATE else "us"), format


def _check_readings(current: Collection, new: Collection) -> None:
    """Raise InvalidUsage where what files say would mean something else than it did when the rows at rest were read."""
    if current.is_derived:
        return
    now = {column.id: column.name for column in new.stored_value}
    before, source = current.landed.source, new.landed.source
    for column in (*current.columns, *current.landed.inputs):
        name, new_name = column.name, now.get(column.id, column.name)
        words: list[tuple[str, str | None, str | None]] = []
        if column.type in (ColumnType.TIMESTAMP, ColumnType.DATE):
            words = [("unit", before.unit_of(name), source.unit_of(new_name))]
            far = before.beyond_of(name), source.beyond_of(new_name)
            if far[0] in ("null", "clip"):
                words.append(("beyond", far[0], far[1] or "nothing"))
            forms = before.format_of(name) or _ISO, source.format_of(new_name) or _ISO
            zones = before.timezone_of(name) or "UTC", source.timezone_of(new_name) or "UTC"
            words += [("format", *forms), ("timezone", *zones)]
            if (choice := before.choice_of(name)) is not None:
                words.append(("ambiguous", choice, source.choice_of(new_name) or "refuse"))
        if isinstance(column.type, DecimalType):
            words = [("decimals", before.decimals_of(name), source.decimals_of(new_name))]
        for what, old, new_word in words:
            # Where nothing was said of numbers there were none.
            if old is not None and new_word is not None and old != new_word:
                raise _refused(current, f"{what} of column {new_name}", old, new_word, _advice(current))


def _sources(current: Collection, asked: Collection) -> dict[str, Column | None]:
    """For each value column asked for the current one that it is, or None if it is new."""
    live = {column.name: column for column in current.value}
    old_names = {new: old for old, new in asked.renames}
    wanted = {column.name for column in asked.value}
    renamed = pending_renames(current, asked.renames, wanted)
    sources: dict[str, Column | None] = {}
    for column in asked.value:
        name = column.name
        if name not in live:
            _check_dropped(current, column)
        if name in renamed:
            sources[name] = live[renamed[name]]
        else:
            sources[name] = _source(current, column, old_names.get(name), live, wanted)
    return sources


def pending_renames(current: Collection, renames: Sequence[tuple[str, str]], wanted: Names[str]) -> dict[str, str]:
    """The columns that get the name of another one now, each with its old name.

    A name that is taken already is free only if its column is renamed in turn, as where names are exchanged (a was b,
    b was a) or shift (b was a, c was b). Exchanges that an earlier declaration brought in, `current.renames`, are done.

    Args:
        renames: Pairs (old name, new name), as a file asks for them.
        wanted: The value columns that the file lists.
    """
    live = {column.name for column in current.value}
    pending = {new: old for old, new in renames if new in wanted and old in live and (old, new) not in current.renames}
    while True:
        leaving = set(pending.values())
        blocked = [
            new
            for new, old in pending.items()
            if (new in live and new not in leaving) or (old in wanted and old not in pending)
        ]
        if not blocked:
            return pending
        for new in blocked:
            del pending[new]


def _exchanged(renames: Sequence[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
    """The renames (old name, new name) that go around in circles: names alone do not show whether they are done."""
    old_names = {new: old for old, new in renames}

    def returns(name: str) -> bool:
        at = old_names.get(name)
        for _ in renames:
            if at is None or at == name:
                break
            at = old_names.get(at)
        return at == name

    return tuple(sorted(pair for pair in renames if returns(pair[1])))


def _check_dropped(current: Collection, column: Column) -> None:
    """Raise InvalidUsage if a dropped column of the same name had another type: nobody is to take one for the other."""
    for old in current.dropped:
        if old.name == column.name and old.type != column.type:
            needed = "call the column otherwise"
            raise _refused(current, f"dropped column {old.name}", str(old.type), str(column.type), needed)


def _source(
    current: Collection, column: Column, was: str | None, live: Mapping[str, Column], wanted: Names[str]
) -> Column | None:
    name = column.name
    if name in live:
        if was is not None and was in live and was not in wanted:
            steps = f"first bring in a file that lists {was} and not {name}, then this one"
            if live[was].type != live[name].type:
                steps = f"call {was} by a name that no column has had"
            raise InvalidUsage(f"column {name} of {current.name} was {was}, but the collection has both; {steps}")
        return live[name]
    if was is None:
        return None
    if was in wanted:
        raise InvalidUsage(
            f"column {name} of {current.name} was {was}, which is still listed; list one of them; if {was} is to be a "
            f"new column, list it once {name} is brought in"
        )
    if was not in live:
        raise InvalidUsage(
            f"column {name} of {current.name} was {was}, but the collection has neither; "
            f"its value columns are {', '.join(live) or 'none'}: correct `was`, or remove it to add {name} as new"
        )
    return live[was]


def _advice(current: Collection) -> str:
    also = "" if current.is_derived else " and ingest the files again"
    return f"declare a collection of another name{also} to have it so"


def _refused(current: Collection, what: str, old: str, new: str, needed: str) -> InvalidUsage:
    return InvalidUsage(f"{what} of collection {current.name} cannot change from {old} to {new}; {needed}")


def _described(columns: Iterable[Column]) -> str:
    return ", ".join(f"{column.name} {column.type}" for column in columns)
