"""The instants at which rows happened, of any column that windows may be on."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from tidemark.arrow.kernels.aggregates.sums import Overflowed
from tidemark.arrow.rows.columns import Ints, contiguous, values

DAY = 86_400_000_000
_MOST_DAYS = 10**8
"""Days from 1970, at most: the microseconds of so many fit into 64 bits."""


def micros_of(column: pa.Array | pa.ChunkedArray) -> Ints:
    """Values of a column in microseconds, those of dates by their midnight in UTC; anything where null. Raises
    Overflowed for dates beyond 64 bits."""
    numbers = values(contiguous(column)).astype(np.int64)
    if not pa.types.is_date(column.type):
        return numbers
    if len(numbers) and max(abs(int(numbers.min())), abs(int(numbers.max()))) > _MOST_DAYS:
        raise Overflowed("a date is too far away")
    return numbers * DAY
