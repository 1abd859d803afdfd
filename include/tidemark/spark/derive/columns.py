"""Types of Spark as ours, and ours as Spark's; values as a derived collection holds them."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
from pyspark.sql import Column as SparkColumn
from pyspark.sql import functions as F
from pyspark.sql import types as T
from pyspark.sql.pandas.functions import arrow_udf
from pyspark.sql.pandas.types import from_arrow_type

from tidemark.arrow.decode.jsontexts import of_texts
from tidemark.arrow.rows.schema import arrow_type
from tidemark.errors import InvalidUsage
from tidemark.model.canonical_json import NotJson
from tidemark.model.collection import COLUMN_NAME, HIDDEN_NAME, Collection, Column, ColumnType, DecimalType, ValueType
from tidemark.model.evolution import holds

_SIMPLE: dict[type[T.DataType], ColumnType] = {
    T.BooleanType: ColumnType.BOOL,
    T.ByteType: ColumnType.INT,
    T.ShortType: ColumnType.INT,
    T.IntegerType: ColumnType.INT,
    T.LongType: ColumnType.INT,
    T.FloatType: ColumnType.FLOAT,
    T.DoubleType: ColumnType.FLOAT,
    T.StringType: ColumnType.STRING,
    T.VarcharType: ColumnType.STRING,
    T.CharType: ColumnType.STRING,
    T.DateType: ColumnType.DATE,
    T.TimestampType: ColumnType.TIMESTAMP,
    T.TimestampNTZType: ColumnType.TIMESTAMP,
    T.BinaryType: ColumnType.BYTES,
}


def our_columns(schema: T.StructType) -> tuple[Column, ...]:
    """The columns of an analysed query. InvalidUsage for a type that we have not, and for a name."""
    return tuple(Column(named(field.name), our_type(field.name, field.dataType)) for field in schema.fields)


def named(name: str) -> str:
    """A name that a column may have. InvalidUsage for any other."""
    if not COLUMN_NAME.fullmatch(name) and not HIDDEN_NAME.fullmatch(name):
        raise InvalidUsage(
            f"the definition calls a column {name!r}; give it a name that matches {COLUMN_NAME.pattern}: … AS a_name"
        )
    return name


def our_type(name: str, of: T.DataType) -> ValueType:
    """Our type for Spark's."""
    if isinstance(of, T.DecimalType):
        return DecimalType(of.precision, of.scale)
    if isinstance(of, T.StructType | T.ArrayType | T.MapType):
        raise InvalidUsage(f"column {name} of the definition is {of.simpleString()[:80]}; use to_json({name})")
    if isinstance(of, T.NullType):
        raise InvalidUsage(f"column {name} of the definition is always null; cast it: CAST(NULL AS string)")
    if type(of) not in _SIMPLE:
        raise InvalidUsage(f"column {name} of the definition is {of.simpleString()[:80]}; cast it to a type we have")
    return _SIMPLE[type(of)]


def spark_type(of: ValueType) -> T.DataType:
    """Spark's type for ours."""
    return from_arrow_type(arrow_type(of), prefer_timestamp_ntz=False)


def spark_schema(columns: Sequence[Column]) -> T.StructType:
    """The columns of a view."""
    return T.StructType([T.StructField(column.name, spark_type(column.type)) for column in columns])


def check_fits(collection: Collection, given: Sequence[Column]) -> None:
    """Raise InvalidUsage, with both, unless a definition gives the columns that the collection has, in any order."""
    types = {column.name: column.type for column in given}
    had = {column.name: column.type for column in (*collection.columns, *collection.hidden)}
    if types.keys() == had.keys() and all(holds(types[name], of) for name, of in had.items()):
        return
    seen = {column.name: column.type for column in collection.columns}
    shown = {name: of for name, of in types.items() if not HIDDEN_NAME.fullmatch(name)}
    if shown != seen:  # what is hidden is no user's, unless nothing else differs
        types, had = shown, seen
    raise InvalidUsage(
        f"the definition of {collection.name} gives the columns {_listed(types)} now, and {collection.name} has "
        f"{_listed(had)}: change the definition, cast what changed, or declare the columns again in the collection file"
    )


def _listed(types: dict[str, ValueType]) -> str:
    return ", ".join(f"{name} {of}" for name, of in sorted(types.items()))


def value(column: Column) -> SparkColumn:
    """A column of a definition's answer as it is stored: of the declared type, and of values that SQL takes for equal
    only one, so that rows cancel by whatever way they were computed: -0.0 is 0.0, a NaN is the one NaN. JSON is its
    canonical text, as it is at rest: Spark writes 1.0 and 1.0E10 where that has 1 and 10000000000."""
    cell = F.col(f"`{column.name}`")
    if column.type is ColumnType.JSON:
        cell = arrow_udf(_canonical, T.StringType())(cell.cast("string"))  # type: ignore[call-overload]
    if column.type is ColumnType.FLOAT:
        cell = cell.cast("double")
        cell = F.when(cell == 0, F.lit(0.0)).when(F.isnan(cell), F.lit(float("nan"))).otherwise(cell)
    return cell.cast(spark_type(column.type)).alias(column.name)


def _canonical(texts: pa.Array) -> pa.Array:
    """Canonical texts; where one is no JSON all as they are: who writes them says which column it is."""
    try:
        return of_texts(texts)
    except NotJson:
        return texts


def order(column: Column) -> list[SparkColumn]:
    """By what to sort to have a column in our order: null, then NaN, then ascending (arrow/rows/order.py)."""
    cell = F.col(f"`{column.name}`")
    if column.type is not ColumnType.FLOAT:
        return [cell.asc_nulls_first()]
    return [cell.isNotNull().asc(), (~F.isnan(cell)).asc(), cell.asc_nulls_first()]
