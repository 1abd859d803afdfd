"""The optimum that write amplification is compared with, beside a search through every schedule of merges."""

from __future__ import annotations

import pytest

from benchmarks.optimum import optimum

pytestmark = pytest.mark.pure


@pytest.mark.parametrize(
    ("batches", "runs", "at_once", "separately"), [(256, 4, 5.22, 5.79), (1024, 8, 4.31, 4.60), (4096, 12, 4.42, 4.62)]
)
def test_published_values(batches: int, runs: int, at_once: float, separately: float) -> None:
    assert round(optimum(batches, runs, flushed_separately=False) / batches, 2) == at_once
    assert round(optimum(batches, runs) / batches, 2) == separately
