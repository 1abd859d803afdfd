"""Inner joins of rows in memory, each with a diff: a joined row's diff is the product of those of its sides.

left     carrier  flight  DIFF      right    carrier2  name     DIFF      joined   UA  1  United   +1
         UA       1       +1                 UA        United   +1                 UA  2  United   -1
         UA       2       -1                 AA        American +1
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidemark.arrow.kernels.aggregates.sums import Overflowed
from tidemark.arrow.rows.columns import integers, replaced
from tidemark.arrow.rows.schema import DIFF

_OTHER, _TIMES = "_diff_of_other", "_times"


def joined(left: pa.Table, right: pa.Table, equal: Sequence[tuple[str, str]], *, most: int) -> pa.Table | None:
    """The rows of both sides that are equal in these pairs of columns, null in none of them, with all their columns and
    DIFF, in no order; None where they would be more than `most`. The sides have no column in common but DIFF. Raises
    Overflowed for a diff beyond 64 bits."""
    by, besides = _once(equal)
    of_left, of_right = list(by), list(by.values())
    if _pairs(left, right, of_left, of_right) > most:
        return None
    other = right.rename_columns([_OTHER if name == DIFF else name for name in right.column_names])
    found = left.join(other, of_left, of_right, "inner", coalesce_keys=False, use_threads=False)
    try:
        diffs = pc.multiply_checked(found.column(DIFF), found.column(_OTHER))
    except pa.ArrowInvalid:
        raise Overflowed("the multiplicity of a joined row is beyond 64 bits") from None
    rows = replaced(found.drop_columns([_OTHER]), DIFF, np.asarray(diffs))
    for one, two in besides:
        rows = rows.filter(pc.equal(rows.column(one), rows.column(two)))
    return rows


def _once(equal: Sequence[tuple[str, str]]) -> tuple[dict[str, str], list[tuple[str, str]]]:
    """Pairs to join by, in which no column occurs twice, and those that are looked at afterwards."""
    by, besides = dict[str, str](), list[tuple[str, str]]()
    for one, other in equal:
        if one in by or other in by.values():
            besides.append((one, other))
        else:
            by[one] = other
    return by, besides


def _pairs(left: pa.Table, right: pa.Table, of_left: Sequence[str], of_right: Sequence[str]) -> float:
    """How many rows the join has."""
    counts = [
        side.select(list(keys)).group_by(list(keys), use_threads=False).aggregate([([], "count_all")])
        for side, keys in ((left, of_left), (right, of_right))
    ]
    other = counts[1].rename_columns([*counts[1].column_names[:-1], _TIMES])
    both = counts[0].join(other, list(of_left), list(of_right), "inner", coalesce_keys=False, use_threads=False)
    return float(integers(both, "count_all").astype(np.float64) @ integers(both, _TIMES).astype(np.float64))
