"""The vectors of batching windows, and that their adapter can fail."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.conformance import batching, cuts

KINDS = {**batching.KINDS, **cuts.KINDS}
pytestmark = pytest.mark.pure
WINDOWS = json.loads((Path(__file__).parent / "vectors" / "windows.json").read_text())
OWN = json.loads((Path(__file__).parent / "vectors" / "batching_own.json").read_text())
CASES = [(kind, case) for file in (WINDOWS, OWN) for kind in KINDS for case in file.get(kind, [])]


@pytest.mark.parametrize(("kind", "case"), CASES, ids=lambda value: value["id"] if isinstance(value, dict) else value)
def test_batching(kind: str, case: dict[str, Any]):
    KINDS[kind](case)


def changed(value: Any) -> Any:
    """Another number, word or list."""
    if isinstance(value, dict):
        return {name: changed(member) for name, member in value.items()}
    if isinstance(value, list):
        return [*value, 1]
    return 12345 if isinstance(value, int | float) and not isinstance(value, bool) else "other" if value else 12345


def wrong(case: Any) -> list[Any]:
    """The case with one expectation after the other made wrong."""
    if isinstance(case, list):
        return [[*case[:at], other, *case[at + 1 :]] for at, each in enumerate(case) for other in wrong(each)]
    if not isinstance(case, dict):
        return []
    expected = (
        "correct",
        "seconds",
        "emit",
        "floor_bucket",
        "sum",
        "true_total",
        "used_correct",
        "levels",
        "expect",
        "cut",
        "rows",
        "open",
    )
    own = [{**case, name: changed(case[name])} for name in expected if name in case]
    return own + [{**case, name: other} for name in ("cases", "script", "steps") for other in wrong(case.get(name))]


@pytest.mark.parametrize(("kind", "case"), CASES, ids=lambda value: value["id"] if isinstance(value, dict) else value)
def test_no_wrong_expectation_passes(kind: str, case: dict[str, Any]):
    altered = wrong(case)
    assert altered
    for other in altered:
        if other.get("correct") == "other" and case["correct"] == "needed":
            continue  # any word that is not `no change` says so
        with pytest.raises((AssertionError, TypeError, KeyError)):
            KINDS[kind](other)


def test_a_field_that_is_not_known_fails_by_its_name():
    for kind, case in CASES:
        with pytest.raises(AssertionError, match="unheard_of"):
            KINDS[kind]({**case, "unheard_of": 1})
        steps = [step for step in case.get("steps", []) if isinstance(step, dict)]
        for step in steps:
            with pytest.raises(AssertionError, match="unheard_of"):
                KINDS[kind]({**case, "steps": [{**step, "unheard_of": 1}]})
