"""The DAG files of docs/how-to: Airflow parses them, and they have the shape that is told. test_run.py runs them."""

from __future__ import annotations

import re
import shlex
from datetime import timedelta
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from tests.dags import how_to
from tests.dags.support import PROJECT, parsed


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
    assert before("flights_export", "export") == {"hold"}
    assert before("flights_export", "release_hold") == {"hold", "export"}


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

    pages = [PROJECT / "README.md", *(PROJECT / "docs" / "how-to").glob("*.md")]
    shown = [
        line for page in pages for line in re.findall(r"`(?:tools/run )?airflow (backfill [^`]*)`", page.read_text())
    ]
    assert len(shown) >= 4
    for line in shown:
        asked = get_parser().parse_args(shlex.split(line.replace("…", "2013-01-01")))
        assert asked.from_date <= asked.to_date
