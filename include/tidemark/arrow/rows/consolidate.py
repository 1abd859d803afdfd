"""The laws of updates (model/update.py) on Arrow batches: forwarding and consolidation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tidemark.arrow.rows.arrays import of_bools, of_numbers
from tidemark.arrow.rows.columns import Bools, Ints, integers, replaced
from tidemark.arrow.rows.order import starts
from tidemark.arrow.rows.plain import plain_values
from tidemark.arrow.rows.schema import DIFF, EVENT_TIME, TIME
from tidemark.errors import InvalidUsage
from tidemark.model.frontier import CompactionFunction
from tidemark.model.instant import MAX_TIME


def forwarded(
    updates: pa.RecordBatch, function: CompactionFunction, names: Sequence[str] = (TIME, EVENT_TIME)
) -> pa.RecordBatch:
    """The updates with the coordinates called `names` forwarded by a compaction function."""
    for name in names:
        times = integers(updates, name)
        if len(times) and times.min() < function.since and not function.changes_nothing:
            updates = replaced(updates, name, _forwarded(times, function))
    return updates


def learned_at(rows: pa.RecordBatch, seal: int) -> pa.RecordBatch:
    """The rows as they count from the seal on: learned then, or at their own time, if that is later."""
    return replaced(rows, TIME, np.maximum(integers(rows, TIME), seal))


def _forwarded(times: Ints, function: CompactionFunction) -> Ints:
    """The function over an array: rung by rung, the times in it."""
    if not function.rungs:
        return np.maximum(times, function.since)
    upper, raised = function.since, np.maximum(times, function.floor)
    moved = raised.copy()
    for rung in function.rungs:
        inside = (raised >= rung.lower) & (raised < upper)
        moved[inside] = raised[inside] // rung.interval * rung.interval + rung.interval - 1
        upper = rung.lower
    return moved


def consolidated(updates: pa.RecordBatch, columns: Sequence[str]) -> pa.RecordBatch:
    """One row for each run of rows equal in `columns`, their first with the sum of their diffs; zero sums vanish.

    Raises InvalidUsage, naming the rows, if a sum does not fit a 64-bit integer.
    """
    begins = starts(updates, columns)
    diffs = integers(updates, DIFF)
    if begins.all():
        return updates if diffs.all() else updates.filter(of_bools(diffs != 0))
    firsts = np.flatnonzero(begins)
    sums = summed(diffs, firsts, lambda row: _described(updates, row, columns))
    kept = sums != 0
    return replaced(updates.take(of_numbers(firsts[kept])), DIFF, sums[kept])


def cancelling(updates: pa.RecordBatch, columns: Sequence[str], upto: int) -> Bools:
    """Which of the updates, in order of `columns`, cancel: of each run of equal ones that happened at `upto` or before
    all that take away, and the first of those that put there what these take. What is left of a run puts there only.

    None of a run where the first do not add up to just that.
    """
    firsts = np.flatnonzero(starts(updates, columns))
    if not len(firsts):
        return np.zeros(0, bool)
    diffs, lengths = integers(updates, DIFF), np.diff(firsts, append=updates.num_rows)
    settled = integers(updates, EVENT_TIME) <= upto
    put = addable(np.where(settled, np.maximum(diffs, 0), 0))
    taken = np.add.reduceat(addable(np.where(settled, -np.minimum(diffs, 0), 0)), firsts)
    upto_each = np.cumsum(put)
    upto_each = upto_each - np.repeat(upto_each[firsts] - put[firsts], lengths)
    wanted = np.repeat(taken, lengths)
    even = np.logical_or.reduceat((put > 0) & (upto_each == wanted), firsts)
    return np.asarray(settled & np.repeat(even, lengths) & ((diffs < 0) | (upto_each <= wanted)))


def addable(diffs: Ints) -> npt.NDArray[Any]:
    """The same numbers, all of which can be turned and added up without a loss."""
    largest = max(abs(int(diffs.min())), abs(int(diffs.max()))) if len(diffs) else 0
    fits = largest * len(diffs) <= MAX_TIME
    return diffs if fits else diffs.astype(object)


def summed(diffs: Ints, firsts: npt.NDArray[np.intp], describe: Callable[[int], str]) -> Ints:
    """The sums of the runs of `diffs` that begin at `firsts`, exact or refused."""
    if len(diffs) == 0:
        return diffs
    largest = max(abs(int(diffs.min())), abs(int(diffs.max())))
    if largest * len(diffs) <= MAX_TIME:
        return np.add.reduceat(diffs, firsts)
    exact = np.add.reduceat(diffs.astype(object), firsts)
    for first, total in zip(firsts, exact, strict=True):
        if not -(2**63) <= total < 2**63:
            raise InvalidUsage(
                f"the diffs of {describe(int(first))} add up to {total}, beyond a 64-bit integer; correct the source"
            )
    return exact.astype(np.int64)


def _described(updates: pa.RecordBatch, row: int, columns: Sequence[str]) -> str:
    return ", ".join(f"{name} {plain_values(updates.column(name).slice(row, 1))[0]!r}" for name in columns)
