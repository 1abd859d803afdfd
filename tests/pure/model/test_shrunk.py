"""Full snapshots with far fewer rows than the one before: which is before, and how many are few."""

from __future__ import annotations

import pytest

from tidemark.model.full_snapshot import Effect, FullSnapshot
from tidemark.model.interval import Interval
from tidemark.model.shrunk import MOST_REMEMBERED, SnapshotRows, compared, least_rows, rows_remembered

pytestmark = pytest.mark.pure


def snapshot(text: str) -> FullSnapshot:
    """`2: 400` says what day 2 has, `2: 400 passed` that its gate passed it; `2: +5` and `2: -5` correct it, `2: gone`
    withdraws it, afterwards or `now`, before it is sealed."""
    day, _, said = text.partition(": ")
    rows = said.split()[0]
    at, learned = Interval(int(day), int(day) + 1), None if said.endswith("now") else 100
    if rows == "gone":
        return FullSnapshot(text, at, 0, effect=Effect.WITHDRAWN, learned_at=learned)
    if rows[0] in "+-?":
        net = None if rows == "?" else int(rows)
        return FullSnapshot(text, at, 7, effect=Effect.CORRECTED, learned_at=learned, net=net)
    return FullSnapshot(text, at, int(rows), net=int(rows))


@pytest.mark.parametrize(
    ("drained", "pending", "short"),
    [
        pytest.param([], ["1: 0"], [], id="the very first one"),
        pytest.param([(1, 999)], ["2: 0"], ["2: 0"], id="none after some"),
        pytest.param([(1, 0)], ["2: 0"], [], id="none after none"),
        pytest.param([(1, 999)], ["2: 1"], [], id="of few a share says little"),
        pytest.param([(1, 1_000)], ["2: 499"], ["2: 499"], id="less than half"),
        pytest.param([(1, 1_000)], ["2: 500"], [], id="half"),
        pytest.param([(1, 1_001)], ["2: 500"], ["2: 500"], id="a row less than half"),
        pytest.param([(1, 2_000), (9, 10)], ["5: 20"], ["5: 20"], id="a day before others is compared with its past"),
        pytest.param([(9, 2_000)], ["5: 20"], [], id="before all that are drained"),
        pytest.param([(1, 2_000)], ["2: 0", "3: 1999"], ["2: 0"], id="what is short itself is no measure"),
        pytest.param([(1, 2_000)], ["3: 1999", "2: 0"], ["2: 0"], id="in whichever order they came"),
        pytest.param([(1, 2_000)], ["2: 0 passed", "3: 0"], ["2: 0 passed"], id="but where it was accepted"),
        pytest.param([(1, 2_000)], ["2: 4000", "3: 1999"], ["3: 1999"], id="what waits beside it is a measure"),
        pytest.param([(1, 2_000), (2, 2_000)], ["2: -1001"], ["2: -1001"], id="a correction that takes half"),
        pytest.param([(1, 2_000), (2, 300)], ["2: -100"], [], id="a correction of what is small already"),
        pytest.param([(1, 2_000), (2, 300)], ["2: +1"], [], id="a correction that adds"),
        pytest.param([(1, 2_000), (2, 300)], ["2: -300"], ["2: -300"], id="a correction that leaves none"),
        pytest.param([(1, 2_000)], ["2: 0", "2: +1500 now"], [], id="mended before it is sealed"),
        pytest.param([(1, 2_000)], ["2: 0", "2: +1500"], ["2: 0"], id="mended when it is"),
        pytest.param([(1, 2_000)], ["2: 0", "2: +5 now"], ["2: 0", "2: +5 now"], id="mended, and still short"),
        pytest.param(
            [(1, 2_000), (2, 300)], ["2: gone", "3: 900"], ["3: 900"], id="one that is withdrawn is no measure"
        ),
        pytest.param([(2, 300)], ["2: ?", "3: 0"], [], id="a correction of which nothing is recorded"),
    ],
)
def test_what_is_short(drained: list[tuple[int, int]], pending: list[str], short: list[str]) -> None:
    known = [SnapshotRows(*each) for each in drained]
    found = compared(map(snapshot, pending), lambda one: one.batch.endswith("passed"), known, 0.5)
    assert [name for name in pending if name in found and found[name].is_short] == short
    off = compared(map(snapshot, pending), lambda one: False, known, 0)
    assert not any(each.is_short for each in off.values()), "0 switches it off"


@pytest.mark.parametrize(
    ("before", "share", "least"),
    [
        (None, 0.5, None),
        (0, 0.5, None),
        (5, 0, None),
        (5, 1, 1),
        (1_000, 1, 1_000),
        (10_000, 0.07, 700),
        (1_001, 0.1, 101),
    ],
)
def test_the_least_rows_are_exactly_the_share(before: int | None, share: float, least: int | None) -> None:
    assert least_rows(before, share) == least


@pytest.mark.parametrize(
    ("known", "learned", "since", "then"),
    [
        ([], ["3: 5"], 0, [(3, 5)]),
        ([(1, 9)], ["3: 5"], 4, [(3, 5)]),
        ([(1, 9), (2, 8)], ["3: 5"], 3, [(2, 8), (3, 5)]),
        ([(1, 9), (3, 8)], ["2: 5"], 0, [(1, 9), (2, 5), (3, 8)]),
        ([(1, 9), (3, 8)], ["1: -2", "3: gone"], 0, [(1, 7)]),
        ([(1, 9), (3, 8)], ["3: ?", "2: +1"], 0, [(1, 9)]),
        (
            [(at, at) for at in range(90)],
            ["90: 5"],
            0,
            [*((at, at) for at in range(91 - MOST_REMEMBERED, 90)), (90, 5)],
        ),
    ],
)
def test_what_a_state_remembers(
    known: list[tuple[int, int]], learned: list[str], since: int, then: list[tuple[int, int]]
) -> None:
    found = rows_remembered([SnapshotRows(*each) for each in known], map(snapshot, learned), since)
    assert [(each.time, each.rows) for each in found] == then
