"""Rows laid out by time: the bucket of each (model/layout.py)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from tidemark.arrow.rows.columns import Ints, contiguous, valid, values
from tidemark.arrow.rows.schema import BUCKET
from tidemark.model.collection import Collection
from tidemark.model.layout import NULL_BUCKET, Layout


def buckets(column: pa.Array | pa.ChunkedArray, layout: Layout) -> Ints:
    """The bucket of each value of the column that the rows are laid out by."""
    times = contiguous(column)
    numbers: Ints = values(times) // layout.every
    known = valid(times)
    return numbers if known is None else np.where(known, numbers, NULL_BUCKET)


def placed_names(collection: Collection, names: Sequence[str]) -> list[str]:
    """Columns that distinguish rows, with the bucket before them where it follows from them: then rows at rest
    are in order of them."""
    layout = collection.layout
    return [*([BUCKET] if layout and layout.by in names and BUCKET not in names else []), *names]
