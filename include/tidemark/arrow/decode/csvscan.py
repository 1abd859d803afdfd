"""Where the records of a CSV file are, and what is wrong with its quotes: seen from its bytes alone, in one pass.

Lines are counted in the bytes that are seen; where these lack lines of the file, `line_at` says which line of it is
one of theirs.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from tidemark.arrow.rows.columns import Bools, Ints

_LF, _CR = b"\n\r"
_READ_BYTES = 2**20


class Marks:
    """The bytes by which fields are cut.

    Attributes:
        delimiter: The byte between fields.
        quote: The byte around fields.
        quoted: A field in quotes, or half of one.
        field: A field, bare or in quotes, and what ends it.
        beside: By byte, whether it may be next to a quote outside of the text in quotes.
    """

    def __init__(self, delimiter: str = ",", quote: str = '"') -> None:
        self.delimiter, self.quote = delimiter.encode(), quote.encode()
        cut, around = re.escape(self.delimiter), re.escape(self.quote)
        self.quoted = re.compile(around + rb"[^" + around + rb"]*" + around + rb"?")
        within = rb"((?:[^" + around + rb"]+|" + around * 2 + rb")*)"
        bare = rb"([^" + around + cut + rb"]*)"
        self.field = re.compile(rb"(?:" + around + within + around + rb"|" + bare + rb")(?:" + cut + rb"|\Z)")
        self.beside = np.zeros(256, np.bool_)
        self.beside[[self.delimiter[0], _LF, _CR, self.quote[0]]] = True


TODAY = Marks()


def same(line: int) -> int:
    """The line of a file whose lines are all seen."""
    return line


class TooLong(Exception):
    """A record that is longer than allowed."""

    def __init__(self, line: int, most: int) -> None:
        super().__init__(f"line {line}: longer than {most:,} bytes; is a quoted text never closed?")
        self.line = line


@dataclass(frozen=True)
class Record:
    """The bytes of a record without its line end, the line it starts on, and the offset behind it in the file."""

    text: bytes
    line: int
    end: int
    marks: Marks = TODAY

    @property
    def width(self) -> int:
        """How many fields it has."""
        marks = self.marks
        bare = marks.quoted.sub(b"", self.text) if marks.quote in self.text else self.text
        return bare.count(marks.delimiter) + 1

    @property
    def closed(self) -> bool:
        """Whether its last quoted text ends."""
        return self.text.count(self.marks.quote) % 2 == 0


def records(
    source: Any,
    data: bytes,
    *,
    offset: int,
    most: int,
    marks: Marks = TODAY,
    line_at: Callable[[int], int] = same,
) -> Iterator[Record]:
    """The records, blank ones too, of an input whose first bytes `data` were read, from `offset` on.

    Raises TooLong for one of more than `most` bytes. Slow: for messages and headers only.
    """
    line, ended = 1, False
    while not ended:
        chunk = source.read(_READ_BYTES)
        ended = not chunk
        data += chunk
        start = 0
        for stop in ends(data, ended, marks):
            text = data[start:stop]
            if len(text) > most + 2:
                raise TooLong(line_at(line), most)
            yield Record(text.removesuffix(b"\n").removesuffix(b"\r"), line_at(line), offset + stop, marks)
            line += lines_in(text)
            start = stop
        data, offset = data[start:], offset + start
        if len(data) > most + 2:
            raise TooLong(line_at(line), most)


def ends(data: bytes, last: bool, cutting: Marks = TODAY) -> list[int]:
    """The offsets behind the records of some bytes that start with one; `last`: nothing follows."""
    marks = np.frombuffer(data, np.uint8)
    breaks = _breaks(marks)
    if not last and len(breaks) and breaks[-1] == len(data) - 1 and data[-1] == _CR:
        breaks = breaks[:-1]  # a line feed may follow
    quotes = np.flatnonzero(marks == cutting.quote[0])
    outside = np.searchsorted(quotes, breaks) % 2 == 0
    stops = [int(at) + 1 for at in breaks[outside]]
    if last and data and (not stops or stops[-1] < len(data)):
        stops.append(len(data))
    return stops


def _breaks(marks: Any) -> Ints:
    """Where lines end: at a line feed, or a carriage return that none follows."""
    found: Bools = marks == _LF
    returns = marks == _CR
    if returns.any():
        alone = returns.copy()
        alone[:-1] &= ~found[1:]
        found = found | alone
    return np.flatnonzero(found)


def lines_in(data: bytes) -> int:
    """How many lines end in some bytes."""
    if b"\r" not in data:
        return data.count(b"\n")
    return data.count(b"\n") + data.count(b"\r") - data.count(b"\r\n")


class Scanner:
    """Watches bytes go by: the first quote that is where none may be, and the longest record."""

    def __init__(self, line: int = 1, cutting: Marks = TODAY, line_at: Callable[[int], int] = same) -> None:
        self._line, self._cutting, self._line_at = line, cutting, line_at
        self._quote = cutting.quote[0]
        self._name = "double quote" if cutting.quote == b'"' else cutting.quote.decode()
        self._wrong = ""
        self._inside = False
        self._opened = line
        self._last = _LF
        self._length, self._record_line = 0, line
        self._longest, self._longest_line = 0, line

    def see(self, data: bytes) -> None:
        """The next bytes."""
        if not data:
            return
        marks = np.frombuffer(data, np.uint8)
        quotes = np.flatnonzero(marks == self._quote)
        if not self._wrong:
            self._check_quotes(data, marks, quotes)
        self._measure(data, marks, quotes)
        lines = lines_in(data)
        self._line += lines - (self._last == _CR and data[0] == _LF)
        self._inside ^= bool(len(quotes) % 2)
        self._last = data[-1]

    def problem(self, most: int, *, ended: bool = False) -> str:
        """What is wrong with what was seen; `ended`: nothing follows."""
        if self._wrong:
            return self._wrong
        if max(self._longest, self._length) > most:
            line = self._longest_line if self._longest > most else self._record_line
            return f"line {self._line_at(line)}: longer than {most:,} bytes; is a quoted text never closed?"
        if ended and self._inside:
            return f"line {self._line_at(self._opened)}: a quoted text is never closed; truncated?"
        return ""

    def _check_quotes(self, data: bytes, marks: Any, quotes: Ints) -> None:
        if not len(quotes) and (self._inside or self._last != self._quote):
            return
        inside = int(self._inside)
        opening, closing = quotes[inside::2], quotes[1 - inside :: 2]
        before = np.where(opening > 0, marks[np.maximum(opening - 1, 0)], self._last)
        stray = opening[~self._cutting.beside[before]]
        inner = closing[closing < len(data) - 1]
        followed = inner[~self._cutting.beside[marks[inner + 1]]]
        at_edge = self._last == self._quote and not inside and not self._cutting.beside[data[0]]
        places = [
            (int(stray[0]), _STRAY) if len(stray) else (len(data), ""),
            (int(followed[0]), _AFTER) if len(followed) else (len(data), ""),
            (-1, _AFTER) if at_edge else (len(data), ""),
        ]
        at, what = min(places)
        if what:
            line = self._line_at(self._line + lines_in(data[: max(0, at)]))
            self._wrong = f"line {line}: {what.format(self._name)}"
        if len(opening):
            self._opened = self._line + lines_in(data[: int(opening[-1])])

    def _measure(self, data: bytes, marks: Any, quotes: Ints) -> None:
        """Keep the length of the record under way, and the longest."""
        breaks = _breaks(marks)
        ends = breaks[(np.searchsorted(quotes, breaks) + int(self._inside)) % 2 == 0]
        if not len(ends):
            self._length += len(data)
            return
        lengths = np.diff(ends, prepend=-1)
        lengths[0] += self._length
        at = int(np.argmax(lengths))
        if lengths[at] > self._longest:
            self._longest = int(lengths[at])
            self._longest_line = self._line + lines_in(data[: int(ends[at - 1]) + 1]) if at else self._record_line
        self._length = len(data) - int(ends[-1]) - 1
        self._record_line = self._line + lines_in(data[: int(ends[-1]) + 1])


_STRAY = "a text that is not quoted contains a {0}; write it twice, in quotes"
_AFTER = "text follows a closing {0}; write a {0} within a quoted text twice"
