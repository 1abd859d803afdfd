"""Where few changes reach sessions, found by this process: the stored sessions are the map
(windows/touched_sessions.py)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from tidemark.arrow.kernels.windows.regions import Regions, in_regions, regions
from tidemark.arrow.rows.columns import Bools, Ints, integers
from tidemark.definition.recipe import SessionPlan
from tidemark.model.window.kinds import Session
from tidemark.model.window.windows import WINDOW_END, WINDOW_START
from tidemark.spark.derive.here.diff import match_keys, net_rows, own_touched
from tidemark.spark.derive.reach.changed import changed_at
from tidemark.spark.derive.timeline import in_micros
from tidemark.spark.derive.touched import named
from tidemark.spark.derive.views import Views

_GROUP = "_group"


@dataclass(frozen=True)
class NearHere:
    """The stretches of time of keys that changes reach, from the first to the last instant that a row of them may be
    at. Their groups are numbers of `keys`, which are k0, k1, …; `own` are the stored updates of the sessions there."""

    keys: pa.Table
    regions: Regions
    own: pa.Table

    @property
    def spans(self) -> tuple[Ints, Ints]:
        """Where they begin and end, of whatever key, as `spans_of` has it."""
        return spans_of(self.regions.first, self.regions.upto)


def near_here(views: Views, rule: SessionPlan, few: pa.Table | None) -> NearHere | None:
    """What few changed instants reach, which are `changed_at` of k0, k1, …; None where either is more than this process
    reads."""
    own = own_touched(views, few, rule.by, None if few is None else _reached_by(few, rule))
    if own is None and few is not None:
        views.declines("the sessions stored for the changed keys are more than this process reads")
    numbers = None if own is None or few is None else match_keys(few, own, rule.by)
    if own is None or few is None or numbers is None:
        return None
    groups, instants = numbers[0], integers(few, changed_at(rule))
    sessions = net_rows(own.append_column(_GROUP, pa.array(numbers[1])), [_GROUP, WINDOW_START, WINDOW_END])
    start, end = in_micros(sessions, WINDOW_START), in_micros(sessions, WINDOW_END)
    found = regions(
        np.append(integers(sessions, _GROUP), groups),
        np.append(start, instants),
        np.append(_reach(start, end, rule.kind), instants + rule.kind.gap),
        np.repeat([False, True], [sessions.num_rows, few.num_rows]),
    )
    own_near = own.filter(pa.array(in_regions(numbers[1], in_micros(own, WINDOW_START), found)))
    different, first = np.unique(groups, return_index=True)
    keys = few.take(pa.array(first)).select(list(named(rule.by).values()))
    reached = Regions(np.searchsorted(different, found.group), found.first, found.upto - rule.kind.gap)
    return NearHere(keys, reached, own_near)


def _reached_by(few: pa.Table, rule: SessionPlan) -> Callable[[pa.RecordBatch], Bools]:
    """Which stored sessions may be reached by the changed instants, of whatever key: sessions at a distance from all of
    these stay as they are, unless one is cut for its length, and with it those that follow."""
    instants, gap, cut = integers(few, changed_at(rule)), rule.kind.gap, rule.kind.max_length is not None
    first, last = (int(instants.min()), int(instants.max())) if len(instants) else (0, 0)

    def near(rows: pa.RecordBatch) -> Bools:
        table = pa.Table.from_batches([rows])
        start, end = in_micros(table, WINDOW_START), in_micros(table, WINDOW_END)
        return np.ones(len(start), bool) if cut else (end >= first) & (start <= last + gap)

    return near


def spans_of(first: Ints, last: Ints) -> tuple[Ints, Ints]:
    """Where regions begin and end, of whatever key, so that both ascend: an instant is in one of these spans where it
    is in a region, and a stretch of time meets one where it meets a region."""
    order = np.argsort(first, kind="stable")
    return first[order], np.maximum.accumulate(last[order])


def _reach(start: Ints, end: Ints, kind: Session) -> Ints:
    """One that was cut may end before its last row's gap does."""
    if kind.max_length is None:
        return end
    return np.where(end - start == kind.max_length, end + kind.gap, end)
