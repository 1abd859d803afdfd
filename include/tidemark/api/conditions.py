"""Which rows are asked for: a condition as text, or values by column."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from types import MappingProxyType
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from tidemark.api.values import value_of
from tidemark.arrow.rows.predicate import holds
from tidemark.arrow.rows.schema import EVENT_TIME, arrow_type
from tidemark.config.nearest import nearest
from tidemark.errors import InvalidUsage, listed, plain_line
from tidemark.model.collection import Collection, ColumnType, ValueType
from tidemark.model.predicate import Predicate, bound, check_types, columns, parse

Where = str | Mapping[str, Any]
"""A condition in the language of `delete_when`, or what each of some columns is equal to: a value, None for null, or a
list of these for any of them. So an array of JSON is written as text, or as a list within the list."""


LEARNED: Mapping[str, ValueType] = {
    "_event_time": ColumnType.TIMESTAMP,
    "_commit_timestamp": ColumnType.TIMESTAMP,
    "_commit_version": ColumnType.INT,
}
"""When a change happened, and when it was learned: what conditions on changes may look at beside the columns. The
answer has `_event_time` in microseconds; a condition compares it with a time."""


NOTHING: Mapping[str, ValueType] = MappingProxyType({})


@dataclass(frozen=True)
class Equal:
    """That a column holds one of some values, which may be null."""

    column: str
    values: pa.Array

    def holds(self, batch: pa.RecordBatch) -> pa.BooleanArray:
        """Where it is so. As everywhere in Tidemark an undefined float equals another."""
        column = batch.column(self.column)
        none = pa.array([False] * batch.num_rows, pa.bool_())
        return reduce(pc.or_, (_equal(column, value).fill_null(False) for value in self.values), none)


def _equal(column: pa.Array, value: pa.Scalar) -> pa.BooleanArray:
    if not value.is_valid:
        return pc.is_null(column)
    if pa.types.is_floating(column.type) and value.as_py() != value.as_py():
        return pc.is_nan(column)
    return pc.equal(column, value)


@dataclass(frozen=True)
class Conditions:
    """Rows are asked for that fit all of these."""

    equal: tuple[Equal, ...] = ()
    predicates: tuple[Predicate, ...] = ()

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns they look at."""
        named = (name for predicate in self.predicates for name in columns(predicate))
        return tuple(dict.fromkeys([*(one.column for one in self.equal), *named]))

    def fitting(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The rows of a batch for which all of them hold."""
        for one in self.equal:
            batch = batch.filter(one.holds(_with_instants(batch)))
        for predicate in self.predicates:
            batch = batch.filter(holds(predicate, _with_instants(batch)))
        return batch


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
    equal: list[Equal] = []
    predicates: list[Predicate] = []
    several = [] if where is None else where if isinstance(where, list | tuple) else [where]
    for one in several:
        if isinstance(one, Mapping):
            equal += (_equality(collection, column, value, beside) for column, value in one.items())
        elif isinstance(one, str):
            predicates.append(_predicate(collection, one, beside))
        else:
            raise InvalidUsage(
                f"where is {one!r} ({type(one).__name__}); write a condition as text, or a dict of values by column"
            )
    return Conditions(tuple(equal), tuple(predicates))


def check_columns(collection: Collection, named: Sequence[str], argument: str, beside: Iterable[str] = ()) -> None:
    """Raise InvalidUsage for the first that is no column of the collection, and none of those beside them."""
    names = [*(column.name for column in collection.columns), *beside]
    for name in named:
        if name not in names:
            near = nearest(name, names) if isinstance(name, str) else ""
            near = near if "did you mean" in near else f"; there are {listed(names)}"
            near = "; only changes that are not net have it" if name in LEARNED else near
            raise InvalidUsage(f"{argument}: collection {collection.name} has no column {name!r}{near}")


def _predicate(collection: Collection, text: str, beside: Mapping[str, ValueType]) -> Predicate:
    predicate = parse(text, "where")
    check_columns(collection, columns(predicate), "where", beside)
    types = _types(collection, beside)
    type_of = types.__getitem__
    check_types(predicate, type_of, "where")
    held = bound(predicate, type_of)
    try:  # what no value can be compared with is refused now, not when the first row is read
        holds(held, pa.RecordBatch.from_pylist([], pa.schema([(name, arrow_type(of)) for name, of in types.items()])))
    except (ValueError, ArithmeticError, pa.ArrowInvalid) as error:
        raise InvalidUsage(f"where: {plain_line(text)!r} cannot be compared: {error}") from None
    return held


def _types(collection: Collection, beside: Mapping[str, ValueType]) -> dict[str, ValueType]:
    return {column.name: column.type for column in collection.columns} | dict(beside)


def _equality(collection: Collection, name: str, value: Any, beside: Mapping[str, ValueType]) -> Equal:
    check_columns(collection, [name], "where", beside)
    of = _types(collection, beside)[name]
    several = list(value) if isinstance(value, list | tuple | set | frozenset) else [value]
    values = [value_of(name, one, arrow_type(of), of is ColumnType.JSON) for one in several]
    return Equal(name, pa.array(values, arrow_type(of)))
