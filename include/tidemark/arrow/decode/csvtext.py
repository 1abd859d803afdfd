"""The text of a CSV file of another dialect, rewritten while it is read to one that csvfile reads.

That is UTF-8, without lines before the rows and without comments; what an escape protects is in quotes, and a quote
within quotes is written twice. Other characters between and around fields stay. A record keeps its line breaks, so a
line of what is read is a line of the file, but for those that were left out: `line_at` counts them.
"""

from __future__ import annotations

import codecs
import re
from array import array
from bisect import bisect_right
from collections.abc import Iterator
from typing import Any

from tidemark.arrow.decode.content import MAX_ROW_BYTES, BadFile, Content
from tidemark.arrow.decode.csvscan import Marks, ends, lines_in
from tidemark.model.dialect import UTF_8, Csv

_READ_BYTES = 2**20
_LINE_END = re.compile(rb"\r\n|\n|\r(?!\Z)")
QUOTE = '"'
"""What is put around fields where a dialect has nothing for that."""


class Rewritten:
    """A CSV file of any dialect, read from its start."""

    closed = False

    def __init__(self, content: Content) -> None:
        self._path, self._dialect = content.path, content.source.csv
        self._source = content.open_text()
        self._dropped = array("q")
        self._rewriting = _Rewriting(self._dialect)
        self._ready, self._blocks = b"", self._rewritten()

    def read(self, size: int | None = None) -> bytes:
        """The next bytes, as many as asked for unless the text ends."""
        parts, length = [self._ready], len(self._ready)
        while (size is None or length < size) and (block := next(self._blocks, None)) is not None:
            parts.append(block)
            length += len(block)
        data = b"".join(parts)
        size = length if size is None else size
        data, self._ready = data[:size], data[size:]
        return data

    def line_at(self, line: int) -> int:
        """The line of the file (from 1) that is this one of what was read."""
        return line + bisect_right(self._dropped, line)

    def close(self) -> None:
        """Close the file."""
        self._source.close()

    def __enter__(self) -> Rewritten:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _rewritten(self) -> Iterator[bytes]:
        blocks = self._in_utf_8()
        if self._dialect.skip_rows:
            blocks = self._behind_skipped(blocks)
        if self._dialect.comment:
            blocks = self._without_comments(blocks)
        return self._unescaped(blocks) if self._rewriting.is_needed else blocks

    def _in_utf_8(self) -> Iterator[bytes]:
        encoding = self._dialect.encoding
        decoder, line = codecs.getincrementaldecoder(encoding)(), 1
        data: Any = b"-"
        while data:
            data = self._source.read(_READ_BYTES)
            if encoding == UTF_8:
                yield data
                continue
            try:
                text = decoder.decode(data, final=not data).encode()
            except UnicodeError as error:
                raise self._not_encoded(error, line) from None
            line += text.count(b"\n") if b"\n" in text else lines_in(text)
            yield text

    def _not_encoded(self, error: UnicodeError, line: int) -> BadFile:
        """The error for bytes that are not of the encoding; `line` is that of the first that were decoded together."""
        encoding, what = self._dialect.encoding, str(error)
        if isinstance(error, UnicodeDecodeError):
            line += lines_in(error.object[: error.start].decode(encoding, "replace").encode())
            what = f"byte 0x{error.object[error.start]:02x}"
        return BadFile(self._path, f"line {line}: not {encoding}: {what}; is that its encoding?")

    def _behind_skipped(self, blocks: Iterator[bytes]) -> Iterator[bytes]:
        data, left = b"", self._dialect.skip_rows
        for block in blocks:
            data += block
            while left and (end := _LINE_END.search(data)):
                data, left = data[end.end() :], left - 1
            if not left:
                break
            if len(data) > MAX_ROW_BYTES:
                raise BadFile(self._path, f"skip_rows: one of its first lines is longer than {MAX_ROW_BYTES:,} bytes")
        if left > (data != b""):
            has = self._dialect.skip_rows - left + (data != b"")
            raise BadFile(self._path, f"has {has} lines, and skip_rows is {self._dialect.skip_rows}; truncated?")
        self._dropped.extend([1] * self._dialect.skip_rows)
        if not left:
            yield data
        yield from blocks

    def _without_comments(self, blocks: Iterator[bytes]) -> Iterator[bytes]:
        """The lines that are no comments. A line within a quoted text is none."""
        mark = re.escape(self._dialect.comment.encode())
        comment = re.compile(rb"(?:\A|(?<=[\r\n]))" + mark + rb"[^\r\n]*(?:\r\n|\r|\n|\Z)")
        quote, is_inside, line = self._rewriting.marks.quote, False, 1
        for data in _whole_lines(blocks):
            masked, at, written = self._rewriting.masked(data), 0, []
            for match in comment.finditer(masked):
                before = masked[at : match.start()]
                is_inside ^= before.count(quote) % 2 == 1
                written.append(data[at : match.start()])
                line += lines_in(before)
                at = match.start()
                if not is_inside:
                    self._dropped.append(line)
                    at = match.end()
            rest = masked[at:]
            is_inside ^= rest.count(quote) % 2 == 1
            line += lines_in(rest)
            yield b"".join([*written, data[at:]])

    def _unescaped(self, blocks: Iterator[bytes]) -> Iterator[bytes]:
        """Whole records, with quotes in place of escapes."""
        data, line = b"", 1
        for block, is_last in _with_last(blocks):
            data += block
            stops = ends(self._rewriting.masked(data), is_last, self._rewriting.marks)
            records, data = (data[: stops[-1]], data[stops[-1] :]) if stops else (b"", data)
            if len(data) > MAX_ROW_BYTES + 2:
                line = self.line_at(line + lines_in(records))
                longer = f"line {line}: longer than {MAX_ROW_BYTES:,} bytes; is a quoted text never closed?"
                raise BadFile(self._path, longer)
            try:
                yield self._rewriting.records(records)
            except _WrongEscape as wrong:
                line = self.line_at(line + lines_in(records[: wrong.at]))
                raise BadFile(self._path, f"line {line}: {wrong}") from None
            line += lines_in(records)


def _whole_lines(blocks: Iterator[bytes]) -> Iterator[bytes]:
    """Blocks that end where a line does, but for a line that is too long to be a row."""
    data = b""
    for block in blocks:
        data += block
        cut = max(data.rfind(b"\n"), data.rfind(b"\r", 0, -1)) + 1
        if cut or len(data) > MAX_ROW_BYTES:
            cut = cut or len(data)
            yield data[:cut]
            data = data[cut:]
    yield data


def _with_last(blocks: Iterator[bytes]) -> Iterator[tuple[bytes, bool]]:
    """Each block, and whether it is the last: an empty one, behind all others."""
    for block in blocks:
        yield block, False
    yield b"", True


class _WrongEscape(Exception):
    """An escape before a character that needs none, so that readers differ about it; `at` is its offset."""

    def __init__(self, escaped: bytes, at: int, advice: str) -> None:
        text = escaped.decode(errors="replace")
        super().__init__(f"{text}: an escape is written before delimiter, quote, escape or line break{advice}")
        self.at = at


class _Rewriting:
    """What the escapes and quotes of records become."""

    def __init__(self, dialect: Csv) -> None:
        self.marks = Marks(dialect.delimiter, dialect.quote or QUOTE)
        self._escape, self._is_quoted = dialect.escape.encode(), bool(dialect.quote)
        self._null = {text.encode() for text in dialect.null or ()}
        self.is_needed = bool(dialect.escape) or not dialect.quote
        escape = re.escape(self._escape)
        self._pair, self._whole_pair = re.compile(escape + rb"([\s\S]|\Z)"), re.compile(escape + rb"[\s\S]")
        self._free = self.marks.delimiter + self.marks.quote + self._escape + b"\r\n"
        cut = re.escape(self.marks.delimiter) + escape + rb"\r\n" + (self.marks.quote if self._is_quoted else b"")
        pair = rb"|" + self._pair.pattern if self._escape else b""
        bare = rb"(?:[^" + cut + rb"]+" + pair + rb")+"
        quote = re.escape(self.marks.quote)
        quoted = quote + rb"(?:[^" + quote + escape + rb"]+" + pair + rb"|" + quote * 2 + rb")*" + quote + rb"?"
        self._field = re.compile(quoted + rb"|" + bare if self._is_quoted else bare)

    def masked(self, data: bytes) -> bytes:
        """As many bytes, of which none is escaped, and none a quote where nothing is quoted."""
        if self._escape and self._escape in data:
            data = self._whole_pair.sub(b"xx", data)
        return data if self._is_quoted else data.replace(self.marks.quote, b"x")

    def records(self, data: bytes) -> bytes:
        """Whole records without escapes."""
        if (self._escape and self._escape in data) or (not self._is_quoted and self.marks.quote in data):
            return self._field.sub(self._of_field, data)
        return data

    def _of_field(self, match: re.Match[bytes]) -> bytes:
        field, quote = match[0], self.marks.quote
        has_escape = bool(self._escape) and self._escape in field
        if self._is_quoted and field.startswith(quote):
            return self._pair.sub(lambda pair: self._meant(pair, match.start(), quote), field) if has_escape else field
        if field in self._null or not (has_escape or quote in field):
            return field
        text = self._pair.sub(lambda pair: self._meant(pair, match.start(), b""), field) if has_escape else field
        return quote + text.replace(quote, quote * 2) + quote

    def _meant(self, pair: re.Match[bytes], start: int, doubled: bytes) -> bytes:
        letter = pair[1]
        if not letter or letter not in self._free:
            advice = "; if the field is null, add it to csv.null" if pair.string[:2] == pair.string else ""
            raise _WrongEscape(pair[0], start + pair.start(), advice)
        return letter * 2 if letter == doubled else letter
