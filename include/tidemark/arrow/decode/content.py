"""The content of one source file while it is ingested: identified once, then read as often as needed."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property, partial

import pyarrow as pa

from tidemark.arrow.decode.packed import BEGINNING, Unpacked, is_packed_with, packed_with
from tidemark.errors import NotReady, Unavailable, out_of_memory, plain_line
from tidemark.model.collection import Envelope, Format, Source
from tidemark.model.dialect import UTF_8, compression_of
from tidemark.model.ledger import SourceFile
from tidemark.storage.landing import is_remote, open_source, token_of, unreadable
from tidemark.storage.read_many import AHEAD, read_many
from tidemark.storage.stores.watched_input import WatchedInput

IN_MEMORY_BYTES = 64 * 2**20
"""Files up to this size are fetched once and kept while they are decoded; larger ones are read again and again."""
MAX_ROW_BYTES = 16 * 2**20
"""Bytes of one row: a line of JSON, a record of CSV, the values of a row of Parquet. A file with a longer one is
refused: rows are kept in memory several at a time, here and at every step to come."""
AHEAD_BYTES = 16 * 2**20
"""Bytes of small files that are fetched together."""
_READ_BYTES = 2**20
_BLANK = b"\xef\xbb\xbf \t\r\n"
"""What may be before the first value of a file."""
HEAD = 512
"""Bytes by which files of another kind are known."""
AVRO = "is Avro, which is not read; write it as Parquet or JSON lines: `SELECT * FROM read_avro('FILE')` of DuckDB does"
ZIP = "is a zip archive, which may have several files; unpack it, or compress each file by itself: gzip FILE"
SHEET = "is a workbook of Excel; save its sheet as CSV, or write it as Parquet: pandas.read_excel(...).to_parquet(...)"
_BINARY = "is {}, which is not read; write it as Parquet or JSON lines"
_KINDS = (
    (re.compile(rb"PK\x03\x04.{26}(\[Content_Types\]|_rels/|xl/|docProps/)", re.DOTALL), SHEET),
    (re.compile(rb"\xd0\xcf\x11\xe0"), SHEET),
    (re.compile(rb"PK\x03\x04"), ZIP),
    (re.compile(rb"Obj\x01"), AVRO),
    (re.compile(rb"ORC[^\n]*?[\x00-\x08\x0e-\x1f]", re.DOTALL), _BINARY.format("ORC")),
    (re.compile(rb"ARROW1\x00"), _BINARY.format("an Arrow (Feather) file")),
    (re.compile(rb"(?=.{0,256}\x00).{257}ustar", re.DOTALL), "is a tar archive; unpack it"),
)
_UTF_16 = re.compile(rb"\xff\xfe|\xfe\xff")
_PLAIN = Source("", Format.PARQUET, Envelope.APPEND)
"""Says nothing of how a text is written."""
_LINES = {Format.CSV: "CSV", Format.JSONL: "JSON lines"}
"""Formats of lines, by what people call them."""
_PARQUET = re.compile(rb"PAR1[^\n]*?[\x00-\x08\x0e-\x1f]", re.DOTALL)
"""What no text begins with, that is called so or not."""


class BadFile(Exception):
    """A source file that cannot be taken, and why, in one line of bounded length, whatever the file holds."""

    def __init__(self, path: str, reason: str) -> None:
        reason = plain_line(reason)
        super().__init__(path, reason)
        self.path, self.reason = path, reason

    def __str__(self) -> str:
        return f"{self.path}: {self.reason}"


@contextmanager
def memory_is_no_verdict(what: str) -> Iterator[None]:
    """Memory, or threads, that run out are Unavailable: they say nothing about what was being read."""
    try:
        yield
    except MemoryError as error:
        raise out_of_memory(what, error) from error
    except pa.ArrowException as error:
        if type(error) is not pa.ArrowException:
            raise
        # Its own class for what is unknown to it: no thread could be started, for one.
        raise Unavailable(f"{what}: {str(error).splitlines()[0]}; run the step again") from error


def another_kind(head: bytes, source: Source) -> str | None:
    """What a file is whose text begins so, and what to do, if it is plainly of another kind than its source says: an
    archive, for example, of which a reader of texts would only report that a column is missing. Else None."""
    if source.format is not Format.PARQUET and _PARQUET.match(head[:HEAD]):
        return "is Parquet; write format: parquet"
    if packed := packed_with(head):
        way = "" if source.format is Format.PARQUET else f", or write source: {{compression: {packed}}}"
        return f"is compressed with {packed}; unpack it{way}"
    if _UTF_16.match(head) and not source.csv.encoding.startswith("utf-16"):
        way = ", or source: {csv: {encoding: utf-16}}" if source.format is Format.CSV else ""
        return f"is text in UTF-16; write it in UTF-8{way}"
    return next((words for begins, words in _KINDS if begins.match(head)), None)


@dataclass
class Seen:
    """What is known of a file once it is decoded.

    Attributes:
        servers: The servers whose messages it has.
        tables: The tables whose messages it has, two at most.
        left_out: How many rows `only` leaves out.
        first_rows: The numbers of the first rows that `only` takes.
        notes: What is to be said of its messages, which are taken all the same.
        images_unfit: How many before-images have a value that does not fit its column.
        first_unfit: Which of them is the first, and why.
    """

    servers: set[str] = field(default_factory=set)
    tables: set[str] = field(default_factory=set)
    left_out: int = 0
    first_rows: list[int] = field(default_factory=list)
    notes: set[str] = field(default_factory=set)
    images_unfit: int = 0
    first_unfit: str = ""


@dataclass(frozen=True)
class Content:
    """What a file contained when it was identified by `sha256`; `data` is None if it is too large to keep."""

    file: SourceFile
    sha256: str
    bytes: int
    data: pa.Buffer | None
    seen: Seen = field(default_factory=Seen, compare=False)
    """As far as it was decoded."""
    source: Source = _PLAIN
    """How its text is written."""

    @property
    def path(self) -> str:
        return self.file.path

    def open(self) -> pa.NativeFile:
        """The content from its start. A failing storage is Unavailable, never taken for a bad file."""
        if self.data is not None:
            return pa.BufferReader(self.data)
        try:
            return pa.PythonFile(WatchedInput(open_source(self.path), partial(unreadable, self.path)), mode="r")
        except FileNotFoundError:
            raise NotReady(f"{self.path} is gone since it was listed; run the step again") from None
        except OSError as error:
            raise unreadable(self.path, error) from error

    def open_text(self) -> pa.NativeFile | Unpacked:
        """The text of a file from its start, unpacked where the file is compressed."""
        compression = self.compression
        return self.open() if compression == "none" else Unpacked(self.open(), compression, partial(BadFile, self.path))

    @cached_property
    def compression(self) -> str:
        """How the file is compressed; `none` also where only its name says so: who fetched it may have unpacked it.

        Raises BadFile where the declaration says so, and the file is not.
        """
        compression = compression_of(self.path, self.source.compression)
        if compression == "none" or self.source.format is Format.PARQUET:
            return "none"
        with self.open() as source:
            head = source.read(BEGINNING)
        if is_packed_with(compression, head):
            return compression
        if self.source.compression == "auto":
            return "none"
        is_now = packed_with(head) or "none"
        raise BadFile(self.path, f"is not compressed with {compression}, as compression says; write {is_now}, or auto")

    def check_kind(self) -> None:
        """Raise BadFile for a file that is plainly of another kind than its source says."""
        with memory_is_no_verdict(self.path), self.open_text() as text:
            head = text.read(HEAD)
        if packed_with(head) and self.compression != "none":
            raise BadFile(self.path, "is compressed twice; unpack it once")
        if another := another_kind(head, self.source):
            raise BadFile(self.path, another)

    def check_unchanged(self) -> None:
        """Raise NotReady if the file is no longer what was identified: what was read of it since may be a mixture."""
        if self.data is None:
            check_as_listed(self.file)


class _LineBound:
    """Watches the bytes of a large file go by: a text without a line end for longer than a row may be."""

    def __init__(self, path: str, what: str) -> None:
        self._path, self._what = path, what
        self._begun = self._seen = 0
        self._is_array = False

    def see(self, block: pa.Buffer) -> None:
        """The next bytes. Raises BadFile where no row that may be taken goes on for so long."""
        data = block.to_pybytes()
        self._is_array = self._is_array or (not self._seen and data.lstrip(_BLANK).startswith(b"["))
        if (end := max(data.rfind(b"\n"), data.rfind(b"\r"))) >= 0:
            self._begun = self._seen + end + 1
        self._seen += len(data)
        if self._seen - self._begun > MAX_ROW_BYTES and not self._is_array:
            raise BadFile(
                self._path,
                f"no line ends for {MAX_ROW_BYTES:,} bytes from byte {self._begun:,} on, and a row may have no more; "
                f"is it {self._what}, and whole?",
            )


def _line_bound(file: SourceFile, source: Source) -> _LineBound | None:
    """What watches the bytes of a file of lines; None of other files, and where lines are seen only when it is read."""
    is_read_as_it_is = compression_of(file.path, source.compression) == "none" and source.csv.encoding == UTF_8
    if source.format not in _LINES or source.rows or not is_read_as_it_is:
        return None
    return _LineBound(file.path, _LINES[source.format])


def fetch(file: SourceFile, source: Source = _PLAIN) -> Content:
    """Identify a file. Raises Unavailable if it cannot be read now, NotReady if it is gone or not the one listed; and
    BadFile of a large file of texts in the middle, without reading on, where no line ends for longer than a row may
    be."""
    digest, lines = hashlib.sha256(), _line_bound(file, source)
    size, kept = 0, None
    try:
        with open_source(file.path) as opened:
            if file.bytes <= IN_MEMORY_BYTES:
                kept = opened.read_buffer()
                digest.update(kept)
                size = kept.size
            else:
                while block := opened.read_buffer(_READ_BYTES):
                    if lines is not None:
                        lines.see(block)
                    digest.update(block)
                    size += block.size
    except FileNotFoundError:
        raise NotReady(f"{file.path} is gone since it was listed; run the step again") from None
    except OSError as error:
        raise unreadable(file.path, error) from error
    if size != file.bytes or (file.sha256 and digest.hexdigest() != file.sha256):
        raise NotReady(
            f"{file.path} changed since it was listed: was {file.bytes} bytes, is {size}; run the step again"
        )
    content = Content(file, digest.hexdigest(), size, kept, source=source)
    content.check_unchanged()
    return content


def fetched(files: Sequence[SourceFile], source: Source) -> Iterator[Content | BadFile]:
    """Yield what `fetch` answers to each file, in order, or the BadFile that it raises.

    Across a network small files that follow each other are fetched at once. No content is referred to here once the
    next one is asked for.
    """
    for group in _together(files):
        few = 1 if is_remote(group[0].path) else len(group)
        yield from read_many(partial(_fetched, source=source), group, few=few)


def _fetched(file: SourceFile, *, source: Source) -> Content | BadFile:
    try:
        return fetch(file, source)
    except BadFile as bad:
        return bad


def _together(files: Sequence[SourceFile]) -> Iterator[list[SourceFile]]:
    """Files in order, as many together as AHEAD and AHEAD_BYTES allow, at least one."""
    group: list[SourceFile] = []
    size = 0
    for file in files:
        if group and (len(group) == AHEAD or size + file.bytes > AHEAD_BYTES):
            yield group
            group, size = [], 0
        group.append(file)
        size += file.bytes
    if group:
        yield group


def check_as_listed(file: SourceFile) -> None:
    """Raise NotReady if a file is no longer the one that was listed: what was read of it may be a mixture."""
    if token_of(file.path) != file.token:
        raise NotReady(f"{file.path} changed while it was read; run the step again when it is complete")
