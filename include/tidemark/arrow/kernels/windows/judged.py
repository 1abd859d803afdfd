"""Lateness for windows, of many rows at once: up to where an input was complete when each came."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from tidemark.arrow.rows.columns import values
from tidemark.model.window.judged import Judging


def learned(judging: Judging, times: pa.Array) -> pa.Array:
    """`judging.learned` of each of some times, whole numbers without nulls; null where that is None."""
    ends, at = np.asarray(judging.ends, np.int64), values(times)
    number = np.searchsorted(ends, at, "right")
    untold = (at < judging.told_from) | (number == 0)
    if untold.all():
        return pa.nulls(len(times), pa.int64())
    return pa.array(ends[np.maximum(number, 1) - 1], pa.int64(), mask=untold)
