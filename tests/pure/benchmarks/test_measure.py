"""What the benchmarks measure is what they say it is."""

from __future__ import annotations

import pytest

from benchmarks.measure import apart
from tests.support.memory import peak_bytes

pytestmark = pytest.mark.pure

MIB = 2**20


def test_the_peak_of_a_process_started_by_a_large_one_is_its_own():
    held = bytearray(b"x") * (400 * MIB)  # every page written to
    assert peak_bytes() > len(held)
    assert apart(peak_bytes) < len(held) // 2
