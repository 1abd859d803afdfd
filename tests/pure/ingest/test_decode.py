"""Decoding: what is in a file comes out exactly, and what does not fit is refused with the place and the reason."""

from __future__ import annotations

import contextlib
import json
import re
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.pure.ingest.landed import ALL_TYPES, FORMATS, MONEY, PACKED, collection, decoded, write
from tidemark.arrow.decode import parquetfile
from tidemark.arrow.decode.source import BadFile
from tidemark.model.canonical_json import canonical
from tidemark.model.collection import Collection, Column, ColumnType, Envelope, Format, ValueType

pytestmark = pytest.mark.pure
QUICK = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])

INT, FLOAT, TEXT = Column("n", ColumnType.INT), Column("f", ColumnType.FLOAT), Column("s", ColumnType.STRING)
AT, DAY, FLAG = Column("at", ColumnType.TIMESTAMP), Column("day", ColumnType.DATE), Column("ok", ColumnType.BOOL)
MOMENTS = st.datetimes(min_value=datetime(1, 1, 2), max_value=datetime(9999, 12, 30))  # noqa: DTZ001 made aware below
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=5)
JSON = st.recursive(
    st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXTS,
    lambda inner: st.lists(inner | st.none(), max_size=3) | st.dictionaries(TEXTS, inner | st.none(), max_size=3),
    max_leaves=6,
)
VALUES: dict[ValueType, st.SearchStrategy[Any]] = {
    ColumnType.BOOL: st.booleans(),
    ColumnType.INT: st.integers(-(2**63), 2**63 - 1),
    ColumnType.FLOAT: st.floats(allow_nan=False, allow_infinity=False),
    ColumnType.STRING: st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1),
    ColumnType.DATE: st.dates(),
    ColumnType.TIMESTAMP: MOMENTS.map(lambda moment: moment.replace(tzinfo=UTC)),
    ColumnType.BYTES: st.binary(min_size=1),
    ColumnType.JSON: JSON,
    MONEY: st.integers(-(10**12) + 1, 10**12 - 1).map(lambda units: Decimal(units).scaleb(-2)),
}
ROWS = st.lists(
    st.fixed_dictionaries(
        {"k": VALUES[ColumnType.INT], "t": st.integers(0, 2**63 - 1)}
        | {column.name: st.none() | VALUES[column.type] for column in ALL_TYPES}
    ),
    max_size=12,
)


@pytest.mark.parametrize("file_format", FORMATS)
@QUICK
@given(rows=ROWS)
def test_rows_of_every_type_come_out_as_they_went_in(
    tmp_path: Path, file_format: Format, rows: list[dict[str, Any]]
) -> None:
    declared = collection(*ALL_TYPES, file_format=file_format)
    if file_format is Format.JSONL and rows:
        rows[0] |= {"a_bool": True, "a_int": 1, "a_float": 1.0, "a_string": "", "a_date": date(2013, 1, 1)}
        rows[0] |= {
            "a_timestamp": datetime(2013, 1, 1, tzinfo=UTC),
            "a_bytes": b"\xff",
            "a_json": [],
            "a_decimal": Decimal(1),
        }
    if file_format is Format.CSV:
        rows = [row | {"a_string": row["a_string"] or ""} for row in rows]
    found = decoded(write(tmp_path / "file", rows, declared), declared).to_pylist()
    texts = [None if row["a_json"] is None else canonical(json.dumps(row["a_json"])) for row in rows]
    assert found == [row | {"_row": at, "a_json": texts[at]} for at, row in enumerate(rows)]


@pytest.mark.parametrize("file_format", FORMATS)
def test_other_columns_are_ignored_and_order_does_not_matter(tmp_path: Path, file_format: Format) -> None:
    path = tmp_path / "file"
    if file_format is Format.PARQUET:
        pq.write_table(pa.table({"z": [[1]], "t": [5], "s": ["x"], "k": [1]}), path)
    elif file_format is Format.CSV:
        path.write_text('z,t,"s",k\n"1,2",5,x,1\n')
    else:
        path.write_text('{"z":{"k":9},"t":5,"s":"x","k":1}\n')
    assert decoded(path, collection(TEXT, file_format=file_format)).to_pylist() == [
        {"k": 1, "s": "x", "t": 5, "_row": 0}
    ]


@pytest.mark.parametrize("file_format", FORMATS)
def test_a_key_is_no_megabyte(tmp_path: Path, file_format: Format) -> None:
    """Keys are kept in tables of parts, which must stay small. Bytes count, not letters; a value may be longer."""
    declared = replace(collection(TEXT, file_format=file_format), key=(Column("k", ColumnType.STRING),))
    rows = [{"k": "é" * 2**15, "s": "x" * 2**16, "t": 1}, {"k": "é" * 2**15 + "e", "s": "", "t": 1}]
    assert decoded(write(tmp_path / "good", rows[:1], declared), declared).num_rows == 1
    with pytest.raises(BadFile, match=r"(row 2|line 3|line 2): column k holds 65,537 bytes; a key's text has at most"):
        decoded(write(tmp_path / "bad", rows, declared), declared)


def parquet_of(**columns: Any) -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table(columns), sink)
    return sink.getvalue().to_pybytes()


K, T = [1, 2, 3], [5, 6, 7]
TRUNCATED = parquet_of(k=K, t=T)[:-20]
BAD_PARQUET: list[tuple[str, tuple[Column, ...], bytes, str]] = [
    ("truncated", (), TRUNCATED, "cannot be read as Parquet: .*and whole?"),
    ("empty", (), b"", "cannot be read as Parquet"),
    ("text", (), b"k,t\n1,2\n", "cannot be read as Parquet"),
    ("missing column", (INT,), parquet_of(k=K, t=T), "^column n is missing; the file has k, t; if it "),
    ("missing time", (), parquet_of(k=K), "^column t is missing; the file has k$"),
    ("int as text", (INT,), parquet_of(k=K, t=T, n=["a"] * 3), "^column n is declared int, the file has string$"),
    ("int as double", (INT,), parquet_of(k=K, t=T, n=[1.0] * 3), "^column n is declared int, the file has double$"),
    ("text as int", (TEXT,), parquet_of(k=K, t=T, s=[1] * 3), "^column s is declared string, the file has int64$"),
    ("text as bytes", (TEXT,), parquet_of(k=K, t=T, s=[b"x"] * 3), "declared string, the file has binary$"),
    ("bool as int", (FLAG,), parquet_of(k=K, t=T, ok=[1] * 3), "declared bool, the file has int64$"),
    ("time as date", (AT,), parquet_of(k=K, t=T, at=[date(2013, 1, 1)] * 3), "declared timestamp, the file has date32"),
    ("time as text", (AT,), parquet_of(k=K, t=T, at=["2013-01-01 00:00:00.5", None, "1.1.2013"]),
     r"^row 3: column at is declared timestamp and holds '1\.1\.2013'; write ISO 8601"),
    ("list", (INT,), parquet_of(k=K, t=T, n=[[1]] * 3), "declared int, the file has list"),
    ("overflow", (INT,), parquet_of(k=K, t=T, n=pa.array([1, 2**63, 2**64 - 1], pa.uint64())),
     "^row 2: column n is declared int and holds 9223372036854775808: integer overflow"),
    ("no such float", (FLOAT,), parquet_of(k=K, t=T, f=[1, 2, 2**53 + 1]),
     "^row 3: column f is declared float and holds the integer 9007199254740993, which no float equals$"),
    ("nanoseconds", (AT,), parquet_of(k=K, t=T, at=pa.array([1000, 1001, 0], pa.timestamp("ns"))),
     "^row 2: column at is declared timestamp and holds nanoseconds that would be lost: 1001 ns since the epoch$"),
    ("milliseconds out of range", (AT,), parquet_of(k=K, t=T, at=pa.array([0, 0, 2**62], pa.timestamp("ms"))),
     "^row 3: column at is declared timestamp and holds a time out of range: 4611686018427387904 ms since"),
    ("not UTF-8", (TEXT,), parquet_of(k=K, t=T, s=pa.array([b"a", b"\xff", b"b"]).view(pa.string())),
     "^row 2: column s is declared string and holds bytes that are not UTF-8$"),
    ("null key", (), parquet_of(k=[1, None, 3], t=T), "^row 2: column k is null; a key never is$"),
    ("null time", (), parquet_of(k=K, t=[1, 2, None]), "^row 3: column t is null; a time never is$"),
    ("negative time", (), parquet_of(k=K, t=[1, -1, -2]), "^row 2: column t holds a time before 1970: -1 µs$"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("value", "data", "says"), [case[1:] for case in BAD_PARQUET], ids=[case[0] for case in BAD_PARQUET]
)
def test_a_bad_parquet_file_is_refused(tmp_path: Path, value: tuple[Column, ...], data: bytes, says: str) -> None:
    refused(tmp_path, collection(*value), data, says)


def test_texts_of_parquet_that_are_times_are_read_as_such(tmp_path: Path) -> None:
    """As AWS DMS writes them."""
    path = tmp_path / "file"
    texts = pa.array(["2013-01-01 00:00:00.500000", None, "2013-01-01T01:00:00+01:00"], pa.large_string())
    path.write_bytes(parquet_of(k=K, t=T, at=texts, d=["2013-01-02", "2013-01-03", None]))
    days = Column("d", ColumnType.DATE)
    rows = decoded(path, collection(AT, days)).to_pylist()
    midnight = datetime(2013, 1, 1, tzinfo=UTC)
    assert [row["at"] for row in rows] == [midnight + timedelta(milliseconds=500), None, midnight]
    assert [row["d"] for row in rows] == [date(2013, 1, 2), date(2013, 1, 3), None]


def refused(tmp_path: Path, declared: Collection, data: bytes, says: str) -> None:
    path = tmp_path / "file"
    path.write_bytes(data)
    with pytest.raises(BadFile) as caught:
        decoded(path, declared)
    assert caught.value.path == str(path)
    assert "\n" not in caught.value.reason
    assert re.search(says, caught.value.reason), caught.value.reason


BAD_CSV: list[tuple[str, tuple[Column, ...], bytes, str]] = [
    ("empty", (), b"", "^is empty; a CSV file starts with a header$"),
    ("blank", (), b"\n\n", "^is empty; a CSV file starts with a header$"),
    ("missing column", (INT,), b"k,t,m\n1,2,3\n", "^column n is missing; the file has k, t, m; if it "),
    ("semicolons", (), b"k;t\n1;2\n",
     '^column k is missing; the file has k;t, and commas separate fields; write source: {csv: {delimiter: ";"}}$'),
    ("tabs", (), b"k\tt\n1\t2\n",
     r'the file has k\\tt, and commas separate fields; write source: {csv: {delimiter: "\\t"}}$'),
    ("spaces around a name", (), b"k, t\n1,2\n", "^column t is missing; the file has k, ' t'$"),
    ("column twice", (), b"k,t,k\n1,2,3\n", "^column k is twice in the header"),
    ("short row", (), b"k,t\n1,2\n3\n", "^line 3: 1 fields, the header has 2; truncated"),
    ("long row", (), b"k,t\n1,2\n\n3,4,5\n", "^line 4: 3 fields, the header has 2"),
    ("not UTF-8", (TEXT,), b"k,t,s\n1,2,x\n1,2,\xff\n",
     "^line 3: not UTF-8; say what it is, as source: {csv: {encoding: cp1252}}$"),
    ("open quote", (TEXT,), b'k,t,s\n1,2,"a\nb"\n3,4,"x', "^line 4: a quoted text is never closed; truncated"),
    ("stray quote", (TEXT,), b'k,t,s\n1,2,x"y\n', "^line 2: a text that is not quoted contains a double quote"),
    ("two stray quotes", (TEXT,), b'k,t,s\n1,2,x"y"\n', "^line 2: a text that is not quoted contains a double quote"),
    ("text after a quote", (TEXT,), b'k,t,s\n1,2,x\n\n1,2,"b"c\n', "^line 4: text follows a closing double quote"),
    ("text after a quote, ignored", (), b'k,t,s\n1,2,"b"c\n', "^line 2: text follows a closing double quote"),
    ("text after a quote, then a misfit", (INT,), b'k,t,s,n\n1,2,"b"c,1\n1,2,a,x\n', "^line 2: text follows"),
    ("a long field, then a misfit", (INT,),
     b"k,t,s,n\n1,2," + b"x" * 200_000 + b',1\n1,2,"' + b'""y\n' * 80_000 + b'",1\n1,2,a,x\n',
     "^line 80004: column n is declared int and holds 'x'$"),
    ("a long field, then a short row", (), b"k,t,s\n1,2," + b"x" * 200_000 + b"\n1,2\n", "^line 3: 2 fields"),
    ("a long header", (), b"k,t," + b"x" * 2**20 + b"\n1,2,3\n", "^line 1: the header is longer than 1,048,576 bytes"),
    ("a quoted header", (), b'k,"t\n1,2\n', "^line 1: the header cannot be read"),
    ("text after a quote in the header", (), b'k,"t"x\n1,2\n', "^line 1: text follows a closing double quote"),
    ("many columns", (INT,), b"k,t," + b",".join(b"c%d" % i for i in range(90_000)) + b"\n",
     r"has k, t, c0, .* … and 89,982 more; if it may be "),
    ("a long row", (), b"k,t,s\n1,2,3\n1,2," + b"x" * 2**24 + b"\n", "^line 3: longer than 16,777,216 bytes"),
    ("a quote never closed", (), b'k,t,s\n1,2,3\n1,2,"' + b"xxx\n" * 2**23, "^line 3: longer than 16,777,216 bytes"),
    ("a plus", (INT,), b"k,t,n\n1,2,+1\n",
     r"^line 2: column n is declared int and holds '\+1'; write it without the plus"),
    ("leading zeros", (INT,), b"k,t,n\n1,2," + b"0" * 70 + b"1x\n", "^line 2: column n is declared int and holds '000"),
    ("other digits", (INT,), "k,t,n\n1,2,١٢\n".encode(), "^line 2: column n is declared int and holds '١٢'$"),
    ("a fraction", (INT,), b"k,t,n\n1,2,1.5\n", "^line 2: column n is declared int and holds '1.5'$"),
    ("a whole float", (INT,), b"k,t,n\n1,2,1.0\n", "^line 2: column n is declared int and holds '1.0'$"),
    ("hexadecimal", (INT,), b"k,t,n\n1,2,3\n1,2,0x1F\n", "^line 3: column n is declared int and holds '0x1F'$"),
    ("a space", (INT,), b"k,t,n\n1,2, 3\n", "^line 2: column n is declared int and holds ' 3'$"),
    ("overflow", (INT,), b'k,t,n\n1,2,3\n\n"1",2,9223372036854775808\n',
     "^line 4: column n is declared int and holds 9223372036854775808: integer overflow"),
    ("overflow below", (INT,), b"k,t,n\n1,2,-9223372036854775809\n", "integer overflow"),
    ("a word", (FLOAT,), b"k,t,f\n1,2,much\n", "^line 2: column f is declared float and holds 'much'$"),
    ("beyond a float", (FLOAT,), b"k,t,f\n1,2,1e400\n", "^line 2: column f is declared float and holds '1e400'$"),
    ("no bool", (FLAG,), b"k,t,ok\n1,2,yes\n", "^line 2: column ok is declared bool and holds 'yes'$"),
    ("no date", (DAY,), b"k,t,day\n1,2,2013-02-30\n",
     "^line 2: column day is declared date and holds '2013-02-30'; write ISO 8601, as 2013-01-02$"),
    ("no time", (AT,), b"k,t,at\n1,2,soon\n",
     "^line 2: column at is declared timestamp and holds 'soon'; write ISO 8601, as 2013-01-02T03:04:05.123456Z$"),
    ("nanoseconds", (AT,), b"k,t,at\n1,2,2013-01-01T00:00:00.123456789\n",
     "^line 2: column at is declared timestamp and holds '2013-01-01T00:00:00.123456789'; write ISO 8601, as 2013-"),
    ("null key", (), b"k,t\n1,2\n,3\n", "^line 3: column k is null; a key never is$"),
    ("null time", (), b"k,t\n1,\n", "^line 2: column t is null; a time never is$"),
    ("negative time", (), b"k,t\n1,-5\n", "^line 2: column t holds a time before 1970: -5"),
    ("after a long field", (INT,), b'k,t,s,n\n1,2,"a\n\nb",3\n1,2,"",x\n', "^line 5: column n is declared int"),
]  # fmt: skip


@pytest.mark.parametrize(("value", "data", "says"), [case[1:] for case in BAD_CSV], ids=[case[0] for case in BAD_CSV])
def test_a_bad_csv_file_is_refused_with_its_line(
    tmp_path: Path, value: tuple[Column, ...], data: bytes, says: str
) -> None:
    refused(tmp_path, collection(*value, file_format=Format.CSV), data, says)


BAD_JSONL: list[tuple[str, tuple[Column, ...], bytes, str]] = [
    ("truncated", (), b'{"k":1,"t":2}\n{"k":1,', "^line 2: not JSON: .*truncated"),
    ("not JSON", (), b'{"k":1,"t":2}\n\nk=1\n', "^line 3: not JSON"),
    ("null first", (), b'null\n{"k":1,"t":2}\n', "^line 1: not a JSON object: null; write one object a line$"),
    ("null last", (), b'{"k":1,"t":2}\nnull\n', "^line 2: not a JSON object: null; write one object a line$"),
    ("null beside", (), b'{"k":1,"t":2} null\n', "^line 1: not JSON: Extra data"),
    ("two on a line", (), b'{"k":1,"t":2} {"k":1,"t":2}\n', "^line 1: not JSON: Extra data"),
    ("an array behind a row", (), b'{"k":1,"t":2}\n[{"k":1,"t":2}]\n',
     r"^line 2: not a JSON object: \[\{\"k\": 1, \"t\": 2\}\]; write one object a line"),
    ("printed for people", (), b'{\n  "k": 1,\n "t":2\n}\n',
     "^line 1: not JSON: .* at column 2; write one object a line$"),
    ("over two lines", (), b'{"k":1,\n"t":2}\n', "^line 1: not JSON: .* at column 8; truncated"),
    ("over two lines, in a nest", (), b'{"k":1,"t":2,"z":\n{"a":1}}\n', "^line 1: not JSON"),
    ("missing column", (INT,), b'{"k":1,"t":2,"m":3}\n',
     "^column n is missing from every line; the first line has k, t, m; if it may be"),
    ("missing, quoted", (INT,), b'{"k":1,"t":2,"m":"n"}\n', "^column n is missing from every line"),
    ("missing, nested", (INT,), b'{"k":1,"t":2,"m":{"n":3}}\n', "^column n is missing from every line"),
    ("a fraction", (INT,), b'{"k":1,"t":2,"n":3}\n{"k":1,"t":2,"n":1.5}\n',
     "^line 2: column n is declared int and holds 1.5$"),
    ("a whole float", (INT,), b'{"k":1,"t":2,"n":1.0}\n', "^line 1: column n is declared int and holds 1.0$"),
    ("an exponent", (INT,), b'{"k":1,"t":2,"n":1e3}\n', "^line 1: column n is declared int and holds 1e3$"),
    ("a text", (INT,), b'{"k":1,"t":2,"n":"1"}\n', "^line 1: column n is declared int and holds '1'$"),
    ("true", (INT,), b'{"k":1,"t":2,"n":true}\n', "^line 1: column n is declared int and holds true$"),
    ("a number", (TEXT,), b'{"k":1,"t":2,"s":5}\n', "^line 1: column s is declared string and holds 5$"),
    ("1 for true", (FLAG,), b'{"k":1,"t":2,"ok":1}\n', "^line 1: column ok is declared bool and holds 1$"),
    ("a list", (INT,), b'{"k":1,"t":2,"n":[1]}\n', r"^line 1: column n is declared int and holds \[1\]$"),
    ("overflow", (INT,), b'{"k":1,"t":2,"n":9223372036854775808}\n',
     "^line 1: .*9223372036854775808: integer overflow"),
    ("a huge number", (INT,), b'{"k":1,"t":2,"n":' + b"9" * 5000 + b"}\n", r"^line 1: .*999\.\.\.: integer overflow"),
    ("beyond a float", (FLOAT,), b'{"k":1,"t":2,"f":1e400}\n',
     "^line 1: column f .* holds 1e400, which is beyond a double$"),
    ("a whole one", (FLOAT,), b'{"k":1,"t":2,"f":1' + b"0" * 400 + b"}\n", "^line 1: column f .* beyond a double$"),
    ("twice", (INT,), b'{"k":1,"t":2,"n":1,"n":2}\n', "^line 1: column n is written twice$"),
    ("an empty time", (AT,), b'{"k":1,"t":2,"at":""}\n',
     "^line 1: column at is declared timestamp and holds ''; write ISO 8601"),
    ("a numeric time", (AT,), b'{"k":1,"t":2,"at":5}\n',
     "^line 1: column at is declared timestamp and holds 5; if it counts since the epoch, write columns: {at: {unit"),
    ("no date", (DAY,), b'\n{"k":1,"t":2,"day":"1/2/13"}\n',
     "^line 2: column day is declared date and holds '1/2/13'; write ISO 8601, as 2013-01-02$"),
    ("half a pair", (TEXT,), b'{"k":1,"t":2,"s":"\\ud800"}\n', "^line 1: column s holds half a surrogate pair"),
    ("not UTF-8", (TEXT,), b'{"k":1,"t":2,"s":"x"}\n{"k":1,"t":2,"s":"\xff"}\n', "^line 2: column s .* not UTF-8$"),
    ("null key", (), b'{"k":1,"t":2}\n{"k":null,"t":2}\n', "^line 2: column k is null; a key never is$"),
    ("no key", (), b'{"k":1,"t":2}\n{"t":2}\n', "^line 2: column k is null; a key never is$"),
    ("null time", (), b'{"k":1,"t":2}\n\n{"k":1,"t":null}\n', "^line 3: column t is null; a time never is$"),
    ("negative time", (), b'{"k":1,"t":-2}\n', "^line 1: column t holds a time before 1970: -2 "),
    ("null column and Latin-1", (INT,), b'{"k":1,"t":2,"n":null,"z":"\xe9"}\n', "^line 1: not UTF-8$"),
    ("null column and Inf", (INT,), b'{"k":1,"t":2,"n":null,"z":Inf}\n', "^line 1: not JSON"),
    ("Latin-1 in an ignored field", (), b'{"k":1,"t":2}\n{"k":1,"t":2,"z":"\xe9"}\n', "^line 2: not UTF-8$"),
    ("Inf in an ignored field", (), b'{"k":1,"t":2,"z":-Inf}\n', "^line 1: not JSON"),
    ("null column, deep", (INT,), b'{"k":1,"t":2,"n":null,"z":' + b"[" * 9999 + b"]" * 9999 + b"}\n",
     "^line 1: not JSON"),
    ("missing and Latin-1", (INT,), b'{"k":1,"t":2,"z":"\xe9"}\n', "^line 1: not UTF-8$"),
    ("many fields", (INT,), json.dumps({"k": 1, "t": 2} | {f"c{i}": 1 for i in range(99_998)}).encode(),
     r"has k, t, .* … and 99,980 more; if it may be "),
    ("a long line", (), b'{"k":1,"t":2}\n{"k":1,"z":"' + b"x" * 2**24 + b'","t":2}\n',
     "^line 2: longer than 16,777,216 bytes"),
    ("deep", (), b'{"k":1,"t":2} ' + b"[" * 100_000 + b"\n", "^line 1: not JSON"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("value", "data", "says"), [case[1:] for case in BAD_JSONL], ids=[case[0] for case in BAD_JSONL]
)
def test_a_bad_jsonl_file_is_refused_with_its_line(
    tmp_path: Path, value: tuple[Column, ...], data: bytes, says: str
) -> None:
    refused(tmp_path, collection(*value, file_format=Format.JSONL), data, says)


OTHER_KINDS = {
    **{name: (pack(b"k,t\n1,2\n"), f"is compressed with {name}; unpack it") for name, pack in PACKED.items()},
    "zip": (b"PK\x03\x04\x14\x00", "is a zip archive, which may have several files; unpack it, or compress each file"),
    "xlsx": (b"PK\x03\x04" + bytes(26) + b"[Content_Types].xml", "is a workbook of Excel; save its sheet as CSV"),
    "xls": (b"\xd0\xcf\x11\xe0\xa1\xb1", "is a workbook of Excel; save its sheet as CSV"),
    "Avro": (b"Obj\x01\x04\x14avro.codec", "is Avro, which is not read; write it as Parquet or JSON lines"),
    "ORC": (b"ORC\x82\x0f", "is ORC, which is not read; write it as Parquet or JSON lines"),
    "Arrow": (b"ARROW1\x00\x00", "is an Arrow .Feather. file, which is not read; write it as Parquet"),
    "tar": (b"a.csv" + bytes(252) + b"ustar\x00", "is a tar archive; unpack it"),
    "UTF-16": ("k,t\n1,2\n".encode("utf-16"), "is text in UTF-16; write it in UTF-8"),
}


@pytest.mark.parametrize("file_format", FORMATS)
@pytest.mark.parametrize("kind", OTHER_KINDS)
def test_a_file_of_another_kind_is_called_what_it_is(tmp_path: Path, kind: str, file_format: Format) -> None:
    data, says = OTHER_KINDS[kind]
    refused(tmp_path, collection(file_format=file_format), data, f"^{says}")


@pytest.mark.parametrize("file_format", [Format.CSV, Format.JSONL])
def test_parquet_is_no_text(tmp_path: Path, file_format: Format) -> None:
    refused(tmp_path, collection(file_format=file_format), parquet_of(k=K, t=T), "^is Parquet; write format: parquet$")


def test_texts_are_no_parquet(tmp_path: Path) -> None:
    refused(tmp_path, collection(), b"k,t\n1,2\n" * 9, "^cannot be read as Parquet: .*; is it Parquet, and whole.$")


@pytest.mark.parametrize("name", ["PAR1", "BZh9", "PK"])
def test_a_header_may_begin_as_files_of_another_kind_do(tmp_path: Path, name: str) -> None:
    path = tmp_path / "file"
    path.write_text(f"{name},k,t\n1,1,2\n")
    assert decoded(path, collection(file_format=Format.CSV)).to_pylist() == [{"k": 1, "t": 2, "_row": 0}]


@pytest.mark.parametrize("file_format", FORMATS)
def test_a_null_diff_is_refused(tmp_path: Path, file_format: Format) -> None:
    declared = collection(envelope=Envelope.UPDATES, file_format=file_format)
    file = write(tmp_path / "file", [{"k": 1, "t": 2, "diff": 1}, {"k": 1, "t": 2, "diff": None}], declared)
    with pytest.raises(BadFile, match="column diff is null; a diff never is"):
        decoded(file, declared)


@pytest.mark.parametrize("file_format", FORMATS)
def test_a_file_without_rows_is_a_good_file(tmp_path: Path, file_format: Format) -> None:
    declared = collection(file_format=file_format)
    file = write(tmp_path / "file", [], declared)
    assert decoded(file, declared).num_rows == 0


@pytest.mark.parametrize("data", [b"k,t", b"k,t\n", b"k,t\r\n", b"k,t\n\n\n", b"\xef\xbb\xbfk,t", b'"k","t"'])
def test_a_csv_file_of_a_header_alone_is_an_empty_day(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "file"
    path.write_bytes(data)
    assert decoded(path, collection(file_format=Format.CSV)).num_rows == 0


@pytest.mark.parametrize(
    "data",
    [b'k,t,s\n1,2,"a""b"\n', b'k,t,s\n1,2,"a""b"', b'\n\n"k",t,"s"\r\n\r\n1,2,"a""b"\r\n', b'k,t,s\r1,2,"a""b"\r'],
)
def test_quotes_that_are_right_are_read(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "file"
    path.write_bytes(data)
    assert decoded(path, collection(TEXT, file_format=Format.CSV))["s"].to_pylist() == ['a"b']


def test_other_columns_of_a_csv_file_may_be_called_anything(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"x,k,x,\xff,t,\n9,1,9,9,2,9\n")
    assert decoded(path, collection(file_format=Format.CSV)).to_pylist() == [{"k": 1, "t": 2, "_row": 0}]


@pytest.mark.parametrize("file_format", FORMATS)
def test_floats_are_canonical(tmp_path: Path, file_format: Format) -> None:
    path = tmp_path / "file"
    other_nan = np.frombuffer(np.array([0xFFF8000000000001], np.uint64).tobytes(), np.float64)[0]
    if file_format is Format.PARQUET:
        pq.write_table(pa.table({"k": K, "t": T, "f": np.array([-0.0, other_nan, float("nan")])}), path)
    elif file_format is Format.CSV:
        path.write_text("k,t,f\n1,2,-0.0\n1,2,nan\n1,2,NaN\n")
    else:
        path.write_text('{"k":1,"t":2,"f":-0.0}\n{"k":1,"t":2,"f":NaN}\n{"k":1,"t":2,"f":NaN}\n')
    floats = decoded(path, collection(FLOAT, file_format=file_format))["f"].to_numpy()
    assert floats.view(np.uint64).tolist() == [0, 0x7FF8000000000000, 0x7FF8000000000000]


ISO = [
    ("2013-01-02", datetime(2013, 1, 2, tzinfo=UTC)),
    ("2013-01-02 03:04:05", datetime(2013, 1, 2, 3, 4, 5, tzinfo=UTC)),
    ("2013-01-02T03:04:05.123456", datetime(2013, 1, 2, 3, 4, 5, 123456, tzinfo=UTC)),
    ("2013-01-02T03:04:05Z", datetime(2013, 1, 2, 3, 4, 5, tzinfo=UTC)),
    ("2013-01-02T03:04:05.5+01:30", datetime(2013, 1, 2, 1, 34, 5, 500000, tzinfo=UTC)),
    ("2013-01-02T03:04:05-0500", datetime(2013, 1, 2, 8, 4, 5, tzinfo=UTC)),
    ("2013-01-02T03:04:05.123456000", datetime(2013, 1, 2, 3, 4, 5, 123456, tzinfo=UTC)),
    ("9999-12-31T23:59:59", datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC)),
    ("1960-01-01", datetime(1960, 1, 1, tzinfo=UTC)),
]


@pytest.mark.parametrize("file_format", [Format.CSV, Format.JSONL])
@QUICK
@given(pairs=st.lists(st.sampled_from(ISO), min_size=1, max_size=8))
def test_iso_times_of_all_kinds_may_be_mixed(
    tmp_path: Path, file_format: Format, pairs: list[tuple[str, datetime]]
) -> None:
    path = tmp_path / "file"
    if file_format is Format.CSV:
        path.write_text("k,t,at\n" + "".join(f"1,2,{text}\n" for text, _ in pairs))
    else:
        path.write_text("".join(json.dumps({"k": 1, "t": 2, "at": text}) + "\n" for text, _ in pairs))
    assert decoded(path, collection(AT, file_format=file_format))["at"].to_pylist() == [moment for _, moment in pairs]


def test_parquet_times_of_any_unit_and_zone_are_instants(tmp_path: Path) -> None:
    path = tmp_path / "file"
    moment = datetime(2013, 1, 2, 3, 4, 5, tzinfo=timezone(timedelta(hours=1)))
    for of in (pa.timestamp("s"), pa.timestamp("ms"), pa.timestamp("ns"), pa.timestamp("us", "America/New_York")):
        stored = pa.array([moment.astimezone(UTC).replace(tzinfo=None)], pa.timestamp("us")).cast(
            pa.timestamp("us", "UTC")
        )
        stored = stored.cast(of) if of.tz else stored.cast(pa.timestamp("us")).cast(of)
        pq.write_table(pa.table({"k": [1], "t": [1], "at": stored}), path)
        assert decoded(path, collection(AT))["at"].to_pylist() == [moment]


def test_spark_times_in_int96_keep_their_range(tmp_path: Path) -> None:
    path = tmp_path / "file"
    far = datetime(9999, 12, 31, tzinfo=UTC)
    table = pa.table({"k": [1], "t": [1], "at": pa.array([far.replace(tzinfo=None)], pa.timestamp("us"))})
    pq.write_table(table, path, use_deprecated_int96_timestamps=True)
    assert decoded(path, collection(AT))["at"].to_pylist() == [far]


def test_narrow_and_encoded_columns_are_widened(tmp_path: Path) -> None:
    path = tmp_path / "file"
    columns = {
        "k": pa.array([1, 2], pa.int8()),
        "t": pa.array([1, 2], pa.uint64()),
        "f": pa.array([0.5, None], pa.float32()),
        "s": pa.array(["x", "y"]).dictionary_encode(),
        "n": pa.nulls(2),
        "at": pa.nulls(2, pa.timestamp("ns")),
    }
    pq.write_table(pa.table(columns), path)
    rows = decoded(path, collection(FLOAT, TEXT, INT, AT)).to_pylist()
    assert rows[0] == {"k": 1, "f": 0.5, "s": "x", "n": None, "at": None, "t": 1, "_row": 0}
    assert rows[1]["f"] is None


@pytest.mark.parametrize("file_format", FORMATS)
def test_infinity_is_a_float(tmp_path: Path, file_format: Format) -> None:
    path = tmp_path / "file"
    if file_format is Format.PARQUET:
        pq.write_table(pa.table({"k": K[:2], "t": T[:2], "f": [float("inf"), float("-inf")]}), path)
    elif file_format is Format.CSV:
        path.write_text("k,t,f\n1,2,inf\n1,2,-Infinity\n")
    else:
        path.write_text('{"k":1,"t":2,"f":Infinity}\n{"k":1,"t":2,"f":-Infinity}\n')
    found = decoded(path, collection(FLOAT, file_format=file_format))["f"].to_pylist()
    assert found == [float("inf"), float("-inf")]


@pytest.mark.parametrize("file_format", FORMATS)
def test_a_column_may_play_several_roles(tmp_path: Path, file_format: Format) -> None:
    declared = collection(file_format=file_format, time="k", event_time="k")
    assert decoded(write(tmp_path / "file", [{"k": 7}], declared), declared).to_pylist() == [{"k": 7, "_row": 0}]


def test_a_byte_order_mark_is_skipped(tmp_path: Path) -> None:
    path = tmp_path / "file"
    for file_format, text in ((Format.CSV, "k,t\r\n1,2\r\n"), (Format.JSONL, '{"k":1,"t":2}\r\n')):
        path.write_bytes(b"\xef\xbb\xbf" + text.encode())
        assert decoded(path, collection(file_format=file_format)).to_pylist() == [{"k": 1, "t": 2, "_row": 0}]


@pytest.mark.parametrize("number", [1, -1])
def test_an_index_that_a_dictionary_does_not_have_is_damage(number: int) -> None:
    """As a flipped bit makes it, which Arrow reads without a word."""
    encoded = pa.DictionaryArray.from_arrays(pa.array([0, None, number], pa.int32()), pa.array(["text"]), safe=False)
    with pytest.raises(pa.ArrowInvalid, match="a value that its dictionary of 1 does not have"):
        parquetfile._row_sizes(pa.record_batch({"s": encoded}))


def test_a_file_that_ends_early_for_a_flipped_bit_is_refused(tmp_path: Path) -> None:
    """Some bits of a page's header make the reader end after no row at all, without a word."""
    whole = parquet_of(k=list(range(50)), t=list(range(50)), s=[f"text {i}" for i in range(50)])
    silent = 0
    for at in range(4, 400):
        damaged = bytearray(whole)
        damaged[at] ^= 1
        path = tmp_path / "file"
        path.write_bytes(bytes(damaged))
        with contextlib.suppress(pa.ArrowException, OSError):
            file = pq.ParquetFile(path, page_checksum_verification=True)
            silent += sum(batch.num_rows for batch in file.iter_batches(columns=["k", "t", "s"])) != 50
        with contextlib.suppress(BadFile):
            assert decoded(path, collection(TEXT)).num_rows == 50
    assert silent, "the reader tells of all by now: this test shows nothing any more"
