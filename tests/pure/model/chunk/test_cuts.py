"""The cut law: where a sequence is cut, why, and that nothing is lost or cut without a reason."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidemark.errors import InvalidUsage
from tidemark.model.chunk.cuts import Appender, Arrival, CutReason, CutRules, cut

pytestmark = pytest.mark.pure


def at(*times: int | None, size: int = 0) -> list[Arrival]:
    return [Arrival({"t": time}, {"x": "int"}, size) for time in times]


def test_all_reasons_before_a_row_are_kept_in_order():
    first, _ = cut(CutRules(unsorted_rows=1), [Arrival({"a": 1}, {"x": "int"}), Arrival({"b": 1}, {"x": "float"})])
    assert (first.reason, first.also) == (CutReason.DATATYPE, (CutReason.TIMELINE_SET,))


def test_a_row_can_end_the_chunk_before_it_and_its_own():
    appender, _ = Appender(CutRules(bytes=10)).appended(Arrival({"a": 1}, bytes=1))
    appender, cuts = appender.appended(Arrival({"b": 1}, bytes=10))
    assert [(each.chunk.rows, each.reason) for each in cuts] == [(1, CutReason.TIMELINE_SET), (1, CutReason.BYTES)]
    assert appender.chunk is None


def test_a_chunk_is_due_by_the_age_of_its_first_row():
    appender, _ = Appender(CutRules(age=10)).appended(Arrival(), now=100)
    appender, _ = appender.appended(Arrival(), now=109)
    assert not appender.is_due(109)
    assert appender.is_due(110)
    closed, ended = appender.closed(CutReason.AGE)
    assert ended is not None
    assert (ended.chunk.rows, ended.chunk.opened) == (2, 100)
    assert not closed.is_due(10**9)
    assert closed.closed(CutReason.AGE) == (closed, None)


def test_a_limit_below_zero_is_refused():
    with pytest.raises(InvalidUsage, match="unsorted_rows is -1; it must be 0 or more"):
        CutRules(unsorted_rows=-1)


limits = st.none() | st.integers(0, 6)
arrivals = st.builds(
    Arrival,
    st.dictionaries(st.sampled_from("ab"), st.integers(0, 6), max_size=2),
    st.dictionaries(st.sampled_from("xy"), st.sampled_from(["int", "float"]), max_size=2),
    st.integers(0, 4),
    st.integers(0, 1),
)


@given(
    st.builds(CutRules, limits, limits, limits, limits, most_bytes=limits, bucket_rows=st.integers(0, 3)),
    st.lists(arrivals, max_size=40),
)
def test_chunks_are_the_sequence_and_each_is_as_its_reason_says(rules: CutRules, rows: list[Arrival]):
    start = 0
    for ended in cut(rules, rows):
        members = rows[start : start + ended.chunk.rows]
        after = rows[start + len(members)] if start + len(members) < len(rows) else None
        start += len(members)
        assert members
        assert ended.chunk.bytes == sum(row.bytes for row in members)
        assert {frozenset(row.times) for row in members} == {frozenset(ended.chunk.times)}
        assert ended.chunk.unsorted == {name for name in members[0].times if not in_order(members, name)}
        assert holds(ended.reason, rules, members, after)
        assert not any(
            holds(reason, rules, members[:size], members[size])
            for size in range(1, len(members))
            for reason in CutReason
        )
    assert start == len(rows)


def in_order(members: list[Arrival], name: str) -> bool:
    times = [row.times[name] for row in members]
    return times == sorted(times)  # type: ignore[type-var]


def holds(reason: CutReason, rules: CutRules, members: list[Arrival], after: Arrival | None) -> bool:
    """Whether a chunk of these rows must end for a reason, counted afresh from all its rows."""
    large = rules.unsorted_rows if rules.large_rows is None else rules.large_rows
    known = {name: datatype for row in members for name, datatype in row.datatypes.items()}
    is_sorted = all(in_order(members, name) for name in members[0].times)
    same_set = after is not None and after.times.keys() == members[0].times.keys()
    match reason:
        case CutReason.DATATYPE:
            return after is not None and any(known.get(name, each) != each for name, each in after.datatypes.items())
        case CutReason.TIMELINE_SET:
            return after is not None and not same_set
        case CutReason.BUCKET:
            return after is not None and after.bucket != members[-1].bucket and len(members) >= rules.bucket_rows
        case CutReason.ROOM:
            more = sum(row.bytes for row in members) + (0 if after is None else after.bytes)
            return after is not None and rules.most_bytes is not None and more > rules.most_bytes
        case CutReason.UNSORTED_ROWS:
            return (
                same_set and rules.unsorted_rows is not None and not is_sorted and len(members) >= rules.unsorted_rows
            )
        case CutReason.WOULD_UNSORT:
            unsorts = same_set and not all(in_order([*members, after], name) for name in members[0].times)  # type: ignore[list-item]
            return large is not None and is_sorted and len(members) >= large and unsorts
        case CutReason.ROWS:
            return rules.rows is not None and len(members) >= rules.rows
        case CutReason.BYTES:
            return rules.bytes is not None and sum(row.bytes for row in members) >= rules.bytes
        case CutReason.END:
            return after is None
        case _:
            return False
