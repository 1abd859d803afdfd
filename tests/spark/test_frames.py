"""The laws as DataFrame expressions are the laws of model/update.py: thousands of random updates, many cases a job."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterable
from typing import Any

import pytest

from tidemark.model import update as law
from tidemark.model.frontier import EMPTY, CompactionFunction, Rung
from tidemark.model.update import Update

pytestmark = pytest.mark.spark

CASES = 150
SCHEMA = "case int, id long, word string, _time long, _event_time long, _diff long"
COLUMNS = ["case", "id", "word"]


def random_updates(chance: random.Random) -> list[Update]:
    """Few keys, values and times, so that everything meets; sums become zero; values may be null."""
    return [
        Update(
            (chance.randrange(3),),
            (chance.choice(["a", "b", None]),),
            chance.randrange(6),
            chance.randrange(6),
            chance.choice([-2, -1, 1, 1, 2, 2**62]) if chance.random() < 0.05 else chance.choice([-1, 1]),
        )
        for _ in range(chance.randrange(12))
    ]


@pytest.fixture(scope="module")
def cases() -> dict[int, list[Update]]:
    return {number: random_updates(random.Random(number)) for number in range(CASES)}


@pytest.fixture(scope="module")
def updates(spark: Any, cases: dict[int, list[Update]]) -> Any:
    """All cases in one frame: `case` stands where the first column of a key does."""
    rows = [(number, *u.key, *u.value, u.time, u.event_time, u.diff) for number, us in cases.items() for u in us]
    frame = spark.createDataFrame(rows, SCHEMA).repartition(3).cache()
    yield frame
    frame.unpersist()


def by_case(frame: Any, columns: Iterable[str]) -> dict[int, list[tuple[Any, ...]]]:
    found: dict[int, list[tuple[Any, ...]]] = defaultdict(list)
    for row in frame.select("case", *columns).collect():
        found[row[0]].append(tuple(row)[1:])
    return {case: sorted(rows, key=repr) for case, rows in found.items()}


def expected(cases: dict[int, list[Update]], law_of: Any) -> dict[int, list[tuple[Any, ...]]]:
    told = {case: sorted((tuple(row) for row in law_of(us)), key=repr) for case, us in cases.items()}
    return {case: rows for case, rows in told.items() if rows}


def flat(updates: Iterable[Update]) -> list[tuple[Any, ...]]:
    return [(*u.key, *u.value, u.time, u.event_time, u.diff) for u in updates]


UPDATE = ["id", "word", "_time", "_event_time", "_diff"]


@pytest.mark.parametrize(
    "function",
    [
        CompactionFunction(),
        CompactionFunction(3),
        CompactionFunction(9),
        CompactionFunction(EMPTY),
        CompactionFunction(4, (Rung(0, 2),)),
        CompactionFunction(5, (Rung(4, 1), Rung(2, 2))),
        CompactionFunction(8, (Rung(4, 2), Rung(0, 4))),
    ],
    ids=str,
)
def test_advance(updates: Any, cases: dict[int, list[Update]], function: CompactionFunction) -> None:
    from tidemark.spark import frames

    told = expected(cases, lambda us: flat(law.advance(us, function)))
    assert by_case(frames.advance(updates, function), UPDATE) == told


def test_consolidate(updates: Any, cases: dict[int, list[Update]]) -> None:
    from tidemark.spark import frames

    found = frames.consolidate(updates, [*COLUMNS, *frames.TIMES])
    told = expected(cases, lambda us: flat(law.consolidate(us)))
    assert by_case(found, UPDATE) == told
    assert any(len(told.get(case, [])) < len(us) for case, us in cases.items()), "nothing was summed: a weak sample"
    assert by_case(frames.consolidate(found, [*COLUMNS, *frames.TIMES]), UPDATE) == told, "it is not idempotent"


@pytest.mark.parametrize(("time", "event_time"), [(5, 5), (2, 5), (5, 2), (3, 1), (0, 0)])
def test_as_of(updates: Any, cases: dict[int, list[Update]], time: int, event_time: int) -> None:
    from tidemark.spark import frames

    found = frames.snapshot(updates, COLUMNS, time=time, event_time=event_time)
    told = expected(cases, lambda us: [(*k, *v, m) for k, v, m in law.as_of(us, time=time, event_time=event_time)])
    assert by_case(found, ["id", "word", "_multiplicity"]) == told


@pytest.mark.parametrize(("after", "upto"), [(-1, 5), (1, 3), (2, 2), (4, 5)])
def test_changes(updates: Any, cases: dict[int, list[Update]], after: int, upto: int) -> None:
    from tidemark.spark import frames

    found = frames.changes(updates, COLUMNS, after=after, upto=upto)
    assert by_case(found, UPDATE) == expected(cases, lambda us: flat(law.changes(us, after=after, upto=upto)))


@pytest.mark.parametrize(("after", "upto"), [(-1, 5), (1, 3), (4, 5)])
def test_net_changes_are_the_difference_of_two_snapshots(
    updates: Any, cases: dict[int, list[Update]], after: int, upto: int
) -> None:
    from tidemark.spark import frames

    def difference(us: list[Update]) -> list[tuple[Any, ...]]:
        sums: dict[Any, int] = defaultdict(int)
        for sign, time in ((-1, after), (1, upto)):
            for key, value, multiplicity in law.as_of(us, time=time, event_time=99):
                sums[*key, *value] += sign * multiplicity
        return [(*at, diff) for at, diff in sums.items() if diff]

    found = frames.net_changes(updates, COLUMNS, after=after, upto=upto)
    assert by_case(found, ["id", "word", "_diff"]) == expected(cases, difference)


def test_a_sum_beyond_a_long_is_refused_and_never_wraps(spark: Any) -> None:
    from pyspark.errors import ArithmeticException

    from tidemark.spark import frames

    rows = [(0, 1, "a", 1, 1, 2**62), (0, 1, "a", 1, 1, 2**62)]
    with pytest.raises(ArithmeticException, match="overflow"):
        frames.consolidate(spark.createDataFrame(rows, SCHEMA), [*COLUMNS, *frames.TIMES]).collect()
