"""Every command that shows rows, with every type of column."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from support.budget import budget
from support.typed import CASES, Typed, TypedWorld, as_answered
from support.world import interval
from tests.cli.conftest import CliRunner, InProcess, Settings, app
from tidemark.jobs.steps.seal import seal
from tidemark.model.collection import ColumnType, Envelope, Late

SHOWN = [case for case in CASES if case.envelope is not Envelope.UPDATES]


def said(world: TypedWorld, *words: str) -> str:
    answer = CliRunner().invoke(app, list(words), obj=Settings(runner=InProcess), env={"TIDEMARK_ROOT": world.root})
    assert answer.exit_code == 0, f"{words}: {answer.output} {answer.exception!r}"
    return answer.stdout


def document(world: TypedWorld, *words: str) -> Any:
    return json.loads(said(world, *words, "--json"))


@pytest.mark.parametrize("case", SHOWN[:: budget(ci=3, deep=1)], ids=str)
def test_what_is_shown_in_a_shell(tmp_path: Path, case: Typed) -> None:
    world = TypedWorld(tmp_path, case, late=Late("discard"))
    world.put(0, "a", case.rows())
    world.ingested()
    world.moved()
    world.put(1, "b", [case.row(1, 13, e=4), case.row(0, 14, e=14)])
    world.ingested(1)
    world.run(lambda job: seal(job, interval(1)))
    name = "k" if case.role == "key" else "v"
    for words in (["as-of", "tides"], ["changes", "tides"], ["late", "tides"], ["status", "tides"], ["log", "tides"]):
        assert said(world, *words)
        assert document(world, *words)
    rows = document(world, "as-of", "tides", "--time", "9")["rows"]
    assert len(rows) == len(case.numbers)
    for number, row in zip(case.numbers, sorted(rows, key=lambda row: _place(case, row)), strict=True):
        value = row[name]
        assert (value is None) == (case.row(number)[name] is None)
        if case.of in (ColumnType.STRING, ColumnType.JSON) or value is None:
            assert value == as_answered(case.row(number)[name], case.of)
        if value is not None and not (case.of is ColumnType.STRING and not value):
            text = str(value).lower() if isinstance(value, bool) else str(value)
            if case.of in (ColumnType.STRING, ColumnType.JSON):
                text = "'" + text.replace("'", "''") + "'"
            found = document(world, "as-of", "tides", "--time", "9", "--where", f"{name}={text}")["rows"]
            assert [one[name] for one in found] == [value]


def _place(case: Typed, row: dict[str, Any]) -> int:
    """The number of a row, by the column that is of no type in question."""
    return int(row["k"]) if case.role == "value" else int(row["v"].removeprefix("v"))
