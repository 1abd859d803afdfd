"""The rate monitor: fixed slots, a rate that is computed when it is asked for, and a change of rate that cuts once."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidemark.errors import InvalidUsage
from tidemark.model.batching.rate import SECOND, SLOTS, RateAlarm, RateChange, RateMonitor
from tidemark.model.batching.reason import Direction

pytestmark = pytest.mark.pure
Arrivals = list[tuple[int, int]]


def monitored(arrivals: Arrivals, monitor: RateMonitor = RateMonitor()) -> RateMonitor:  # noqa: B008 - a value
    for at, rows in arrivals:
        monitor = monitor.arrived(at, rows)
    return monitor


def every(step: int, upto: int, rows: int = 1, start: int = 0) -> Arrivals:
    return [(at, rows) for at in range(start, upto + 1, step)]


def test_it_falls_while_nothing_arrives_and_ends_at_nothing():
    monitor = monitored([(0, 100)])
    rates = [monitor.rate(at * SECOND) for at in range(1, 12)]
    assert rates == sorted(rates, reverse=True)
    assert rates[-2:] == [0.0, 0.0]


def test_what_is_kept_is_bounded_however_many_rows_arrive():
    monitor = monitored(every(4_000, 20 * SECOND))
    assert len(monitor.slots) <= SLOTS
    assert monitor.rate(20 * SECOND) == pytest.approx(250, rel=1e-3)


@given(st.lists(st.tuples(st.integers(0, 3_000), st.integers(1, 9)), max_size=30), st.integers(0, 4_000))
def test_it_is_what_came_within_the_window_in_any_order(arrivals: Arrivals, now: int):
    """Slots end where milliseconds do here, so that the window is exact."""
    window, floor = 1_000_000, 100_000
    came = [(at * 1_000, rows) for at, rows in arrivals if at <= now]
    monitor = monitored(sorted(came), RateMonitor(window, floor))
    first, at = min((time for time, _ in came), default=None), now * 1_000
    if first is None or at - first < floor:
        assert monitor.rate(at) is None
        return
    rows = sum(rows for time, rows in came if at - window < time <= at)
    assert monitor.rate(at) == pytest.approx(rows * SECOND / min(at - first, window))


@given(st.permutations([(at * 10_000, at + 1) for at in range(20)]))
def test_the_order_of_arrivals_within_a_window_is_nothing(arrivals: Arrivals):
    assert monitored(arrivals) == monitored(sorted(arrivals))


def test_a_clock_that_steps_back_begins_again_and_reports_nothing_false():
    monitor = monitored(every(SECOND, 100 * SECOND))
    assert monitor.rate(-50 * SECOND) is None
    back = monitor.arrived(20 * SECOND, 7)
    assert (back.first_seen, len(back.slots)) == (20 * SECOND, 1)
    assert back.rate(21 * SECOND) == 7.0


def test_halves_that_share_no_row_are_compared_and_a_slow_feed_is_seen_to_change():
    """0.2 rows a second, then 0.8: below one a second, where a floor of 1.0 would hide it."""
    monitor = monitored(
        [*every(5 * SECOND, 45 * SECOND), *every(SECOND * 5 // 4, 100 * SECOND, start=51 * SECOND)],
        RateMonitor(100 * SECOND),
    )
    change = monitor.change(100 * SECOND)
    assert change is not None
    assert (change.direction, 2.5 < change.ratio < 3.5) == (Direction.UP, True)
    steady = monitored(every(SECOND, 300 * SECOND), RateMonitor(100 * SECOND)).change(300 * SECOND)
    assert steady is not None
    assert steady.ratio < 0.05


def test_a_change_is_known_of_a_whole_window_only():
    monitor = monitored(every(SECOND, 200 * SECOND), RateMonitor(100 * SECOND))
    assert [monitor.change(at * SECOND) is None for at in (0, 99, 100)] == [True, True, False]
    gone = monitor.change(260 * SECOND)
    assert gone == RateChange(1.0, Direction.DOWN)


def test_it_cuts_once_until_the_change_is_back_under_half_or_the_cool_down_is_over():
    up, half, calm = (RateChange(ratio, Direction.UP) for ratio in (1.0, 0.5, 0.49))
    alarm = RateAlarm(1.0, 60 * SECOND)
    assert [alarm.holds(change) for change in (up, half, calm, None)] == [True, False, False, False]
    fired = alarm.fired(0)
    assert not fired.observed(up, 1).holds(up)
    assert not fired.observed(half, 1).holds(up)
    assert fired.observed(calm, 1).holds(up)
    assert fired.observed(up, 60 * SECOND).holds(up)


def test_a_clock_that_steps_back_delays_the_alarm_by_one_cool_down_at_most():
    alarm, up = RateAlarm(1.0, 60 * SECOND).fired(1_000 * SECOND), RateChange(1.0, Direction.UP)
    back = alarm.observed(up, 0)
    assert not back.holds(up)
    assert back.observed(up, 60 * SECOND).holds(up)


@pytest.mark.parametrize(
    ("made", "says"),
    [
        (lambda: RateMonitor(0, 1), "window of a rate is 0s"),
        (lambda: RateMonitor(10 * SECOND, 0), "floor of a rate is 0s"),
        (lambda: RateMonitor(SECOND, 2 * SECOND), "at most the window, 1s"),
        (lambda: RateAlarm(0, SECOND), "rate_change is 0; it must be above 0"),
        (lambda: RateAlarm(float("nan"), SECOND), "rate_change is nan"),
        (lambda: RateAlarm(1, 0), "cool_down of rate_change is 0s"),
    ],
)
def test_what_cannot_be_is_refused(made, says):
    with pytest.raises(InvalidUsage, match=says):
        made()
