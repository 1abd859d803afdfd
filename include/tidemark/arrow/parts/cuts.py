"""Where the rows of a part are cut into chunks: the cut law (model/chunk/cuts.py) over whole batches.

The rows of a part have one set of columns, a null is a cell, and nobody waits for them. So what is left of the law are
the numbers of rows and bytes, the bucket of a layout, and the two rules by which chunks that are not in order of their
timelines stay small.

An example: a chunk has 4 rows at most, and 2 if it is not in order of its timeline `t`.

    >>> rows = pa.record_batch({"t": [1, 2, 3, 0, 9, 10]})
    >>> rules = CutRules(rows=4, unsorted_rows=2)
    >>> first_cut(rows, rules, ["t"]), first_cut(rows.slice(3), rules, ["t"])
    ((3, <CutReason.WOULD_UNSORT: 'would_unsort'>), None)

What it costs: nothing where chunks end by their rows alone; else a comparison of neighbours in one column each.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from tidemark.arrow.rows.columns import contiguous, row_bytes, valid, values
from tidemark.model.chunk.cuts import CutReason, CutRules

_Ends = Iterator[tuple[int, CutReason]]


def first_cut(
    rows: pa.Table | pa.RecordBatch, rules: CutRules, timelines: Sequence[str] = (), bucket: str | None = None
) -> tuple[int, CutReason] | None:
    """How many of some rows the first chunk has, and why it ends there, by the rules that are for rows at rest; None
    where more rows may come into it. `timelines` are columns of whole numbers or times, `bucket` is the column of
    the bucket."""
    if rules.rows is not None:  # the row behind them may be the one before which they end
        rows = rows.slice(0, max(1, rules.rows) + 1)
    return min(_ends(rows, rules, timelines, bucket), key=lambda end: end[0], default=None)


def _ends(rows: pa.Table | pa.RecordBatch, rules: CutRules, timelines: Sequence[str], bucket: str | None) -> _Ends:
    """Where each rule ends the chunk that begins with the first row, in the order in which the law checks them: of
    those at one place the first is the reason."""
    if rules.rows is not None and rows.num_rows >= rules.rows:
        yield max(1, rules.rows), CutReason.ROWS
    if bucket is not None:
        numbers = values(contiguous(rows.column(bucket)))
        least = max(1, rules.bucket_rows)
        if (others := np.flatnonzero(numbers[least:] != numbers[least - 1 : -1])).size:
            yield least + int(others[0]), CutReason.BUCKET
    if rules.most_bytes is not None and _may_exceed(rows, rules.most_bytes):
        fitting = int(np.searchsorted(np.cumsum(row_bytes(rows)), rules.most_bytes, side="right"))
        if fitting < rows.num_rows and rows.num_rows > 1:
            yield max(1, fitting), CutReason.ROOM
    if rules.unsorted_rows is not None and rules.unsorted_rows < rows.num_rows:
        descents = [at for name in timelines if (at := _first_descent(contiguous(rows.column(name)))) is not None]
        if descents:
            yield _out_of_order(min(descents), rules.unsorted_rows)


def _may_exceed(rows: pa.Table | pa.RecordBatch, most: int) -> bool:
    """Whether rows may have more bytes, by what is known without looking at each."""
    return bool(rows.nbytes + rows.num_rows * rows.num_columns > most)


def _out_of_order(descent: int, limit: int) -> tuple[int, CutReason]:
    """Where a chunk ends whose row at `descent` is the first that is below the one before it: there, if it is large by
    then, else once it has as many rows as one may have that is not in order."""
    return (descent, CutReason.WOULD_UNSORT) if descent >= limit else (limit, CutReason.UNSORTED_ROWS)


def _first_descent(times: pa.Array) -> int | None:
    """The first row whose time is below the one before it that is not null; None if there is none."""
    known = valid(times)
    at = np.arange(len(times)) if known is None else np.flatnonzero(known)
    numbers = values(times)[at]
    below = np.flatnonzero(numbers[1:] < numbers[:-1])
    return int(at[below[0] + 1]) if below.size else None
