"""Every built-in rule fails when what it guards is broken, and only then."""

from __future__ import annotations

import pytest

from tests.quality.support import collection
from tidemark.model.collection import Gate
from tidemark.quality.evaluate import evaluate_invariants
from tidemark.quality.evidence import Evidence, Row
from tidemark.quality.gates import GATES
from tidemark.quality.report import RuleResult
from tidemark.quality.validation import Validator

pytestmark = pytest.mark.quality

STORED: Row = {
    "batch": "b1",
    "parts": 2,
    "parts_recorded": 2,
    "parts_altered": 0,
    "altered": None,
    "parts_with_other_columns": 0,
    "columns": "id",
    "columns_declared": "id",
    "parts_misbounded": 0,
    "misbounded": None,
    "rows": 5,
    "rows_recorded": 5,
    "digest": "00",
    "digest_recorded": "00",
    "null_keys": 0,
    "rows_out_of_order": 0,
}
UNSEALED = STORED | {
    "times": "a to b",
    "times_recorded": "a to b",
    "event_times": "a to b",
    "event_times_recorded": "a to b",
    "first_time": 5,
    "floor": 5,
    "late_share": None,
    "usual_rows": None,
    "volume": None,
    "rows_contributed": None,
    "rows_retracted": None,
    "rows_not_contributed": None,
    "corrected_share": None,
    "corrected_share_allowed": None,
    "corrected_share_undeclared": None,
}
RETRACTED = {"rows_contributed": 10, "rows_retracted": 2, "rows_not_contributed": 0, "corrected_share": 0.2}
"""Of a batch that corrects."""
FRONTIER: Row = {
    "batch": "",
    "seal": 6,
    "complete_below": 5,
    "floor": 5,
    "hole": None,
    "batches_below": 3,
    "batches_uncertified": 0,
    "uncertified": None,
}
TRACE = STORED | {
    "parts_overlapping": 0,
    "values_uncancelled": 0,
    "zero_diffs": 0,
    "rows_repeated": 0,
    "description": "[5][9][0]",
    "first_time": 5,
    "last_time": 8,
    "first_event_time": 0,
    "lower": 5,
    "earliest": 5,
    "latest": 8,
    "since": 0,
    "since_of_state": 0,
    "upper": 9,
    "seal": 9,
    "upper_of_older": 5,
    "level": 1,
    "level_of_older": 1,
}
COMPACTION = TRACE | {"cascades_due": 0, "live_batches": 3, "live_bound": 3}
SOUND = {Gate.UNSEALED: UNSEALED, Gate.FRONTIER: FRONTIER, Gate.TRACE: TRACE, Gate.COMPACTION: COMPACTION}

BROKEN: dict[Gate, dict[str, Row]] = {
    Gate.UNSEALED: {
        "parts unaltered": {"parts_altered": 1, "altered": "data/x.parquet"},
        "parts complete": {"parts": 1},
        "schema": {"parts_with_other_columns": 1},
        "bounds as recorded": {"parts_misbounded": 1, "misbounded": "data/x.parquet: row group 3"},
        "rows as recorded": {"rows": 4},
        "digest as recorded": {"digest": "01"},
        "no null keys": {"null_keys": 2},
        "sorted": {"rows_out_of_order": 1},
        "times as recorded": {"times": "a to c"},
        "event times as recorded": {"event_times": "a to c"},
        "above the trace": {"first_time": 4},
        "retracted rows were contributed": {"rows_not_contributed": 1, "rows_retracted": 2},
        "corrected share": {**RETRACTED, "corrected_share_allowed": 0.19},
        "corrected share, usual": {**RETRACTED, "corrected_share_undeclared": 0.2},
        "late share": {"late_share": 0.26},
        "volume": {"volume": 5.1, "usual_rows": 1.0},
    },
    Gate.FRONTIER: {
        "seal only advances": {"floor": 7},
        "no hole in what is complete": {"hole": "[1, 2)"},
        "batches certified": {"batches_uncertified": 1, "uncertified": "b9"},
    },
    Gate.TRACE: {
        "parts unaltered": {"parts_altered": 1, "altered": "data/x.parquet"},
        "parts complete": {"parts": 1},
        "schema": {"parts_with_other_columns": 1},
        "bounds as recorded": {"parts_misbounded": 1, "misbounded": "data/x.parquet: row group 3"},
        "rows as recorded": {"rows": 4},
        "digest as recorded": {"digest": "01"},
        "no null keys": {"null_keys": 2},
        "sorted": {"rows_out_of_order": 1},
        "parts disjoint": {"parts_overlapping": 1},
        "cancels as recorded": {"values_uncancelled": 1},
        "no zero diffs": {"zero_diffs": 1},
        "consolidated": {"rows_repeated": 1},
        "times from lower and since": {"first_time": 4},
        "times to upper or since": {"last_time": 9},
        "event times from since": {"since": 3, "since_of_state": 3, "first_event_time": 2},
        "since of the state": {"since": 3, "first_event_time": 3},
        "upper below the seal": {"seal": 8},
        "neighbours touch": {"upper_of_older": 4},
        "levels do not rise": {"level": 2},
    },
}
BROKEN[Gate.COMPACTION] = BROKEN[Gate.TRACE] | {
    "live batches": {"live_batches": 4},
    "no compaction due": {"cascades_due": 1, "live_bound": None},
}
CASES = [(gate, rule, broken) for gate, rules in BROKEN.items() for rule, broken in rules.items()]


def failed(gate: Gate, *rows: Row) -> list[RuleResult]:
    results = evaluate_invariants(
        Validator(), collection(), Evidence(gate, rows), lambda batch, clauses: ({"asked": str(clauses)},)
    )
    return [result for result in results if not result.passed]


def test_every_rule_has_a_case() -> None:
    assert {gate: [rule.name for rule in judgement.rules] for gate, judgement in GATES.items()} == {
        gate: list(rules) for gate, rules in BROKEN.items()
    }


@pytest.mark.parametrize(("gate", "rule", "broken"), CASES, ids=lambda value: value if isinstance(value, str) else "")
def test_a_rule_fails_for_the_broken_batch_alone(gate: Gate, rule: str, broken: Row) -> None:
    sound = SOUND[gate] | {"batch": "b0"}
    (result,) = failed(gate, sound, SOUND[gate] | broken)
    assert (result.rule, result.batch) == (rule, SOUND[gate]["batch"])
    assert all(str(value) in result.message for value in broken.values() if isinstance(value, str))


def test_the_query_for_offending_rows_follows_from_the_evidence() -> None:
    (nulls,) = failed(Gate.UNSEALED, UNSEALED | {"null_keys": 2})
    assert (nulls.failing, nulls.rows) == (2, ({"asked": "[(('id', 'null', None),)]"},))
    (early,) = failed(Gate.TRACE, TRACE | {"first_time": 4})
    assert early.rows == ({"asked": "[(('_time', '<', 5),)]"},)
