"""The laws of updates and facts, on random ones."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from tidemark.model.fact import Fact, resolve
from tidemark.model.frontier import CompactionFunction
from tidemark.model.interval import Interval, IntervalSet
from tidemark.model.update import Update, advance, as_of, changes, consolidate, sort_key

values = st.tuples(st.sampled_from(["a", "b", None]))
times = st.integers(0, 6)
updates = st.lists(
    st.builds(Update, st.tuples(st.integers(0, 2)), values, times, times, st.integers(-2, 2)), max_size=12
)


@given(updates, updates)
def test_consolidation_is_idempotent_and_may_be_done_in_any_order(xs, ys):
    whole = consolidate(xs + ys)
    assert whole == consolidate(whole) == consolidate(ys + xs) == consolidate([*consolidate(xs), *ys])
    assert whole == sorted(whole, key=sort_key)
    assert all(u.diff for u in whole)


@given(updates, times, times)
def test_forwarding_twice_is_forwarding_to_the_later(xs, one, two):
    assert advance(advance(xs, CompactionFunction(one)), CompactionFunction(two)) == advance(
        xs, CompactionFunction(max(one, two))
    )


@given(updates, times, times, times)
def test_no_reader_at_or_after_since_can_tell_what_was_forwarded(xs, since, time, event_time):
    time, event_time = max(time, since), max(event_time, since)
    forwarded = consolidate(advance(xs, CompactionFunction(since)))
    assert as_of(forwarded, time=time, event_time=event_time) == as_of(xs, time=time, event_time=event_time)


@given(updates, times, times, times)
def test_the_rows_before_and_what_changed_make_the_rows_after(xs, a, b, event_time):
    after, upto = sorted((a, b))
    before = [u for u in xs if u.time <= after]
    now = before + changes(xs, after=after, upto=upto)
    assert as_of(now, time=upto, event_time=event_time) == as_of(xs, time=upto, event_time=event_time)


facts = st.lists(st.tuples(st.none() | values, times, times, st.sampled_from([None, 0, 1])), max_size=8).map(
    lambda rows: [
        Fact((0,), value, time, event_time, ((-1 if order is None else order), number))
        for number, (value, time, event_time, order) in enumerate(rows)
    ]
)


def by_definition(base, known, time, event_time):
    """The value of a key by its definition: the last fact known at a time that happened by then."""
    last = [f for f in sorted(known, key=lambda f: f.place) if f.time <= time and f.event_time <= event_time]
    value = last[-1].value if last else base
    return [] if value is None else [((0,), value, 1)]


@given(facts, times, st.none() | values)
def test_facts_resolved_batch_by_batch_are_the_history(all_facts, cut, base):
    """Whatever came first: what the first drain resolves and what the second adds is what all facts say."""
    first = [f for f in all_facts if f.time < cut]
    second = [f for f in all_facts if f.time >= cut]
    start = [] if base is None else [Update((0,), base, 0, -1, 1)]
    written = [*start, *resolve(base, [], first), *resolve(base, first, second)]
    for time in range(7):
        for event_time in range(-1, 7):
            assert as_of(written, time=time, event_time=event_time) == by_definition(base, all_facts, time, event_time)


@given(facts)
def test_a_fact_restated_writes_nothing(all_facts):
    again = [f for f in all_facts if f.value is not None][:1]
    restated = [Fact(f.key, f.value, 99, f.event_time, (*f.order, "again")) for f in again]
    assert resolve(None, all_facts, restated) == []


intervals = st.lists(
    st.tuples(st.integers(0, 20), st.integers(1, 5)).map(lambda p: Interval(p[0], p[0] + p[1])), max_size=8
)


@settings(max_examples=50)
@given(intervals, st.integers(0, 25))
def test_a_set_of_intervals_is_the_set_of_their_times(several, start):
    interval_set = IntervalSet()
    for each in several:
        interval_set = interval_set.add(each)
    inside = {time for each in several for time in range(each.lower, each.upper)}
    assert {time for member in interval_set for time in range(member.lower, member.upper)} == inside
    for lower, upper in ((start, start + 1), (start, start + 3)):
        assert interval_set.covers(Interval(lower, upper)) == (inside >= {*range(lower, upper)})
    complete = next(time for time in range(start, 60) if time not in inside)
    assert interval_set.complete_from(start) == complete
    hole = interval_set.first_hole(start, start + 10)
    missing = [time for time in range(start, start + 10) if time not in inside]
    assert (hole is None) == (not missing)
    if hole is not None:
        assert hole.lower == missing[0]
        assert not inside & set(range(hole.lower, hole.upper))
        assert hole.upper == start + 10 or hole.upper in inside
