"""Functions that a collection file names: tasks behind `published`, handed what it published."""

from __future__ import annotations

import sys
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import pytest

from tests.dags.support import ORDERS
from tests.dags.test_bad_day import GREEN, Days
from tidemark.airflow import check_collection_files, tidemark_dag
from tidemark.airflow.handed import FORMS
from tidemark.config.airflow import OWN_TASKS, TaskSection
from tidemark.errors import InvalidUsage
from tidemark.jobs.steps.declared import STEPS
from tidemark.jobs.steps.step import When

pytestmark = pytest.mark.timeout(300)

REPORTS = """\
SEEN = []


def refresh(changes):
    SEEN.append(("refresh", [(row["id"], row["diff"]) for row in changes.to_pylist()]))
    return changes.num_rows


def whole(frame):
    SEEN.append(("whole", sorted(frame["id"])))


def nothing():
    pass
"""


@pytest.fixture
def reports(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A module of a user's functions, by a name of its own."""
    name = f"reports_{uuid.uuid4().hex[:8]}"
    (tmp_path / f"{name}.py").write_text(REPORTS)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("TIDEMARK_FUNCTIONS", str(tmp_path))
    yield name
    sys.modules.pop(name, None)


def test_they_are_handed_what_their_run_published(days: Days, reports: str) -> None:
    whole = f'{{call: {reports}:whole, name: all_of_it, hands: as_of, form: pandas, where: "id > 1"}}'
    text = days.file.read_text() + f"airflow: {{after: {{seal: [{reports}:refresh, {whole}]}}}}\n"
    days.file.write_text(text)
    dag = tidemark_dag(days.file)
    assert reports not in sys.modules, "no parse imports it"
    assert dag.get_task("published").downstream_task_ids == {"refresh", "all_of_it"}
    assert f"`{reports}:refresh`" in dag.get_task("refresh").doc_md
    days.land(1)
    assert days.run(1) == ("success", GREEN | {"refresh": "success", "all_of_it": "success"})
    assert sorted(sys.modules[reports].SEEN) == [("refresh", [(1, 1)]), ("whole", [])]


def test_a_module_that_is_gone_fails_its_task_alone_in_one_line(days: Days, reports: str) -> None:
    days.file.write_text(days.file.read_text() + f"airflow: {{after: {{seal: {reports}_x:refresh}}}}\n")
    days.land(1)
    assert days.run(1) == ("failed", GREEN | {"refresh": "failed"})
    assert f"InvalidUsage: {reports}_x:refresh: Airflow finds no module {reports}_x" in days.logged()


@pytest.mark.parametrize(
    ("after", "message"),
    [
        ("{seal: MODULE:nothing}", "nothing() cannot be called: too many positional arguments"),
        ("{seal: [MODULE:refresh, MODULE:refrsh]}", "has no refrsh; did you mean 'refresh'?"),
    ],
)
def test_a_wrong_function_is_one_line(collections: Path, reports: str, after: str, message: str) -> None:
    (collections / "orders.yaml").write_text(f"{ORDERS}airflow: {{after: {after.replace('MODULE', reports)}}}\n")
    with pytest.raises(InvalidUsage) as caught:
        check_collection_files(collections)
    assert message in str(caught.value)
    assert "airflow.after.seal: " in str(caught.value)


def test_what_the_section_says_is_what_there_is() -> None:
    assert set(get_args(TaskSection.model_fields["form"].annotation)) == set(FORMS)
    of_runs = [step for step in STEPS.values() if step.when is When.EACH_RUN]
    names = [name for step in of_runs for name in (step.name, f"gate_{step.gate}")]
    assert all(OWN_TASKS.fullmatch(name) for name in (*names, "published"))
