"""The correction buffer against a multiset of updates that knows nothing of chains and buckets."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from random import Random

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from tests.oracles.correction_buffer.buffer import CorrectionBuffer
from tests.oracles.correction_buffer.chain import Chain, Correction, merged
from tests.oracles.correction_buffer.forwarding import MOST_STALE_TIMES, Strategy, merged_by, stale_times, strategy_for
from tests.oracles.correction_buffer.sizes import Sizes
from tidemark.errors import Corruption, InvalidUsage
from tidemark.model.correction_buffer.chain_rule import holds
from tidemark.model.correction_buffer.stack import Stack
from tidemark.model.invariants import Invariant

pytestmark = pytest.mark.pure
BITS = 7
END = 1 << BITS

Plain = tuple[str, int, int]
"""Data, time, diff."""

times = st.integers(0, END - 1)
updates = st.tuples(st.sampled_from("abc"), times, st.integers(-2, 2))
sizes = st.builds(Sizes, st.integers(1, 5), st.sampled_from([1.5, 2.0, 3.0, 4.5]))


def rows(plain: list[Plain]) -> list[Correction[str]]:
    return [Correction(time, data, diff) for data, time, diff in plain]


def plain(found: object) -> list[Plain]:
    return [(row.data, row.time, row.diff) for row in found]  # type: ignore[attr-defined]


def expected(inserted: list[Plain], since: int, upper: int) -> list[Plain]:
    """The contract: effective times below upper, summed, no zeros, by time, then data."""
    sums: Counter[tuple[int, str]] = Counter()
    for data, time, diff in inserted:
        if since < upper and (effective := max(time, since)) < upper:
            sums[effective, data] += diff
    return [(data, time, diff) for (time, data), diff in sorted(sums.items()) if diff]


def chains_of(buffer: CorrectionBuffer[str]) -> list[Chain[str]]:
    in_buckets = [chain for bucket in buffer.buckets.buckets for chain in bucket.content.chains]
    return [*in_buckets, *buffer.pending_low, *([buffer.emitted] if buffer.emitted else [])]


def check_structure(buffer: CorrectionBuffer[str]) -> None:
    """What the package's page calls invariants."""
    for chain in chains_of(buffer):
        assert chain.chunks
        assert all(0 < len(chunk) <= buffer.sizes.chunk_rows for chunk in chain.chunks)
        assert all((a.time, a.data) < (b.time, b.data) for a, b in pairwise(chain))
        assert all(row.diff for row in chain)
    for bucket in buffer.buckets.buckets:
        assert all(row.time in bucket for chain in bucket.content.chains for row in chain)
    low = [row.time for chain in [*buffer.pending_low, buffer.emitted] for row in chain]
    assert all(time < buffer.boundary for time in low)
    assert buffer.buckets.lower == buffer.boundary
    assert buffer.chained_rows == sum(chain.rows for chain in chains_of(buffer))
    assert buffer.totals.records == buffer.chained_rows + len(buffer.stage)


class Walk:
    """A buffer and the multiset it stands for, on a random walk over a domain of 128 times."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        sizes = Sizes(self.random.randint(1, 5), self.random.choice([1.5, 2.0, 3.0, 4.5]))
        self.buffer: CorrectionBuffer[str] = CorrectionBuffer.empty(sizes, time_bits=BITS)
        self.multiset: list[Plain] = []
        self.since = 0
        self.reached: Counter[str] = Counter()

    def step(self) -> None:
        weighted = {self.insert: 4, self.insert_a_stretch: 3, self.read: 5, self.write_and_hear_of_it: 2}
        weighted |= {self.advance: 3, self.fall_back: 1, self.consolidate: 1}
        (chosen,) = self.random.choices([*weighted], [*weighted.values()])
        chosen()
        check_structure(self.buffer)
        everywhere = [*self.buffer.stage, *(row for chain in chains_of(self.buffer) for row in chain)]
        assert expected(plain(everywhere), self.since, END) == expected(self.multiset, self.since, END)

    def insert(self) -> None:
        pick = self.random
        some = [(pick.choice("abc"), pick.randrange(END), pick.randint(-2, 2)) for _ in range(pick.randint(0, 8))]
        self._insert(some, negated=pick.random() < 0.3)

    def insert_a_stretch(self) -> None:
        start, length = self.random.randrange(END), self.random.randint(20, 60)
        self._insert([("s", time, 1) for time in range(start, min(END, start + length))])

    def read(self) -> None:
        upper, boundary = self._upper(), self.buffer.boundary
        for _ in range(self.random.choice([1, 1, 2])):
            found, self.buffer = self.buffer.updates_before(upper)
            assert plain(found) == expected(self.multiset, self.since, upper)
        if self.since < upper:
            assert not self.buffer.stage
            assert self.buffer.boundary == max(boundary, upper)
            assert self.buffer.buckets.is_well_formed
            self.reached[str(self.buffer.strategy)] += 1
            self.reached["upper went back"] += upper < boundary
            self.reached["rows parked"] += bool(self.buffer.pending_low)

    def write_and_hear_of_it(self) -> None:
        """What a job does: after it nothing is left below the frontier."""
        upper = self._upper()
        found, self.buffer = self.buffer.updates_before(upper)
        self._advance(self.random.choice([self.since, self.since, upper]))
        self._insert(plain(found), negated=True)
        assert self.buffer.updates_before(upper)[0] == []
        self.reached["written and heard of"] += bool(found)

    def advance(self) -> None:
        self._advance(
            min(END - self.random.choice([0, 1, 1, 1, 1, 1, 1]), self.since + self.random.choice([1, 2, 3, 45]))
        )

    def fall_back(self) -> None:
        if self.since > 0:
            with pytest.raises(Corruption) as refused:
                self.buffer.advanced(self.random.randrange(self.since))
            assert refused.value.rule == Invariant.SINCE_ADVANCES

    def consolidate(self) -> None:
        self.buffer = self.buffer.consolidated_at_since()

    def _upper(self) -> int:
        near = self.since + self.random.choice([1, 2, 10])
        return self.random.choice([min(near, END), self.random.randint(0, END)])

    def _insert(self, some: list[Plain], *, negated: bool = False) -> None:
        if negated:
            self.buffer = self.buffer.inserted_negated(rows(some))
        else:
            self.buffer = self.buffer.inserted(rows(some))
        self.multiset += [(data, time, -diff if negated else diff) for data, time, diff in some if self.since < END]

    def _advance(self, since: int) -> None:
        since = max(since, self.since)
        self.buffer, self.since = self.buffer.advanced(since), since
        self.multiset = self.multiset if since < END else []


def test_whatever_is_done_in_whatever_order_a_read_is_what_the_multiset_says():
    reached: Counter[str] = Counter()
    for seed in range(120):
        walk = Walk(seed)
        for number in range(30):
            try:
                walk.step()
            except AssertionError as error:
                raise AssertionError(f"seed {seed}, step {number}") from error
        reached += walk.reached
    deep = {*Strategy, "upper went back", "rows parked", "written and heard of"}
    assert {name: reached[name] for name in deep if reached[name] < 10} == {}


stretches = st.builds(
    lambda start, length, diff: [("a", time, diff) for time in range(start, start + length)],
    *(st.integers(0, 60), st.integers(1, 40), st.sampled_from([-1, 1])),
)
inputs_of_a_merge = st.lists(st.one_of(stretches, st.lists(updates, max_size=12)), min_size=1, max_size=4)


def chain(some: list[Plain], chunk_rows: int = 3) -> Chain[str]:
    return Chain.of(rows(expected(some, 0, 1 << 70)), chunk_rows)


@given(inputs_of_a_merge, st.integers(0, 100))
def test_each_way_to_merge_gives_the_same(some, since):
    inputs = [made for each in some if (made := chain(each))]
    stale = sum(len({time for _, time, _ in each if time < since}) for each in map(plain, inputs))
    assert stale_times(inputs, since) == min(stale, MOST_STALE_TIMES)
    chosen = strategy_for(stale_times(inputs, since))
    assert chosen == (
        Strategy.PLAIN_MERGE if stale == 0 else Strategy.RUN_MERGE if stale < 32 else Strategy.MATERIALIZE
    )
    event(chosen)
    wanted = expected([row for each in some for row in each], since, 1 << 70)
    for strategy in {chosen, Strategy.RUN_MERGE, Strategy.MATERIALIZE}:
        assert plain(merged_by(strategy, inputs, since, 3)) == wanted


def pushed(stack: Stack[Chain[str]], more: Chain[str], sizes: Sizes) -> Stack[Chain[str]]:
    return stack.pushed(more, lambda a, b: merged([a, b], sizes.chunk_rows), sizes.proportionality)


@given(st.lists(updates, max_size=30), st.integers(0, END), st.integers(1, 5))
def test_a_cut_hands_whole_chunks_over_and_halves_one_at_most(some, at, chunk_rows):
    whole = chain(some, chunk_rows)
    before, after = whole.cut(at)
    assert [*before, *after] == [*whole]
    assert all(row.time < at for row in before)
    assert all(row.time >= at for row in after)
    assert len(before.chunks) + len(after.chunks) <= len(whole.chunks) + 1
    shared = {id(chunk) for chunk in (*before.chunks, *after.chunks)} & {id(chunk) for chunk in whole.chunks}
    assert len(shared) >= len(whole.chunks) - 1


@settings(max_examples=60)
@given(st.lists(st.lists(updates, max_size=5), max_size=20), sizes)
def test_a_stack_obeys_the_chain_rule_and_keeps_every_row(pushes, sizes):
    stack: Stack[Chain[str]] = Stack()
    for number, some in enumerate(pushes):
        stack = pushed(stack, chain(some), sizes)
        assert holds([each.rows for each in stack.chains], sizes.proportionality)
        assert all(each.rows for each in stack.chains)
        found = [row for each in stack.chains for row in plain(each)]
        assert expected(found, 0, END) == expected([row for each in pushes[: number + 1] for row in each], 0, END)


@pytest.mark.parametrize(("row_count", "chunk_rows", "cost"), [(0, 3, 0), (1, 3, 1), (10, 3, 4), (10, 1, 10)])
def test_a_stack_is_split_at_the_cost_of_its_chunks(row_count, chunk_rows, cost):
    stack = Stack((chain([("a", time, 1) for time in range(row_count)], chunk_rows),))
    before, after, spent = stack.split(5)
    assert (before.rows, after.rows, spent) == (min(row_count, 5), max(0, row_count - 5), cost)


@pytest.mark.parametrize("proportionality", [1.5, 3.0, 8.0])
def test_chains_stay_few_and_rows_are_rewritten_seldom(proportionality):
    """2,000 single rows: no more chains than the logarithm, and each row written as often as a chain can grow."""
    stack, written = Stack[Chain[str]](), 0
    for time in range(2_000):
        before = {id(each) for each in stack.chains}
        stack = pushed(stack, Chain.of([Correction(time, "a", 1)]), Sizes(204, proportionality))
        written += sum(each.rows for each in stack.chains if id(each) not in before)
        assert proportionality ** (len(stack.chains) - 1) <= time + 1
    growth = 1 + 1 / proportionality
    most = next(n for n in range(200) if growth**n > 2_000)
    assert written <= 2_000 * most


def test_what_is_far_ahead_is_not_touched_by_inserts_and_reads_before_it():
    far = [("far", 2**40 + n, -1) for n in range(2_000)]
    buffer: CorrectionBuffer[str] = CorrectionBuffer.empty().inserted(rows(far))
    buffer = buffer.consolidated_before(1)
    distant = {id(chunk) for each in chains_of(buffer) for chunk in each.chunks}
    assert distant
    for now in range(1, 300):
        found, buffer = buffer.inserted(rows([("near", now, 1)])).updates_before(now + 1)
        assert plain(found) == [("near", now, 1)]
        buffer = buffer.inserted_negated(found).advanced(now + 1)
    assert distant <= {id(chunk) for each in chains_of(buffer) for chunk in each.chunks}
    assert plain(buffer.updates_before(buffer.end)[0]) == far


def test_a_stage_holds_less_than_a_chunk_and_a_chunk_that_cancels_leaves_nothing():
    buffer: CorrectionBuffer[str] = CorrectionBuffer.empty(Sizes(chunk_rows=2))
    buffer = buffer.inserted(rows([("a", 5, 1), ("a", 5, -1), ("b", 5, 1)]))
    assert (plain(buffer.stage), buffer.chained_rows) == ([("b", 5, 1)], 0)
    assert (buffer.totals.records, buffer.totals.capacity) == (1, 2)


def test_the_empty_since_lets_go_of_everything_and_says_so():
    buffer: CorrectionBuffer[str] = CorrectionBuffer.empty(Sizes(chunk_rows=2))
    buffer = buffer.inserted(rows([(data, 5, 1) for data in "abcde"]))
    gone = buffer.advanced(buffer.end).inserted(rows([("f", 9, 1)]))
    assert (gone.totals.records, gone.totals.capacity, gone.totals.deletions) == (0, 0, 5)
    assert gone.totals.peak_records == 5
    assert gone.updates_before(gone.end)[0] == []
    assert gone.advanced(gone.end) == gone
    with pytest.raises(Corruption, match="since cannot move back from the empty frontier to 3"):
        gone.advanced(3)


@pytest.mark.parametrize("time", [-1, END, 2**64])
def test_a_time_outside_the_domain_is_refused_and_nothing_is_inserted(time):
    buffer: CorrectionBuffer[str] = CorrectionBuffer.empty(time_bits=BITS)
    with pytest.raises(InvalidUsage, match=rf"time {time} is not within \[0, 128\)"):
        buffer.inserted(rows([("a", 1, 1), ("b", time, 1)]))


def test_a_frontier_beyond_the_empty_one_is_refused():
    buffer: CorrectionBuffer[str] = CorrectionBuffer.empty(time_bits=BITS)
    for ask in (buffer.advanced, buffer.updates_before, buffer.consolidated_before):
        with pytest.raises(InvalidUsage, match="129 is beyond 128, the empty frontier"):
            ask(END + 1)


def test_the_last_time_of_the_domain_is_a_time_like_any_other():
    buffer = CorrectionBuffer[str].empty(time_bits=BITS).inserted(rows([("a", END - 1, 1)])).advanced(END - 1)
    assert buffer.consolidated_at_since() == buffer
    assert buffer.updates_before(END - 1)[0] == []
    assert plain(buffer.updates_before(END)[0]) == [("a", END - 1, 1)]


@pytest.mark.parametrize("wrong", [{"chunk_rows": 0}, {"proportionality": 1.0}, {"proportionality": float("nan")}])
def test_sizes_under_which_nothing_would_work_are_refused(wrong):
    with pytest.raises(InvalidUsage):
        Sizes(**wrong)
