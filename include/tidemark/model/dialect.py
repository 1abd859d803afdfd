"""How the texts of a source are written: the dialect of CSV, how files are compressed, where JSON has its rows."""

from __future__ import annotations

import codecs
import string
from dataclasses import dataclass
from itertools import combinations

from tidemark.errors import InvalidUsage

SUFFIXES = {".gz": "gzip", ".zst": "zstd", ".bz2": "bz2", ".lz4": "lz4", ".xz": "xz"}
"""Compressions by the ends of names, in lower case."""
COMPRESSIONS = ("auto", "none", *SUFFIXES.values())
UTF_8 = "utf-8"
_NO_ENCODINGS = ("idna", "punycode", "raw-unicode-escape", "undefined", "unicode-escape", "utf-7")
"""Text encodings of Python in which no data files are."""
_VALUES = frozenset(string.ascii_letters + string.digits + "\r\n\0")
"""Characters that cut no fields."""
_CUTTING = ("delimiter", "quote", "escape", "comment")
_NUMBERS = frozenset("+-eE0123456789")
MOST_SKIPPED = 10_000
"""Rows before the header."""


@dataclass(frozen=True)
class Csv:
    """How the CSV files of a source are written.

    Attributes:
        delimiter: The character between fields.
        quote: The character around fields; empty where nothing is quoted.
        escape: The character by which the next one, of those that cut fields, is meant as it is; empty: none.
        encoding: The encoding of the text, as Python calls it.
        null: Which fields without quotes are null. None: the empty field, but in columns of texts.
        decimal: The decimal point of numbers.
        thousands: What groups the digits of numbers; empty where nothing does.
        header: Whether the first row has the names of the columns.
        names: The names of the columns, instead of those of the header; needed where there is none.
        skip_rows: How many lines before the first row are no rows.
        comment: The character that begins a line that is no row; empty where there are no such lines.
    """

    delimiter: str = ","
    quote: str = '"'
    escape: str = ""
    encoding: str = UTF_8
    null: tuple[str, ...] | None = None
    decimal: str = "."
    thousands: str = ""
    header: bool = True
    names: tuple[str, ...] = ()
    skip_rows: int = 0
    comment: str = ""

    def __post_init__(self) -> None:
        for name in _CUTTING:
            _check_letter(name, getattr(self, name), optional=name != "delimiter")
        # Where nothing is quoted, fields with a double quote are put in quotes while they are read.
        letters = {name: getattr(self, name) or ('"' if name == "quote" else "") for name in _CUTTING}
        for name, other in combinations(_CUTTING, 2):
            if letters[name] and letters[name] == letters[other]:
                is_doubled = other == "escape" and name == "quote"
                way = "leave escape out: a quote within quotes is written twice" if is_doubled else "change one of them"
                raise InvalidUsage(f"{name} and {other} are both {letters[name]!r}; {way}")
        object.__setattr__(self, "encoding", encoding_named(self.encoding))
        for text in self.null or ():
            if any(letter in text for letter in (self.delimiter, letters["quote"], "\n", "\r")):
                raise InvalidUsage(f"null {text!r} has a delimiter, a quote or a line break, which no bare field has")
        if self.decimal not in (".", ","):
            raise InvalidUsage(f"decimal is {self.decimal!r}; it must be '.' or ','")
        if self.thousands and (len(self.thousands) != 1 or self.thousands in _NUMBERS | {self.decimal}):
            raise InvalidUsage(
                f"thousands is {self.thousands!r}, and decimal {self.decimal!r}; thousands must be another character, "
                "and none that numbers consist of"
            )
        if not self.header and not self.names:
            raise InvalidUsage("header: false needs names: the columns in order, names: [id, amount]")
        if twice := [name for at, name in enumerate(self.names) if name in self.names[:at]]:
            raise InvalidUsage(f"names has {twice[0]!r} twice; name each column of the file once")
        if not 0 <= self.skip_rows <= MOST_SKIPPED:
            raise InvalidUsage(f"skip_rows is {self.skip_rows}; it must be from 0 to {MOST_SKIPPED:,}")

    @property
    def is_rewritten(self) -> bool:
        """Whether files differ from UTF-8 text with quotes in more than characters: they are rewritten while read."""
        return bool(self.escape or self.skip_rows or self.comment or not self.quote or self.encoding != UTF_8)

    @property
    def has_plain_numbers(self) -> bool:
        """Whether numbers are written as Python writes them."""
        return self.decimal == "." and not self.thousands


def _check_letter(name: str, value: str, *, optional: bool) -> None:
    if not value and optional:
        return
    if len(value) == 1 and value.isascii() and value not in _VALUES:
        return
    tab = value in ("tab", "TAB", r"\t")
    advice = 'write "\\t", in double quotes' if tab else "write one character of ASCII, no letter or digit"
    raise InvalidUsage(f"{name} is {value!r}; {advice}")


def encoding_named(name: str) -> str:
    """An encoding by the name that Python has for it. Raises InvalidUsage for none of text."""
    try:
        encoding = codecs.lookup(name)
        if encoding.name in _NO_ENCODINGS or not isinstance(b"a".decode(encoding.name, "ignore"), str):
            raise LookupError
    except (LookupError, ValueError, UnicodeError):
        raise InvalidUsage(
            f"encoding is {name!r}, which is no encoding of text; write one such as utf-8, utf-16, latin-1 or cp1252"
        ) from None
    return encoding.name


def check_compression(compression: str) -> None:
    """Raise InvalidUsage for none that is known."""
    if compression not in COMPRESSIONS:
        raise InvalidUsage(f"compression is {compression!r}; it must be one of {', '.join(COMPRESSIONS)}")


def compression_of(path: str, declared: str) -> str:
    """How a file is compressed: as `declared`, where that is `auto` by the end of its name; `none` if it is not."""
    if declared != "auto":
        return declared
    name = path.lower()
    return next((each for suffix, each in SUFFIXES.items() if name.endswith(suffix)), "none")


PLAIN_CSV = Csv()
"""The dialect of sources that say nothing of theirs."""
