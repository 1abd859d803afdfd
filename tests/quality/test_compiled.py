"""The built-in rules are judged in plain Python exactly as Great Expectations judges them, or not at all."""

from __future__ import annotations

import random
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from tests.quality.support import DAY, World, collection, update
from tests.quality.test_suites import SOUND, failed
from tests.support.budget import budget
from tidemark.jobs.steps.gate import gate as run_gate
from tidemark.model.batch import Description
from tidemark.model.change import Sealed
from tidemark.model.collection import Gate
from tidemark.quality import compiled
from tidemark.quality.evaluate import evaluate_invariants
from tidemark.quality.evidence import Evidence, Row
from tidemark.quality.gates import GATES
from tidemark.quality.suites import Rule
from tidemark.quality.validation import Validator
from tidemark.quality.verdict import Verdict
from tidemark.quality.wording import python
from tidemark.storage.stores.local import LocalStore

pytestmark = pytest.mark.quality

EVIDENCES = budget(ci=60, deep=1_000)
MORE: Row = {
    "consumptions": 1,
    "rows_added": 3,
    "rows_added_recorded": 3,
    "rows_taken": 1,
    "rows_taken_recorded": 1,
    "keys_computed": 5,
    "rows_differing": 0,
    "first_differing": "",
    "snapshot_rows": 5,
    "snapshot_rows_before": 5,
    "snapshot_rows_least": 3,
    "min_share": 0.5,
}
"""Of derived collections and of full snapshots."""
NAN, INFINITY = float("nan"), float("inf")
NUMBERS = (0, 1, -1, 2, 0.0, 0.1, 0.2, 0.25, 5.0, 5, 1e-9, INFINITY, -INFINITY, 2**53, 2**53 + 1, float(2**53))
TEXTS = ("", "a", "b", "2024-01-01", "2024-01-01T00:00:00Z to 2024-01-02T00:00:00Z")
ODD = (2**63 - 1, -(2**63), 2**63, 2**80, True, False, b"a", (1,))
KINDS = (
    tuple(value for value in NUMBERS if isinstance(value, int)),
    NUMBERS,
    (None,),
    (*NUMBERS, None, NAN),
    (*TEXTS, None),
    (*NUMBERS, *TEXTS, *ODD, None, NAN),
)
"""What a figure may be exchanged for."""


def rules_of(gate: Gate) -> tuple[Rule, ...]:
    judgement = GATES[gate]
    return (*judgement.rules, *judgement.rules_of_derived, *judgement.rules_of_snapshots)


def random_evidence(rng: random.Random) -> Evidence:
    """Sound figures, of which a few are exchanged: mostly for others of their kind, some for anything."""
    gate = rng.choice(list(Gate))
    sound = SOUND[gate] | (MORE if gate is Gate.UNSEALED else {})
    rows = [sound | {"batch": f"b{at}"} for at in range(rng.choice((0, 1, 1, 1, 2, 3, 30)))]
    for _ in range(rng.choice((0, 1, 2, 10, 60)) if rows else 0):
        name = rng.choice([name for name in sound if name != "batch"])
        values = rng.choice(KINDS)
        for row in rng.choice((rows, [rng.choice(rows)])):
            row[name] = rng.choice(values)
    return Evidence(gate, tuple(rows))


def pure(value: Any) -> Any:
    """A value of a frame as Python's own; a null is a null."""
    if isinstance(value, tuple):
        return tuple(map(pure, value))
    return python(value.item() if hasattr(value, "item") else value)


def fields(verdict: Verdict) -> dict[str, Any]:
    """Every field, of its very type."""
    values = [pure(value) for value in verdict.values]
    return asdict(verdict) | {"values": repr(values), "positions": list(map(int, verdict.positions))}


def test_random_evidence_is_judged_as_great_expectations_judges_it() -> None:
    rng = random.Random(43)
    judged = {"passed": 0, "failed": 0, "left": 0}
    passing = 0
    for _ in range(EVIDENCES):
        evidence = random_evidence(rng)
        rules = rules_of(evidence.gate)
        verdicts = compiled.judge(rules, evidence)
        theirs = Validator(always_asks=True).judge_evidence(rules, evidence)
        for rule, ours, expected in zip(rules, verdicts, theirs, strict=True):
            judged["left" if ours is None else "passed" if ours.passed else "failed"] += 1
            assert ours is None or fields(ours) == fields(expected), (rule, evidence)
        if all(verdict is not None and verdict.passed for verdict in verdicts):
            passing += 1
            assert results(Validator(), evidence, rules) == results(Answered(theirs), evidence, rules)
    assert passing > EVIDENCES / 5, "of these nothing is asked of Great Expectations"
    assert judged["failed"] > EVIDENCES
    assert judged["left"] < judged["passed"] / 5


class Answered(Validator):
    """A validator that has asked already."""

    def __init__(self, verdicts: list[Verdict]) -> None:
        object.__setattr__(self, "verdicts", verdicts)

    def judge_evidence(self, rules: Sequence[Rule], evidence: Evidence) -> list[Verdict]:
        return self.verdicts


def results(validator: Validator, evidence: Evidence, rules: Sequence[Rule]) -> list[dict[str, Any]]:
    """What is kept of a gate."""
    return [asdict(one) for one in evaluate_invariants(validator, collection(), evidence, lambda *_: (), rules)]


def test_every_rule_of_every_gate_is_known() -> None:
    for gate, sound in SOUND.items():
        evidence = Evidence(gate, (sound | MORE,))
        verdicts = compiled.judge(rules_of(gate), evidence)
        assert [verdict is not None and verdict.passed for verdict in verdicts] == [True] * len(verdicts)


@pytest.mark.parametrize(
    ("expectation", "arguments"),
    [
        ("expect_column_values_to_not_be_null", {"column": "x"}),
        ("expect_column_values_to_be_null", {"column": "x", "mostly": 0.5}),
        ("expect_column_values_to_be_between", {"column": "x"}),
        ("expect_column_values_to_be_between", {"column": "x", "min_value": 2, "max_value": 1}),
        ("expect_column_values_to_be_between", {"column": "x", "max_value": 2, "strict_max": True}),
        ("expect_column_values_to_be_between", {"column": "x", "max_value": "2"}),
        ("expect_column_pair_values_to_be_equal", {"column_A": "x", "column_B": "x"}),
        ("expect_column_pair_values_to_be_equal", {"column_A": "x", "column_B": "x", "ignore_row_if": "both"}),
        (
            "expect_column_pair_values_a_to_be_greater_than_b",
            {"column_A": "x", "column_B": "x", "ignore_row_if": "neither"},
        ),
    ],
)
def test_what_is_not_known_is_asked_of_great_expectations(
    expectation: str, arguments: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    rule = Rule("new", expectation, arguments, "")
    evidence = Evidence(Gate.TRACE, ({"batch": "b", "x": 1},))
    assert compiled.judge([rule], evidence) == [None]
    wrong = Verdict(False, None, (), (), None, "asked")
    monkeypatch.setattr("tidemark.quality.validation._judged", lambda asked, frame: [wrong] * len(asked))
    assert Validator().judge_evidence([rule], evidence) == [wrong]


def test_of_evidence_that_fails_everything_is_asked_of_great_expectations(monkeypatch: pytest.MonkeyPatch) -> None:
    asked_rules: list[str] = []

    def judged(asked: Sequence[Any], frame: Any) -> list[Verdict]:
        asked_rules.extend(one.rule for one in asked)
        return [Verdict(True, 0, (), (), None, None, 1)] * len(asked)

    monkeypatch.setattr("tidemark.quality.validation._judged", judged)
    for gate, sound in SOUND.items():
        assert failed(gate, sound) == []
    assert asked_rules == []
    assert failed(Gate.TRACE, SOUND[Gate.TRACE] | {"rows": 4}) == [], "its verdicts are used"
    assert asked_rules == [rule.name for rule in GATES[Gate.TRACE].rules]


GATES_PASS = """
import sys
from tidemark.jobs.job import Job
from tidemark.jobs.in_process_runner import InProcess
from tidemark.jobs.steps.gate import gate as run_gate
from tidemark.model.change import Sealed
from tidemark.model.collection import Gate
from tidemark.storage.log.log import StateLog
from tidemark.storage.stores.local import LocalStore

for root, gates in (sys.argv[1], Gate), (sys.argv[2], [Gate.COMPACTION]):
    store = LocalStore(root)
    job = Job(store, StateLog(store, lambda: "writer"), lambda: InProcess(store), "attempt", str, lambda _: None)
    for each in gates:
        if each is Gate.FRONTIER:
            job.log.commit(job.log.load(), Sealed(*[2 * 86_400_000_000] * 3))
        print(each, run_gate(job, each)["outcome"])
print([name for name in ("great_expectations", "pandas", "pyspark") if name in sys.modules])
"""


def test_a_gate_that_passes_imports_neither_great_expectations_nor_pandas(tmp_path: Path) -> None:
    roots = [tmp_path / name / "orders" for name in ("a", "b")]
    for root in roots:
        world = World(collection(), store=LocalStore(str(root)))
        world.ingest(0, [update(1, time=5)])
        run_gate(world.job(), Gate.UNSEALED)
        world.commit(Sealed(DAY, DAY, DAY))
        run_gate(world.job(), Gate.FRONTIER)
        world.drain(Description(0, DAY), [update(1, time=5)])
        world.ingest(1, [update(2, time=DAY)])
    done = subprocess.run([sys.executable, "-c", GATES_PASS, *roots], capture_output=True, text=True, check=False)
    gates = ["unsealed", "frontier", "trace", "compaction"]
    outcomes = ["applied", "applied", "applied", "nothing to do", "applied"]
    said = [f"{gate} {outcome}" for gate, outcome in zip([*gates, "compaction"], outcomes, strict=True)]
    assert done.stdout.splitlines() == [*said, "[]"], done.stderr
