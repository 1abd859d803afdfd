"""Every type a column may have, with values that are right and wrong in each format, and a collection for each."""

from __future__ import annotations

import csv
import io
import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from decimal import Decimal
from itertools import count
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from support.world import DAY, World, collection, interval
from tests.pure.ingest.landed import write
from tidemark.arrow.decode.source import source_columns
from tidemark.jobs.steps.compact import compact
from tidemark.jobs.steps.drain import drain
from tidemark.jobs.steps.ingest import ingest
from tidemark.jobs.steps.seal import seal
from tidemark.model.canonical_json import canonical
from tidemark.model.collection import Collection, Column, ColumnType, DecimalType, Envelope, Format, ValueType
from tidemark.storage.stores.memory import MemoryStore

MONEY = DecimalType(12, 2)
TYPES: tuple[ValueType, ...] = (*ColumnType, MONEY)
Bad = tuple[str, bytes, pa.Array]
"""A value that no column of a type holds: as JSON lines write it, as CSV does, and as Parquet holds it."""

GOOD: dict[ValueType, tuple[Any, Any]] = {
    ColumnType.BOOL: (True, False),
    ColumnType.INT: (2**63 - 1, -(2**63)),
    ColumnType.FLOAT: (0.1, -1e300),
    ColumnType.STRING: ('ü, "quoted"\n', ""),
    ColumnType.DATE: (date(2024, 2, 29), date(1, 1, 1)),
    ColumnType.TIMESTAMP: (datetime(2024, 2, 29, 1, 2, 3, 4, tzinfo=UTC), datetime(1900, 1, 1, tzinfo=UTC)),
    ColumnType.BYTES: (b"\x00\xff", b"\xff"),
    ColumnType.JSON: ({"b": 1, "a": ["ü", None]}, 0.5),
    MONEY: (Decimal("9999999999.99"), Decimal("-0.10")),
}
BAD: dict[ValueType, Bad] = {
    ColumnType.BOOL: ('"perhaps"', b"perhaps", pa.array(["perhaps"])),
    ColumnType.INT: ("1.5", b"1.5", pa.array([1.5])),
    ColumnType.FLOAT: ('"much"', b"much", pa.array(["much"])),
    ColumnType.STRING: ("5", b"\xff", pa.array([5])),
    ColumnType.DATE: ('"2023-02-29"', b"2023-02-29", pa.array(["2023-02-29"])),
    ColumnType.TIMESTAMP: ('"yesterday"', b"yesterday", pa.array(["yesterday"])),
    ColumnType.BYTES: ('"no base64"', b"no base64", pa.array([5])),
    ColumnType.JSON: ('{"a":1,"a":2}', b'"{""a"":1,""a"":2}"', pa.array(['{"a":1,"a":2}'])),
    MONEY: ("0.005", b"0.005", pa.array(["0.005"])),
}
_roots = count(1)


def as_answered(value: Any, of: ValueType) -> Any:
    """A value as answers have it."""
    return canonical(json.dumps(value)) if of is ColumnType.JSON and value is not None else value


@dataclass(frozen=True)
class Typed:
    """A type as the one value column, or as the key, of a collection of an envelope."""

    of: ValueType
    role: str
    envelope: Envelope = Envelope.APPEND

    def __str__(self) -> str:
        return f"{self.of}-{self.role}-{self.envelope}"

    def declared(self, file_format: Format = Format.JSONL, **changes: Any) -> Collection:
        made = collection(self.envelope, format=file_format, **changes)
        typed = (Column("k" if self.role == "key" else "v", self.of),)
        return replace(made, key=typed) if self.role == "key" else replace(made, value=typed)

    def row(self, number: int, at: int = 3, **more: Any) -> dict[str, Any]:
        """The row of a number: 0 and 1 have values of the type; 2 has none, where that may be."""
        good = (*GOOD[self.of], None)[number]
        own = {"k": good, "v": f"v{number}"} if self.role == "key" else {"k": number, "v": good}
        return {**own, "t": at, "e": at, "o": 1, "gone": False, "d": 1, **more}

    @property
    def numbers(self) -> tuple[int, ...]:
        return (0, 1) if self.role == "key" else (0, 1, 2)

    def rows(self, at: int = 3) -> list[dict[str, Any]]:
        return [self.row(number, at) for number in self.numbers]

    def expected(self, *numbers: int, file_format: Format = Format.JSONL) -> Counter[Any]:
        """The rows of some numbers as an answer has them, each once. No text of CSV is null."""
        types = (self.of, ColumnType.STRING) if self.role == "key" else (ColumnType.INT, self.of)
        found = (self.row(number) for number in numbers)
        nothing = "" if file_format is Format.CSV and self.of is ColumnType.STRING else None
        values = ((row["k"], nothing if row["v"] is None else row["v"]) for row in found)
        return Counter((as_answered(key, types[0]), as_answered(value, types[1])) for key, value in values)


CASES = [
    Typed(of, role, envelope)
    for of in TYPES
    for role in ("value", "key")
    for envelope in (Envelope.APPEND, Envelope.UPDATES, Envelope.UPSERT)
    if (role, of) != ("key", ColumnType.FLOAT)
]

IN_TURN = [case for at, case in enumerate(CASES) if at % 3 == at // 3 % 3]
"""Each type in each role once: with the envelopes in turn."""


class TypedWorld(World):
    """A collection of one case below a root that readers can open, and its days."""

    def __init__(self, folder: Path, case: Typed, file_format: Format = Format.JSONL, **changes: Any) -> None:
        self.root, self.case, self.format = f"memory://typed{next(_roots)}", case, file_format
        bad_files = changes.pop("bad_files", "stop")
        declared = case.declared(file_format, **changes)
        source = replace(declared.landed.source, bad_files=bad_files)
        declared = replace(declared, origin=replace(declared.landed, source=source))
        super().__init__(folder / "landing", declared, MemoryStore.named(f"{self.root}/tides"))

    def path(self, day: int, name: str) -> Path:
        path = self.landing / str(day * DAY) / f"{name}.{self.format}"
        path.parent.mkdir(parents=True, exist_ok=True)
        return path

    def put(self, day: int, name: str, rows: Sequence[dict[str, Any]]) -> Path:
        """A file in the format of the collection."""
        write(self.path(day, name), rows, self.collection)
        return self.path(day, name)

    def put_bad(self, day: int, name: str) -> Path:
        """A file whose last row has a value that is none of the type."""
        path, case = self.put(day, name, [self.case.row(0, day * DAY + 3)]), self.case
        column = "k" if case.role == "key" else "v"
        as_json, as_csv, as_parquet = BAD[case.of]
        match self.format:
            case Format.JSONL:
                row = {**case.row(1, day * DAY + 3), column: "HERE"}
                line = json.dumps(row, default=str).replace('"HERE"', as_json)
                path.write_text(f"{path.read_text()}{line}\n")
            case Format.CSV:
                names = [column.name for column in source_columns(self.collection)]
                row = {**case.row(1, day * DAY + 3), column: "HERE"}
                text = io.StringIO()
                csv.writer(text).writerow([_cell(row[name]) for name in names])
                path.write_bytes(path.read_bytes() + text.getvalue().encode().replace(b"HERE", as_csv))
            case Format.PARQUET:
                table = pq.read_table(path)
                pq.write_table(table.set_column(table.schema.get_field_index(column), column, as_parquet), path)
        return path

    def ingested(self, day: int = 0, **asked: Any) -> dict[str, Any]:
        return self.run(lambda job: ingest(job, interval(day), landing_root=str(self.landing), **asked))

    def moved(self, day: int = 0) -> None:
        """The steps after an ingest."""
        for step in (seal, drain, compact):
            self.run(lambda job, step=step: step(job, interval(day)))  # type: ignore[misc]


def _cell(value: Any) -> Any:
    return str(value).lower() if isinstance(value, bool) else value
