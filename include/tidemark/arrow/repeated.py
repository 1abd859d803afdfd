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
from tidemark.arrow.rows.columns import Ints, integers
from tidemark.errors import InvalidUsage, plain_line

MOST_ROWS = 2**16
"""Rows of a piece that is copied."""


def repeated(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The rows of an as-of without the column of their multiplicity, each as often as that says.

    Raises InvalidUsage for a row that is held fewer than zero times."""
    for rows in batches:
        plain = rows.select([name for name in rows.schema.names if name != MULTIPLICITY])
        yield from each_time(plain, integers(rows, MULTIPLICITY))


def each_time(rows: pa.RecordBatch, times: Ints) -> Iterator[pa.RecordBatch]:
    """Rows, each as many `times` as that says. InvalidUsage for fewer than zero."""
    if not len(times) or (times == 1).all():
        yield rows
        return
    if (times < 0).any():
        at = int(np.argmin(times))
        told = plain_line(", ".join(f"{name} {rows.column(name)[at]}" for name in rows.schema.names[:8]), 200)
        raise InvalidUsage(
            f"the row {told} is held {times[at]} times, which no table can show; ask with multiplicity, and add up "
            "_multiplicity"
        )
    ends = np.cumsum(times)
    for first in range(0, int(ends[-1]), MOST_ROWS):
        numbers = np.arange(first, min(first + MOST_ROWS, int(ends[-1])))
        yield rows.take(of_numbers(np.searchsorted(ends, numbers, side="right")))
