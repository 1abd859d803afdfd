"""The rows of a batch, read from its parts: as a frame for the owner's expectations, and by query for people
to see."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import reduce
from operator import and_, or_
from typing import TYPE_CHECKING, Any

from tidemark.model.batch import Part
from tidemark.model.collection import MASKED, Collection, ColumnType, DecimalType, ValueType
from tidemark.model.instant import format_instant
from tidemark.model.landed import FIRST_ROW
from tidemark.quality.suites import Clause, Term
from tidemark.storage import ObjectStore, open_store

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa
    import pyarrow.compute as pc

MAX_ROWS = 20
"""Rows shown of a failing rule."""
GROUPS_AT_ONCE = 4
LONGEST_CELL = 500
"""Characters shown of a value."""

_SPARK_TYPES = {
    ColumnType.BOOL: "boolean",
    ColumnType.INT: "bigint",
    ColumnType.FLOAT: "double",
    ColumnType.STRING: "string",
    ColumnType.DATE: "bigint",
    ColumnType.TIMESTAMP: "bigint",
    ColumnType.BYTES: "string",
    ColumnType.JSON: "string",
}
"""As the owner's expectations see the columns: times and decimals are whole numbers (tidemark.quality.constants)."""


def is_judged(collection: Collection) -> pc.Expression:
    """The source rows that say what the collection shall hold, which the owner's expectations are about:
    neither tombstones nor retractions, so that what breaks an expectation can still be retracted."""
    import pyarrow.compute as pc

    return ~pc.field("_deleted") if collection.kind.facts else pc.field("_diff") > 0


def pandas_rows(store: ObjectStore, parts: Sequence[Part], collection: Collection) -> pd.DataFrame:
    """The declared columns of a small batch's judged rows. Integers stay exact beside nulls; dates are days, timestamps
    microseconds since the epoch, decimals units of their last digit."""
    import pandas as pd
    import pyarrow as pa

    from tidemark.arrow.rows.schema import live_schema

    schema = live_schema(collection, facts=collection.kind.facts)
    none = _in_numbers(schema.empty_table().select([column.name for column in collection.columns]))
    table = pa.concat_tables([none, *(rows for part in parts for rows in _judged_tables(store, part, collection))])
    exact = {"int64": pd.Int64Dtype(), "bool": pd.BooleanDtype()}
    frame: pd.DataFrame = table.to_pandas(types_mapper=lambda kind: exact.get(str(kind)))
    for field in table.schema:
        if pa.types.is_decimal(field.type):
            # Python's integers: sums of 64 bits would wrap.
            units = [None if x is None else int(x) for x in table.column(field.name).to_pylist()]
            frame[field.name] = pd.Series(units, dtype="object")
    return frame


def spark_rows(spark: Any, url: str, parts: Sequence[Part], collection: Collection) -> Any:
    """The same rows of a large batch as a Spark DataFrame, one task per part, read by Arrow in the executors
    so that any store will do. `url` opens the collection's store."""
    from tidemark.spark.workers import in_workers

    def read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        store = open_store(url)
        for batch in batches:
            for at in batch.column(0).to_pylist():
                for table in _judged_tables(store, parts[at], collection):
                    yield from table.to_batches()

    schema = ", ".join(f"`{column.name}` {_spark_type(column.type)}" for column in collection.columns)
    return spark.range(0, len(parts), 1, len(parts)).mapInArrow(in_workers(read), schema)


def _spark_type(of: ValueType) -> str:
    return "decimal(38, 0)" if isinstance(of, DecimalType) else _SPARK_TYPES[of]


def matching_rows(
    store: ObjectStore,
    parts: Sequence[Part],
    clauses: Sequence[Clause],
    collection: Collection,
    *,
    facts: bool,
    among: pc.Expression | None = None,
) -> tuple[dict[str, Any], ...]:
    """At most MAX_ROWS rows of the parts for which any clause holds (and `among`), as JSON values, all their
    columns."""
    if not clauses:
        return ()
    from tidemark.arrow.rows.schema import live_schema

    schema = live_schema(collection, facts=facts)
    condition = reduce(or_, (reduce(and_, (_expression(term, schema) for term in clause)) for clause in clauses))
    tables = (table for part in parts for table in _tables(store, part, collection, facts=facts))
    some = (table.filter(condition if among is None else condition & among) for table in tables)
    return _first_rows(some, collection)


def rows_at(
    store: ObjectStore, parts: Sequence[Part], positions: Sequence[int], collection: Collection
) -> tuple[dict[str, Any], ...]:
    """At most MAX_ROWS of the judged rows by their positions in `pandas_rows`, as JSON values, in all their
    columns."""
    wanted = sorted(positions)[:MAX_ROWS]
    found = []
    start = 0
    for part in parts:
        for table in _tables(store, part, collection, facts=collection.kind.facts):
            kept = _judged(table, part, collection)
            # Arrow refuses to take by an empty list, which has no type.
            if here := [at - start for at in wanted if start <= at < start + kept.num_rows]:
                found.append(kept.take(here))
            start += kept.num_rows
    return _first_rows(found, collection)


def _first_rows(tables: Iterable[pa.Table], collection: Collection) -> tuple[dict[str, Any], ...]:
    from tidemark.arrow.rows.plain import plain_rows

    found: list[dict[str, Any]] = []
    for table in tables:
        some = table.slice(0, MAX_ROWS - len(found))
        found += [_shown(dict(zip(some.column_names, row, strict=True)), collection) for row in plain_rows(some)]
        if len(found) == MAX_ROWS:
            break
    return tuple(found)


def _expression(term: Term, schema: pa.Schema) -> pc.Expression:
    import pyarrow as pa
    import pyarrow.compute as pc

    column, operator, value = term
    if operator == "null" or value is None:
        return pc.field(column).is_null()
    kind = schema.field(column).type
    if pa.types.is_date32(kind):
        value = pa.scalar(int(value), pa.int32()).cast(kind)
    elif pa.types.is_timestamp(kind):
        value = pa.scalar(int(value), pa.int64()).cast(kind)
    left, right = pc.field(column), pc.scalar(value)
    return {"==": left == right, "<": left < right, ">": left > right}[operator]


def _tables(store: ObjectStore, part: Part, collection: Collection, *, facts: bool) -> Iterator[pa.Table]:
    """The rows of a part in today's columns."""
    import pyarrow as pa

    from tidemark.arrow.parts.reader import read_groups
    from tidemark.arrow.rows.schema import live_schema

    for batch in read_groups(store, part, schema=live_schema(collection, facts=facts), groups_at_once=GROUPS_AT_ONCE):
        yield pa.Table.from_batches([batch])


def _judged_tables(store: ObjectStore, part: Part, collection: Collection) -> Iterator[pa.Table]:
    names = [column.name for column in collection.columns]
    for table in _tables(store, part, collection, facts=collection.kind.facts):
        yield _in_numbers(_judged(table, part, collection).select(names))


def _judged(table: pa.Table, part: Part, collection: Collection) -> pa.Table:
    """The judged rows of a table of a part; none of one that retracts its facts."""
    retracted = collection.kind.facts and part.retractions
    return table.slice(0, 0) if retracted else table.filter(is_judged(collection))


def _in_numbers(table: pa.Table) -> pa.Table:
    """Dates, timestamps and decimals as the whole numbers that they are; bytes as base64."""
    import pyarrow as pa

    from tidemark.arrow.rows.columns import contiguous, in_units
    from tidemark.arrow.rows.plain import plain_values

    for at, field in enumerate(table.schema):
        if pa.types.is_date32(field.type):
            table = table.set_column(at, field.name, table.column(at).cast(pa.int32()).cast(pa.int64()))
        elif pa.types.is_timestamp(field.type):
            table = table.set_column(at, field.name, table.column(at).cast(pa.int64()))
        elif pa.types.is_decimal(field.type):
            table = table.set_column(at, field.name, in_units(contiguous(table.column(at))))
        elif pa.types.is_binary(field.type):
            table = table.set_column(at, field.name, pa.array(plain_values(table.column(at)), pa.string()))
    return table


def _shown(row: dict[str, Any], collection: Collection) -> dict[str, Any]:
    """A row as people read it: Tidemark's times as they are written, of long texts the beginning, of masked columns
    nothing, and of a fact the line of its file, or its row from 1."""
    masked = collection.unshown
    shown: dict[str, Any] = {name: MASKED if name in masked else _cell(name, value) for name, value in row.items()}
    if (at := shown.pop("_row", None)) is None:
        return shown
    what, first = FIRST_ROW[collection.landed.source.format]
    return shown | {f"_{what}": at + first}


def _cell(name: str, value: Any) -> Any:
    if name in ("_time", "_event_time") and value is not None:
        return format_instant(value)
    if value is None or isinstance(value, bool | int | float):
        return value
    return shortened(value if isinstance(value, str) else str(value))


def shortened(text: str, most: int = LONGEST_CELL) -> str:
    """The beginning of a long text, and how long it is: twenty rows are to be read, and kept."""
    return text if len(text) <= most else f"{text[:most]}… ({len(text):,} characters)"
