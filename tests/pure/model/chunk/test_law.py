"""The pruning law never leaves out a chunk that an answer needs, and leaves out most of those that it does not."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.pure.model.chunk.pruning import answer, case, exact
from tidemark.model.chunk import law
from tidemark.model.chunk.bounds import NO_VALUE, Bounds
from tidemark.model.chunk.law import Span

pytestmark = pytest.mark.pure
CASES = 2_000


def test_answers_are_exact_without_the_chunks_left_out() -> None:
    wrong = [seed for seed in range(CASES) if not exact(case(seed))]
    assert wrong == []


def test_cases_leave_out_chunks_and_have_answers() -> None:
    """What the test above cannot say: that something was left out, and that something was asked for."""
    found: Counter[str] = Counter()
    for one in map(case, range(CASES)):
        found["chunks"] += len(one.chunks)
        found["taken"] += len(one.taken)
        found["answers"] += bool(answer(one.taken, one))
    assert found["taken"] < found["chunks"] * 2 / 3
    assert found["answers"] > CASES / 8


@pytest.mark.parametrize("name", ["meets_times", "meets_spans", "meets_keys"])
def test_a_law_that_leaves_out_too_much_is_found(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Each of its parts, wrong in every fifth chunk it takes, gives wrong answers: so the cases look at all of them."""
    right, asked = getattr(law, name), Counter[str]()

    def wrong(*given: object) -> bool:
        asked[name] += 1
        return bool(right(*given)) and asked[name] % 5 != 0

    monkeypatch.setattr(law, name, wrong)
    assert not all(exact(case(seed)) for seed in range(CASES // 4))


@pytest.mark.parametrize(
    ("intervals", "bounds", "meets"),
    [
        *((((3, 5),), Bounds(5, 9), True), (((3, 5),), Bounds(6, 9), False), (((3, 5),), Bounds(1, 3), True)),
        *((((3, 5),), Bounds(1, 2), False), (((3, 5), (8, 9)), Bounds(6, 7), False)),
        *((((3, 5), (8, 9)), Bounds(6, 8), True), (((None, 5),), Bounds(-9, -8), True)),
        *((((3, None),), Bounds(99, 99), True), (((3, None),), Bounds(1, 2), False)),
        *((((None, None),), NO_VALUE, False), (((3, 5),), None, True), ((), Bounds(1, 2), False)),
        (((5, 3),), Bounds(6, 9), False),
    ],
)
def test_a_span_meets_bounds(intervals: tuple[law.Interval, ...], bounds: Bounds | None, meets: bool) -> None:
    assert Span(1, intervals).meets(bounds) is meets
