"""The vectors of windows, and that none of them passes with another expectation or with a word that is not known."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.conformance.runner import Case, cases, failure
from tests.conformance.test_vectors import VECTORS
from tests.conformance.windows import KINDS

pytestmark = pytest.mark.pure
WINDOWS = [case for path in sorted(VECTORS.glob("windows*.json")) for case in cases(path) if case.kind in KINDS]
TOLD = {
    *(
        "windows",
        "sessions",
        "stream_time",
        "starts",
        "emit",
        "late_side_output",
        "dropped",
        "dropped_records",
        "bounds",
    ),
    *("partially_late_records", "dropped_window_updates", "state_before", "state_after", "output_delta", "in_grace"),
    *("emitted_on_close", "readable_after_retention", "sessions_unmerged", "max", "avg", "expect", "all"),
}
"""What is expected stands at these, or below."""
OF_KAFKA = {"windows", "dropped_records", "partially_late_records", "dropped_window_updates", "in_grace"}
"""What is told by these is Kafka's, where lateness by windows gives something else."""


@pytest.mark.parametrize("case", WINDOWS, ids=lambda case: case.name)
def test_windows(case: Case):
    assert failure(case) is None


def places(value: Any, below: bool = False) -> Iterator[tuple[Any, Any]]:
    """Where each single expectation stands: in what, and under which name or number."""
    not_ours = isinstance(value, dict) and value.get("pure_window_lateness", {}).get("same_as_kafka") is False
    for name, member in value.items() if isinstance(value, dict) else enumerate(value):
        if not_ours and name in OF_KAFKA:
            continue
        told = below or name in TOLD
        if isinstance(member, dict | list) and (member or not told):
            yield from places(member, told)
        elif told:
            yield value, name


def other(value: Any) -> Any:
    """Another value of the same kind."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float):
        return value + 1
    return [["k", 99, 99, "9"]] if value == [] else f"{value} x"


@pytest.mark.parametrize("case", WINDOWS, ids=lambda case: case.name)
def test_no_other_expectation_passes(case: Case):
    content = json.loads(json.dumps(case.content))
    found = [] if str(content.get("expect", "")).startswith("error") else [*places(content)]
    for holder, name in found:
        kept = holder[name]
        holder[name] = {"all": "allowed", "expect": "error"}.get(name) or other(kept)
        assert failure(Case(case.file, case.kind, case.name, content)) is not None, f"{name}: {holder[name]}"
        holder[name] = kept
    if not found and "expect" in content:
        del content["expect"]
        assert failure(Case(case.file, case.kind, case.name, content)) is not None


@pytest.mark.parametrize("case", WINDOWS, ids=lambda case: case.name)
def test_a_field_that_is_not_known_is_named(case: Case):
    def objects(value: Any) -> Iterator[dict[str, Any]]:
        if isinstance(value, dict):
            yield value
        for member in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
            yield from objects(member)

    content = json.loads(json.dumps(case.content))
    for holder in [*objects(content)]:
        holder["sea_level"] = 1
        assert "field sea_level is not known" in (failure(Case(case.file, case.kind, case.name, content)) or ""), holder
        del holder["sea_level"]
