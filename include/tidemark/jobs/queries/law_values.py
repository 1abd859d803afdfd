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
        (source,), by = computation.inputs, law.windows.by
        table = rows.rows.take(pa.array(numbers, pa.int64()))
        values, types = _by_spark(job, computation.name, source, law, table) if law.selects else _by_rows(law, table)
        argument_types = {
            aggregate: types[aggregate.of] if aggregate.of else None for aggregate in law.windows.aggregates
        }
        if beyond := [why for aggregate, type_ in argument_types.items() if (why := beyond_the_law(aggregate, type_))]:
            raise BeyondTheLaw(beyond[0])
        at, diffs = rows.places[list(numbers)].tolist(), integers(table, DIFF).tolist()
        learned, own = _learned(source, law, table), _identities(source, law, table)
        keys = zip(*(cells(table.column(name)) for name in by), strict=True)
        groups: Iterator[Group] = keys if by else iter([()] * len(numbers))
        happened = {
            number: Happened(group, (own[row], *values[row].items()), at[row], learned[row], diffs[row])
            for row, (number, group) in enumerate(zip(numbers, groups, strict=True))
            if row in values
        }
        return cls(
            happened,
            frozenset(aggregate.name for aggregate, type_ in argument_types.items() if type_ is ColumnType.FLOAT),
        )


def value_of(aggregate: Any, value: Any) -> Any:
    """What an aggregate is computed from, in the value of a row."""
    return next(cell for name, cell in value[1:] if name == aggregate.of)


def _identities(source: Input, law: Lawful, table: pa.Table) -> list[Any]:
    """What distinguishes rows: of sessions that take late rows only for a while, a row is retracted from the session
    that has it."""
    if law.windows.counts_late_for is None or not isinstance(law.windows.kind, Session):
        return [None] * table.num_rows
    return list(zip(*(cells(table.column(column.name)) for column in source.state.collection.columns), strict=True))


def _learned(source: Input, law: Lawful, table: pa.Table) -> list[int]:
    """Up to where the input was complete when each row came; without a bound on lateness that does not matter."""
    if law.windows.counts_late_for is None:
        return [0] * table.num_rows
    judging, times = source.judging, integers(table, TIME).tolist()
    completeness = {time: judging.learned(time) for time in set(times)}
    return [_BEFORE if (complete := completeness[time]) is None else complete for time in times]


def _by_rows(law: Lawful, table: pa.Table) -> tuple[Values, Types]:
    lists = {name: cells(table.column(name)) for name in law.columns if name in table.schema.names}
    own = [name for name in sorted({aggregate.of for aggregate in law.windows.aggregates}) if name in lists]
    values: Values = {}
    for number in range(table.num_rows):
        row = {name: column[number] for name, column in lists.items()}
        more = {} if law.projection is None else projected_row(law.projection, law.types, row)
        if more is not None:
            row_values = {name: row[name] for name in own} | more
            values[number] = {name: NAN if cell != cell else cell for name, cell in row_values.items()}
    return values, law.types


def _by_spark(job: Job, name: str, source: Input, law: Lawful, chosen: pa.Table) -> tuple[Values, Types]:
    columns = sorted({aggregate.of for aggregate in law.windows.aggregates if aggregate.of})
    names = [column.name for column in source.state.collection.columns if column.name in chosen.schema.names]
    numbered = chosen.select(names).append_column(NUMBER, pa.array(range(chosen.num_rows), pa.int64()))
    table = job.computer.values(name, source.name, numbered, law.selects)
    rows = (
        zip(*(cells(table.column(column)) for column in columns), strict=True)
        if columns
        else iter([()] * table.num_rows)
    )
    numbers = table.column(NUMBER).to_pylist()
    values = {number: dict(zip(columns, row, strict=True)) for number, row in zip(numbers, rows, strict=True)}
    return values, {column: _type_of(table.column(column).type) for column in columns}


def _type_of(type_: pa.DataType) -> ValueType:
    """The type that values of Spark's have for the law."""
    if pa.types.is_decimal(type_):
        return DecimalType(type_.precision, type_.scale)
    for test, column_type in _TYPES:
        if test(type_):
            return column_type
    raise BeyondTheLaw(f"values of type {type_}")
