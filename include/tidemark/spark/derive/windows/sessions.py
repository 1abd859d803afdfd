"""Sessions by Spark. Of rows that one task puts in order each is told where its session begins, and grouped by that.

Of more rows those of a stretch of time that one session surely holds whole are brought together first (cells), so that
few are put in order by key, also of a key with many rows; then cells are put together, or rows told which session is
theirs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from tidemark.arrow.kernels.windows.sessions import BEYOND, FAR, FIRST, LAST, START, Gaps, in_sessions
from tidemark.definition.recipe import CELLED, InSessions, MergedCells
from tidemark.definition.state import Op
from tidemark.definition.windows.assigned import AT, END
from tidemark.definition.windows.sessions import BUCKET
from tidemark.plan.tasks import KeyRange
from tidemark.spark.derive.queried import queried
from tidemark.spark.derive.through_arrow import through
from tidemark.spark.derive.timeline import floored
from tidemark.spark.derive.touched import Touched, named
from tidemark.spark.derive.views import Views
from tidemark.spark.read import LEAST_TASK_ROWS

_PARTED = "_parted"
"""The column of cells that says where a session begins, of those with which one does."""
_MERGED = {Op.ADD: F.sum, Op.MIN: F.min, Op.MAX: F.max, Op.BIT_OR: F.bit_or}


def all_sessions(views: Views, rule: InSessions) -> DataFrame:
    """The sessions of all rows of the input."""
    return sessions_in(views, rule)


def sessions_of(views: Views, rule: InSessions, keys: Touched) -> DataFrame:
    """The sessions of the rows that have some values in the columns of `by`: k0, k1, …."""
    collection = views.computation.input(rule.input).state.collection
    ranges = keys.ranges(views, rule.input, collection, named(rule.by))
    return sessions_in(views, rule, ranges, chosen=lambda rows: keys.among(rows, rule.by))


def sessions_in(
    views: Views,
    rule: InSessions,
    ranges: Sequence[KeyRange] = (),
    between: tuple[int, int] | None = None,
    chosen: Callable[[DataFrame], DataFrame] = lambda rows: rows,
) -> DataFrame:
    """The sessions of those rows that are `chosen` of what an input holds in some ranges, where it is seen when rows
    happened `between` two instants."""
    held = views.held(rule.input, ranges, between)
    few = views.rows_held(rule.input, ranges) <= LEAST_TASK_ROWS
    rows = chosen(queried(views, {rule.input: held.coalesce(1) if few else held}, rule.rows))
    if few and rule.kind.max_length is None:
        return queried(views, {rule.input: _begun_within(rule, rule.by, rows, AT, AT)}, rule.windows)
    # A session may be cut within what is otherwise surely one: then each instant is a cell.
    bucket = floored(AT, rule.kind.gap) if rule.kind.max_length is None else F.col(AT)
    if rule.merged is not None:
        return _of_cells(views, rule, rule.merged, rows.withColumn(BUCKET, bucket))
    return _joined(views, rule, rows.withColumn(BUCKET, bucket))


def keys_of(rule: InSessions) -> list[str]:
    """What values of `by` are called in cells."""
    return [f"k{at}" for at in range(len(rule.by))]


def _joined(views: Views, rule: InSessions, rows: DataFrame) -> DataFrame:
    """The sessions of rows that are told by a join which of them is theirs."""
    keys = keys_of(rule)
    rows = views.kept(rows.select(*(F.col(f"`{name}`") for name in rule.columns), AT, BUCKET))
    by = [F.col(f"`{name}`").alias(key) for name, key in zip(rule.by, keys, strict=True)]
    cells = rows.groupBy(*by, F.col(BUCKET)).agg(F.min(AT).alias(FIRST), F.max(AT).alias(LAST))
    begun = _begun(rule, cells).select(*keys, F.col(BUCKET).alias("_of"), START)
    same = [rows[f"`{name}`"].eqNullSafe(begun[key]) for name, key in zip(rule.by, keys, strict=True)]
    joined = rows.join(begun, reduce(lambda one, other: one & other, [rows[BUCKET] == begun["_of"], *same]))
    told = joined.select(*(rows[f"`{name}`"] for name in rule.columns), rows[AT], begun[START])
    return queried(views, {rule.input: told}, rule.windows)


def _of_cells(views: Views, rule: InSessions, merged: MergedCells, rows: DataFrame) -> DataFrame:
    """The sessions of rows by the states of their cells: no row is looked at twice, or goes anywhere by itself."""
    cells, kind = queried(views, {rule.input: rows}, merged.cells), rule.kind
    end = F.max(LAST) + F.lit(kind.gap)
    if kind.max_length is not None:
        end = F.least(end, F.col(START) + F.lit(kind.max_length))
    types = {field.name: field.dataType for field in cells.schema.fields}
    states = [_MERGED[one.op](one.name).cast(types[one.name]).alias(one.name) for one in merged.states]
    together = _begun(rule, cells).groupBy(*keys_of(rule), START).agg(end.alias(END), *states)
    return queried(views, {CELLED: together}, merged.windows)


def _begun(rule: InSessions, cells: DataFrame) -> DataFrame:
    """Cells with START, at which their session begins."""
    kind, keys = rule.kind, keys_of(rule)
    if kind.max_length is None:
        return _begun_within(rule, keys, cells, FIRST, LAST)
    ordered = (cells.repartition(*keys) if keys else cells.repartition(1)).sortWithinPartitions(*keys, FIRST)
    gaps = Gaps(tuple(keys), kind.gap, kind.exact_gap_merges, kind.max_length)
    schema = T.StructType([*ordered.schema.fields, T.StructField(START, T.LongType())])
    return through(ordered, lambda batches: in_sessions(batches, gaps), schema)


def _begun_within(rule: InSessions, by: Sequence[str], cells: DataFrame, first: str, last: str) -> DataFrame:
    """The same of sessions of any length, for cells that are told apart `by` these columns, from their `first` to their
    `last` instant: expressions say it as well as a kernel, and what is grouped by START then stays where it is."""
    reach, of = rule.kind.gap - (0 if rule.kind.exact_gap_merges else 1), ", ".join(f"`{name}`" for name in by)
    ordered = f"{f'PARTITION BY {of} ' if by else ''}ORDER BY {first}"
    far = f"raise_error(concat('a row is at ', {first}, ', {BEYOND}'))"
    begins = f"IF({first} BETWEEN {-FAR}L AND {FAR}L, {first}, CAST({far} AS bigint))"
    goes_on = f"{begins} - lag({last}) OVER ({ordered}) <= {reach}L"
    parted = cells.selectExpr("*", f"IF({goes_on}, null, {begins}) AS {_PARTED}")
    return parted.selectExpr("*", f"max({_PARTED}) OVER ({ordered} ROWS UNBOUNDED PRECEDING) AS {START}")
