"""Delta files in CSV: UTF-8, commas, double quotes, a header, unless their source says otherwise. Blank lines are
skipped; in a file of one column each is an empty value, as an empty field is in others.

A field is quoted whole, a double quote within it written twice, or not at all: `"b"c` and `b"c` are refused, as readers
differ about them. Arrow takes both, and a text never closed; so what it reads is watched on its way (csvscan.py).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.csv

from tidemark.arrow.decode.content import MAX_ROW_BYTES, BadFile, Content, memory_is_no_verdict
from tidemark.arrow.decode.csvscan import TODAY, Marks, Record, Scanner, TooLong, records, same
from tidemark.arrow.decode.csvtext import QUOTE, Rewritten
from tidemark.arrow.decode.packed import Unpacked
from tidemark.errors import listed
from tidemark.model.dialect import Csv

BLOCK_BYTES = MAX_ROW_BYTES + 2**16
"""What is parsed at once; a single row must fit."""
MAX_HEADER_BYTES = 2**20
"""A longer first line is no header."""
_BOM = b"\xef\xbb\xbf"
_DELIMITERS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars", " ": "blanks"}
"""What often separates fields, as people call it."""


def read_blocks(content: Content, columns: Mapping[str, str]) -> Iterator[pa.RecordBatch]:
    """The columns as texts, block by block; of each is given what to add to a refusal if the file does not have it.

    Raises BadFile for what is not a CSV file with these columns.
    """
    header, start = _layout(content)
    for name in columns:
        if header.count(name) != 1:
            what, advice = ("twice in the header", "") if name in header else ("missing", columns[name])
            has = _shown(header, content.source.csv)
            raise BadFile(content.path, f"column {name} is {what}; the file has {has}{advice}")
    with memory_is_no_verdict(content.path), _opened(content) as source:
        body = _Body(source, start, _scanner(content, source), blank_rows=len(header) == 1)
        try:
            if body.is_empty:
                return
            for block in _parsed(body.input(content), header, list(columns), content.source.csv):
                _check(content, body.scanner)
                yield block
        except pa.ArrowInvalid as error:
            _check(content, body.scanner)
            raise BadFile(content.path, _explained(content, len(header), error)) from None
    _check(content, body.scanner, ended=True)


def names(content: Content) -> list[str]:
    """The columns of a file. Raises BadFile as `read_blocks`."""
    return _layout(content)[0]


def line_of(content: Content, row: int) -> int:
    """The line on which a row (from 0, the header not counted) starts."""
    dialect, records = content.source.csv, _records(content)
    header = next((record for record in records if record.text), None) if dialect.header else None
    one_column = len(dialect.names) == 1 if header is None else header.width == 1
    rows = (record.line for record in records if record.text or one_column)
    return next((line for at, line in enumerate(rows) if at == row), 0)


def _opened(content: Content) -> pa.NativeFile | Unpacked | Rewritten:
    """The text of a file as it is read here."""
    return Rewritten(content) if content.source.csv.is_rewritten else content.open_text()


def _marks(dialect: Csv) -> Marks:
    return (
        TODAY
        if (dialect.delimiter, dialect.quote) == (",", QUOTE)
        else Marks(dialect.delimiter, dialect.quote or QUOTE)
    )


def _scanner(content: Content, source: pa.NativeFile | Unpacked | Rewritten, line: int = 1) -> Scanner:
    return Scanner(line, _marks(content.source.csv), source.line_at if isinstance(source, Rewritten) else same)


def _layout(content: Content) -> tuple[list[str], int]:
    """The names of a file's columns, and where its rows start. Raises BadFile."""
    dialect = content.source.csv
    if not dialect.header:
        with _opened(content) as source:
            return list(dialect.names), len(_BOM) if source.read(len(_BOM)) == _BOM else 0
    first = _header(content)
    header = _fields(first)
    if dialect.names and len(dialect.names) != len(header):
        said = f"the header has {len(header)} fields, {_shown(header, dialect)}; csv.names has {len(dialect.names)}"
        raise BadFile(content.path, said)
    return list(dialect.names) or header, first.end


def _parsed(
    source: pa.NativeFile, header: Sequence[str], columns: Sequence[str], dialect: Csv
) -> Iterator[pa.RecordBatch]:
    # Columns by their places: names of others may be anything, and may be there twice.
    places = [str(header.index(name)) for name in columns]
    null = list(dialect.null or ())
    blocks = pa.csv.open_csv(
        source,
        pa.csv.ReadOptions(block_size=BLOCK_BYTES, use_threads=False, column_names=list(map(str, range(len(header))))),
        pa.csv.ParseOptions(
            delimiter=dialect.delimiter,
            quote_char=dialect.quote or QUOTE,
            newlines_in_values=True,
            ignore_empty_lines=len(header) > 1,
        ),
        pa.csv.ConvertOptions(
            include_columns=places,
            column_types=dict.fromkeys(places, pa.string()),
            null_values=null,
            strings_can_be_null=bool(null),
            quoted_strings_can_be_null=False,
        ),
    )
    for block in blocks:
        yield block.rename_columns(list(columns))


def _check(content: Content, scanner: Scanner, *, ended: bool = False) -> None:
    if problem := scanner.problem(MAX_ROW_BYTES, ended=ended):
        raise BadFile(content.path, problem)


def _records(content: Content, most: int = MAX_ROW_BYTES) -> Iterator[Record]:
    """The records, blank ones too."""
    with _opened(content) as source:
        lead = source.read(len(_BOM))
        skipped = len(_BOM) if lead == _BOM else 0
        line_at = source.line_at if isinstance(source, Rewritten) else same
        first, marks = b"" if skipped else lead, _marks(content.source.csv)
        yield from records(source, first, offset=skipped, most=most, marks=marks, line_at=line_at)


def _header(content: Content) -> Record:
    try:
        first = next((record for record in _records(content, MAX_HEADER_BYTES) if record.text), None)
    except TooLong as long:
        problem = f"line {long.line}: the header is longer than {MAX_HEADER_BYTES:,} bytes; is it CSV?"
        raise BadFile(content.path, problem) from None
    if first is None:
        raise BadFile(content.path, "is empty; a CSV file starts with a header")
    if not first.closed:
        raise BadFile(content.path, f"line {first.line}: the header cannot be read: a quoted text is never closed")
    if first.marks.quote not in first.text:  # nothing can be wrong with its quotes
        return first
    scanner = Scanner(first.line, first.marks)
    scanner.see(first.text)
    if problem := scanner.problem(MAX_HEADER_BYTES):
        raise BadFile(content.path, f"{problem}; this is in the header")
    return first


def _fields(record: Record) -> list[str]:
    """The fields of a record whose quotes are right. Bytes that are not UTF-8 stay, in a name that nothing declares."""
    fields, at, marks = [], 0, record.marks
    while True:
        match = marks.field.match(record.text, at)
        assert match is not None, "quotes were checked"
        quoted, bare = match.groups()
        text = bare if quoted is None else quoted.replace(marks.quote * 2, marks.quote)
        fields.append(text.decode("utf-8", "surrogateescape"))
        at = match.end()
        if record.text[at - 1 : at] != marks.delimiter or match.end() == match.start():
            return fields


def _shown(header: Sequence[str], dialect: Csv) -> str:
    """The names of a header for a message: those that are not what they seem in quotes."""
    names = listed(name if name and name == name.strip() else repr(name) for name in header)
    others = [letter for letter in _DELIMITERS if letter in header[0]] if len(header) == 1 else []
    if not others or others == [" "]:
        return names
    now = _DELIMITERS.get(dialect.delimiter, repr(dialect.delimiter))
    return f'{names}, and {now} separate fields; write source: {{csv: {{delimiter: "{_yaml(others[0])}"}}}}'


def _yaml(letter: str) -> str:
    return "\\t" if letter == "\t" else letter


def _explained(content: Content, width: int, error: Exception) -> str:
    try:
        for record in _records(content):
            if record.text and record.width != width:
                whose = "the header has" if content.source.csv.header else "csv.names has"
                return f"line {record.line}: {record.width} fields, {whose} {width}; truncated?"
            try:
                record.text.decode()
            except UnicodeDecodeError:
                return f"line {record.line}: not UTF-8; say what it is, as source: {{csv: {{encoding: cp1252}}}}"
    except TooLong as long:
        return str(long)
    return f"cannot be read: {str(error).splitlines()[0]}"


class _Body:
    """What follows the header, as Arrow reads it, watched by a scanner. Blank lines before the first row are left out,
    unless each is a row: Arrow takes a file of nothing else for a wrong one.

    Arrow drops a byte-order mark where its input begins, which is not where the file does: so it is given one to drop.
    """

    closed = False

    def __init__(
        self, source: pa.NativeFile | Unpacked | Rewritten, start: int, scanner: Scanner, *, blank_rows: bool
    ) -> None:
        self._source: Any = source
        self.scanner = scanner
        self.scanner.see(source.read(start).removeprefix(_BOM))
        blank = b"" if blank_rows else b"\r\n"
        while (data := self._next(2**16)) and not (first := data.lstrip(blank)):
            pass
        self._first = _BOM + first if data else b""

    @property
    def is_empty(self) -> bool:
        """Whether there are no rows."""
        return not self._first

    def input(self, content: Content) -> pa.NativeFile:
        """The rows as Arrow takes them: of a small file without a call of Python from one of its threads."""
        is_small = content.data is not None and content.bytes <= BLOCK_BYTES and isinstance(self._source, pa.NativeFile)
        return pa.BufferReader(self.read()) if is_small else pa.PythonFile(self, mode="r")

    def read(self, size: int | None = None) -> Any:
        first, self._first = self._first, b""
        wanted = None if size is None or size < 0 else size - len(first)
        if first and (wanted is None or wanted > 0):
            return first + self._next(wanted)
        return first or self._next(size)

    def _next(self, size: int | None) -> bytes:
        data: bytes = self._source.read(size)
        self.scanner.see(data)
        return data

    def close(self) -> None:
        """Nothing: whoever opened the input closes it."""
