"""Lateness for windows, of many rows at once: up to where an input was complete when each came, in which windows a row
counts still, and for how many it came too late.

    window 12:00 to 13:00, frozen two hours later      update at 12:30, the input complete to 14:00: counts
                                                       update at 12:30, the input complete to 15:00: late
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidemark.arrow.kernels.aggregates.instants import micros_of
from tidemark.arrow.kernels.aggregates.sums import Overflowed
from tidemark.arrow.kernels.merge import summed
from tidemark.arrow.kernels.projected import projected
from tidemark.arrow.kernels.windows.placed import first_after, in_window, placed
from tidemark.arrow.rows.columns import Bools, Ints, integers, values
from tidemark.arrow.rows.schema import DIFF, EVENT_TIME, TIME, arrow_type
from tidemark.definition.recipe import WindowAssignment
from tidemark.definition.windows.rows import END, START
from tidemark.model.expression import Projection
from tidemark.model.window.judged import Judging
from tidemark.model.window.lateness import Lateness
from tidemark.model.window.statistics import LATE

_NUMBER = "_number_of_row"


def learned(judging: Judging, times: pa.Array) -> pa.Array:
    """`judging.learned` of each of some times, whole numbers without nulls; null where that is None."""
    ends, at = np.asarray(judging.ends, np.int64), values(times)
    number = np.searchsorted(ends, at, "right")
    unknown = (at < judging.known_from) | (number == 0)
    if unknown.all():
        return pa.nulls(len(times), pa.int64())
    return pa.array(ends[np.maximum(number, 1) - 1], pa.int64(), mask=unknown)


def counting(updates: pa.RecordBatch, rule: WindowAssignment, judging: Judging) -> pa.RecordBatch:
    """The updates once for each window that they count in, with START and END. Raises as `placed`; Overflowed also for
    a row that is retracted where it might have moved to another window."""
    if rule.frozen_after is None:
        return placed(updates, rule)
    if rule.grace_of_next is None:
        inside = placed(updates, rule)
        return inside.filter(pa.array(~_frozen(inside, rule, judging)))
    if updates.num_rows and int(integers(updates, DIFF).min()) < 0:
        raise Overflowed("a row is retracted, which may have counted in the next window")
    inside, came = _late_of_each(updates, rule, judging)
    own = inside.filter(pa.array(~came.frozen)).drop_columns([_NUMBER])
    moved = updates.take(pa.array(np.flatnonzero(came.for_all)))
    upto = values(learned(judging, moved.column(TIME)).cast(pa.int64()))
    return pa.concat_batches([own, in_window(moved, rule, *first_after(rule, upto - rule.grace_of_next))])


def net_in_windows(
    batches: Iterable[pa.RecordBatch],
    projection: Projection | None,
    rule: WindowAssignment,
    judging: Judging,
    room: int,
) -> Iterator[pa.RecordBatch]:
    """The rows that updates, which are projected, add up to in each window that they count in, with START, END and
    DIFF; those that are null in `rule.on` once, in none. Raises Overflowed where updates take more than `room`
    bytes, and as `projected` and `counting`."""
    found, size = list[pa.RecordBatch](), 0
    for batch in batches:
        rows = projected(batch, projection)
        bound = arrow_type(rule.bound)
        nowhere = rows.filter(pc.is_null(rows.column(rule.on)))
        nowhere = nowhere.append_column(START, pa.nulls(len(nowhere), bound)).append_column(
            END, pa.nulls(len(nowhere), bound)
        )
        some = [counting(rows, rule, judging), nowhere]
        found += [one.drop_columns([TIME, EVENT_TIME]) for one in some if one.num_rows]
        size += sum(one.nbytes for one in some)
        if size > room:
            raise Overflowed(f"updates in their windows take more than {room >> 20} MiB")
    if found:
        names = [name for name in found[0].schema.names if name != DIFF]
        yield from summed(found, names, resort=True)


def late(updates: pa.RecordBatch, rule: WindowAssignment, judging: Judging) -> Lateness:
    """How many updates came too late for windows of theirs, each so many times as its DIFF says, whatever its sign: for
    one that counts in the next window, too. Raises as `placed`."""
    updates = _after_all(updates, rule, judging)
    _, found = _late_of_each(updates, rule, judging)
    often = np.abs(integers(updates, DIFF))
    return Lateness(*(int((often * many).sum()) for many in (found.for_all, found.for_some, found.missed)))


def late_in_windows(updates: pa.RecordBatch, rule: WindowAssignment, judging: Judging) -> pa.RecordBatch:
    """The updates that came too late for a window, once for each such, with START and END, and the numbers of `late`:
    how many rows came too late for all of their windows, for some, and for this one. Raises as `placed`."""
    inside, found = _late_of_each(_after_all(updates, rule, judging), rule, judging)
    numbers = integers(inside, _NUMBER)
    often = np.abs(integers(inside, DIFF))
    late_rows = (often * found.for_all[numbers], often * found.for_some[numbers], often)
    for name, many in zip(LATE, late_rows, strict=True):
        inside = inside.append_column(name, pa.array(many))
    return inside.filter(pa.array(found.frozen)).drop_columns([_NUMBER])


def _after_all(updates: pa.RecordBatch, rule: WindowAssignment, judging: Judging) -> pa.RecordBatch:
    """The updates that happened before where the input was complete when they came: others are in no closed window."""
    updates = updates.filter(pc.is_valid(updates.column(rule.on)))
    upto = learned(judging, updates.column(TIME))
    after = np.asarray(upto.is_valid()) & (values(upto.fill_null(0)) > micros_of(updates.column(rule.on)))
    return updates.filter(pa.array(after))


class _LateOfEach(NamedTuple):
    """Of updates in their windows whether each is `frozen`; of updates how many windows each `missed`, and whether that
    is all of its windows, or some."""

    frozen: Bools
    missed: Ints
    for_all: Bools
    for_some: Bools


def _late_of_each(
    updates: pa.RecordBatch, rule: WindowAssignment, judging: Judging
) -> tuple[pa.RecordBatch, _LateOfEach]:
    """The updates in their windows, with the _NUMBER of each, and which of them came too late."""
    inside = placed(updates.append_column(_NUMBER, pa.array(np.arange(updates.num_rows))), rule)
    numbers, frozen = integers(inside, _NUMBER), _frozen(inside, rule, judging)
    windows = np.bincount(numbers, minlength=updates.num_rows)
    missed = np.bincount(numbers, weights=frozen, minlength=updates.num_rows).astype(np.int64)
    return inside, _LateOfEach(frozen, missed, (missed > 0) & (missed == windows), (missed > 0) & (missed < windows))


def _frozen(inside: pa.RecordBatch, rule: WindowAssignment, judging: Judging) -> Bools:
    """Whether a window no longer took rows when the update came that is placed in it."""
    if rule.frozen_after is None:
        return np.zeros(inside.num_rows, bool)
    upto = learned(judging, inside.column(TIME))
    known = np.asarray(upto.is_valid())
    ends = values(inside.column(END).cast(pa.int64()))
    return known & (ends <= values(upto.fill_null(0)) - rule.frozen_after)
