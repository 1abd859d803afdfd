"""JSON files that are no lines: an array of rows, or an object with one, as lines of one row each.

Rows are cut by Python's decoder, which only says where a value ends; each is checked again as any line is.
"""

from __future__ import annotations

import codecs
import json
from collections.abc import Iterator
from typing import Any

from tidemark.arrow.decode.content import MAX_ROW_BYTES, BadFile
from tidemark.errors import listed

_READ_BYTES = 2**20
_BLANKS = " \t\r\n"
# Numbers stay texts: nobody looks at them, and Python refuses integers of thousands of digits.
_DECODER = json.JSONDecoder(parse_int=str, parse_float=str)


class Rows:
    """The rows of an array, read as lines.

    Attributes:
        line: The line of the file on which the row starts that was cut last.
    """

    def __init__(self, path: str, source: Any, first: bytes, field: str) -> None:
        self._path, self._source, self._field = path, source, field
        self._decoder = codecs.getincrementaldecoder("utf-8")()
        self._text, self._at, self._ended = "", 0, False
        # Lines are counted up to an offset, so that no letter is looked at for each row.
        self._line, self._counted, self.line = 1, 0, 0
        self._take(first)
        self._rows = self._cut()

    def read(self, size: int) -> bytes:
        """At least so many bytes of whole lines, fewer at the end."""
        lines, length = [], 0
        while length < size and (line := next(self._rows, None)) is not None:
            lines.append(line)
            length += len(line)
        return "".join(lines).encode()

    def lines(self) -> Iterator[int]:
        """The line of the file on which each row starts."""
        for _ in self._rows:
            yield self.line

    def _cut(self) -> Iterator[str]:
        if not self._field:
            yield from self._elements()
        elif (letter := self._next()) != "{":
            advice = "leave rows out for an array" if letter == "[" else "is it one object?"
            raise self._refusal(f"rows is {self._field}, and the file is no object; {advice}")
        else:
            yield from self._members()
        if self._next():
            raise self._refusal("something follows the value that the file is; is it JSON lines?")

    def _members(self) -> Iterator[str]:
        """The rows of one field of an object; its other fields are passed over."""
        names: list[str] = []
        self._at += 1
        while (self._next() != "}") if not names else self._goes_on("}"):
            name, _ = self._value()
            if not isinstance(name, str) or self._next() != ":":
                raise self._refusal("not JSON: a name, and a colon behind it, are expected")
            self._at += 1
            if name in names and name == self._field:
                raise self._refusal(f"{name} is written twice")
            names.append(name)
            if name != self._field:
                self._value()
            elif self._next() != "[":
                raise self._refusal(f"rows is {name}, which is {self._value()[1][:40]}, and no array")
            else:
                yield from self._elements()
        self._at += 1
        if self._field not in names:
            raise BadFile(self._path, f"rows is {self._field}, and the file has {listed(names)}")

    def _elements(self) -> Iterator[str]:
        self._next()
        self._at += 1
        is_first = True
        while (self._next() != "]") if is_first else self._goes_on("]"):
            is_first = False
            self.line = self._line_now()
            value, text = self._value()
            if not isinstance(value, dict) and value is not None:
                raise self._refusal(f"not a JSON object: {text[:40]}; an array has one object a row", self.line)
            yield text.translate(_ON_ONE_LINE) + "\n"
        self._at += 1

    def _goes_on(self, end: str) -> bool:
        """Whether a comma, and another value, is next, and not the end."""
        letter = self._next()
        if letter not in (",", end) or not letter:
            raise self._refusal(f"not JSON: , or {end} is expected, found {letter or 'the end'}; truncated?")
        if letter == ",":
            self._at += 1
            if self._next() == end:
                raise self._refusal(f"not JSON: {end} follows a comma")
        return letter == ","

    def _next(self) -> str:
        """The next character that is no blank; none at the end."""
        while True:
            while self._at < len(self._text):
                if self._text[self._at] not in _BLANKS:
                    return self._text[self._at]
                self._at += 1
            if not self._more():
                return ""

    def _value(self) -> tuple[Any, str]:
        """The next value, and its text."""
        self._next()
        while True:
            try:
                value, end = _DECODER.raw_decode(self._text, self._at)
                # A number at the end of what was read may go on.
                if end < len(self._text) or not self._more():
                    break
            except json.JSONDecodeError as error:
                if len(self._text) - self._at > MAX_ROW_BYTES:
                    longer = f"longer than {MAX_ROW_BYTES:,} bytes, or not JSON: {error.msg}"
                    raise self._refusal(longer) from None
                if not self._more():
                    line = self._line_now(error.pos)
                    raise self._refusal(f"not JSON: {error.msg} at column {error.colno}; truncated?", line) from None
            except RecursionError:
                raise self._refusal("not JSON: too many levels of arrays and objects") from None
        start, self._at = self._at, end
        return value, self._text[start:end]

    def _more(self) -> bool:
        """Read on; whether there was more."""
        if self._ended:
            return False
        self._line_now()
        self._text, self._at, self._counted = self._text[self._at :], 0, 0
        self._take(self._source.read(_READ_BYTES))
        return True

    def _take(self, data: bytes) -> None:
        try:
            self._text += self._decoder.decode(data, final=not data)
        except UnicodeDecodeError as error:
            line = self._line_now(len(self._text)) + error.object[: error.start].count(b"\n")
            raise self._refusal("not UTF-8", line) from None
        self._ended = not data

    def _line_now(self, at: int | None = None) -> int:
        at = self._at if at is None else at
        self._line += self._text.count("\n", self._counted, at)
        self._counted = at
        return self._line

    def _refusal(self, what: str, line: int | None = None) -> BadFile:
        return BadFile(self._path, f"line {self._line_now() if line is None else line}: {what}")


_ON_ONE_LINE = {ord("\n"): " ", ord("\r"): " "}
"""Within a value of JSON line breaks are blanks: those of texts are escaped."""
