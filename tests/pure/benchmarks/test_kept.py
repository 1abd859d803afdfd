"""Figures as they are kept, and reported again: what they are, on lines that can be read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.kept import SHORT, as_json
from benchmarks.report_windows import targets, windows

pytestmark = pytest.mark.pure
RESULTS = Path(__file__).parents[3] / "benchmarks" / "results"

COST = {"cpu_seconds_total": 2.0, "windows": 4, "seconds": 1.5, "bytes_stored": 2**20}
BUILT = [{"kind": "sessions", "rows": 9, "sensors": 2, "records": None, "engines": {"Tidemark": COST, "Spark": COST}}]
REFRESHED = {"of neighbours": COST | {"result": {"mode": "by_key", "rows_read": 9, "bytes_read": 90}}}
CASES = [
    {"kind": "sessions", "refresh": refresh, "subtracts": False, "built": COST, "refreshed": REFRESHED}
    for refresh in ("auto", "whole")
]
REFRESH = {"rows": 9, "sensors": 2, "changed": {"of neighbours": 1}, "cases": CASES}
LIFE = {"kind": "tumbling", "engine": "Tidemark", "days": 3, "rows": 9, "cpu_seconds": 1.0, "seconds": 1.0}
LIFE |= dict.fromkeys(("state_memory", "state_disk", "answer_bytes", "input_bytes", "lost", "late"), 0)
LIFE |= {"right": 5, "windows": 5, "none": 0}

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=300),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=60,
)


@given(JSON)
def test_what_is_kept_is_what_was_measured(figures: Any) -> None:
    assert json.loads(as_json({"figures": figures})) == {"figures": figures}


def test_what_is_short_stands_on_a_line_and_numbers_do() -> None:
    point = {"at": 1, "costs": {"driver": 0.5, "jvm": 0.0}}
    text = as_json({"points": [point] * 40, "numbers": list(range(900)), "note": "x" * SHORT})
    assert text.splitlines() == [
        "{",
        ' "points": [',
        *[f"  {json.dumps(point)},"] * 39,
        f"  {json.dumps(point)}",
        " ],",
        f' "numbers": {json.dumps(list(range(900)))},',
        f' "note": "{"x" * SHORT}"',
        "}",
    ]


def test_a_long_life_is_kept_so() -> None:
    """It had 19,203 lines with one for each of its figures."""
    text = (RESULTS / "2026-11-22-144107f3bb-longevity.json").read_text()
    assert text == as_json(json.loads(text))
    assert len(text.splitlines()) < 2_500


@pytest.mark.parametrize("lacking", [(), ("refresh",), ("streaming",), ("refresh", "streaming")])
def test_windows_that_were_measured_in_part_are_reported_as_far_as_they_were(lacking: tuple[str, ...]) -> None:
    whole = {"built": BUILT, "refresh": REFRESH, "streaming": [LIFE]}
    found = {name: part for name, part in whole.items() if name not in lacking}
    assert len(list(windows(found))) == len(found)
    reported = [what for what, *_ in targets(found)]
    assert any("1 % of" in what for what in reported) == ("refresh" in found)
    assert any("some late" in what for what in reported) == ("streaming" in found)
