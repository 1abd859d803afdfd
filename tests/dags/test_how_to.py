"""The DAG files of docs/how-to: Airflow parses them, and they have the stated shape. test_run.py runs them."""

from __future__ import annotations

import re
import shlex
from datetime import timedelta
from pathlib import Path
from textwrap import dedent
from typing import Any

import pyarrow as pa
import pytest
import yaml

from tests.dags import how_to
from tests.dags.support import PROJECT, parsed
from tidemark.airflow import asset_of, check_collection_files
from tidemark.airflow.calls import check_notifier
from tidemark.airflow.on_time import overdue_seals
from tidemark.model.instant import parse_instant


@pytest.fixture
def dags(locations: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    bag = parsed(how_to.project(locations, monkeypatch) / "dags")
    assert bag.import_errors == {}
    return bag.dags


def test_every_file_of_the_pages_makes_a_dag(dags: Any) -> None:
    assert {name.removesuffix(".py") for name, _ in how_to.files()} == set(dags)
    assert len(dags) >= 4


def test_tasks_stand_before_between_and_behind(dags: Any) -> None:
    def before(dag: str, task: str) -> set[str]:
        return set(dags[dag].get_task(task).upstream_task_ids)

    assert before("flights", "ingest") == {"room"}
    assert before("flights", "closed") == {"gate_unsealed"}
    assert before("flights", "seal") == {"gate_unsealed", "closed"}
    assert before("flights", "tell") == {"gate_trace"}
    assert before("flights", "count_by_status") == {"published"}
    assert before("flights_report", "flights_by_carrier") == {"wait_for_flights"}
    assert before("flights_in_parts", "checked_elsewhere") == {"first.gate_frontier"}
    assert before("flights_in_parts", "rest.drain") == {"checked_elsewhere"}
    assert before("flights_export", "export") == {"hold"}
    assert before("flights_export", "release_hold") == {"hold", "export"}


def test_what_the_pages_write_into_the_file_is_taken_and_its_functions_are_there(
    locations: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = how_to.project(locations, monkeypatch)
    assert set(how_to.section()) == {"overdue", "notify", "after", "partitions"}
    check_collection_files()
    assert set(overdue_seals(parse_instant("2013-01-05T04:00:00Z"))) == {"flights"}
    assert {file.name for file in (folder / "include").glob("*.py")} == {"my_alerts.py", "my_reports.py"}


def test_the_notifier_of_airflows_takes_what_the_page_gives_it() -> None:
    page = (PROJECT / "docs" / "how-to" / "tell-people.md").read_text(encoding="utf-8")
    (block,) = [one for one in re.findall(r"^```yaml\n(.*?)^```$", page, re.MULTILINE | re.DOTALL) if "Smtp" in one]
    (call,) = yaml.safe_load(block)["airflow"]["notify"]["failure"]
    check_notifier(call["call"], call["with"])


def test_a_run_of_a_partition_is_about_its_day(dags: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    day = dags["flights_daily"].get_task("day").python_callable
    monkeypatch.setitem(day.__globals__, "get_current_context", lambda: {"partition_key": "2013-01-02T00:00:00"})
    assert day() == "[2013-01-02T00:00:00Z, 2013-01-03T00:00:00Z)"


def test_the_same_dag_with_options_of_ones_own(locations: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = how_to.project(locations, monkeypatch) / "dags"
    for file in folder.iterdir():
        file.unlink()
    page = (PROJECT / "docs" / "how-to" / "own-dags.md").read_text(encoding="utf-8")
    shown = re.search(r"^    from datetime .*?tidemark_dag\(.*?$", page, re.MULTILINE | re.DOTALL)
    assert shown is not None
    (folder / "mine.py").write_text(dedent(shown[0]), encoding="utf-8")
    bag = parsed(folder)
    assert (set(bag.dags), bag.import_errors) == ({"flights"}, {})
    ingest = bag.dags["flights"].get_task("ingest")
    assert (ingest.retries, ingest.retry_delay) == (2, timedelta(minutes=5))


def test_every_backfill_that_a_page_shows_is_understood() -> None:
    from airflow.cli.cli_parser import get_parser

    pages = [PROJECT / "docs" / "README.md", *(PROJECT / "docs" / "how-to").glob("*.md")]
    shown = [
        line for page in pages for line in re.findall(r"`(?:tools/run )?airflow (backfill [^`]*)`", page.read_text())
    ]
    assert len(shown) >= 4
    for line in shown:
        asked = get_parser().parse_args(shlex.split(line.replace("…", "2013-01-01")))
        assert asked.from_date <= asked.to_date


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
