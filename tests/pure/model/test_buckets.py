"""Time buckets against a set of times: what comes out when, what it costs, and where the buckets are."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidemark.errors import InvalidUsage
from tidemark.model.correction_buffer.buckets import BucketChain

pytestmark = pytest.mark.pure


class Times(tuple[int, ...]):
    """Times, at a fuel each."""

    __slots__ = ()

    def split(self, at: int) -> tuple[Times, Times, int]:
        return Times(t for t in self if t < at), Times(t for t in self if t >= at), len(self)


def check_buckets(chain: BucketChain[Times]) -> None:
    """They touch, reach to the end, come from binary halving, and hold what is theirs."""
    assert all(older.end == newer.start for older, newer in pairwise(chain.buckets))
    assert not chain.buckets or chain.buckets[-1].end == chain.end
    for bucket in chain.buckets:
        assert bucket.bits >= chain.min_bits
        assert bucket.start % (1 << bucket.bits) == 0
        assert all(time in bucket for time in bucket.content)
        assert chain.find(bucket.start) == bucket == chain.find(bucket.end - 1)
    assert chain.lower == 0 or chain.find(chain.lower - 1) is None


steps = st.lists(st.tuples(st.integers(0, 260), st.integers(-1, 40)), max_size=20)


@given(st.integers(0, 8), st.sets(st.integers(0, 255), max_size=40), steps)
def test_every_time_comes_out_once_when_it_is_due(min_bits, times, steps):
    chain, left = BucketChain.over(Times(sorted(times)), time_bits=8, min_bits=min_bits), sorted(times)
    for frontier, fuel in steps:
        before = chain.lower
        due, chain = chain.peel(frontier)
        check_buckets(chain)
        out = [time for content in due for time in content]
        assert out == [time for time in left if time < chain.lower]
        left = [time for time in left if time >= chain.lower]
        if frontier > before:
            assert min(frontier, 256) <= chain.lower < frontier + (1 << min_bits)
        else:
            assert chain.lower == before
        again, spare = chain.restore(fuel)
        check_buckets(again)
        assert sorted(time for bucket in again.buckets for time in bucket.content) == left
        assert again.is_well_formed or spare <= 0
        assert again == chain or fuel > 0
        chain = again
    whole, spare = chain.restore(10_000)
    assert whole.is_well_formed
    assert spare > 0
    assert whole.restore(0) == (whole, 0)
    assert all(newer.bits <= older.bits + 2 for older, newer in pairwise(whole.buckets))


@given(st.integers(0, 8), st.lists(st.integers(1, 60), max_size=12), st.integers(0, 260))
def test_where_restored_buckets_are_depends_on_the_lower_bound_alone(min_bits, steps, upper):
    """So a plan need not remember them, and two writers agree about them."""
    straight: BucketChain[Times] = BucketChain.over(Times(), time_bits=8, min_bits=min_bits)
    stepwise, frontier = straight, 0
    for step in steps:
        frontier = min(frontier + step, upper)
        stepwise, _ = stepwise.peel(frontier)[1].restore(1)
    straight, _ = straight.peel(frontier)[1].restore(1)
    assert stepwise.restore(1)[0] == straight
    widths = [bucket.bits for bucket in straight.buckets]
    assert len(widths) <= 8 + 1
    assert widths == sorted(widths)
    assert max(map(widths.count, widths), default=0) <= 2


@pytest.mark.parametrize("start", [0, 1, 99, 1_000])
@pytest.mark.parametrize("distance", [1, 10, 500, 1_500])
def test_a_time_is_touched_at_most_once_a_bit_of_its_distance_until_it_is_due(start, distance):
    """However many steps the frontier takes on its way there."""
    touched: list[int] = []

    class Counted(Times):
        __slots__ = ()

        def split(self, at: int) -> tuple[Counted, Counted, int]:
            touched.extend(self)
            before, after, cost = super().split(at)
            return Counted(before), Counted(after), cost

    chain, _ = BucketChain.over(Counted(), time_bits=64).peel(start)[1].restore(1)
    bucket = chain.find(start + distance)
    assert bucket is not None
    chain = chain.holding(bucket, Counted([start + distance]))
    for frontier in range(start + 1, start + distance + 2):
        due, chain = chain.peel(frontier)
        assert any(due) == (frontier > start + distance)
        chain, _ = chain.restore(1_000)
    assert len(touched) <= distance.bit_length() + 1


def test_a_narrowest_bucket_wider_than_the_domain_is_refused():
    with pytest.raises(InvalidUsage, match="min_bits 9 is not within the 8 bits"):
        BucketChain.over(Times(), time_bits=8, min_bits=9)
