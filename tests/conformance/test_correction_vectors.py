"""The vectors of the correction buffer that are checked in, and that none of them passes with another expectation."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.conformance.runner import Case, cases, failure
from tests.conformance.test_vectors import VECTORS

pytestmark = pytest.mark.pure
CORRECTION = [case for path in sorted(VECTORS.glob("correction*.json")) for case in cases(path)]
EXPECTED = {"expect", "holds"}
"""What is expected stands at these, or below."""
ALL_ALIKE = 8
"""Of a longer list so many members are altered: the others are compared in the same way."""


@pytest.mark.parametrize("case", CORRECTION, ids=lambda case: case.name)
def test_correction(case: Case):
    assert failure(case) is None


def places(value: Any, below: bool = False) -> Iterator[tuple[Any, Any]]:
    """Where each single expectation stands: in what, and under which name or number."""
    named = value.items() if isinstance(value, dict) else enumerate(value)
    for number, (name, member) in enumerate(named):
        expected = below or name in EXPECTED
        if isinstance(member, dict | list):
            if number < ALL_ALIKE or not expected:
                yield from places(member, expected)
            if expected and member == []:
                yield value, name
        elif expected and number < ALL_ALIKE:
            yield value, name


def other(value: Any) -> Any:
    """Another value of the same kind."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return value + 1
    return [["k", 99, 99]] if value == [] else 7 if value is None else f"{value} x"


@pytest.mark.parametrize("case", CORRECTION, ids=lambda case: case.name)
def test_no_other_expectation_passes(case: Case):
    content = json.loads(json.dumps(case.content))
    for holder, name in list(places(content)):
        kept = holder[name]
        if isinstance(kept, str) and name in ("equals", "emitted_at_t"):
            continue  # said in words
        holder[name] = other(kept)
        assert failure(Case(case.file, case.kind, case.name, content)) is not None, f"{name}: {holder[name]}"
        holder[name] = kept


@pytest.mark.parametrize("where", ["case", "config", "step", "expect"])
@pytest.mark.parametrize("kind", ["correction", "bucket_chain"])
def test_a_field_that_is_not_known_is_named(where: str, kind: str):
    step = {"op": "layout" if kind == "correction" else "is_empty", "expect": {}}
    content: dict[str, Any] = {"id": "x", "kind": kind, "config": {}, "steps": [step], "note": "any", "adr": {}}
    case = Case("x.json", kind, "x", content)
    assert failure(case) is None
    {"case": content, "config": content["config"], "step": step, "expect": step["expect"]}[where]["sea_level"] = 1
    assert "field sea_level is not known" in (failure(case) or "")
