"""What the policy of compaction costs and holds, simulated over batches of any sizes without data.

A batch is a number of rows of which none consolidate away, unless a test says so; what the planner asks for is applied
by the transition itself, one drain and one compaction after the other.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate
from math import comb, log2

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.world import collection
from tidemark.model.arrangement import Arrangement
from tidemark.model.batch import Description, ObjectRef, TraceBatch
from tidemark.plan.bounds import bounds, fewest_writes
from tidemark.plan.compact import CompactionRequest, budget, due

pytestmark = pytest.mark.pure


def batch(name: str, description: Description, level: int, rows: int) -> TraceBatch:
    parts = ObjectRef(name, 1, "0") if rows else None
    return TraceBatch(name, description, level, rows, rows, 0, parts, int(rows > 0))


@dataclass
class Simulated:
    """A trace that takes in one batch after the other and compacts after each."""

    live_batches: int
    state: Arrangement = field(init=False)
    most: int = 0
    rewritten: list[int] = field(default_factory=list)
    merges: int = 0

    def __post_init__(self) -> None:
        self.state = Arrangement(collection(live_batches=self.live_batches), complete_below=10**6, seal=10**6)

    def take_in(self, rows: int) -> None:
        at = self.state.trace_upper
        before = self.state.totals
        totals = replace(before, drains=before.drains + 1, rows_drained=before.rows_drained + rows)
        trace = (*self.state.trace, batch(f"{at}", Description(at, at + 1), 0, rows))
        self.state = replace(self.state, trace=trace, totals=totals)
        while inputs := due(self.state):
            self._merge(inputs)
        self.most = max(self.most, len(self.state.trace))

    def _merge(self, inputs: Sequence[TraceBatch]) -> None:
        description = Description(inputs[0].description.lower, inputs[-1].description.upper)
        request = CompactionRequest(tuple(inputs), description)
        rows = sum(each.rows for each in inputs)
        level = max(each.level for each in inputs) if request.moves_no_data else request.level(rows)
        at = self.state.trace.index(inputs[0])
        older = tuple(replace(each, level=max(each.level, level)) for each in self.state.trace[:at])
        merged = batch(f"{inputs[0].id}-{inputs[-1].id}", description, level, rows)
        trace = (*older, merged, *self.state.trace[at + len(inputs) :])
        written = 0 if request.moves_no_data else rows
        self.rewritten.append(written)
        self.merges += written > 0
        totals = replace(self.state.totals, rows_compacted=self.state.totals.rows_compacted + written)
        self.state = replace(self.state, trace=trace, totals=totals)

    @property
    def top(self) -> int:
        return max((each.level for each in self.state.trace), default=0)

    @property
    def written(self) -> int:
        return self.state.totals.rows_drained + self.state.totals.rows_compacted


def simulated(live_batches: int, sizes: Iterable[int]) -> Simulated:
    made = Simulated(live_batches)
    for rows in sizes:
        made.take_in(rows)
    return made


def of_many_sizes(n: int) -> dict[str, list[int]]:
    return {
        "ascending": list(range(1, n + 1)),
        "descending": list(range(n, 0, -1)),
        "growing by a twentieth": [int(1.05**at) + 1 for at in range(min(n, 400))],
        "falling again and again": [2**20 >> (at % 21) for at in range(n)],
        "rising again and again": [2 ** (at % 15) for at in range(n)],
        "one in two large": [1000 if at % 2 else 1 for at in range(n)],
        "one in fifty huge": [10**6 if at % 50 == 0 else 1 for at in range(n)],
        "powers in the order of a ruler": [at & -at for at in range(1, n + 1)],
        "every other one empty": [at % 2 * 7 for at in range(n)],
        "all empty": [0] * n,
    }


sizes = st.lists(st.one_of(st.integers(0, 3), st.integers(0, 20).map(lambda at: 2**at)), max_size=60)
live = st.integers(2, 14)


def check(made: Simulated) -> None:
    """What is promised at any time: batches alive, rows written, and that levels grow like the logarithm."""
    found, drains = bounds(made.state), made.state.totals.drains
    assert len(made.state.trace) <= budget(made.live_batches, made.top) == found.live_bound
    assert found.written_bound is not None
    assert made.written <= found.written_bound * max(1, made.state.totals.rows_drained)
    assert made.top <= 2 * log2(1 + drains), "levels rise faster than drains double"
    assert made.written <= (1 + log2(1 + drains)) * made.state.totals.rows_drained


@settings(deadline=None, max_examples=150)
@given(live, sizes)
def test_any_sizes_keep_within_the_bounds(live_batches: int, some: list[int]) -> None:
    made = Simulated(live_batches)
    for rows in some:
        made.take_in(rows)
        check(made)


@pytest.mark.parametrize("name", of_many_sizes(1))
@pytest.mark.parametrize("live_batches", [2, 12])
def test_sizes_that_are_awkward_keep_within_the_bounds(name: str, live_batches: int) -> None:
    made = Simulated(live_batches)
    for rows in of_many_sizes(800)[name]:
        made.take_in(rows)
        check(made)


@pytest.mark.parametrize("live_batches", [12, 16])
def test_batches_of_one_size_are_written_nearly_as_seldom_as_can_be(live_batches: int) -> None:
    """The optimum knows how many will come. Who does not know pays at most one more writing of every row, when a level
    is complete, and over all days no more than 1.15 of the optimum for as many batches alive."""
    made, shares = Simulated(live_batches), []
    for n in range(1, 2001):
        made.take_in(1)
        least = fewest_writes(n, made.most)
        # A drain and a merge are two steps: the youngest row of each merge was written by its drain, too.
        assert made.written <= least + n + made.merges
        shares.append(made.written / least)
    assert made.most == live_batches
    assert sum(shares) / len(shares) <= 1.15
    assert min(shares[200:]) <= 1.1


@pytest.mark.parametrize("live_batches", [2, 4, 6, 8])
def test_also_where_the_levels_ask_for_more_batches_than_the_budget(live_batches: int) -> None:
    made, shares = Simulated(live_batches), []
    for n in range(1, 2001):
        made.take_in(1)
        shares.append(made.written / fewest_writes(n, made.most))
    assert made.most <= 10
    assert sum(shares) / len(shares) <= 1.25
    assert max(shares) <= 2


@pytest.mark.parametrize(("runs", "writes"), [(6, 2), (8, 3), (12, 2)])
def test_about_as_many_are_taken_in_as_can_be_with_so_many_writes(runs: int, writes: int) -> None:
    """With k alive and each batch written w times after its drain at most C(k + w, k) − 1 fit: the levels count through
    nearly all sequences. What large and small neighbours do otherwise costs a twentieth."""
    made, taken = Simulated(runs), 0
    while made.top <= writes:
        made.take_in(1)
        taken += 1
    most = comb(runs + writes + 1, runs) - 1
    assert made.most == runs
    assert 0.95 * most <= taken <= most


def test_a_large_first_batch_is_not_rewritten_for_small_ones() -> None:
    """A base of a million and 400 days of a thousand: until those are as many, it is written twice at most."""
    made = Simulated(12)
    made.take_in(10**6)
    for _ in range(400):
        made.take_in(1000)
    assert sum(rows > 10**6 for rows in made.rewritten) <= 2
    small = made.written - 10**6 * (1 + sum(rows > 10**6 for rows in made.rewritten))
    assert small <= 400 * 1000 * 4


def test_sums_stay_what_they_were() -> None:
    made = simulated(3, range(1, 200))
    assert sum(each.rows for each in made.state.trace) == list(accumulate(range(1, 200)))[-1]
    assert made.state.trace_upper == 199
