"""The gates' benchmark, small: it holds Great Expectations' verdicts against plain Python's."""

from __future__ import annotations

import pytest

from benchmarks.gates import _gates

pytestmark = pytest.mark.quality


def test_the_benchmark_judges_as_plain_python_does() -> None:
    measured = _gates(seed=1, days=2, forked=0)["gates"]
    assert {gate: found["checks"] for gate, found in measured.items()} == {"unsealed": 18, "frontier": 3, "trace": 19}
