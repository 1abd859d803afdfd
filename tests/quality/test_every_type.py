"""Gates of collections with every type of column: what they say of rows that break an expectation, and what is kept."""

from __future__ import annotations

import json
from base64 import b64encode
from dataclasses import replace
from datetime import date, datetime
from pathlib import Path
from typing import Any

import pytest

from support.budget import budget
from support.typed import CASES, GOOD, Typed, TypedWorld, as_answered
from support.world import certify
from tidemark.airflow.web.gates import Shown, gate_page
from tidemark.errors import GateFailed
from tidemark.jobs.steps.gate import gate
from tidemark.model.change import Redefined
from tidemark.model.collection import ColumnType, DecimalType, Envelope, Gate, ValueType
from tidemark.quality.results import Results
from tidemark.storage.stores.private import open_private

pytestmark = pytest.mark.quality
IN_SET, NOT_NULL = "expect_column_values_to_be_in_set", "expect_column_values_to_not_be_null"
SHOWN = [case for case in CASES if case.envelope is not Envelope.UPDATES]


@pytest.fixture(autouse=True)
def docs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TIDEMARK_DOCS", str(tmp_path / "docs"))
    return tmp_path / "docs"


def constant(value: Any, of: ValueType) -> Any:
    """A value as an expectation has it."""
    if isinstance(value, bytes):
        return b64encode(value).decode()
    if isinstance(value, date | datetime):
        return value.isoformat()
    return str(as_answered(value, of)) if of is ColumnType.JSON or isinstance(of, DecimalType) else value


@pytest.mark.parametrize("case", SHOWN[:: budget(ci=3, deep=1)], ids=str)
def test_a_gate_that_fails_shows_rows_of_every_type(tmp_path: Path, docs: Path, case: Typed) -> None:
    world = TypedWorld(tmp_path, case)
    name = "k" if case.role == "key" else "v"
    first, second = GOOD[case.of]
    asked: list[Any] = [{IN_SET: {"column": name, "value_set": [constant(first, case.of)]}}]
    asked += [{NOT_NULL: {"column": name}}]
    log = world.log()
    log.commit(log.load(), Redefined(replace(world.collection, quality=tuple(json.dumps(one) for one in asked))))
    world.put(0, "a", case.rows())
    world.ingested()
    with pytest.raises(GateFailed, match=IN_SET) as failed:
        gate(world.job(), Gate.UNSEALED)
    assert "\n" not in str(failed.value)
    results = Results(open_private(str(docs)))
    names = list(results.names("tides", "unsealed"))
    kept = results.load("tides", "unsealed", names[0])
    assert kept is not None
    assert IN_SET in gate_page(Shown("tides", "unsealed", names, names[0], kept), world.state).html
    failures = {one["rule"]: one["rows"] for one in kept["results"] if not one["passed"]}
    assert [row["k"] for row in failures.pop(f"{IN_SET}({name})")] == [_shown(case, 1)]
    nothing = failures.pop(f"{NOT_NULL}({name})", None)
    assert nothing is None if case.role == "key" else [row["k"] for row in nothing] == [2]
    assert not failures
    assert second != first
    assert certify(world.job(), Gate.UNSEALED)
    world.moved()


def _shown(case: Typed, number: int) -> Any:
    key = case.row(number)["k"]
    if isinstance(key, bytes):
        return b64encode(key).decode()
    if isinstance(key, datetime):
        return key.isoformat().replace("+00:00", "Z")
    return str(as_answered(key, case.of)) if not isinstance(key, bool | int) else key
