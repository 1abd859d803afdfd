"""What is ahead, by numbers alone: drains open what is due and next to nothing else; rows are seldom rewritten."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.far_rows import FarRows, batch_of, part_of
from tidemark.model.interval import Interval
from tidemark.plan.undue import STAGE_BATCHES, STAGE_ROWS, buckets_at, cuts, plan_settle, stage

pytestmark = pytest.mark.pure
DAY = 64


def test_the_example_of_the_module() -> None:
    far = FarRows(DAY)
    for _ in range(11):
        far.day({})
    assert far.state.trace_upper == 704
    assert [bucket.start for bucket in buckets_at(704, DAY).buckets][:7] == [704, 712, 720, 736, 768, 896, 1024]
    interval = Interval(640, 704)
    times = {"a": {704: 5_000, 715: 5_000, 730: 5_000, 767: 5_000}, "b": {1_500: 5}, "c": {1_100: 4_000, 1_200: 5_000}}
    far.contents = {name: Counter(of) for name, of in times.items()}
    ahead = [batch_of(name, [part_of(name, of)], interval, level=int(name == "c")) for name, of in times.items()]
    far.state = replace(far.state, ahead=tuple(ahead))
    staged = stage(far.state)
    assert [batch.id for batch in staged] == ["a", "b"]
    request = plan_settle(far.state, staged, {batch.id: batch.parts for batch in staged})
    written = [(rows.lower, rows.upper) for rows in request.outputs if not rows.as_they_are]
    assert written == [(704, 712), (712, 720), (720, 736), (736, 768)]
    assert [rows.parts[0].file.key for rows in request.outputs if rows.as_they_are] == ["b"]
    far.settle(request)
    assert (far.written, stage(far.state)) == (20_000, ())
    assert far.day({}) == times["a"]
    assert far.opened == 4


@given(
    counts=st.lists(st.sampled_from([0, 1, 500, STAGE_ROWS, 10**6]), min_size=2, max_size=65), most=st.integers(2, 16)
)
def test_what_is_due_is_cut_off_and_large_buckets_are_separate(counts: list[int], most: int) -> None:
    starts = tuple(range(10, 10 + len(counts) - 1))
    found = cuts(counts, starts, most=most)
    assert len(found) < most
    beyond = [at for at, rows in enumerate(counts) if at and rows]
    if counts[0] and beyond:
        assert found[0] == starts[beyond[0] - 1]
    parts, part = [], []
    for at, rows in enumerate(counts):
        if at and starts[at - 1] in found:
            parts.append(part)
            part = []
        part.append(rows)
    parts.append(part)
    for part in parts if len(found) < most - 1 else ():
        several = sum(1 for rows in part if rows) > 1
        assert not several or sum(part) <= STAGE_ROWS


ARRIVALS = st.dictionaries(st.integers(0, 400), st.sampled_from([1, 3, 5_000, 40_000]), max_size=5)


@settings(deadline=None, max_examples=30)
@given(days=st.lists(st.tuples(ARRIVALS, st.booleans(), st.booleans()), min_size=1, max_size=30))
def test_each_row_is_due_once_when_it_is_due(days: list[tuple[dict[int, int], bool, bool]]) -> None:
    far, expected = FarRows(10), Counter[int]()
    for day, (arrivals, cut, settles) in enumerate(days):
        times = {10 * day + ahead: rows for ahead, rows in arrivals.items()}
        expected += Counter(times)
        due = far.day(times, cut=cut, settles=settles)
        assert due == Counter({t: n for t, n in expected.items() if 10 * day <= t < 10 * day + 10})
        staged = [batch for batch in far.state.ahead if not batch.level]
        assert not settles or len(staged) <= STAGE_BATCHES
        assert not settles or sum(batch.rows for batch in staged) <= STAGE_ROWS


@pytest.mark.parametrize(
    ("arrivals", "rewritten", "batches", "opened"),
    [
        (lambda day: {day + 30: 100_000}, 7, 24, 3),
        (lambda day: {day + 365: 100_000}, 6, 24, 1),
        (lambda day: {day + ahead: 10_000 for ahead in range(1, 301, 20)}, 12, 80, 12),
        (lambda day: {day + ahead: 10 for ahead in range(1, 301, 10)}, 12, 80, 12),
        (lambda day: {27_000 + day: 1}, 12, 12, 1),
        (lambda day: {day + 200: 10**6} if not day else {}, 1, 2, 1),
    ],
    ids=["in 30 days", "in a year", "1 to 300 days ahead", "few 1 to 300 days ahead", "in 2100", "a million once"],
)
def test_costs_of_a_year(arrivals, rewritten: float, batches: int, opened: float) -> None:
    """Rows rewritten for each that came, batches that wait at most, and parts that a drain opens on average."""
    far, came = FarRows(DAY), 0
    for day in range(365):
        times = {at * DAY + DAY // 2: rows for at, rows in arrivals(day).items()} | {day * DAY: 1_000}
        came += sum(times.values()) - 1_000
        far.day(times)
    assert far.written <= rewritten * came, far.written / came
    assert far.most <= batches
    assert far.opened <= (1 + opened) * 365, far.opened / 365
    assert far.read - far.due <= 365 * STAGE_ROWS + far.due / 8, (far.read - far.due, far.due)
