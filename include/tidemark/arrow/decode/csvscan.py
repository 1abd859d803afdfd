"""Where the records of a CSV file are, and what is wrong with its quotes: seen from its bytes alone, in one pass."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from tidemark.arrow.rows.columns import Bools, Ints

_QUOTE, _COMMA, _LF, _CR = b'",\n\r'
_BESIDE = np.zeros(256, np.bool_)
"""The bytes that may be next to a double quote, outside of the text in quotes."""
_BESIDE[[_COMMA, _LF, _CR, _QUOTE]] = True
_READ_BYTES = 2**20
_QUOTED = re.compile(rb'"[^"]*"?')


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

    @property
    def width(self) -> int:
        """How many fields it has."""
        return (_QUOTED.sub(b"", self.text) if b'"' in self.text else self.text).count(b",") + 1

    @property
    def closed(self) -> bool:
        """Whether its last quoted text ends."""
        return self.text.count(b'"') % 2 == 0


def records(source: Any, data: bytes, *, offset: int, most: int) -> Iterator[Record]:
    """The records, blank ones too, of an input whose first bytes `data` were read, from `offset` on.

    Raises TooLong for one of more than `most` bytes. Slow: for messages and headers only.
    """
    line, ended = 1, False
    while not ended:
        chunk = source.read(_READ_BYTES)
        ended = not chunk
        data += chunk
        start = 0
        for stop in _ends(data, ended):
            text = data[start:stop]
            if len(text) > most + 2:
                raise TooLong(line, most)
            yield Record(text.removesuffix(b"\n").removesuffix(b"\r"), line, offset + stop)
            line += _lines(text)
            start = stop
        data, offset = data[start:], offset + start
        if len(data) > most + 2:
            raise TooLong(line, most)


def _ends(data: bytes, last: bool) -> list[int]:
    """The offsets behind the records of some bytes that start with one; `last`: nothing follows."""
    marks = np.frombuffer(data, np.uint8)
    breaks = _breaks(marks)
    if not last and len(breaks) and breaks[-1] == len(data) - 1 and data[-1] == _CR:
        breaks = breaks[:-1]  # a line feed may follow
    quotes = np.flatnonzero(marks == _QUOTE)
    outside = np.searchsorted(quotes, breaks) % 2 == 0
    ends = [int(at) + 1 for at in breaks[outside]]
    if last and data and (not ends or ends[-1] < len(data)):
        ends.append(len(data))
    return ends


def _breaks(marks: Any) -> Ints:
    """Where lines end: at a line feed, or a carriage return that none follows."""
    found: Bools = marks == _LF
    returns = marks == _CR
    if returns.any():
        alone = returns.copy()
        alone[:-1] &= ~found[1:]
        found = found | alone
    return np.flatnonzero(found)


def _lines(data: bytes) -> int:
    if b"\r" not in data:
        return data.count(b"\n")
    return data.count(b"\n") + data.count(b"\r") - data.count(b"\r\n")


class Scanner:
    """Watches bytes go by: the first double quote that is where none may be, and the longest record."""

    def __init__(self, line: int = 1) -> None:
        self._line = line
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
        quotes = np.flatnonzero(marks == _QUOTE)
        if not self._wrong:
            self._check_quotes(data, marks, quotes)
        self._measure(data, marks, quotes)
        lines = _lines(data)
        self._line += lines - (self._last == _CR and data[0] == _LF)
        self._inside ^= bool(len(quotes) % 2)
        self._last = data[-1]

    def problem(self, most: int, *, ended: bool = False) -> str:
        """What is wrong with what was seen; `ended`: nothing follows."""
        if self._wrong:
            return self._wrong
        if max(self._longest, self._length) > most:
            line = self._longest_line if self._longest > most else self._record_line
            return f"line {line}: longer than {most:,} bytes; is a quoted text never closed?"
        if ended and self._inside:
            return f"line {self._opened}: a quoted text is never closed; truncated?"
        return ""

    def _check_quotes(self, data: bytes, marks: Any, quotes: Ints) -> None:
        if not len(quotes) and (self._inside or self._last != _QUOTE):
            return
        inside = int(self._inside)
        opening, closing = quotes[inside::2], quotes[1 - inside :: 2]
        before = np.where(opening > 0, marks[np.maximum(opening - 1, 0)], self._last)
        stray = opening[~_BESIDE[before]]
        inner = closing[closing < len(data) - 1]
        followed = inner[~_BESIDE[marks[inner + 1]]]
        at_edge = self._last == _QUOTE and not inside and data[0] not in b',\n\r"'
        places = [
            (int(stray[0]), "a text that is not quoted contains a double quote; write it twice, in quotes")
            if len(stray)
            else (len(data), ""),
            (int(followed[0]), _AFTER) if len(followed) else (len(data), ""),
            (-1, _AFTER) if at_edge else (len(data), ""),
        ]
        at, what = min(places)
        if what:
            self._wrong = f"line {self._line + _lines(data[: max(0, at)])}: {what}"
        if len(opening):
            self._opened = self._line + _lines(data[: int(opening[-1])])

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
            self._longest_line = self._line + _lines(data[: int(ends[at - 1]) + 1]) if at else self._record_line
        self._length = len(data) - int(ends[-1]) - 1
        self._record_line = self._line + _lines(data[: int(ends[-1]) + 1])


_AFTER = "text follows a closing double quote; write a double quote within a quoted text twice"
