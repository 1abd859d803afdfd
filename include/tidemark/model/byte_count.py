"""How a setting says a number of bytes."""

from __future__ import annotations

_UNITS = {"K": 2**10, "M": 2**20, "G": 2**30}


def byte_count(text: str) -> int | None:
    """The bytes that a text says: a whole number of bytes, or one with a unit, such as `64MiB`. None if it says none.

    >>> byte_count("1024"), byte_count("64MiB"), byte_count("64 MB")
    (1024, 67108864, None)
    """
    number, unit = (text[:-3], text[-3:-2]) if text.endswith("iB") else (text, "")
    number = number.strip()
    if not (number.isascii() and number.isdigit()) or (unit and unit not in _UNITS):
        return None
    return int(number) * _UNITS.get(unit, 1)
