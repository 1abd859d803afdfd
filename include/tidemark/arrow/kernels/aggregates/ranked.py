"""How many different values ranges of a column hold, and which is the k-th least.

Both by one walk over the bits of a code, the highest first (a wavelet matrix): codes are parted by that bit, stable,
and a range stays a range in either part. Only one part is kept at a time; all ranges walk at once.
"""

from __future__ import annotations

import numpy as np

from tidemark.arrow.rows.columns import Ints


def kth(codes: Ints, lo: Ints, hi: Ints, k: Ints) -> Ints:
    """The k-th least code of each range [lo, hi), k from 0 on and below hi - lo. Codes are 0 or more."""
    found = np.zeros(len(lo), np.int64)
    for bit in range(_bits(codes) - 1, -1, -1):
        zero, running = _zeros(codes, bit)
        low, high = running[lo], running[hi]
        one = k >= high - low
        k = np.where(one, k - (high - low), k)
        found |= one.astype(np.int64) << bit
        lo = np.where(one, running[-1] + lo - low, low)
        hi = np.where(one, running[-1] + hi - high, high)
        codes = np.concatenate((codes[zero], codes[~zero]))
    return found


def below(codes: Ints, lo: Ints, hi: Ints, bounds: Ints) -> Ints:
    """How many codes of each range [lo, hi) are below its bound. Codes and bounds are 0 or more."""
    found = np.zeros(len(lo), np.int64)
    for bit in range(max(_bits(codes), _bits(bounds)) - 1, -1, -1):
        zero, running = _zeros(codes, bit)
        low, high = running[lo], running[hi]
        one = (bounds >> bit) & 1 == 1
        found += np.where(one, high - low, 0)
        lo = np.where(one, running[-1] + lo - low, low)
        hi = np.where(one, running[-1] + hi - high, high)
        codes = np.concatenate((codes[zero], codes[~zero]))
    return found


def different(codes: Ints, lo: Ints, hi: Ints) -> Ints:
    """How many different codes each range [lo, hi) holds: those of which the one before it, if any, is below lo."""
    by_code = np.argsort(codes, kind="stable")
    same = codes[by_code[1:]] == codes[by_code[:-1]]
    previous = np.zeros(len(codes), np.int64)  # one more than where it is; 0: there is none
    previous[by_code[1:][same]] = by_code[:-1][same] + 1
    return below(previous, lo, hi, lo + 1)


def _zeros(codes: Ints, bit: int) -> tuple[np.typing.NDArray[np.bool_], Ints]:
    """Which codes have a bit that is 0, and how many before each place have."""
    zero = (codes >> bit) & 1 == 0
    running = np.zeros(len(codes) + 1, np.int64)
    np.cumsum(zero, out=running[1:])
    return zero, running


def _bits(codes: Ints) -> int:
    return int(codes.max(initial=0)).bit_length()
