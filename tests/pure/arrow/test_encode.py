"""What is encoded for a landing decodes to the same rows, in every format."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.relanded import relanded
from tests.pure.ingest.landed import ALL_TYPES, MONEY, collection, listed
from tests.support.budget import examples
from tidemark.arrow.decode.source import decode, fetch, source_columns
from tidemark.arrow.rows.encode import check_plain, check_writable, encode
from tidemark.arrow.rows.schema import arrow_type
from tidemark.errors import InvalidUsage
from tidemark.model.collection import Column, ColumnType, Envelope, Format, Source
from tidemark.model.dialect import Csv

pytestmark = pytest.mark.pure
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=8)
VALUES: dict[Any, st.SearchStrategy[Any]] = {
    ColumnType.BOOL: st.booleans(),
    ColumnType.INT: st.integers(-(2**63), 2**63 - 1),
    ColumnType.FLOAT: st.floats(),
    ColumnType.STRING: TEXTS,
    ColumnType.DATE: st.dates(),
    ColumnType.TIMESTAMP: st.datetimes(timezones=st.just(UTC)),
    ColumnType.BYTES: st.binary(max_size=8),
    ColumnType.JSON: st.sampled_from(["1", '"a,b"', "[1,2]", '{"a":null}', "true", "0.1", '"line\\nbreak"']),
    MONEY: st.decimals(-10_000, 10_000, places=2),
}


UNITS = (("born", "days"), ("in_s", "s"), ("in_ms", "ms"), ("in_us", "us"), ("in_ns", "ns"))
COUNTED = (
    Column("born", ColumnType.DATE),
    *(Column(name, ColumnType.TIMESTAMP) for name, unit in UNITS if unit != "days"),
    Column("precise", MONEY),
)
WHOLE = {
    "in_s": st.integers(-(2**35), 2**35).map(lambda number: EPOCH + timedelta(seconds=number)),
    "in_ms": st.integers(-(2**45), 2**45).map(lambda number: EPOCH + timedelta(milliseconds=number)),
    "in_ns": st.integers(-(2**52), 2**52).map(lambda number: EPOCH + timedelta(microseconds=number)),
}


def values_of(column: Column) -> st.SearchStrategy[Any]:
    return WHOLE.get(column.name, VALUES[column.type])


@pytest.mark.parametrize("file_format", list(Format))
@examples(100)
@given(st.data())
def test_encoded_rows_decode_to_the_same(tmp_path_factory: pytest.TempPathFactory, file_format: Format, data: Any):
    declared = collection(*ALL_TYPES, *COUNTED, file_format=file_format)
    source = replace(declared.landed.source, units=UNITS, column_decimals=(("precise", "precise"),))
    declared = relanded(declared, source=source)
    columns = source_columns(declared)
    null = st.none()
    row = st.fixed_dictionaries(
        {
            column.name: st.integers(0, 9) if column.name in ("k", "t") else null | values_of(column)
            for column in columns
        }
    )
    rows = data.draw(st.lists(row.filter(lambda each: is_writable(each, file_format)), min_size=1, max_size=5))
    table = pa.table(
        [pa.array([each[column.name] for each in rows], arrow_type(column.type)) for column in columns],
        [column.name for column in columns],
    )
    path: Path = tmp_path_factory.getbasetemp() / f"encoded.{file_format}"
    path.write_bytes(encode(table, columns, source))
    found = pa.Table.from_batches(decode(fetch(listed(path)), declared)).to_pylist()
    assert [plain(each) for each in found] == [{**plain(each), "_row": at} for at, each in enumerate(rows)]


def is_writable(row: dict[str, Any], file_format: Format) -> bool:
    return file_format is not Format.CSV or (row["a_string"] is not None and row["a_bytes"] != b"")


def plain(row: dict[str, Any]) -> dict[str, Any]:
    """With one NaN that equals itself."""
    return {**row, "a_float": "nan" if row["a_float"] != row["a_float"] else row["a_float"]}


@pytest.mark.parametrize(
    ("file_format", "column", "value", "said"),
    [
        (Format.CSV, ColumnType.STRING, None, "column c is null, and csv has no null text; let things be jsonl or"),
        (Format.CSV, ColumnType.BYTES, b"", "column c is empty bytes, which csv has as null"),
        (Format.JSONL, ColumnType.TIMESTAMP, 2**60, "holds 1152921504606846976, beyond the years 1 to 9999"),
        (Format.CSV, ColumnType.DATE, -(2**30), "beyond the years 1 to 9999, and csv has times as texts"),
    ],
)
def test_what_a_format_cannot_hold_is_named(file_format: Format, column: ColumnType, value: Any, said: str):
    numbers = {ColumnType.TIMESTAMP: pa.int64(), ColumnType.DATE: pa.int32()}
    values = pa.array([value], numbers.get(column, arrow_type(column))).cast(arrow_type(column))
    with pytest.raises(InvalidUsage, match=said):
        check_writable("things", Column("c", column), values, Source("*", file_format, Envelope.APPEND))
    check_writable("things", Column("c", column), values, Source("*", Format.PARQUET, Envelope.APPEND))


def test_a_time_between_two_of_its_unit_is_named():
    source = Source("*", Format.CSV, Envelope.APPEND, units=(("c", "ms"),))
    values = pa.array([1_000, 1_001], pa.timestamp("us", "UTC"))
    check_writable("things", Column("c", ColumnType.TIMESTAMP), values[:1], source)
    with pytest.raises(
        InvalidUsage, match="column c holds a time that is no whole number of ms of 64 bits, its unit in"
    ):
        check_writable("things", Column("c", ColumnType.TIMESTAMP), values, source)


@pytest.mark.parametrize(
    ("file_format", "words"),
    [
        (Format.CSV, {"csv": Csv(delimiter=";")}),
        (Format.CSV, {"compression": "gzip"}),
        (Format.JSONL, {"rows": "data"}),
    ],
)
def test_what_is_not_written_plainly_is_not_appended_to(file_format: Format, words: dict[str, Any]) -> None:
    (word,) = words
    with pytest.raises(InvalidUsage, match=f"source.{word} of things says how others write its files"):
        check_plain("things", Source("/x/*", file_format, Envelope.APPEND, **words))
