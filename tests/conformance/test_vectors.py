"""The vectors that are checked in, and that the runner can fail."""

from __future__ import annotations

import json
from pathlib import Path
from re import fullmatch
from typing import Any

import pytest

from tests.conformance.__main__ import main
from tests.conformance.codes import CODES
from tests.conformance.runner import Case, Counts, cases, failure, run
from tests.support.rules import Asked
from tidemark.model.invariants import Invariant

pytestmark = pytest.mark.pure
VECTORS = Path(__file__).parent / "vectors"
ARRANGEMENT = [case for path in sorted(VECTORS.glob("arrangement*.json")) for case in cases(path)]


@pytest.mark.parametrize("case", ARRANGEMENT, ids=lambda case: case.name)
def test_arrangement(case: Case):
    assert failure(case) is None


def test_every_case_of_every_file_is_counted():
    found = {path.name: len(list(cases(path))) for path in VECTORS.glob("*.json")}
    assert found == {
        "arrangement.json": 30,
        "arrangement_own.json": 5,
        "batching_own.json": 22,
        "chunks.json": 45,
        "chunks_own.json": 22,
        "correction.json": 30,
        "correction_own.json": 21,
        "windows.json": 54,
        "windows_own.json": 40,
    }


def test_a_case_of_a_kind_that_is_not_supported_fails():
    assert failure(Case("x.json", "engine", "a", {})) == "kind engine is not supported"


def altered(case: dict[str, Any]) -> list[dict[str, Any]]:
    """The case with one expectation after the other made wrong."""
    text = json.dumps(case)
    wrong = []
    expectations = [case, *case.get("steps", [])]
    for at, step in enumerate(expectations):
        if "expect" not in step:
            continue
        again = json.loads(text)
        (again if at == 0 else again["steps"][at - 1])["expect"] = _other(step["expect"])
        wrong.append(again)
    return wrong


def _other(expect: dict[str, Any]) -> dict[str, Any]:
    if expect == {"ok": True}:
        return {"error": {"code": "invalid_interval"}}
    if "error" in expect:
        return {"error": {"code": "another_rule"}} if "code" in expect["error"] else {"ok": True}
    if "merged" in expect:
        return {"merged": expect["merged"] | {"level": 9}}
    if "updates" in expect:
        return expect | {"since": 99}
    returned = expect["returns"]
    if isinstance(returned, dict):
        name = sorted(returned)[0]
        return {"returns": returned | {name: [["k", "v", 99, 99]]}}
    return {"returns": [["k", "v", 99, 99]]}


@pytest.mark.parametrize("case", ARRANGEMENT, ids=lambda case: case.name)
def test_no_wrong_expectation_passes(case: Case):
    wrong = altered(case.content)
    assert wrong
    for content in wrong:
        assert failure(Case(case.file, case.kind, case.name, content)) is not None


def test_the_values_of_an_error_are_compared():
    (case,) = (case for case in ARRANGEMENT if case.name == "cmp.since_behind_older")
    assert case.content["expect"]["error"]["input_since"] == 1
    wrong = json.loads(json.dumps(case.content))
    wrong["expect"]["error"]["input_since"] = 7
    assert "input_since" in (failure(Case(case.file, case.kind, case.name, wrong)) or "")


def test_no_code_tells_two_rules():
    """Except of what is the same said of two things: of an interval and a range to read, of a batch and the trace."""
    alike = [{Invariant.INTERVAL, Asked.RANGE}, {Invariant.TIMES_FROM_LOWER, Invariant.ABOVE_THE_TRACE}]
    codes = {code for case in ARRANGEMENT for code in _codes(case.content)}
    assert codes
    for code in codes:
        rules = {rule for rule, pattern in CODES.items() if fullmatch(pattern, code)}
        assert len(rules) == 1 or rules in alike, code


def _codes(value: Any) -> set[str]:
    if isinstance(value, list):
        return {code for each in value for code in _codes(each)}
    if not isinstance(value, dict):
        return set()
    own = {value["code"]} if isinstance(value.get("code"), str) else set()
    return own | {code for each in value.values() for code in _codes(each)}


def test_the_command_says_what_fails_and_counts(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    document = json.loads((VECTORS / "arrangement.json").read_text())
    document["cases"] = [case for case in document["cases"] if case["id"].startswith("val.")]
    (tmp_path / "arrangement.json").write_text(json.dumps(document))
    assert main([str(tmp_path)]) == 0
    assert capsys.readouterr().out == f"{len(document['cases'])} passed, 0 failed\n"
    document["cases"][0]["expect"] = {"error": {"code": "invalid_interval"}}
    document["cases"].append({"id": "new", "kind": "unheard_of"})
    (tmp_path / "arrangement.json").write_text(json.dumps(document))
    assert main([str(tmp_path)]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(":")[0] for line in lines[:-1]] == [
        f"arrangement.json {document['cases'][0]['id']}",
        "arrangement.json new",
    ]
    assert lines[-1] == f"{len(document['cases']) - 2} passed, 2 failed"
    assert run(tmp_path, lambda line: None) == Counts(len(document["cases"]) - 2, 2)


def test_nothing_to_run_is_a_wrong_call(tmp_path: Path):
    assert main([str(tmp_path)]) == main([]) == 2
