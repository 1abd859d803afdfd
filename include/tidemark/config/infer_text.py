"""What the texts of a column of CSV are: the first type that gives every text back as it was written, else string.

A time is given back if its instant is: with a blank or a T, with Z or without a zone, which is UTC.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc

from tidemark.arrow.decode.csvnumbers import plain_numbers
from tidemark.arrow.decode.strict import Misfit, parsed, shorter
from tidemark.arrow.rows.arrays import first_true
from tidemark.model.collection import MAX_PRECISION, ColumnType
from tidemark.model.dialect import Csv

_SPELLINGS = {
    ColumnType.BOOL: "^(true|false)$",
    ColumnType.INT: "^(0|-?[1-9][0-9]{0,18})$",
    ColumnType.FLOAT: "^-?[0-9.]+(e[+-][0-9]+)?$|^-?inf$|^nan$",
    ColumnType.DATE: "^[0-9]{4}-[0-9]{2}-[0-9]{2}$",
    ColumnType.TIMESTAMP: r"^[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]{1,6})?)?(Z|[+]00:?00)?$",
}
"""What texts of a type look like that may be given back; the first type that all texts of a column are is its type."""
_TIME_WITH_OFFSET = re.compile(r"[0-9-]{10}[T ][0-9:.]+[+-][0-9:]+")
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")


class TextKind:
    """Sees the texts of a column, block by block.

    Attributes:
        values: How many texts it saw that are not null.
        rejected: By type, the first text that it would not give back, and how many texts were before it.
    """

    def __init__(self, dialect: Csv) -> None:
        self._dialect = dialect
        self.values = 0
        self.rejected: dict[ColumnType, tuple[int, str]] = {}

    def see(self, texts: pa.Array) -> None:
        """Note the texts of a block."""
        texts = texts.drop_null()
        if self._dialect.null is None:
            texts = texts.filter(pc.not_equal(texts, ""))
        for column_type in self._left():
            if (at := self._first_wrong(column_type, texts)) >= 0:
                self.rejected[column_type] = self.values + at, texts[at].as_py()
        self.values += len(texts)

    @property
    def type(self) -> ColumnType:
        """The type of what it saw."""
        return next(self._left(), ColumnType.STRING)

    @property
    def why(self) -> str:
        """Why it is of that type."""
        if self.type is not ColumnType.STRING:
            return f"{self.values:,} value{'s' * (self.values != 1)}, given back as written"
        text = max(self.rejected.values())[1]
        try:
            number = plain_numbers(pa.array([text]), ColumnType.FLOAT, self._dialect)[0].as_py()
        except Misfit:
            number = text
        return _reason(text, number)

    def _left(self) -> Iterator[ColumnType]:
        return (each for each in _SPELLINGS if each not in self.rejected)

    def _first_wrong(self, column_type: ColumnType, texts: pa.Array) -> int:
        """Where the first text is that a type would not give back; -1 if there is none."""
        if column_type in (ColumnType.INT, ColumnType.FLOAT) and not self._dialect.has_plain_numbers:
            try:
                texts = plain_numbers(texts, column_type, self._dialect)
            except Misfit as misfit:
                return misfit.index or 0
        spelled = pc.match_substring_regex(texts, _SPELLINGS[column_type])
        at = first_true(pc.invert(spelled))
        likely = texts if at < 0 else texts[:at]
        try:
            values = parsed(likely, column_type, empty_is_null=False)
        except Misfit as misfit:
            return misfit.index or 0
        if column_type is ColumnType.FLOAT:
            written = zip(map(repr, values.to_pylist()), likely.to_pylist(), strict=True)
            return next((number for number, (back, text) in enumerate(written) if back != text), at)
        return at


def _reason(text: str, number: str) -> str:
    """Why a text is not inferred to be anything else; `number` is what it would be without the marks of a dialect."""
    begin = shorter(text)
    if text.lower() in ("true", "false"):
        return f"{begin} would come back as {text.lower()}"
    if _TIME_WITH_OFFSET.fullmatch(text):
        return f"the offset of {begin} would be lost; declare timestamp for the instant alone"
    if not _NUMBER.fullmatch(number):
        return f"{begin!r} is a text"
    begins_plainly = not re.match(r"\+|-?0[0-9]", number)
    if number.lstrip("+-").isdigit():
        whole = int(number[:400])
        beyond = begins_plainly and not -(2**63) <= whole < 2**63
        back = str(whole) if str(whole) != number else repr(float(number))
        return f"{begin} is beyond 64 bits" if beyond else f"{begin} would come back as {back}"
    scale = len(number.partition(".")[2])
    precision = 18 if len(number) <= 18 else MAX_PRECISION
    is_amount = begins_plainly and scale > 0 and len(number) <= MAX_PRECISION and not re.search("[eE]", number)
    keeps = f"; decimal({precision}, {scale}) would keep it" if is_amount else ""
    return f"{begin} would come back as {float(number)!r}{keeps}"
