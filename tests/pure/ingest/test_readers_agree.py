"""Files of random dialects are read as DuckDB and pyarrow read them, and as they were written.

What was written is the first expectation. The other readers are asked wherever they have the words for a dialect:
pyarrow knows no comments and no thousands.
"""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.csv
import pyarrow.json
import pytest

from support.budget import budget
from tests.pure.ingest.landed import PACKED, decoded
from tests.pure.ingest.test_dialects import declared
from tidemark.model.collection import Column, ColumnType, Format
from tidemark.model.dialect import SUFFIXES, Csv

pytestmark = pytest.mark.pure
FILES = budget(ci=150, deep=3000)
N, F = Column("n", ColumnType.INT), Column("f", ColumnType.FLOAT)
S, U = Column("s", ColumnType.STRING), Column("u", ColumnType.STRING)
NAMES = ["k", "n", "f", "s", "u"]
SQL_TYPES = {"k": "BIGINT", "n": "BIGINT", "f": "DOUBLE", "s": "VARCHAR", "u": "VARCHAR"}
ARROW_TYPES = {"k": pa.int64(), "n": pa.int64(), "f": pa.float64(), "s": pa.string(), "u": pa.string()}
Rows = list[tuple[Any, ...]]


def dialect(rng: random.Random) -> Csv:
    """A dialect in which any word may be said."""
    delimiter, quote = rng.choice(",;|\t:"), rng.choice('""\'')
    decimal = rng.choice("..,")
    words: dict[str, Any] = {"delimiter": delimiter, "quote": quote, "decimal": decimal}
    words["escape"] = rng.choice(["", "", "\\"])
    words["encoding"] = rng.choice(["utf-8", "utf-8", "latin-1", "utf-16"])
    words["null"] = rng.choice([None, ("",), ("", "NULL"), ("NA",), ("", "-", "nil")])
    words["thousands"] = rng.choice(["", "", "." if decimal == "," else ","])
    words["comment"] = rng.choice(["", "", "#"])
    words["skip_rows"] = rng.choice([0, 0, 1, 3])
    if rng.random() < 0.3:
        words |= {"header": False, "names": tuple(NAMES)}
    return Csv(**words)


def text(rng: random.Random, chosen: Csv) -> str:
    letters = "ab ä" + chosen.delimiter + chosen.quote + chosen.escape + chosen.comment + "\n'\"#.,"
    return "".join(rng.choice(letters) for _ in range(rng.randrange(6)))


def rows(rng: random.Random, chosen: Csv) -> Rows:
    """Rows of which no value is lost in the dialect: texts are null only where it has a word for that."""
    can_be_null = chosen.null is not None

    def of_text() -> str | None:
        return None if can_be_null and rng.random() < 0.3 else text(rng, chosen)

    def of_number(value: float) -> float | None:
        return None if rng.random() < 0.2 else value

    return [
        (
            at,
            of_number(rng.choice([0, 7, -12, 1234, -9_876_543, 2**62])),
            of_number(rng.choice([0.5, -2.25, 1234.5, 1_000_000.125])),
            of_text(),
            of_text(),
        )
        for at in range(rng.randrange(9))
    ]


def written(rng: random.Random, chosen: Csv, values: Rows) -> bytes:
    """The bytes of a CSV file, by no code of the product."""
    quote, escape, end = chosen.quote, chosen.escape, rng.choice(["\n", "\n", "\r\n"])
    null = (chosen.null if chosen.null is not None else ("",)) or ("",)

    def in_quotes(value: str) -> str:
        if escape:
            value = value.replace(escape, escape * 2).replace(quote, escape + quote)
        else:
            value = value.replace(quote, quote * 2)
        return quote + value + quote

    def field(value: Any) -> str:
        if value is None:
            return rng.choice(null)
        if isinstance(value, int | float):
            said = f"{value:,}" if chosen.thousands and rng.random() < 0.5 else str(value)
            said = said.translate({ord(","): chosen.thousands, ord("."): chosen.decimal})
            return in_quotes(said) if chosen.delimiter in said or rng.random() < 0.1 else said
        cutting = {chosen.delimiter, quote, escape, chosen.comment, "\n", " ", "'", '"'} - {""}
        return in_quotes(value) if value in ("", *null) or cutting & set(value) or rng.random() < 0.2 else value

    lines = [f"made by someone{end}"] * chosen.skip_rows
    records = [NAMES] if chosen.header else []
    for record in [*records, *values]:
        if chosen.comment and rng.random() < 0.2:
            lines.append(f"{chosen.comment} a note{end}")
        lines.append(chosen.delimiter.join(map(field, record)) + end)
    return "".join(lines).encode(chosen.encoding)


def literal(value: Any) -> str:
    """A value in SQL."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{name}: {literal(each)}" for name, each in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(literal, value)) + "]"
    return "'" + value.replace("'", "''") + "'" if isinstance(value, str) else str(value).lower()


def by_duckdb(path: Path, chosen: Csv) -> Rows:
    options = {
        "delim": chosen.delimiter,
        "quote": chosen.quote,
        "escape": chosen.escape or chosen.quote,
        "header": chosen.header,
        "skip": chosen.skip_rows,
        "comment": chosen.comment,
        "encoding": chosen.encoding.replace("iso8859-1", "latin-1"),
        "decimal_separator": chosen.decimal,
        "nullstr": list(chosen.null or ("",)),
        "columns": SQL_TYPES,
        "allow_quoted_nulls": False,
        "auto_detect": False,
        "new_line": "\\n",
    }
    if chosen.thousands:
        options["thousands"] = chosen.thousands
    if b"\r\n" in path.read_bytes():
        options["new_line"] = "\\r\\n"
    said = ", ".join(f"{name} = {literal(value)}" for name, value in options.items())
    return duckdb.sql(f"SELECT * FROM read_csv('{path}', {said})").fetchall()


def by_pyarrow(path: Path, chosen: Csv) -> Rows:
    read = pa.csv.ReadOptions(
        skip_rows=chosen.skip_rows, encoding=chosen.encoding, column_names=None if chosen.header else NAMES
    )
    parse = pa.csv.ParseOptions(
        delimiter=chosen.delimiter,
        quote_char=chosen.quote,
        escape_char=chosen.escape or False,
        newlines_in_values=True,
    )
    convert = pa.csv.ConvertOptions(
        column_types=ARROW_TYPES,
        null_values=list(chosen.null if chosen.null is not None else ("",)),
        strings_can_be_null=chosen.null is not None,
        quoted_strings_can_be_null=False,
        decimal_point=chosen.decimal,
    )
    return [tuple(row.values()) for row in pa.csv.read_csv(path, read, parse, convert).to_pylist()]


def ours(path: Path, file_format: Format, **words: Any) -> Rows:
    return [tuple(row.values())[:-1] for row in decoded(path, declared([N, F, S, U], file_format, **words)).to_pylist()]


def test_csv_of_any_dialect_is_what_was_written_and_what_others_read(tmp_path: Path) -> None:
    compared = dict.fromkeys(("duckdb", "pyarrow"), 0)
    for seed in range(FILES * 2 // 3):
        rng = random.Random(seed)
        chosen = dialect(rng)
        values = rows(rng, chosen)
        path = tmp_path / "a.csv"
        path.write_bytes(written(rng, chosen, values))
        about = f"seed {seed}, {chosen}: {path.read_bytes()!r}"
        expected = values
        assert ours(path, Format.CSV, csv=chosen) == expected, about
        without_null = [tuple("" if row[at] is None and at > 2 else row[at] for at in range(5)) for row in values]
        if chosen.encoding != "utf-16":
            compared["duckdb"] += 1
            others = by_duckdb(path, chosen)
            if chosen.null is None:
                others = [tuple("" if row[at] is None and at > 2 else row[at] for at in range(5)) for row in others]
            assert others == (without_null if chosen.null is None else expected), about
        if values and not (chosen.comment or chosen.thousands):
            compared["pyarrow"] += 1
            assert by_pyarrow(path, chosen) == expected, about
    assert min(compared.values()) > FILES // 10, compared


@pytest.mark.parametrize("form", ["lines", "array", "printed", "object"])
def test_json_of_any_form_is_what_was_written_and_what_others_read(tmp_path: Path, form: str) -> None:
    for seed in range(FILES // 12):
        rng = random.Random(f"{form} {seed}")
        values = rows(rng, Csv(null=("",))) or [(1, 2, 0.5, "a", "b")]
        objects = [dict(zip(NAMES, row, strict=True)) | {"other": [{"s": "]"}, "}"]} for row in values]
        for each in objects:
            names = rng.sample(list(each), len(each))
            each |= {name: each.pop(name) for name in names}
        suffix = rng.choice(["", ".gz", ".zst", ".bz2", ".lz4", ".xz"])
        path, words = tmp_path / f"a.json{suffix}", {"rows": "data"} if form == "object" else {}
        document: Any = {"page": {"data": []}, "data": objects, "next": None} if form == "object" else objects
        lines = "".join(json.dumps(each, ensure_ascii=rng.random() < 0.5) + "\n" for each in objects)
        indent = rng.choice([1, 4]) if form == "printed" else None
        data = (lines if form == "lines" else json.dumps(document, indent=indent)).encode()
        path.write_bytes(PACKED[SUFFIXES[suffix]](data) if suffix else data)
        about = f"seed {seed}: {data!r}"
        assert ours(path, Format.JSONL, **words) == values, about
        if form != "object" and suffix in ("", ".gz", ".zst"):
            by = "newline_delimited" if form == "lines" else "array"
            query = f"SELECT * FROM read_json('{path}', format = '{by}', columns = {SQL_TYPES!r})"
            assert duckdb.sql(query).fetchall() == values, about
        if form == "lines" and not suffix:
            schema = pa.json.ParseOptions(explicit_schema=pa.schema(ARROW_TYPES), unexpected_field_behavior="ignore")
            table = pa.json.read_json(path, parse_options=schema).select(NAMES)
            assert [tuple(row.values()) for row in table.to_pylist()] == values, about
