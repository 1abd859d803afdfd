"""History of a keyed collection is stored separately: what drains look keys up in stays about as large as the current
rows."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import pytest

from support.world import collection
from tidemark.model.arrangement import Arrangement
from tidemark.model.batch import Description, ObjectRef, Part, TraceBatch
from tidemark.model.collection import Envelope, Late
from tidemark.model.transition.trace import merged_trace
from tidemark.plan.bounds import bounds
from tidemark.plan.compact import SETTLED_ROWS, CompactionRequest, due
from tidemark.plan.read import plan_as_of, plan_changes

pytestmark = pytest.mark.pure

BASE = 4 * SETTLED_ROWS
DAY = SETTLED_ROWS // 128
KEYED = collection(Envelope.UPSERT, live_batches=12, late=Late("reemit", 3))


def drained(at: int, rows: int, retractions: int) -> TraceBatch:
    return TraceBatch(f"{at}", Description(at, at + 1), 0, rows, rows, 0, ObjectRef(f"{at}", 1, "0"), 1, retractions)


@dataclass
class Simulated:
    """A base, then days on which each row replaces a current one."""

    state: Arrangement = field(init=False)
    written: int = 0
    most: int = 0
    settled: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.state = Arrangement(KEYED, seal=1, complete_below=1, trace=(drained(0, BASE, 0),))

    def day(self) -> None:
        at = self.state.trace_upper
        trace = (*self.state.trace, drained(at, 2 * DAY, DAY))
        self.state = replace(self.state, trace=trace, seal=at + 1, complete_below=at + 1)
        while inputs := due(self.state):
            self._merge(inputs)
        self.most = max(self.most, looked_into(self.state))

    def _merge(self, inputs: tuple[TraceBatch, ...]) -> None:
        description = Description(inputs[0].description.lower, inputs[-1].description.upper)
        settles = inputs[0] == self.state.trace[0]
        request = CompactionRequest(inputs, description, self.state.horizon if settles else -1)
        rows, retractions = sum(b.rows for b in inputs), sum(b.retractions for b in inputs)
        batch = replace(
            inputs[0], description=description, level=request.level(rows), rows=rows, retractions=retractions
        )
        kept = 2 * inputs[0].retractions if settles else 0
        if settles:
            self.settled.append(inputs[-1].description.upper)
        self.written += rows - kept
        self.state = replace(self.state, trace=merged_trace(self.state.trace, inputs, batch))


def looked_into(state: Arrangement) -> int:
    return sum(batch.rows for batch in state.trace) - 2 * state.trace[0].retractions


def test_what_is_looked_into_stays_as_large_as_the_current_rows() -> None:
    made = Simulated()
    for _ in range(2000):
        made.day()
    assert len(made.settled) > 5
    assert made.most < 1.6 * BASE, "half as many rows as are current, and what is above the horizon"
    assert made.written <= (bounds(made.state).written_bound or 0) * 2000 * 2 * DAY
    assert max(batch.level for batch in made.state.trace) <= 6
    assert all(upper <= made.state.horizon for upper in made.settled)


def aged(days: int = 400) -> Arrangement:
    trace = (drained(0, BASE, 0), replace(drained(1, 2 * DAY * days, DAY * days), description=Description(1, days)))
    return Arrangement(KEYED, seal=days + 3, complete_below=days + 3, trace=trace)


def test_it_is_not_done_where_it_would_bring_little_or_cannot_be() -> None:
    state = aged()
    assert due(state) == state.trace
    assert due(replace(state, complete_below=402)) == (), "the younger may be of facts that are still to be placed"
    assert due(replace(state, collection=collection(Envelope.UPDATES, live_batches=12))) == ()
    assert due(replace(state, collection=replace(KEYED, compact_ahead=False))) == ()
    small = tuple(replace(b, rows=b.rows // 32, retractions=b.retractions // 32) for b in state.trace)
    assert due(replace(state, trace=small)) == ()
    settled = replace(state.trace[0], rows=3 * BASE, retractions=BASE)
    young = replace(state.trace[1], rows=BASE // 4, retractions=BASE // 8)
    assert due(replace(state, trace=(settled, young))) == (), "its own were separated before"


def test_what_cancels_is_read_where_not_all_of_it_is_summed() -> None:
    state, file = aged(), ObjectRef("other", 1, "0")
    separate = Part(file, 2, 0, (((1,), 2),), (1,), 10, 20, 30, 40, retractions=1, cancels=True)
    for request, needed in (
        (plan_as_of(state), False),
        (plan_as_of(state, 20, 40), False),
        (plan_as_of(state, 19), True),
        (plan_as_of(state, 20, 39), True),
        (plan_as_of(state, 9), False),
        (plan_changes(state, 5), True),
    ):
        assert (request.miss_of(separate) is None) == needed
    assert plan_as_of(state).miss_of(replace(separate, cancels=False)) is None
