"""The correction buffer against a multiset of updates that knows nothing of chains and buckets."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.oracles.correction_buffer.chain import Chain, Correction, merged
from tests.oracles.correction_buffer.sizes import Sizes
from tidemark.model.correction_buffer.chain_rule import holds
from tidemark.model.correction_buffer.stack import Stack

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


def chain(some: list[Plain], chunk_rows: int = 3) -> Chain[str]:
    return Chain.of(rows(expected(some, 0, 1 << 70)), chunk_rows)


def pushed(stack: Stack[Chain[str]], more: Chain[str], sizes: Sizes) -> Stack[Chain[str]]:
    return stack.pushed(more, lambda a, b: merged([a, b], sizes.chunk_rows), sizes.proportionality)


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
