"""Columns and files of a collection, as Iceberg describes them."""

from __future__ import annotations

import json
from collections import defaultdict

import pyarrow.parquet as pq
from pyiceberg.io.pyarrow import (
    MetricsMode,
    StatisticsCollector,
    compute_statistics_plan,
    data_file_statistics_from_parquet_metadata,
    parquet_path_to_id_mapping,
)
from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
from pyiceberg.schema import Schema
from pyiceberg.table.name_mapping import parse_mapping_from_json
from pyiceberg.typedef import Record
from pyiceberg.types import (
    BinaryType,
    BooleanType,
    DateType,
    DoubleType,
    LongType,
    NestedField,
    PrimitiveType,
    StringType,
    TimestamptzType,
)
from pyiceberg.types import DecimalType as IcebergDecimal

from tidemark.arrow.rows.schema import FIELD_ID, updates_schema
from tidemark.model.collection import AT_REST, Collection, ColumnType, DecimalType, ValueType

_TYPES: dict[ColumnType, PrimitiveType] = {
    ColumnType.BOOL: BooleanType(),
    ColumnType.INT: LongType(),
    ColumnType.FLOAT: DoubleType(),
    ColumnType.STRING: StringType(),
    ColumnType.DATE: DateType(),
    ColumnType.TIMESTAMP: TimestamptzType(),
    ColumnType.BYTES: BinaryType(),
    ColumnType.JSON: StringType(),
}
_FIRST_HIDDEN = 1_000_000_000
"""From here on are the numbers in a name mapping of columns that no table has."""
_HIDDEN = -1
"""The number that columns at rest are counted under which a table does not have."""


def iceberg_type(of: ValueType) -> PrimitiveType:
    """The type of a column; JSON is a text."""
    return IcebergDecimal(of.precision, of.scale) if isinstance(of, DecimalType) else _TYPES[of]


def iceberg_schema(collection: Collection, number: int) -> Schema:
    """The columns of a collection's table, under their own numbers. All may be null: a key column of a derived
    collection may, and a table does not change by whose rows it holds."""
    fields = [NestedField(one.id, one.name, iceberg_type(one.type), required=False) for one in collection.columns]
    return Schema(*fields, schema_id=number)


def name_mapping(collection: Collection, before: str | None) -> str:
    """The columns of files by name, for readers that do not go by numbers alone: those of the table, and under numbers
    that the table does not have those that are at rest only. What was named `before` stays so, unless another column
    has the name now."""
    rest, mapping = updates_schema(collection), parse_mapping_from_json(before) if before else ()
    numbers: dict[str, int] = dict.fromkeys((*AT_REST, *rest.names), 0)
    numbers |= {name: each.field_id or 0 for each in mapping for name in each.names}
    numbers |= {field.name: int(field.metadata[FIELD_ID]) for field in rest if field.metadata}
    numbers |= {one.name: one.id for one in collection.columns}
    by_number: dict[int, list[str]] = defaultdict(list)
    for at, (name, number) in enumerate(sorted(numbers.items())):
        by_number[number if 0 < number < _FIRST_HIDDEN else _FIRST_HIDDEN + at].append(name)
    mapped = [{"field-id": number, "names": names} for number, names in sorted(by_number.items())]
    return json.dumps(mapped, separators=(",", ":"))


def data_file(schema: Schema, path: str, size: int, footer: pq.FileMetaData) -> DataFile:
    """What a manifest says of a file: its size, rows, and the bounds of the table's columns by its footer. A column of
    which a row group with values has no bounds gets none: bounds that are too narrow would hide rows."""
    places = defaultdict(lambda: _HIDDEN, parquet_path_to_id_mapping(schema))
    plan = compute_statistics_plan(schema, {"write.metadata.metrics.default": "truncate(64)"})
    some = next(iter(plan.values()))
    hidden = StatisticsCollector(_HIDDEN, some.iceberg_type, _no_metrics(schema), "")
    statistics = data_file_statistics_from_parquet_metadata(footer, plan | {_HIDDEN: hidden}, places)
    statistics.column_sizes.pop(_HIDDEN, None)
    for number in _without_bounds(footer, places):
        statistics.column_aggregates.pop(number, None)
    return DataFile.from_args(
        content=DataFileContent.DATA,
        file_path=path,
        file_format=FileFormat.PARQUET,
        partition=Record(),
        file_size_in_bytes=size,
        sort_order_id=None,
        spec_id=0,
        equality_ids=None,
        key_metadata=None,
        **statistics.to_serialized_dict(),
    )


def _no_metrics(schema: Schema) -> MetricsMode:
    plan = compute_statistics_plan(schema, {"write.metadata.metrics.default": "none"})
    return next(iter(plan.values())).mode


def _without_bounds(footer: pq.FileMetaData, places: dict[str, int]) -> set[int]:
    missing = set()
    for group in range(footer.num_row_groups):
        for at in range(footer.num_columns):
            column = footer.row_group(group).column(at)
            statistics = column.statistics
            nulls = statistics.null_count if statistics is not None and statistics.has_null_count else 0
            if (statistics is None or not statistics.has_min_max) and nulls < column.num_values:
                missing.add(places[column.path_in_schema])
    return missing
