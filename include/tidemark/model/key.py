"""Keys as metadata holds them: rows of plain scalars that Python compares as the columns of a key compare.

A null of a key is NULL, never None: it equals itself and comes before every other value, also within tuples, in
`sorted`, `bisect`, `min`. To compare a key that holds None raises a TypeError, so a forgotten place is found at once.
In a range of keys None means that there is no bound.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Null(Enum):
    """The null of a key: in JSON it is `null`."""

    NULL = None

    def __lt__(self, other: object) -> bool:
        return NotImplemented if other is None else other is not self

    def __le__(self, other: object) -> bool:
        return NotImplemented if other is None else True

    def __gt__(self, other: object) -> bool:
        return NotImplemented if other is None else False

    def __ge__(self, other: object) -> bool:
        return NotImplemented if other is None else other is self

    def __repr__(self) -> str:
        return "null"


NULL = Null.NULL


@dataclass(frozen=True)
class BehindNull:
    """The place behind NULL and before every other value of a key: a bound of a range, never a value of a key."""

    def __lt__(self, other: object) -> bool:
        return NotImplemented if other is None else not isinstance(other, Null | BehindNull)

    def __le__(self, other: object) -> bool:
        return NotImplemented if other is None else other is not NULL

    def __gt__(self, other: object) -> bool:
        return NotImplemented if other is None else other is NULL

    def __ge__(self, other: object) -> bool:
        return NotImplemented if other is None else isinstance(other, Null | BehindNull)


BEHIND_NULL = BehindNull()

KeyScalar = bool | int | str | Null
"""A value of a key column: timestamps are microseconds, dates days, decimals units of their last digit, bytes hex
text. A key is never a float."""
Key = tuple[KeyScalar, ...]
BoundScalar = KeyScalar | BehindNull
Bound = tuple[BoundScalar, ...]
"""Where a range of keys begins or ends: a key, the first columns of one, or a place behind null."""


def key_scalar(value: KeyScalar | float | None) -> KeyScalar:
    """A plain scalar of a key column as metadata holds it."""
    if isinstance(value, float):
        raise TypeError(f"{value!r} is a float; a key is never one")
    return NULL if value is None else value


def plain_scalar(value: KeyScalar) -> bool | int | str | None:
    """A value of a key as a column, or a JSON text, takes it."""
    return None if isinstance(value, Null) else value
