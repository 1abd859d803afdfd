"""How many bytes of source rows may be decoded: estimates may be wrong, and this bound is not."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass


class TooMuchDecoded(BaseException):
    """More was decoded than is allowed. Not an Exception: it is no verdict on what was read, and no kernel may swallow
    it."""


@dataclass
class Allowance:
    """Bytes of decoded rows that may still come; they count against an outer allowance, too."""

    left: int
    outer: Allowance | None = None


_ALLOWANCE: ContextVar[Allowance | None] = ContextVar("allowance", default=None)


@contextmanager
def decoding_at_most(size: int) -> Iterator[None]:
    """Raise TooMuchDecoded in the block once `count_decoded` has counted more than `size` bytes. Blocks may nest."""
    token = _ALLOWANCE.set(Allowance(size, _ALLOWANCE.get()))
    try:
        yield
    finally:
        _ALLOWANCE.reset(token)


def count_decoded(size: int) -> None:
    """Count bytes of decoded rows against what is allowed, if there is a bound."""
    allowance = _ALLOWANCE.get()
    while allowance is not None:
        allowance.left -= size
        if allowance.left < 0:
            raise TooMuchDecoded
        allowance = allowance.outer
