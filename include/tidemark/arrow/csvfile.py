"""Delta files in CSV: UTF-8, commas, double quotes, a header. Blank lines are skipped."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.csv

from tidemark.arrow.content import BadFile, Content

BLOCK_BYTES = 8 * 2**20
"""What is parsed at once; a single row must fit."""


def read_blocks(content: Content, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """The columns as texts, block by block. Raises BadFile for what is not a CSV file with these columns."""
    header = _header(content)
    for name in columns:
        if header.count(name) != 1:
            what = "twice in the header" if name in header else "missing"
            raise BadFile(content.path, f"column {name} is {what}; the file has {', '.join(header)}")
    with content.open() as source:
        counted = _QuoteCounter(source)
        try:
            yield from pa.csv.open_csv(
                pa.PythonFile(counted, mode="r"),
                pa.csv.ReadOptions(block_size=BLOCK_BYTES, use_threads=False),
                pa.csv.ParseOptions(newlines_in_values=True),
                pa.csv.ConvertOptions(
                    include_columns=columns,
                    column_types=dict.fromkeys(columns, pa.string()),
                    null_values=[],
                    strings_can_be_null=False,
                ),
            )
        except pa.ArrowInvalid as error:
            raise BadFile(content.path, _explained(content, header, error)) from None
    if counted.quotes % 2:
        raise BadFile(content.path, _unclosed(content))


def line_of(content: Content, row: int) -> int:
    """The line on which a row (from 0, the header not counted) starts."""
    for at, (line, _) in enumerate(_records(content)):
        if at == row + 1:
            return line
    return 0


def _records(content: Content) -> Iterator[tuple[int, list[str]]]:
    """The records that are not blank, header first, each with the line it starts on. Slow: for messages only."""
    with content.open() as source, io.TextIOWrapper(source, "utf-8-sig", errors="surrogateescape", newline="") as text:
        reader = csv.reader(text, strict=True)
        start = 1
        for record in reader:
            if record:
                yield start, record
            start = reader.line_num + 1


def _header(content: Content) -> list[str]:
    try:
        first = next(_records(content), None)
    except csv.Error as error:
        raise BadFile(content.path, f"line 1: the header cannot be read: {error}") from None
    if first is None:
        raise BadFile(content.path, "is empty; a CSV file starts with a header")
    return first[1]


def _explained(content: Content, header: Sequence[str], error: Exception) -> str:
    line = 1
    try:
        for line, record in _records(content):
            if len(record) != len(header):
                return f"line {line}: {len(record)} fields, the header has {len(header)}; truncated?"
            if any("\udc80" <= letter <= "\udcff" for text in record for letter in text):
                return f"line {line}: not UTF-8"
    except csv.Error as wrong:
        return f"after line {line}: {wrong}"
    return f"cannot be read: {str(error).splitlines()[0]}"


def _unclosed(content: Content) -> str:
    start = 1
    try:
        for line, record in _records(content):
            start = line + 1 + sum(text.count("\n") for text in record)
    except csv.Error:
        return f"line {start}: a quoted text is never closed; truncated?"
    return "a double quote stands alone in a text that is not quoted; write it twice, in quotes"


class _QuoteCounter:
    """An input as Arrow reads it, counting double quotes: Arrow takes a text never closed for a whole one."""

    closed = False

    def __init__(self, inner: pa.NativeFile) -> None:
        self._inner = inner
        self.quotes = 0

    def read(self, size: int | None = None) -> Any:
        data = self._inner.read(size)
        self.quotes += data.count(b'"')
        return data

    def close(self) -> None:
        """Nothing: whoever opened the input closes it."""
