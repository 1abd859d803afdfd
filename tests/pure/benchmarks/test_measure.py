"""What the benchmarks measure is what they say it is."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.measure import TICKS, in_fresh_process, thread_seconds
from tests.support.measured import Measure
from tests.support.memory import peak_bytes

pytestmark = pytest.mark.pure

MIB = 2**20


@pytest.mark.measured
def test_the_peak_of_a_process_started_by_a_large_one_is_its_own(measure: Measure):
    large = bytearray(b"x") * (400 * MIB)  # every page written to
    assert peak_bytes() > len(large)
    measure.below("the child's peak", in_fresh_process(peak_bytes) / MIB, len(large) // 2 / MIB, "MiB")


@pytest.mark.parametrize(
    ("name", "seconds"), [("C2 CompilerThre", 7.5), ("C1 CompilerThre", 7.5), ("GC Thread#0", 0.0), ("a) (b) 1 2", 0.0)]
)
def test_the_compilers_of_a_jvm_are_distinguished_from_its_other_threads(tmp_path: Path, name: str, seconds: float):
    user, system = 5 * TICKS, 5 * TICKS // 2
    stat = tmp_path / "stat"
    stat.write_text(f"77 ({name}) S 1 77 77 0 -1 4194368 120 0 0 0 {user} {system} 0 0 20 0 35 0 1234 5 6")
    assert thread_seconds(stat) == seconds
    assert thread_seconds(tmp_path / "ended" / "stat") == 0
