"""Whatever a file holds, decoding gives rows or the one refusal, never another error: bytes are changed,
cut and put in, in every format and envelope."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from datetime import UTC, date, datetime
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from tests.pure.ingest import test_debezium as messages
from tests.pure.ingest.landed import ALL_TYPES, collection, content_of, write
from tidemark.arrow.decode.content import BadFile
from tidemark.arrow.decode.source import decode
from tidemark.errors import MAX_REASON
from tidemark.model.collection import Collection, Column, ColumnType, Envelope, Format

pytestmark = pytest.mark.pure

TEXTS = ["x", 'é"q,\n', "", None, "y" * 50]
ROWS: list[dict[str, Any]] = [
    {
        "k": at,
        "t": at + 1,
        "a_bool": bool(at % 2),
        "a_int": at * 7,
        "a_float": at / 3,
        "a_string": TEXTS[at % 5],
        "a_date": date(2020, 1, 1 + at),
        "a_timestamp": datetime(2020, 1, 1, at, tzinfo=UTC),
        "diff": 1,
        "o": at,
        "op": "u",
    }
    for at in range(6)
]
TOKENS = [
    *(b'"', b"\n", b"\r", b",", b"\0", b"\xff", b"\xe9", b"Inf", b"-Infinity", b"NaN", b"null", b"{", b"}", b"[", b":"),
    *(
        b"\\",
        b"\\ud800",
        b"1e999",
        b"9" * 30,
        b"9" * 5000,
        b"true",
        b'"a"',
        b'"b"c',
        b'""',
        b"+1",
        b"-0",
        b"\xef\xbb\xbf",
    ),
    *(b"9999-99-99", b"10000-01-01", b"0000-01-01T00:00:00", "\u2028".encode(), "١".encode(), b"x" * 140_000),
]
ENCODINGS: list[dict[str, Any]] = [
    {},
    {"use_dictionary": False, "data_page_version": "2.0", "compression": "zstd"},
    {"use_dictionary": False, "column_encoding": {"a_string": "DELTA_BYTE_ARRAY", "a_int": "DELTA_BINARY_PACKED"}},
    {"compression": "gzip"},
]
Sample = tuple[bytes, Collection]


@cache
def samples() -> dict[Format, list[Sample]]:
    """Good files, with their declarations."""
    found: dict[Format, list[Sample]] = {file_format: [] for file_format in Format}
    upserts = {"order_by": "o", "delete_when": "op = 'd'"}
    inputs = (Column("o", ColumnType.INT), Column("op", ColumnType.STRING))
    options: dict[Envelope, dict[str, Any]] = {
        Envelope.APPEND: {},
        Envelope.UPDATES: {},
        Envelope.UPSERT: {**upserts, "inputs": inputs},
        Envelope.SNAPSHOT: {"time": None},
    }
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "file"
        for file_format in Format:
            for envelope, more in options.items():
                declared = collection(*ALL_TYPES, file_format=file_format, envelope=envelope, **more)
                write(path, ROWS, declared)
                found[file_format].append((path.read_bytes(), declared))
                table = pq.read_table(path) if file_format is Format.PARQUET else None
                for encoded in ENCODINGS if table is not None else ():
                    pq.write_table(table, path, **encoded)
                    found[file_format].append((path.read_bytes(), declared))
        for file_format in (Format.JSONL, Format.PARQUET):
            for form in messages.FORMS:
                feed = [
                    messages.message("u", messages.row(0, "z", 9), messages.row(0, "a", 0), ts=0, lsn=0),
                    messages.message("c", None, messages.row(1, "a", 0), ts=0, lsn=0),
                    messages.message("d", messages.row(1, "a", 0), ts=0, lsn=0),
                ]
                whole = messages.write(path, [form(message) for message in feed], file_format).read_bytes()
                found[file_format].append((whole, messages.collection(file_format)))
    return found


def _flip(data: bytearray, draw: Callable[..., Any]) -> None:
    at = draw(st.integers(0, len(data) - 1))
    data[at] ^= draw(st.integers(1, 255))


def _put(data: bytearray, draw: Callable[..., Any]) -> None:
    at = draw(st.integers(0, len(data)))
    data[at : at + draw(st.sampled_from([0, 0, 1, 5]))] = draw(st.sampled_from(TOKENS))


def _cut(data: bytearray, draw: Callable[..., Any]) -> None:
    at = draw(st.integers(0, len(data)))
    del data[at : at + draw(st.sampled_from([1, 3, 40, len(data)]))]


@st.composite
def damaged(draw: st.DrawFn, file_format: Format) -> Sample:
    whole, declared = draw(st.sampled_from(samples()[file_format]))
    data = bytearray(whole)
    for _ in range(draw(st.integers(1, 3))):
        if data:
            draw(st.sampled_from([_flip, _put, _cut]))(data, draw)
    return bytes(data), declared


@pytest.mark.parametrize("file_format", list(Format))
@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_a_damaged_file_is_read_or_refused_never_worse(file_format: Format, data: st.DataObject) -> None:
    contents, declared = data.draw(damaged(file_format))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "file"
        path.write_bytes(contents)
        result = outcome(path, declared)
    event(result.split()[0])
    assert len(result) <= MAX_REASON + len("refused: ")
    assert result.isprintable()
    result.encode()


def outcome(path: Path, declared: Collection) -> str:
    """What becomes of a file."""
    try:
        for block in decode(content_of(path), declared):
            block.validate(full=True)
    except BadFile as bad:
        return f"refused: {bad.reason}"
    return "read"
