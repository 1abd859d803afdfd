"""Rows of an input as the law of windows takes them: which of them count, the values that are aggregated, when each
happened, and when that was learned.

Conditions and expressions are computed row by row in plain Python (model/projected_row.py). Those that only Spark knows
are a select of these rows, each by itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from tidemark.arrow.rows.columns import integers
from tidemark.arrow.rows.schema import DIFF, TIME
from tidemark.definition.computation import Computation, Input
from tidemark.definition.windows.by_law import NUMBER, Lawful, beyond_the_law
from tidemark.jobs.job import Job
from tidemark.jobs.queries.law_rows import NAN, Group, Grouped, cells
from tidemark.model.collection import ColumnType, DecimalType, ValueType
from tidemark.model.projected_row import projected_row
from tidemark.model.window.happened import Happened
from tidemark.model.window.kinds import Session

Values = dict[int, dict[str, Any]]
"""Of each row that counts, by its number, the columns that are aggregated."""
Types = Mapping[str, ValueType]
_BEFORE = -(2**62)
"""What came before whatever is judged."""
_TYPES = (
    (pa.types.is_boolean, ColumnType.BOOL),
    (pa.types.is_integer, ColumnType.INT),
    (pa.types.is_floating, ColumnType.FLOAT),
    (pa.types.is_string, ColumnType.STRING),
    (pa.types.is_large_string, ColumnType.STRING),
    (pa.types.is_date32, ColumnType.DATE),
    (pa.types.is_timestamp, ColumnType.TIMESTAMP),
    (pa.types.is_binary, ColumnType.BYTES),
)


class BeyondTheLaw(Exception):
    """The law does not say what these windows are; why, for people."""


@dataclass(frozen=True)
class Seen:
    """Rows that count, by their numbers, as the law takes them; and the aggregates of floats."""

    rows: Mapping[int, Happened]
    floats: frozenset[str] = frozenset()

    @classmethod
    def of(cls, job: Job, computation: Computation, law: Lawful, rows: Grouped, numbers: Sequence[int]) -> Seen:
        """Those rows that have some numbers. Raises BeyondTheLaw for aggregates that the law does not say,
        ArithmeticError for a value that is beyond its type."""
        if not numbers:
            return cls({})
        (given,), by = computation.inputs, law.windows.by
        some = rows.rows.take(pa.array(numbers, pa.int64()))
        values, types = _by_spark(job, computation.name, given, law, some) if law.selects else _by_rows(law, some)
        of = {one: types[one.of] if one.of else None for one in law.windows.aggregates}
        if beyond := [why for one, type_ in of.items() if (why := beyond_the_law(one, type_))]:
            raise BeyondTheLaw(beyond[0])
        at, diffs = rows.places[list(numbers)].tolist(), integers(some, DIFF).tolist()
        learned, own = _learned(given, law, some), _identities(given, law, some)
        keys = zip(*(cells(some.column(name)) for name in by), strict=True)
        groups: Iterator[Group] = keys if by else iter([()] * len(numbers))
        happened = {
            number: Happened(group, (own[row], *values[row].items()), at[row], learned[row], diffs[row])
            for row, (number, group) in enumerate(zip(numbers, groups, strict=True))
            if row in values
        }
        return cls(happened, frozenset(one.name for one, type_ in of.items() if type_ is ColumnType.FLOAT))


def value_of(one: Any, value: Any) -> Any:
    """What an aggregate is computed from, in the value of a row."""
    return next(cell for name, cell in value[1:] if name == one.of)


def _identities(given: Input, law: Lawful, some: pa.Table) -> list[Any]:
    """What distinguishes rows: of sessions that take late rows only for a while, a row is retracted from the session
    that has it."""
    if law.windows.counts_late_for is None or not isinstance(law.windows.kind, Session):
        return [None] * some.num_rows
    return list(zip(*(cells(some.column(column.name)) for column in given.state.collection.columns), strict=True))


def _learned(given: Input, law: Lawful, some: pa.Table) -> list[int]:
    """Up to where the input was complete when each row came; without a bound on lateness that does not matter."""
    if law.windows.counts_late_for is None:
        return [0] * some.num_rows
    judging, times = given.judging, integers(some, TIME).tolist()
    known = {time: judging.learned(time) for time in set(times)}
    return [_BEFORE if (found := known[time]) is None else found for time in times]


def _by_rows(law: Lawful, some: pa.Table) -> tuple[Values, Types]:
    lists = {name: cells(some.column(name)) for name in law.columns if name in some.schema.names}
    own = [name for name in sorted({one.of for one in law.windows.aggregates}) if name in lists]
    found: Values = {}
    for number in range(some.num_rows):
        row = {name: column[number] for name, column in lists.items()}
        more = {} if law.projection is None else projected_row(law.projection, law.types, row)
        if more is not None:
            given = {name: row[name] for name in own} | more
            found[number] = {name: NAN if cell != cell else cell for name, cell in given.items()}
    return found, law.types


def _by_spark(job: Job, name: str, given: Input, law: Lawful, some: pa.Table) -> tuple[Values, Types]:
    of = sorted({one.of for one in law.windows.aggregates if one.of})
    names = [column.name for column in given.state.collection.columns if column.name in some.schema.names]
    numbered = some.select(names).append_column(NUMBER, pa.array(range(some.num_rows), pa.int64()))
    table = job.computer.values(name, given.name, numbered, law.selects)
    rows = zip(*(cells(table.column(one)) for one in of), strict=True) if of else iter([()] * table.num_rows)
    numbers = table.column(NUMBER).to_pylist()
    values = {number: dict(zip(of, row, strict=True)) for number, row in zip(numbers, rows, strict=True)}
    return values, {one: _type_of(table.column(one).type) for one in of}


def _type_of(of: pa.DataType) -> ValueType:
    """The type that values of Spark's have for the law."""
    if pa.types.is_decimal(of):
        return DecimalType(of.precision, of.scale)
    for test, found in _TYPES:
        if test(of):
            return found
    raise BeyondTheLaw(f"values of type {of}")
