"""The optimum that write amplification is compared with, beside a search through every schedule of merges."""

from __future__ import annotations

from functools import cache

import pytest

from benchmarks.optimum import optimum

pytestmark = pytest.mark.pure


def searched(batches: int, runs: int, base: float) -> float:
    """The least any schedule writes that merges some youngest runs, or none, after each batch."""

    @cache
    def least(taken: int, alive: tuple[float, ...]) -> float:
        if taken == batches:
            return 0
        found = float("inf")
        for merged in range(1, len(alive) + 2):
            older, output = (*alive, 1.0)[: len(alive) + 1 - merged], sum((*alive, 1.0)[-merged:])
            if len(older) < runs:
                cost = 1 + (output if merged > 1 else 0)
                found = min(found, cost + least(taken + 1, (*older, output)))
        return found

    return least(0, (base,) if base else ())


@pytest.mark.parametrize("base", [0, 2, 5, 20])
@pytest.mark.parametrize(("batches", "runs"), [(1, 1), (6, 1), (8, 2), (9, 3), (9, 4)])
def test_no_schedule_writes_less_and_one_writes_as_little(batches: int, runs: int, base: float) -> None:
    assert optimum(batches, runs, base=base) == searched(batches, runs, base)


@pytest.mark.parametrize(
    ("batches", "runs", "at_once", "separately"), [(256, 4, 5.22, 5.79), (1024, 8, 4.31, 4.60), (4096, 12, 4.42, 4.62)]
)
def test_published_values(batches: int, runs: int, at_once: float, separately: float) -> None:
    assert round(optimum(batches, runs, flushed_separately=False) / batches, 2) == at_once
    assert round(optimum(batches, runs) / batches, 2) == separately
