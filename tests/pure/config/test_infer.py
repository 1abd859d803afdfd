"""Types of CSV are inferred only where every text comes back as it was written; else a column is a string, and why."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.pure.ingest.landed import PACKED
from tidemark.config.infer import inferred
from tidemark.errors import InvalidUsage
from tidemark.model.collection import ColumnType, Envelope, Format, Source
from tidemark.model.dialect import Csv

pytestmark = pytest.mark.pure
EURO = {"csv": Csv(delimiter=";", decimal=",", thousands=".")}
CASES: list[tuple[list[str], str, str]] = [
    (["1", "-20", "", "9223372036854775807"], "int", "3 values, given back as written"),
    (["1.5", "-0.25", "1e-05"], "float", "3 values, given back as written"),
    (["true", "false"], "bool", "2 values, given back as written"),
    (["2024-01-31"], "date", "1 value, given back as written"),
    (["2024-01-31T10:00", "2024-01-31 10:00:00.5Z"], "timestamp", "2 values, given back as written"),
    (["02138", "10001"], "string", "02138 would come back as 2138"),
    (["1", "+2"], "string", "+2 would come back as 2"),
    (["-0"], "string", "-0 would come back as 0"),
    (["1", "9223372036854775808"], "string", "9223372036854775808 is beyond 64 bits"),
    (["1e5"], "string", "1e5 would come back as 100000.0"),
    (["2.50", "1.25"], "string", "2.50 would come back as 2.5; decimal(18, 2) would keep it"),
    (["1.5", "3"], "string", "3 would come back as 3.0"),
    (
        ["0.1234567890123456789"],
        "string",
        "0.1234567890123456789 would come back as 0.12345678901234568; decimal(38, 19)",
    ),
    (["NaN"], "string", "'NaN' is a text"),
    (["True"], "string", "True would come back as true"),
    (["1", "abc"], "string", "'abc' is a text"),
    (["2024-02-30"], "string", "'2024-02-30' is a text"),
    (
        ["2024-01-31T10:00:00+02:00"],
        "string",
        "the offset of 2024-01-31T10:00:00+02:00 would be lost; declare timestamp",
    ),
    (["2024-01-31T10:00:00.123456789"], "string", "'2024-01-31T10:00:00.123456789' is a text"),
    (["10:00:00"], "string", "'10:00:00' is a text"),
    ([" 1"], "string", "' 1' is a text"),
]


def of(path: Path, data: bytes, **words: Any) -> tuple[str, str]:
    path.write_bytes(data)
    column = inferred(str(path), Source("", Format.CSV, Envelope.APPEND, **words), {"v": ["v"]})["v"]
    return str(column.type), column.why


@pytest.mark.parametrize(("texts", "column_type", "why"), CASES, ids=[case[0][-1] for case in CASES])
def test_a_type_is_inferred_where_texts_come_back(tmp_path: Path, texts: list[str], column_type: str, why: str) -> None:
    data = "".join(f"{at},{text}\n" for at, text in enumerate(["v", *texts])).replace("0,v", "k,v").encode()
    kind, said = of(tmp_path / "a.csv", data)
    assert (kind, said.startswith(why)) == (column_type, True), said


def test_all_of_a_file_is_looked_at_also_compressed(tmp_path: Path) -> None:
    rows = b"k,v\n" + b"1,10001\n" * 400_000 + b"1,02138\n"
    assert of(tmp_path / "a.csv.gz", PACKED["gzip"](rows)) == ("string", "02138 would come back as 2138")


def test_texts_are_inferred_as_their_dialect_has_them(tmp_path: Path) -> None:
    assert of(tmp_path / "a", b"k;v\n1;1.234,5\n2;-0,25\n", **EURO)[0] == ColumnType.FLOAT
    assert of(tmp_path / "b", b"k;v\n1;1.234\n", **EURO)[0] == ColumnType.INT
    assert of(tmp_path / "c", b"k;v\n1;1.5\n", **EURO)[0] == ColumnType.STRING
    assert of(tmp_path / "d", b"k,v\n1,NULL\n2,7\n", csv=Csv(null=("NULL",)))[0] == ColumnType.INT
    with pytest.raises(InvalidUsage, match="holds only nulls"):
        of(tmp_path / "e", b"k,v\n1,NULL\n", csv=Csv(null=("NULL",)))
    with pytest.raises(InvalidUsage, match="cannot be read to infer types from: is a zip archive"):
        of(tmp_path / "f", b"PK\x03\x04\x14")
