"""Rows as lines of CSV (RFC 4180)."""

from __future__ import annotations

from collections.abc import Iterable


def csv_line(values: Iterable[object]) -> str:
    """A row as a line: null is nothing between commas, empty text is `""`.

    Not the csv module: before Python 3.12 it writes both alike.
    """
    return ",".join(map(_field, values)) + "\n"


def _field(value: object) -> str:
    if value is None:
        return ""
    text = str(value)
    return '"' + text.replace('"', '""') + '"' if not text or any(letter in text for letter in '",\r\n') else text
