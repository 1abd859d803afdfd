"""Which reads of latest rows are of one key, and may stop once it is settled."""

from __future__ import annotations

import pytest

from tests.pure.arrow.samples import collection
from tidemark.model.collection import Column, ColumnType, Envelope
from tidemark.model.frontier import CompactionFunction
from tidemark.model.key import BEHIND_NULL, NULL, Bound
from tidemark.plan.latest import asks_one_key
from tidemark.plan.tasks import ALL_KEYS, KeyRange, ReadTask

pytestmark = pytest.mark.pure
LARGEST = 2**63 - 1


def task_of(keys: KeyRange, width: int = 1, ranges: tuple[KeyRange, ...] = ()) -> ReadTask:
    of = collection(Envelope.UPDATES, key=[Column(f"k{at}", ColumnType.INT) for at in range(width)])
    return ReadTask(of, keys, -1, 9, 9, CompactionFunction(), (), None, ranges=ranges)


@pytest.mark.parametrize(
    ("width", "lower", "upper", "is_one"),
    [
        *((1, (1,), (2,), True), (1, (1,), (3,), False), (1, (1,), None, False), (1, None, (1,), False)),
        *((1, ("a",), ("a\0",), True), (1, ("a",), ("b",), False), (1, (NULL,), (BEHIND_NULL,), True)),
        *((1, (BEHIND_NULL,), (0,), False), (1, (LARGEST,), None, False), (2, (1,), (2,), False)),
        *((2, (1, 5), (1, 6), True), (2, (1, NULL), (1, BEHIND_NULL), True), (2, (1, 5), (2, 5), False)),
    ],
)
def test_a_range_of_one_key(width: int, lower: Bound | None, upper: Bound | None, is_one: bool) -> None:
    assert asks_one_key(task_of(KeyRange(lower, upper), width)) is is_one


def test_all_keys_and_several_ranges_are_not_one() -> None:
    one = KeyRange((1,), (2,))
    assert not asks_one_key(task_of(ALL_KEYS))
    assert not asks_one_key(task_of(one, ranges=(one, one)))
