"""Decimals, bytes and JSON from every format: exactly what the file says, or refused with the place and the reason."""

from __future__ import annotations

import json
import re
from base64 import b64encode
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.pure.ingest.landed import collection, decoded
from tidemark.arrow.decode import parquetfile
from tidemark.arrow.decode.source import BadFile
from tidemark.config.infer import inferred
from tidemark.errors import InvalidUsage
from tidemark.model.collection import Column, ColumnType, DecimalType, Envelope, Format, Source, ValueType

pytestmark = pytest.mark.pure

MONEY, BYTES, JSON = DecimalType(12, 2), ColumnType.BYTES, ColumnType.JSON
PARQUET, JSONL, CSV = Format.PARQUET, Format.JSONL, Format.CSV
SOURCE = Source("", PARQUET, Envelope.APPEND)
Read = Callable[..., list[Any]]


@pytest.fixture
def read(tmp_path: Path) -> Read:
    """What the column `v` of a type holds in a file of a format, given the cells as the format has them."""

    def of(declared: ValueType, file_format: Format, *cells: Any, key: bool = False) -> list[Any]:
        column, path = Column("v", declared), tmp_path / "file"
        if file_format is PARQUET:
            values = cells[0] if isinstance(cells[0], pa.Array) else pa.array(cells)
            pq.write_table(pa.table({"k": [1] * len(values), "t": [1] * len(values), "v": values}), path)
        elif file_format is JSONL:
            path.write_text("".join(f'{{"k":1,"t":1,"v":{cell}}}\n' for cell in cells))
        else:
            quoted = ('"' + cell.replace('"', '""') + '"' if cell else "" for cell in cells)
            path.write_text("k,t,v\n" + "".join(f"1,1,{cell}\n" for cell in quoted), newline="")
        of = collection(*([] if key else [column]), file_format=file_format)
        return decoded(path, replace(of, key=(column,)) if key else of).column("v").to_pylist()

    return of


@pytest.mark.parametrize(
    ("text", "exact"),
    [
        ("0.1", "0.10"),
        ("-12.50", "-12.50"),
        ("1e2", "100.00"),
        ("1.2E-1", "0.12"),
        ("-0", "0.00"),
        ("-0.000", "0.00"),
        ("1.5000000000000000000000000000000000000000000000000", "1.50"),
        ("9999999999.99", "9999999999.99"),
        ("0.10000e1", "1.00"),
        ("0e999999999", "0.00"),
    ],
)
def test_a_decimal_is_what_is_written(read: Read, text: str, exact: str) -> None:
    expected = [Decimal(exact)]
    assert read(MONEY, CSV, text) == expected
    assert read(MONEY, JSONL, text) == expected
    assert read(MONEY, JSONL, f'"{text}"') == expected
    assert read(MONEY, PARQUET, text) == expected
    assert [f"{x:f}" for x in read(MONEY, CSV, text)] == [exact.replace("-0.00", "0.00")]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("0.005", "which has 3 digits behind the point; decimal(12, 2) has 2"),
        ("0.10000000000000000001", "which has 20 digits behind the point; decimal(12, 2) has 2"),
        ("12345678901.5", "which has 11 digits before the point; decimal(12, 2) has 10"),
        ("10000000000", "which has 11 digits before the point; decimal(12, 2) has 10"),
        ("1e400", "which has 401 digits before the point; decimal(12, 2) has 10"),
        ("1e-400", "which has 400 digits behind the point; decimal(12, 2) has 2"),
        ("1e999999999", "which has 1000000000 digits before the point; decimal(12, 2) has 10"),
    ],
)
def test_a_decimal_is_never_rounded(read: Read, text: str, says: str) -> None:
    for file_format, cell, line, shown in (
        (CSV, text, "line 3", f"'{text}'"),
        (JSONL, text, "line 2", text),
        (JSONL, f'"{text}"', "line 2", f"'{text}'"),
        (PARQUET, text, "row 2", f"'{text}'"),
    ):
        with pytest.raises(BadFile) as error:
            read(MONEY, file_format, "1", cell)
        assert error.value.reason == f"{line}: column v is declared decimal(12, 2) and holds {shown}, {says}"


@pytest.mark.parametrize(
    "text", ["1,000.00", "NaN", "Infinity", "-inf", "0x1F", " 1", "1 ", "1_000", "١", "1e", ".", "$5"]
)
def test_what_is_no_number_is_no_decimal(read: Read, text: str) -> None:
    says = f"column v is declared decimal(12, 2) and holds '{text}', which is no decimal number"
    for file_format, cell in ((CSV, text), (JSONL, json.dumps(text)), (PARQUET, text)):
        with pytest.raises(BadFile) as error:
            read(MONEY, file_format, cell)
        assert error.value.reason.partition(": ")[2] == says


def test_a_decimal_is_null_where_csv_holds_nothing_and_json_null(read: Read) -> None:
    assert read(MONEY, CSV, "", "1") == [None, Decimal("1.00")]
    assert read(MONEY, JSONL, "null", "1") == [None, Decimal("1.00")]
    with pytest.raises(BadFile, match=r"line 1: column v is declared .* holds '', which is no decimal number$"):
        read(MONEY, JSONL, '""')
    for other in ("true", "[1]", '{"a":1}', "NaN", "Infinity"):
        with pytest.raises(BadFile, match=r"line 1: (column v is declared decimal|not JSON)"):
            read(MONEY, JSONL, other)


@pytest.mark.parametrize(
    "stored",
    [
        pa.array([Decimal("1.50"), None], pa.decimal128(38, 10)),
        pa.array([Decimal("1.5"), None], pa.decimal256(60, 3)),
        pa.array([1.5, None], pa.float64()),
        pa.array([1.5, None], pa.float32()),
    ],
    ids=lambda stored: str(stored.type),
)
def test_other_numbers_of_parquet_are_taken_where_they_are_equal(read: Read, stored: pa.Array) -> None:
    assert read(MONEY, PARQUET, stored) == [Decimal("1.50"), None]


def test_integers_of_parquet_are_taken_where_they_fit(read: Read) -> None:
    assert read(MONEY, PARQUET, 7, -9_999_999_999) == [Decimal(7), Decimal(-9_999_999_999)]
    assert read(DecimalType(38, 18), PARQUET, pa.array([2**64 - 1], pa.uint64())) == [Decimal(2**64 - 1)]
    with pytest.raises(BadFile, match=r"row 2: .* holds 10000000000, which has 11 digits before the point"):
        read(MONEY, PARQUET, 1, 10_000_000_000)


@pytest.mark.parametrize(
    ("stored", "says"),
    [
        (pa.array([Decimal("0.005")], pa.decimal128(5, 3)), "holds 0.005, which has 3 digits behind"),
        (pa.array([Decimal("123456789012")], pa.decimal256(50, 0)), "holds 123456789012, which has 12 digits before"),
        (pa.array([0.1]), r"the float 0.1, which is 0.1000000000000000055\d+.* exactly: write decimals or texts"),
        (pa.array([1e300]), "holds 1e\\+300, which has 301 digits before|the float 1e\\+300, which is 1000"),
        (pa.array([float("nan")]), "holds nan, which is no decimal number"),
        (pa.array([float("-inf")]), "holds -inf, which is no decimal number"),
        (pa.array([True]), "is declared decimal\\(12, 2\\), the file has bool"),
        (pa.array([b"1"]), "is declared decimal\\(12, 2\\), the file has binary"),
    ],
    ids=lambda case: str(case)[:40] if isinstance(case, str) else str(case.type),
)
def test_other_numbers_of_parquet_are_refused_where_they_are_not_equal(read: Read, stored: pa.Array, says: str) -> None:
    with pytest.raises(BadFile, match=says):
        read(MONEY, PARQUET, stored)


def test_thirty_eight_digits_stay(read: Read) -> None:
    most = "9" * 38
    for file_format in (CSV, JSONL, PARQUET):
        assert read(DecimalType(38, 0), file_format, most, f"-{most}") == [Decimal(most), Decimal(f"-{most}")]
        with pytest.raises(BadFile, match="39 digits before the point"):
            read(DecimalType(38, 0), file_format, f"1{'0' * 38}")
        assert read(DecimalType(38, 38), file_format, f"0.{most}") == [Decimal(f"0.{most}")]


def test_bytes_are_base64_in_texts_and_themselves_in_parquet(read: Read) -> None:
    data = [b"\xff\x00", b"\x00", bytes(range(256))]
    texts = [b64encode(each).decode() for each in data]
    assert read(BYTES, CSV, *texts) == data
    assert read(BYTES, JSONL, *map(json.dumps, texts)) == data
    for kind in (pa.binary(), pa.large_binary(), pa.binary_view()):
        assert read(BYTES, PARQUET, pa.array(data, kind)) == data
    assert read(BYTES, PARQUET, pa.array([b"ab"], pa.binary(2))) == [b"ab"]


def test_no_bytes_are_not_null_but_in_csv(read: Read) -> None:
    assert read(BYTES, CSV, "", "AA==") == [None, b"\0"]
    assert read(BYTES, JSONL, '""', "null", '"AA=="') == [b"", None, b"\0"]
    assert read(BYTES, PARQUET, b"", None) == [b"", None]


@pytest.mark.parametrize("text", ["AA", "AA=", "AB==", "_-8=", "A A==", "AA==\n", "ff", "é", "A", "===="])
def test_what_is_no_base64_is_refused(read: Read, text: str) -> None:
    for file_format, cell in ((CSV, text), (JSONL, json.dumps(text))):
        with pytest.raises(BadFile, match=r"column v is declared bytes and holds .*, which is (no )?base64"):
            read(BYTES, file_format, cell)


def test_texts_of_parquet_are_no_bytes(read: Read) -> None:
    with pytest.raises(BadFile, match="is declared bytes, the file has string"):
        read(BYTES, PARQUET, "AA==")


def test_json_is_any_value_of_a_line(read: Read) -> None:
    cells = ('{"b": 1.0, "a": [1e2, null]}', '"{}"', "0.10", "true", "null", "12345678901234567890", '"\\u00e9"')
    canonical = ['{"a":[100,null],"b":1}', '"{}"', "0.1", "true", None, "12345678901234567890", '"é"']
    assert read(JSON, JSONL, *cells) == canonical
    assert read(JSON, CSV, *cells) == canonical
    assert read(JSON, PARQUET, *cells) == canonical
    assert read(JSON, CSV, "", "[]") == [None, "[]"]


@pytest.mark.parametrize(
    ("cell", "says"),
    [
        ('{"a":1,"a":2}', "holds the name 'a' twice in one object$"),
        ('["\\ud800"]', "holds half a surrogate pair, which is not Unicode text$"),
        ("[NaN]", "(holds NaN, which is no number of JSON|holds nan, which is no number of JSON)$"),
        ("[" * 101 + "]" * 101, "holds more than 100 levels of arrays and objects$"),
    ],
    ids=lambda case: case[:20],
)
def test_what_is_no_json_is_refused_with_its_place(read: Read, cell: str, says: str) -> None:
    for file_format, line in ((JSONL, "line 2"), (CSV, "line 3"), (PARQUET, "row 2")):
        with pytest.raises(BadFile, match=f"^.*{line}: column v is declared json and {says}"):
            read(JSON, file_format, "1", cell)
    for file_format in (CSV, PARQUET):
        with pytest.raises(BadFile, match="column v is declared json and holds no JSON"):
            read(JSON, file_format, "plain text")


@pytest.mark.parametrize("digits", [400, 401, 5_000, 100_000])
def test_whole_numbers_of_any_length_are_kept_in_json(read: Read, digits: int) -> None:
    """Python makes no int of more than 4,300 digits."""
    cell = "[-" + "12345" * (digits // 5) + "]"
    for file_format in (JSONL, CSV, PARQUET):
        [found] = read(JSON, file_format, cell)
        assert found == f"[-1.{cell[3:-1]}e+{digits - digits % 5 - 1}]"


@pytest.mark.parametrize("declared", [ColumnType.INT, ColumnType.FLOAT, MONEY, ColumnType.STRING])
def test_a_number_of_thousands_of_digits_is_too_large_for_other_columns_and_not_read_elsewhere(
    read: Read, tmp_path: Path, declared: ValueType
) -> None:
    with pytest.raises(BadFile, match=f"line 1: column v is declared {re.escape(str(declared))} and holds"):
        read(declared, JSONL, "9" * 5_000)
    (tmp_path / "file").write_text('{"k":1,"t":1,"v":null,"other":' + "9" * 5_000 + "}\n")
    found = decoded(tmp_path / "file", collection(Column("v", JSON), file_format=JSONL))
    assert found.column("v").to_pylist() == [None]


def test_nested_columns_of_parquet_become_json(read: Read) -> None:
    moment = datetime(2013, 1, 2, 3, 4, 5, 6, tzinfo=UTC)
    values = {
        "t": moment,
        "d": date(2013, 1, 2),
        "n": Decimal("1.50"),
        "x": b"\xff",
        "f": 0.1,
        "i": 2**63 - 1,
        "z": None,
    }
    text = (
        '{"d":"2013-01-02","f":0.1,"i":9223372036854775807,"n":1.5,'
        '"t":"2013-01-02T03:04:05.000006Z","x":"/w==","z":null}'
    )
    assert read(JSON, PARQUET, pa.array([values, None])) == [text, None]
    assert read(JSON, PARQUET, pa.array([[1, None], [], None])) == ["[1,null]", "[]", None]
    pairs = pa.array([[("b", [1]), ("a", None)], [], None], pa.map_(pa.string(), pa.list_(pa.int32())))
    assert read(JSON, PARQUET, pairs) == ['{"a":null,"b":[1]}', "{}", None]
    floats = pa.array([[0.1, 1e22, -0.0]], pa.list_(pa.float32()))
    assert read(JSON, PARQUET, floats) == ["[0.1,1e+22,0]"]
    halves = pa.array([[0.1, 65504.0, None]], pa.list_(pa.float16()))
    assert read(JSON, PARQUET, halves) == ["[0.0999755859375,65504,null]"]


@pytest.mark.parametrize(
    ("stored", "says"),
    [
        (pa.array([[("a", 1)], [("a", 1), ("a", 2)]], pa.map_(pa.string(), pa.int8())), "row 2: .* the name 'a' twice"),
        (pa.array([[1.0], [float("nan")]]), "row 2: .* holds nan, which is no number of JSON"),
        (pa.array([[0], [1]], pa.list_(pa.timestamp("ns"))), "row 2: .* holds Casting .* would lose data: 1"),
        (pa.array([[0], [2**62]], pa.list_(pa.timestamp("us"))), "row 2: .* holds a time beyond the years 1 to 9999"),
        (pa.array([[("a", 1)]], pa.map_(pa.string(), pa.duration("s"))), "is declared json, the file has map<"),
        (pa.array([[(1, 1)]], pa.map_(pa.int8(), pa.int8())), "is declared json, the file has map<int8"),
        (pa.array([1, 2]), "is declared json, the file has int64"),
    ],
    ids=lambda case: str(case)[:40] if isinstance(case, str) else str(case.type),
)
def test_nested_values_without_json_are_refused(read: Read, stored: pa.Array, says: str) -> None:
    with pytest.raises(BadFile, match=says):
        read(JSON, PARQUET, stored)


@pytest.mark.parametrize(
    "row",
    [
        {"a": {"b": "x" * 400}},
        {"a": [["x" * 100] * 2, None, ["x" * 200]]},
        {"a": [{"n" * 100: 1}] * 4},
        {"a": [1] * 60},
    ],
    ids=lambda row: str(row)[:20],
)
def test_rows_are_bounded_by_what_their_nested_values_hold(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, row: dict[str, Any]
) -> None:
    """Also by the names of fields, which each item of a list repeats as JSON."""
    monkeypatch.setattr(parquetfile, "MAX_ROW_BYTES", 400)
    pq.write_table(pa.table({"k": [1, 1], "t": [1, 1], "v": [None, row]}), tmp_path / "file")
    with pytest.raises(BadFile, match=r"^.*row 2: has \d+ bytes; a row may have 400$"):
        decoded(tmp_path / "file", collection(Column("v", JSON), file_format=PARQUET))


@pytest.mark.parametrize("of", [pa.large_string(), pa.string_view(), pa.large_binary(), pa.binary_view()], ids=str)
@pytest.mark.parametrize("encoded", [True, False], ids=["dictionary", "plain"])
def test_rows_of_long_texts_are_bounded_whatever_arrow_calls_their_type(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, of: pa.DataType, encoded: bool
) -> None:
    """polars writes its texts as large_string."""
    monkeypatch.setattr(parquetfile, "MAX_ROW_BYTES", 400)
    long: str | bytes = b"x" * 400 if "binary" in str(of) else "x" * 400
    values = pa.array([long[:3], long, None, long], of)
    table = pa.table({"k": [1] * 4, "t": [1] * 4, "v": values})
    pq.write_table(table, tmp_path / "file", use_dictionary=encoded)
    declared = BYTES if "binary" in str(of) else ColumnType.STRING
    with pytest.raises(BadFile, match=r"^.*row 2: has 4\d\d bytes; a row may have 400$"):
        decoded(tmp_path / "file", collection(Column("v", declared), file_format=PARQUET))


@pytest.mark.parametrize("encoded", [True, False], ids=["dictionary", "plain"])
def test_what_arrow_makes_a_type_of_its_own_is_what_parquet_holds(tmp_path: Path, encoded: bool) -> None:
    """JSON and UUID are kinds of texts and bytes of Parquet itself, which Arrow gives back in a wrapping."""
    names = [b"0123456789abcdef", None, b"fedcba9876543210"]
    table = pa.table(
        {
            "k": [1, 2, 3],
            "t": [1, 1, 1],
            "j": pa.ExtensionArray.from_storage(pa.json_(), pa.array(['{"b": 1.0, "a": []}', None, "[1]"])),
            "u": pa.ExtensionArray.from_storage(pa.uuid(), pa.array(names, pa.binary(16))),
        }
    )
    pq.write_table(table, tmp_path / "file", use_dictionary=encoded)
    columns = (Column("j", JSON), Column("u", BYTES))
    rows = decoded(tmp_path / "file", collection(*columns, file_format=PARQUET))
    assert rows.column("j").to_pylist() == ['{"a":[],"b":1}', None, "[1]"]
    assert rows.column("u").to_pylist() == names
    columns = inferred(str(tmp_path / "file"), SOURCE, {"j": ["j"], "u": ["u"]})
    assert {name: column.type for name, column in columns.items()} == {"j": JSON, "u": BYTES}


@pytest.mark.parametrize(
    ("stored", "advice"),
    [
        (pa.array([1], pa.time64("us")), "write it as a text or a number at the source"),
        (pa.array([1], pa.duration("s")), "write it as a text or a number at the source"),
        (pa.array([[(1, 1)]], pa.map_(pa.int8(), pa.int8())), "write it as a text or a number at the source"),
        (pa.array([Decimal(1)], pa.decimal256(60, 0)), "declare its type under columns:"),
    ],
    ids=lambda case: case if isinstance(case, str) else str(case.type),
)
def test_a_type_that_no_column_has_is_refused_with_what_helps(tmp_path: Path, stored: pa.Array, advice: str) -> None:
    pq.write_table(pa.table({"v": stored}), tmp_path / "file")
    with pytest.raises(InvalidUsage, match=rf"is of type .*, which Tidemark does not have; {advice}$"):
        inferred(str(tmp_path / "file"), SOURCE, {"v": ["v"]})


@pytest.mark.parametrize("declared", [BYTES, JSON])
def test_long_keys_of_any_type_are_refused(read: Read, declared: ValueType) -> None:
    data, what = (b"x" * 65_537, "bytes") if declared is BYTES else ("1" * 65_537, "json")
    with pytest.raises(BadFile, match=f"holds 6.,... bytes; a key's {what} has at most 65,536: let it be a value"):
        read(declared, PARQUET, data, key=True)
    with pytest.raises(BadFile, match="column v is null; a key never is"):
        read(declared, JSONL, "null", key=True)
