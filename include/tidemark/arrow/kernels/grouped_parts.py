"""Groups of parts of some rows, put together: each part is grouped where it is read, and what goes on are its groups.

    rows     carrier  delay        part 1   UA  n=2 delay=14       all   UA  n=3 delay=15 mean=5.0
             UA       5            part 2   UA  n=1 delay=1              AA  n=1 delay=4  mean=4.0
             UA       9                     AA  n=1 delay=4
             UA | AA  1 | 4

That comes to the same only for aggregates that do not depend on how rows were parted: counts, sums of whole numbers and
decimals, means of whole numbers, the least and the greatest.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from tidemark.arrow.kernels.grouped import grouped
from tidemark.arrow.rows.columns import integers
from tidemark.definition.recipe import Aggregated
from tidemark.model.collection import ColumnType
from tidemark.model.window.aggregate import Function

MERGED = {
    Function.COUNT: Function.SUM,
    Function.SUM: Function.SUM,
    Function.MIN: Function.MIN,
    Function.MAX: Function.MAX,
}
"""By what an aggregate of all rows is computed from those of parts of them."""
_COUNT = "_count_of_{}"


def can_be_merged(one: Aggregated) -> bool:
    """Whether an aggregate of all rows is computed from those of any parts of them; means, which are not, are from the
    sums and counts of parts."""
    return one.function in MERGED and (one.function is not Function.SUM or one.type is not ColumnType.FLOAT)


def parts_of(aggregates: Sequence[Aggregated], of_whole_numbers: Sequence[str]) -> tuple[Aggregated, ...] | None:
    """What to compute of each part, means only of columns `of_whole_numbers`; None where all rows cannot be computed
    from that."""
    found: list[Aggregated] = []
    for one in aggregates:
        if one.function is Function.AVG and one.of in of_whole_numbers:
            found.append(replace(one, function=Function.SUM, type=ColumnType.INT, kept=True))
            found.append(Aggregated(_COUNT.format(one.name), Function.COUNT, one.of, ColumnType.INT))
        elif can_be_merged(one):
            found.append(one)
        else:
            return None
    return tuple(found)


def merged_groups(parts: pa.Table, keys: Sequence[str], aggregates: Sequence[Aggregated]) -> pa.RecordBatch:
    """The groups of all rows, of the groups of parts: as `grouped` gives them of the rows. Raises Overflowed where a
    sum might not fit its type."""
    kept = [
        replace(one, function=MERGED[one.function], of=one.name)
        for one in parts_of(aggregates, [one.of for one in aggregates if one.of]) or ()
    ]
    found = grouped(parts, keys, kept)
    columns = [found.column(name) for name in keys]
    for one in aggregates:
        if one.function is not Function.AVG:
            columns.append(found.column(one.name))
            continue
        many = integers(found, _COUNT.format(one.name))
        means = integers(found, one.name).astype(np.float64) / np.maximum(many, 1)
        columns.append(pa.array(means, mask=many == 0))
    return pa.RecordBatch.from_arrays(columns, [*keys, *(one.name for one in aggregates)])
