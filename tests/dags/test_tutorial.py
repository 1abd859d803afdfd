"""The DAG file of the tutorial (docs/how-to/first-collection.md), as it stands there."""

from __future__ import annotations

import re
from typing import Any

import pyarrow as pa
import pytest

from tests.dags.support import PROJECT, parsed
from tidemark.airflow import asset_of

PAGE = (PROJECT / "docs" / "how-to" / "first-collection.md").read_text(encoding="utf-8")


def test_its_task_is_handed_what_is_different_and_says_it(
    collections: Any, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    ((name, text),) = re.findall(r"^`dags/(\w+)\.py`:\n\n```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    handed: dict[str, Any] = {}

    def with_changes(collection: str) -> Any:
        return lambda function: lambda: handed.update({collection: function})

    monkeypatch.setattr("tidemark.airflow.with_changes", with_changes)
    made: dict[str, Any] = {}
    exec(compile(text, f"{name}.py", "exec"), made)
    rows = {"_change_type": ["delete", "insert"], "store": ["Braga"] * 2, "day": ["2024-12-17"] * 2, "amount": [9, 8]}
    handed["sales_by_store"](pa.table(rows))
    assert capsys.readouterr().out.splitlines() == ["delete Braga 2024-12-17 9", "insert Braga 2024-12-17 8"]


def test_its_dag_waits_for_the_report(collections: Any) -> None:
    ((name, text),) = re.findall(r"^`dags/(\w+)\.py`:\n\n```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    folder = collections.parent / "dags"
    folder.mkdir()
    (folder / f"{name}.py").write_text(text, encoding="utf-8")
    bag = parsed(folder)
    assert bag.import_errors == {}
    dag = bag.dags[name]
    assert dag.task_ids == ["report"]
    assert list(dag.timetable.asset_condition.objects) == [asset_of("sales_by_store")]
