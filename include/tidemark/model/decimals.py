"""Exact decimals as whole numbers: 12.50 of a decimal(12, 2) is 1250 of its units, the hundredths.

Python's `decimal` is used to read and to write only: its arithmetic rounds to the digits of a context.
"""

from __future__ import annotations

import re
from decimal import Decimal, localcontext

from tidemark.model.collection import MAX_PRECISION, DecimalType

NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,9})?")
"""What is read as a decimal: 12, -12.50, .5, 1.25e3."""


SUM_DIGITS = 10
"""By how many digits the sum of decimals is wider than they are, as far as MAX_PRECISION allows: Spark's rule."""


class NoDecimal(ValueError):
    """A value that a decimal type does not hold; its text says why, and follows `holds 1.005, `."""


def units(value: str | int | Decimal, of: DecimalType) -> int:
    """The value in units of the type's last digit. Raises NoDecimal if it is not exactly one of the type's values."""
    if isinstance(value, str):
        if not NUMBER.fullmatch(value):
            raise NoDecimal("which is no decimal number")
        value = Decimal(value)
    if isinstance(value, int):
        value = Decimal(value)
    if not value.is_finite():
        raise NoDecimal("which is no decimal number")
    sign, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int), "only what is not finite has no exponent"
    text = "".join(map(str, digits)).lstrip("0")
    if not text:
        return 0
    kept = text.rstrip("0")
    exponent += len(text) - len(kept)
    if -exponent > of.scale:
        raise NoDecimal(f"which has {-exponent} digits behind the point; {of} has {of.scale}")
    if len(kept) + exponent > of.whole_digits:
        raise NoDecimal(f"which has {len(kept) + exponent} digits before the point; {of} has {of.whole_digits}")
    magnitude: int = int(kept) * 10 ** (exponent + of.scale)
    return -magnitude if sign else magnitude


def from_units(units: int, scale: int) -> Decimal:
    """The number that so many units of the last digit are, with `scale` digits behind the point."""
    with localcontext(prec=2 * MAX_PRECISION):
        return Decimal(units).scaleb(-scale)


def count(value: Decimal, scale: int) -> int:
    """How many units of the last of `scale` digits a number is, which has no digit behind it."""
    with localcontext(prec=2 * MAX_PRECISION):
        scaled: int = int(value.scaleb(scale))
        return scaled


def unscaled(count: int) -> bytes:
    """A whole number as Java has the bytes of one: two's complement, big-endian, as few as hold it."""
    return count.to_bytes((count if count >= 0 else ~count).bit_length() // 8 + 1, "big", signed=True)


def text(value: Decimal) -> str:
    """The number in plain digits, with as many behind the point as it has: never with an exponent."""
    return f"{value:f}"
