"""At which instant the session of each cell begins: cells that follow one another within a gap are one session, which
may be cut where it gets too long.

Cells come in order of group and instant, and are given by their first and their last instant: what is certainly in one
session may be one cell. Only the last cell is carried from one batch to the next.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from tidemark.arrow.rows.columns import Bools, Ints, integers
from tidemark.arrow.rows.order import starts
from tidemark.definition.windows.rows import START
from tidemark.errors import InvalidUsage

FIRST, LAST = "_first", "_last"
"""The columns of cells that say at which instants they begin and end."""
FAR = 1 << 61
"""The greatest distance of an instant from 1970."""
BEYOND = "beyond 2^61, where there are no sessions; filter such rows out"


@dataclass(frozen=True)
class Gaps:
    """Cells that are equal in `group` are in one session if the distance between them is less than `gap`, or exactly
    that where `exact_gap_merges`. With `max_length` a session is cut before the first cell that begins that long after
    it does, or longer: each cell must then be one instant."""

    group: tuple[str, ...]
    gap: int
    exact_gap_merges: bool = True
    max_length: int | None = None


def in_sessions(batches: Iterable[pa.RecordBatch], gaps: Gaps) -> Iterator[pa.RecordBatch]:
    """The cells with START. Raises InvalidUsage for an instant beyond 2^61."""
    before: pa.RecordBatch | None = None
    for batch in batches:
        if not batch.num_rows:
            continue
        cells = batch if before is None else pa.concat_batches([before.select(batch.schema.names), batch])
        begins = _starts(cells, gaps, None if before is None else int(integers(before, START)[0]))
        begun = cells.append_column(START, pa.array(begins))
        yield begun if before is None else begun.slice(1)
        before = begun.take(pa.array([len(begun) - 1]))


def check_near(instants: Ints) -> None:
    """Raise InvalidUsage for an instant beyond 2^61."""
    if len(instants) and (int(instants.min()) < -FAR or int(instants.max()) > FAR):
        far = next(int(one) for one in instants if not -FAR <= one <= FAR)
        raise InvalidUsage(f"a row is at {far}, {BEYOND}")


def _starts(cells: pa.RecordBatch, gaps: Gaps, first_start: int | None) -> Ints:
    """Where the session of each cell begins; that of the first cell is known, unless it is the first of all."""
    first, last = integers(cells, FIRST), integers(cells, LAST)
    check_near(first)
    check_near(last)
    within = min(gaps.gap, 4 * FAR - 1) - (0 if gaps.exact_gap_merges else 1)
    begins = starts(cells, gaps.group)
    begins[0] = True
    begins[1:] |= first[1:] - last[:-1] > within
    begun = first.copy()
    if first_start is not None:
        begun[0] = first_start
    if gaps.max_length is not None:
        cut(first, begun, begins, gaps.max_length)
    return begun[np.maximum.accumulate(np.where(begins, np.arange(len(first)), 0))]


def cut(first: Ints, begun: Ints, begins: Bools, most: int) -> None:
    """Mark where new sessions begin because others have become too long. `begun` says where those begin that are
    marked."""
    bounds = np.append(np.flatnonzero(begins), len(first))
    for at in np.flatnonzero(first[bounds[1:] - 1] - begun[bounds[:-1]] >= most):
        low, high, start = int(bounds[at]), int(bounds[at + 1]), int(begun[bounds[at]])
        while int(first[high - 1]) - start >= most:
            low += int(np.searchsorted(first[low:high], start + most, "left"))
            begins[low], start = True, int(first[low])
