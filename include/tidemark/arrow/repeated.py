"""Rows by their multiplicity: a row of multiplicity m as m rows.

    id  kind  _multiplicity           id  kind
     1  a                 1            1  a
     2  b                 3     →      2  b
                                       2  b
                                       2  b

What it costs: nothing where every multiplicity is 1, as in a bag or where a key holds one value; else a copy of the
rows in pieces, however great a multiplicity is.
"""

from __future__ import annotations

from collections.abc import Collection as Names
from collections.abc import Iterable, Iterator

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from tidemark.arrow.read import MULTIPLICITY
from tidemark.arrow.rows.arrays import of_bools, of_numbers
from tidemark.arrow.rows.columns import Ints, integers
from tidemark.arrow.rows.schema import DIFF
from tidemark.arrow.runs import Keep
from tidemark.errors import InvalidUsage, plain_line
from tidemark.model.collection import MASKED

MOST_ROWS = 2**16
"""Rows of a piece that is copied."""


def repeated(batches: Iterable[pa.RecordBatch], unshown: Names[str] = ()) -> Iterator[pa.RecordBatch]:
    """The rows of an as-of without the column of their multiplicity, each as often as that says.

    Raises InvalidUsage for a row with a negative multiplicity, without its values in the columns `unshown`."""
    for rows in batches:
        plain = rows.select([name for name in rows.schema.names if name != MULTIPLICITY])
        yield from each_time(plain, integers(rows, MULTIPLICITY), unshown)


def each_time(rows: pa.RecordBatch, times: Ints, unshown: Names[str] = ()) -> Iterator[pa.RecordBatch]:
    """Rows, each as many `times` as that says. InvalidUsage for fewer than zero, without the values `unshown`."""
    if not len(times) or (times == 1).all():
        yield rows
        return
    if (times < 0).any():
        raise negative_row(rows, times, unshown)
    ends = np.cumsum(times)
    for first in range(0, int(ends[-1]), MOST_ROWS):
        numbers = np.arange(first, min(first + MOST_ROWS, int(ends[-1])))
        yield rows.take(of_numbers(np.searchsorted(ends, numbers, side="right")))


def without_negative(rows: pa.RecordBatch, keep: Keep | None, unshown: Names[str] = ()) -> pa.RecordBatch:
    """Leave out whole rows whose DIFF is negative, none of which `keep` may leave (None: it leaves all).

    Only whole rows show that a multiplicity is negative: in fewer columns they are added up, and the sum may be right
    by accident. So a read is refused by its rows, whichever of their columns are asked for.

    Raises InvalidUsage for a row of negative multiplicity that `keep` leaves.
    """
    negative = integers(rows, DIFF) < 0
    if not negative.any():
        return rows
    refused = rows.filter(of_bools(negative))
    refused = keep(refused) if keep else refused
    if refused.num_rows:
        raise negative_row(refused.drop_columns([DIFF]), integers(refused, DIFF), unshown)
    return rows.filter(of_bools(~negative))


def negative_row(rows: pa.RecordBatch, times: Ints, unshown: Names[str]) -> InvalidUsage:
    """The refusal of the row that has the most negative multiplicity, without its values in the columns `unshown`."""
    at = int(np.argmin(times))
    values = ((name, MASKED if name in unshown else rows.column(name)[at]) for name in rows.schema.names[:8])
    row = plain_line(", ".join(f"{name} {value}" for name, value in values), 200)
    return InvalidUsage(
        f"the row {row} has the multiplicity {times[at]}, which no table can show; read it with its "
        "multiplicity, or correct what retracts too much"
    )


def all_once(footer: pq.FileMetaData, groups: Iterable[int]) -> bool:
    """Whether every update in some row groups of a part has the diff 1, by the statistics of its footer."""
    at = footer.schema.names.index(DIFF)
    known = (footer.row_group(group).column(at).statistics for group in groups)
    return all(one is not None and one.has_min_max and one.min == one.max == 1 for one in known)
