"""How many batches of remembered facts a state has, and how often each fact is written, after many drains."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import combinations
from math import log2

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.drawn import trace_batch, unsealed_batch
from support.world import collection
from tidemark.model.arrangement import Arrangement, Fence
from tidemark.model.batch import UnsealedBatch
from tidemark.model.change import Remembered
from tidemark.model.collection import Collection, Envelope, Late
from tidemark.model.interval import Interval
from tidemark.model.transition import Applied, Stale, apply
from tidemark.plan.remember import FAN_IN, RememberRequest, plan_remember

pytestmark = pytest.mark.pure

FENCE = Fence("remember", Interval(0, 1), "token", unannounced=True)


@dataclass
class Simulated:
    """A state after drains of so many facts, one an hour, each followed by the merges due."""

    of: Collection = field(default_factory=lambda: collection(Envelope.UPSERT, late=Late("reemit")))
    written: Counter[str] = field(default_factory=Counter)
    merges: list[list[int]] = field(default_factory=list)
    most: int = 0

    def __post_init__(self) -> None:
        self.state = Arrangement(self.of)
        self.contained: dict[str, tuple[str, ...]] = {}
        self.hours = 0

    def drain(self, rows: int, *, share: Fraction = Fraction(1)) -> None:
        """A batch more; of what is merged now only a share stays."""
        hour, self.hours = self.hours, self.hours + 1
        batch = replace(unsealed_batch([f"b{hour}", f"{hour}..{hour}"], hour), rows=rows)
        batch = replace(batch, interval=Interval(hour, hour + 1))
        self.contained[batch.id] = (batch.id,)
        trace = trace_batch(["t", f"[0][{hour + 1}][0]", "0", "0"])
        frontiers = {"complete_below": hour + 1, "seal": hour + 1, "trace": (trace,)}
        self.state = replace(self.state, unsealed=(*self.state.unsealed, batch), **frontiers)
        while (request := plan_remember(self.state)) is not None:
            self._merge(request, share)
        self.most = max(self.most, len(self.alive))

    def _merge(self, request: RememberRequest, share: Fraction) -> None:
        inputs = tuple(one.id for one in request.inputs)
        times = [time for one in request.inputs for time in (one.first_event_time, one.last_event_time)]
        one = unsealed_batch([f"m{len(self.merges)}", "0..0", f"events={min(times)}..{max(times)}"], 0)
        rows = max(1, int(share * sum(one.rows for one in request.inputs)))
        merged = replace(one, interval=request.interval, level=request.level, rows=rows)
        self.contained[merged.id] = tuple(name for each in inputs for name in self.contained[each])
        self.written.update(self.contained[merged.id])
        self.merges.append(sorted(one.rows for one in request.inputs))
        outcome = apply(self.state, Remembered(FENCE, inputs, merged))
        assert isinstance(outcome, Applied)
        self.state = outcome.state

    @property
    def alive(self) -> list[UnsealedBatch]:
        return [*self.state.remembered, *self.state.unsealed]

    @property
    def sizes(self) -> list[int]:
        return [batch.rows for batch in self.alive]

    @property
    def bound(self) -> float:
        """How many batches there may be: FAN_IN - 1 a level, or so many that each is larger than all smaller ones."""
        top = max((batch.level for batch in self.alive), default=0)
        return max((FAN_IN - 1) * (1 + top), 1 + log2(sum(self.sizes)))


def simulated(sizes: Iterable[int], of: Collection | None = None) -> Simulated:
    made = Simulated(of) if of else Simulated()
    for rows in sizes:
        made.drain(rows)
    return made


@pytest.mark.parametrize(
    ("sizes", "merges", "left"),
    [
        # A base and small batches: the base is not written again, however many there are.
        ([10**6] + [1000] * 7, [[1000] * 7], [7000, 10**6]),
        ([10**6] + [1000] * 30, [[1000] * 7, [1000] * 8, [1000] * 8], [1000] * 7 + [7000, 8000, 8000, 10**6]),
        ([1000] * 30 + [10**6], [[1000] * 8] * 3, [1000] * 6 + [8000] * 3 + [10**6]),
        # Nor are several of them.
        ([10**6, 10**6] + [1000] * 6, [[1000] * 6], [6000, 10**6, 10**6]),
        # As many batches as they may be, of whatever size: the smallest of which none is larger than half of them.
        ([10**6, 3, 2, 10**5, 1, 10**4, 10**3, 10**2], [[1, 2, 3]], [6, 10**2, 10**3, 10**4, 10**5, 10**6]),
        # Each is larger than all smaller ones together: nothing is written again for so little.
        ([2**at for at in range(20)], [], [2**at for at in range(20)]),
        # Smaller ones go along.
        ([80] * 6 + [1] * 2, [[1, 1] + [80] * 6], [482]),
        # Batches of equal size are merged by eights, and what they become in the same pass.
        ([10**6] * 8, [[10**6] * 8], [8 * 10**6]),
        ([1] * 64, [[1] * 8] * 7 + [[1] * 8 + [8] * 7], [64]),
    ],
)
def test_what_is_merged_with_what(sizes: list[int], merges: list[list[int]], left: list[int]) -> None:
    made = simulated(sizes)
    assert (made.merges, sorted(made.sizes)) == (merges, left)


def by_hand(sizes: Sequence[int], most: int) -> list[int]:
    """What is to be merged, by trying every set of batches: the largest of those of which the rows are at least so many
    times those of any of them; of equally large ones the one with the smallest batches."""
    for growth in (8, 4, 2):
        for count in range(len(sizes), 1, -1):
            fitting = [each for each in combinations(sorted(sizes), count) if sum(each) >= growth * max(each)]
            if fitting:
                return min(map(list, fitting), key=sum)
        if len(sizes) <= most:
            break
    return []


drawn = st.one_of(st.integers(1, 4), st.integers(0, 20).map(lambda at: 2**at), st.integers(900, 1100))


@settings(deadline=None, max_examples=200)
@given(st.lists(drawn, max_size=11), st.lists(st.integers(0, 2), min_size=11, max_size=11))
def test_the_plan_is_what_trying_every_set_gives(sizes: list[int], levels: list[int]) -> None:
    """Of any state, also of one that another release has made."""
    batches = [unsealed_batch([f"b{at}", f"{at}..{at}"], at) for at in range(len(sizes))]
    batches = [replace(b, rows=rows, level=level) for b, rows, level in zip(batches, sizes, levels, strict=False)]
    remembered = tuple(batch for batch in batches if batch.level)
    unsealed = tuple(batch for batch in batches if not batch.level)
    trace = (trace_batch(["t", "[0][20][0]", "0", "0"]),)
    of = collection(Envelope.UPSERT, late=Late("reemit"))
    state = Arrangement(of, complete_below=20, seal=20, trace=trace, unsealed=unsealed, remembered=remembered)
    request = plan_remember(state)
    expected = by_hand(sizes, 7 * (1 + max((batch.level for batch in batches), default=0)))
    assert sorted(batch.rows for batch in (request.inputs if request else ())) == expected


@settings(deadline=None, max_examples=150)
@given(st.lists(st.tuples(drawn, st.integers(0, 8)), max_size=120))
def test_any_history_keeps_within_the_bounds(history: list[tuple[int, int]]) -> None:
    """Batches alive; that no batch is written again for fewer rows than it has; that all is there once. Where nothing
    vanishes, so no fact is written more often than its batch can double."""
    made, of = Simulated(), dict[str, int]()
    for rows, gone in history:
        made.drain(rows, share=1 - Fraction(gone, 10))
        of[f"b{made.hours - 1}"] = rows
        assert len(made.alive) <= made.bound
        assert sorted(name for one in made.alive for name in made.contained[one.id]) == sorted(of)
    assert all(sum(inputs) >= 2 * inputs[-1] for inputs in made.merges)
    if not any(gone for _, gone in history):
        total = sum(of.values())
        assert all(times <= log2(total / of[name]) for name, times in made.written.items())


def test_nothing_is_merged_of_a_collection_that_remembers_none() -> None:
    state = Arrangement(collection(Envelope.APPEND))
    assert plan_remember(replace(state, unsealed=())) is None


def test_a_merge_whose_inputs_are_gone_is_planned_again() -> None:
    state = simulated([3] * (FAN_IN - 1)).state
    outcome = apply(state, Remembered(FENCE, ("b0", "b9"), None))
    assert outcome == Stale("remembered batch b9 was evicted or merged meanwhile")


def test_a_merge_does_not_forget_what_may_be_needed_again() -> None:
    state = simulated([3] * (FAN_IN - 1), collection(Envelope.UPSERT, late=Late("reemit", 2))).state
    assert state.horizon == 5
    assert isinstance(apply(state, Remembered(FENCE, ("b0", "b1"), None, 5)), Applied)
    assert isinstance(apply(state, Remembered(FENCE, ("b0", "b1"), None, 6)), Stale)
