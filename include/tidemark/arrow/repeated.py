"""Rows by how often they are held: a row of multiplicity m as m rows.

    id  kind  _multiplicity           id  kind
     1  a                 1            1  a
     2  b                 3     →      2  b
                                       2  b
                                       2  b

What it costs: nothing where every row is held once, as in a bag or where a key holds one value; else a copy of the rows
in pieces, however often one of them is held.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import pyarrow as pa

from tidemark.arrow.read import MULTIPLICITY
from tidemark.arrow.rows.arrays import of_numbers
from tidemark.arrow.rows.columns import integers
from tidemark.errors import InvalidUsage, shortened

MOST_ROWS = 2**16
"""Rows of a piece that is copied."""


def repeated(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The rows of an as-of without the column of their multiplicity, each as often as that says.

    Raises InvalidUsage for a row that is held fewer than zero times."""
    for rows in batches:
        times = integers(rows, MULTIPLICITY)
        plain = rows.select([name for name in rows.schema.names if name != MULTIPLICITY])
        if not len(times) or (times == 1).all():
            yield plain
            continue
        if (times < 0).any():
            at = int(np.argmin(times))
            told = ", ".join(f"{name} {plain.column(name)[at]}" for name in plain.schema.names[:8])
            raise InvalidUsage(
                f"the row {shortened(told, 200)} is held {times[at]} times, so it is no row; ask for multiplicities"
            )
        ends = np.cumsum(times)
        for first in range(0, int(ends[-1]), MOST_ROWS):
            numbers = np.arange(first, min(first + MOST_ROWS, int(ends[-1])))
            yield plain.take(of_numbers(np.searchsorted(ends, numbers, side="right")))
