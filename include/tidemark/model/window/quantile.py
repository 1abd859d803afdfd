"""Quantiles of values on a grid: bounded in number, exact to subtract, the same in every language.

A value is rounded to eight binary digits, which changes it by less than 0.4 %. That takes the largest power of two not
above it, a division and a product by powers of two, and one rounding to a whole number (half to even), all of them
exact: where a logarithm is off by one at a power of two, the rounding gives the same.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

DIGITS = 8
"""Binary digits that are kept."""


def on_grid(value: float) -> float:
    """The value with so many binary digits; zero, infinities and NaN as they are. -0.0 becomes 0.0, and what is just
    below the largest float infinite."""
    if value == 0 or not math.isfinite(value):
        return value + 0.0
    fraction, exponent = math.frexp(value)
    units = round(math.ldexp(fraction, DIGITS))
    try:
        return math.ldexp(units, exponent - DIGITS)
    except OverflowError:
        return math.copysign(math.inf, value)


def discrete_quantile(values: Iterable[float], at: float) -> float | None:
    """The smallest value on the grid that at least so large a part of the values do not exceed. None of none."""
    ascending = sorted((on_grid(value) for value in values), key=lambda value: (math.isnan(value), value))
    return ascending[max(math.ceil(len(ascending) * at), 1) - 1] if ascending else None
