"""Which rows are asked for: a condition as text, or values by column."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from types import MappingProxyType
from typing import Any

import pyarrow as pa

from tidemark.api.values import value_of
from tidemark.arrow.rows.arrays import no_rows
from tidemark.arrow.rows.condition import holds
from tidemark.arrow.rows.schema import EVENT_TIME, arrow_type, plain_scalars
from tidemark.config.nearest import nearest
from tidemark.errors import InvalidUsage, listed, plain_line
from tidemark.model.collection import Collection, Column, ColumnType, ValueType
from tidemark.model.condition.bounds import ValueRange, bounds
from tidemark.model.condition.text import ColumnValue, read_where
from tidemark.model.condition.tree import And, Compare, Condition, In, IsNull, Literal, Or, bound, columns

Where = str | Mapping[str, Any]
"""A condition as text, COLUMN=VALUE (model/condition/text.py), or what each of some columns is equal to: a value, None
for null, or a list of these for any of them. So an array of JSON is text, or a list within the list."""


LEARNED: Mapping[str, ValueType] = {
    "_event_time": ColumnType.TIMESTAMP,
    "_commit_timestamp": ColumnType.TIMESTAMP,
    "_commit_version": ColumnType.INT,
}
"""When a change happened, and when it was learned: what conditions on changes may look at beside the columns. The
answer has `_event_time` in microseconds; a condition compares it with a time."""


ALL = And(())
"""The condition that every row fits."""
NOTHING: Mapping[str, ValueType] = MappingProxyType({})


@dataclass(frozen=True)
class Conditions:
    """What is asked of rows: that `condition` is true, whose literals are as the columns hold them."""

    condition: Condition = ALL

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns it looks at."""
        return columns(self.condition)

    def and_also(self, other: Condition) -> Conditions:
        """That both hold."""
        return self if other is ALL else Conditions(And((self.condition, other)))

    def fitting(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The rows of a batch that fit."""
        return batch.filter(holds(self.condition, _with_instants(batch)))

    def bounds(self, column: Column) -> ValueRange:
        """Which values of a column a row that fits may have."""
        return bounds(self.condition, column.name, column.type)


def _with_instants(batch: pa.RecordBatch) -> pa.RecordBatch:
    """A batch whose event times, if it has any, are times in place of numbers."""
    at = batch.schema.get_field_index(EVENT_TIME)
    return batch if at < 0 else batch.set_column(at, EVENT_TIME, batch.column(at).cast(arrow_type(LEARNED[EVENT_TIME])))


def conditions_of(
    collection: Collection, where: Where | Sequence[Where] | None, beside: Mapping[str, ValueType] = NOTHING
) -> Conditions:
    """What is asked of the rows of a collection, all of it if there are several. Conditions may look at its columns,
    and at those that the answer has `beside` them.

    Raises InvalidUsage for a column the collection does not have, with the nearest it has, for a value that is none of
    its column's type, and for text that is no condition.
    """
    found: list[Condition] = []
    several = [] if where is None else where if isinstance(where, list | tuple) else [where]
    for one in several:
        if isinstance(one, Mapping):
            found += (_equality(collection, column, value, beside) for column, value in one.items())
        elif isinstance(one, str):
            found.append(_condition(collection, one, beside))
        else:
            raise InvalidUsage(
                f"where is {one!r} ({type(one).__name__}); write a condition as text, or a dict of values by column"
            )
    return Conditions(found[0] if len(found) == 1 else And(tuple(found)))


def check_columns(collection: Collection, named: Sequence[str], argument: str, beside: Iterable[str] = ()) -> None:
    """Raise InvalidUsage for the first that is no column of the collection, and none of those beside them."""
    names = [*(column.name for column in collection.columns), *beside]
    for name in named:
        if name not in names:
            near = nearest(name, names) if isinstance(name, str) else ""
            near = near if "did you mean" in near else f"; there are {listed(names)}"
            near = "; only changes that are not net have it" if name in LEARNED else near
            raise InvalidUsage(f"{argument}: collection {collection.name} has no column {name!r}{near}")


def _condition(collection: Collection, text: str, beside: Mapping[str, ValueType]) -> Condition:
    types = _types(collection, beside)
    condition = read_where(text, types)
    if isinstance(condition, ColumnValue):
        return _equality(collection, *condition, beside)
    check_columns(collection, columns(condition), "where", beside)
    typed = bound(condition, types.__getitem__)
    try:  # what no value can be compared with is refused now, not when the first row is read
        holds(typed, no_rows(pa.schema([(name, arrow_type(of)) for name, of in types.items()])))
    except (ValueError, ArithmeticError, pa.ArrowInvalid) as error:
        raise InvalidUsage(f"where: {plain_line(text)!r} cannot be compared: {error}") from None
    return typed


def _types(collection: Collection, beside: Mapping[str, ValueType]) -> dict[str, ValueType]:
    return {column.name: column.type for column in collection.columns} | dict(beside)


def _equality(collection: Collection, name: str, value: Any, beside: Mapping[str, ValueType]) -> Condition:
    check_columns(collection, [name], "where", beside)
    of = _types(collection, beside)[name]
    several = list(value) if isinstance(value, list | tuple | set | frozenset) else [value]
    return is_any(name, [value_of(name, one, arrow_type(of), of is ColumnType.JSON) for one in several])


def is_any(column: str, values: Sequence[pa.Scalar]) -> Condition:
    """That a column holds one of some values, which may be null."""
    literals = tuple(_literal(one) for one in values if one.is_valid)
    known = Compare(column, "=", literals[0]) if len(literals) == 1 else In(column, literals)
    return known if all(one.is_valid for one in values) else Or((known, IsNull(column)))


def _literal(value: pa.Scalar) -> Literal:
    """A value as conditions have it: exactly."""
    if pa.types.is_temporal(value.type):
        (plain,) = plain_scalars(pa.repeat(value, 1))
        assert isinstance(plain, int)
        return plain
    literal: Literal | float = value.as_py()
    return Decimal(literal) if isinstance(literal, float) else literal
