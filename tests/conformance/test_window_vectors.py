"""The vectors of windows: that none of them passes with another expectation or with a word that is not known, and which
the law answers alone."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.conformance.__main__ import main
from tests.conformance.runner import Case, cases, failure, outcome
from tests.conformance.test_vectors import VECTORS
from tests.conformance.windows import KINDS

pytestmark = pytest.mark.pure
WINDOWS = [case for path in sorted(VECTORS.glob("windows*.json")) for case in cases(path) if case.kind in KINDS]
EXPECTED = {
    *(
        *("windows", "sessions", "stream_time", "starts", "emit", "late_side_output", "dropped", "dropped_records"),
        "bounds",
    ),
    *("partially_late_records", "dropped_window_updates", "state_before", "state_after", "output_delta", "in_grace"),
    *("emitted_on_close", "readable_after_retention", "sessions_unmerged", "max", "avg", "expect", "all"),
}
"""What is expected stands at these, or below."""
OF_KAFKA = {"windows", "dropped_records", "partially_late_records", "dropped_window_updates", "in_grace"}
"""What these state is Kafka's, where lateness by windows gives something else."""


@pytest.mark.parametrize("case", WINDOWS, ids=lambda case: case.name)
def test_windows(case: Case):
    assert failure(case) is None


def places(value: Any, below: bool = False) -> Iterator[tuple[Any, Any]]:
    """Where each single expectation stands: in what, and under which name or number."""
    not_ours = isinstance(value, dict) and value.get("pure_window_lateness", {}).get("same_as_kafka") is False
    for name, member in value.items() if isinstance(value, dict) else enumerate(value):
        if not_ours and name in OF_KAFKA:
            continue
        expected = below or name in EXPECTED
        if isinstance(member, dict | list) and (member or not expected):
            yield from places(member, expected)
        elif expected:
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


OTHERS: dict[str, tuple[str, dict[str, Any]]] = {
    "numbers": (
        "sliding",
        {
            "size": 10,
            "records": [{"key": 1, "value": 1.5, "time": 0}, {"key": 1, "value": 2.25, "time": 4}],
            "windows": [
                {"key": 1, "start": -10, "end": 0, "sum": 1.5, "count": 1, "values": [1.5]},
                {"key": 1, "start": -6, "end": 4, "sum": 3.75, "values": [1.5, 2.25]},
                {"key": 1, "start": 1, "end": 11, "values": [2.25]},
            ],
        },
    ),
    "no keys": (
        "session",
        {
            **{"gap": 5, "grace": 0, "records": [{"key": None, "value": "x", "time": 3}]},
            **{"sessions": [], "stream_time": None, "dropped_records": [0]},
        },
    ),
    "no records": ("tumbling", {"size": 10, "records": [], "windows": []}),
    "only more": (
        "retractions",
        {
            **{"kind": "cumulate", "max_size": 6, "step": 2, "updates": []},
            "then": [{"key": "k", "value": "1", "time": 3, "diff": 1}],
            "state_before": [],
            "state_after": [{"key": "k", "start": 0, "end": 4}, {"key": "k", "start": 0, "end": 6}],
        },
    ),
}
"""Cases that vectors may hold, too."""


@pytest.mark.parametrize("name", OTHERS)
def test_other_cases_are_answered_by_production(name: str):
    kind, content = OTHERS[name]
    found = outcome(Case("other.json", kind, name, content))
    assert (found.failure, found.computed, found.by_the_law) == (None, True, ())


TRIGGER = "no collection file declares a trigger"
PANES = "no collection file has a window tell only what it did not tell before"
CLAMPED = "no collection file says that aligned windows do not start below 0"
ORDER = "a late row counts or not by the order of rows of one interval, which production judges together"
RETENTION = "no collection file says for how long rows of open windows are kept"
REVIVED = "no collection file says that late rows revive sessions that are closed"
OWN = "no collection file says that a row is late by itself, whatever session would take it"
LAW_ONLY = {
    "count_2_accumulating": TRIGGER,
    "flink/count_4_purging": TRIGGER,
    "flink/continuous_3000": TRIGGER,
    "flink/session_count_4": TRIGGER,
    "own.count_0_refused": TRIGGER,
    "own.every_0_refused": TRIGGER,
    "flink/late_session_10_discarding": PANES,
    "flink/late_session_10000_discarding": PANES,
    "flink/lateness_discarding": PANES,
    "kafka/cogroup_hop_200": CLAMPED,
    "own.clamped_records": CLAMPED,
    "own.batches.update": "no collection file emits open windows, or closed ones again",
    "own.order_within_an_interval": ORDER,
    "own.batches.complete": "no collection file emits all windows again with each batch",
    "own.gap_of_each_record": "no collection file gives each record a gap of its own",
    "tumbling_negative": "production refuses rows that are there fewer times than none",
}
"""Cases that the law alone answers here, and why."""
IN_PART = {
    "own.retention.refused": RETENTION,
    "own.invalid": RETENTION,
    "own.revived_or_final": REVIVED,
    "own.batches_own_interval_judged": OWN,
}
"""Cases of which the law alone answers something, and production the rest."""


def test_no_other_case_is_answered_by_the_law_alone():
    files = [*VECTORS.glob("windows*.json"), *VECTORS.glob("batching*.json")]  # no others ask who answers
    found = {case.name: outcome(case) for path in files for case in cases(path)}
    reasons = {name: "; ".join(one.by_the_law) for name, one in found.items() if one.by_the_law}
    assert {name: why for name, why in reasons.items() if found[name].law_only} == LAW_ONLY
    assert {name: why for name, why in reasons.items() if not found[name].law_only} == IN_PART


def test_the_command_lists_and_counts_what_the_law_answers_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    triggers = {"triggers": json.loads((VECTORS / "windows.json").read_text())["triggers"]}
    (tmp_path / "windows.json").write_text(json.dumps(triggers))
    assert main([str(tmp_path)]) == 0
    assert capsys.readouterr().out.splitlines() == [
        f"windows.json flink/count_4_purging: law-only: {TRIGGER}",
        "1 law-only",
        f"{len(triggers['triggers'])} passed, 0 failed",
    ]
