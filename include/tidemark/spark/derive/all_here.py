"""All rows of an input, read by this process, where they are little: what is built of them needs no query then."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidemark.arrow.read import MULTIPLICITY
from tidemark.arrow.rows.columns import Ints, integers
from tidemark.spark.derive.little import MOST_BYTES
from tidemark.spark.derive.views import LITTLE_BYTES, Views


def all_here(views: Views, name: str, *, told_by: Sequence[str], most: int) -> list[pa.RecordBatch] | None:
    """The rows of an input that are not null in the columns they are `told_by`, each as often as it is there, those
    that are null counted as in no window; None where they are not little, which is `most` rows, or one is there fewer
    times than none."""
    batches = views.rows_here(name, most_rows=most, most_bytes=LITTLE_BYTES)
    if batches is None:
        return None
    held: list[pa.RecordBatch] = []
    rows = size = unplaced = 0
    for batch in batches:
        times = integers(batch, MULTIPLICITY)
        if (times < 0).any():
            return None
        null = np.zeros(batch.num_rows, bool)
        for one in told_by:
            null |= np.asarray(pc.is_null(batch.column(one)))
        unplaced += int(times[null].sum())
        some = _repeated(batch.drop_columns([MULTIPLICITY]), np.where(null, 0, times), most - rows)
        if some is None:
            return None
        held.append(some)
        rows, size = rows + some.num_rows, size + some.nbytes
        if size > MOST_BYTES:
            return None
    views.unplaced = unplaced
    return held


def _repeated(rows: pa.RecordBatch, times: Ints, most: int) -> pa.RecordBatch | None:
    """Each row so many times; None where that is more than `most` rows."""
    if (times == 1).all():
        return rows if rows.num_rows <= most else None
    if float(times.sum(dtype=np.float64)) > most:
        return None
    return rows.take(pa.array(np.repeat(np.arange(rows.num_rows), times)))
