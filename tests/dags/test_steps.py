"""Groups for DAGs of one's own, the arguments of a run, and where a gate runs."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.sdk import DAG
from airflow.sdk.exceptions import AirflowException, AirflowFailException, AirflowSkipException

from tidemark.airflow import (
    asset_of,
    compact_group,
    drain_group,
    ingest_group,
    location,
    seal_group,
    steps,
    tidemark_dag,
)
from tidemark.airflow.app_operator import AppOperator
from tidemark.errors import CommitUnknown, Contention, Corruption, GateFailed, InvalidUsage, NotReady
from tidemark.jobs import app
from tidemark.jobs.in_process_runner import InProcess
from tidemark.model.collection import Gate
from tidemark.model.ordering import newly_ordered

BOUNDS = {"lower": "2024-01-01T00:00:00Z", "upper": "2024-01-02T00:00:00Z"}
INTERVAL = ["--lower", BOUNDS["lower"], "--upper", BOUNDS["upper"]]


@pytest.fixture
def declared(collections: Path) -> location.Location:
    return location.location_of(collections / "orders.yaml")


@pytest.fixture
def ingested(declared: location.Location, locations: Path) -> location.Location:
    """One day of two rows, ingested here and now."""
    folder = locations / "landing" / "orders" / "2024-01-01"
    folder.mkdir(parents=True)
    (folder / "a.csv").write_text(
        "id,status,amount,happened_at\n1,open,1,2024-01-01T01:00:00Z\n2,paid,2,2024-01-01T02:00:00Z\n"
    )
    declared.declare()
    argv = [*common(declared), "--landing", str(locations / "landing")]
    job = declared.job()
    app.run("ingest", app.parser("ingest").parse_args(argv), lambda: InProcess(job.store))
    return declared


def common(of: location.Location) -> list[str]:
    return ["--root", of.store_root, "--collection", of.name, *INTERVAL]


def gate_args(of: location.Location, gate: Gate = Gate.UNSEALED) -> list[str]:
    return [*common(of), "--gate", str(gate)]


def test_groups_chain_in_a_dag_of_ones_own(collections: Path) -> None:
    file = collections / "orders.yaml"
    with DAG("own", schedule=None, start_date=datetime(2024, 1, 1)) as dag:  # noqa: DTZ001 airflow makes it UTC
        (
            ingest_group(file)
            >> seal_group(file, group_id="promise", retries=1)
            >> drain_group(file)
            >> compact_group(file)
        )
    edges = [f"{task.task_id} >> {next(iter(task.downstream_task_ids), '')}" for task in dag.topological_sort()]
    assert edges == [
        "ingest.ingest >> ingest.gate_unsealed",
        "ingest.gate_unsealed >> promise.seal",
        "promise.seal >> promise.gate_frontier",
        "promise.gate_frontier >> drain.drain",
        "drain.drain >> drain.gate_trace",
        "drain.gate_trace >> compact.compact",
        "compact.compact >> compact.gate_compaction",
        "compact.gate_compaction >> ",
    ]
    assert (dag.get_task("promise.seal").retries, dag.get_task("drain.drain").retries) == (1, 5)


def test_an_ingest_gets_the_interval_and_the_landing_of_its_run(declared: location.Location, locations: Path) -> None:
    ingest = tidemark_dag(declared).get_task("ingest")
    assert ingest.args_of_run({"params": BOUNDS}) == [*INTERVAL, "--not-over", "--landing", str(locations / "landing")]
    within = str(locations / "landing" / "mended")
    assert ingest.args_of_run({"params": BOUNDS | {"landing": within}})[-1] == within
    columns = ingest.args_of_run({"params": BOUNDS | {"columns": "channel,via"}})
    assert columns[-2:] == ["--columns", "channel,via"]
    assert app.parsed("ingest", [*ingest.fixed_args, *columns]).columns == ("channel", "via")


def test_a_run_may_not_read_wherever_it_likes(declared: location.Location) -> None:
    for landing in ("/etc", "s3://another/bucket"):
        with pytest.raises(AirflowFailException, match=r"param landing is .*, which is not within"):
            tidemark_dag(declared).get_task("ingest").execute({"params": BOUNDS | {"landing": landing}})


def test_a_collection_declared_in_python_is_created_by_its_ingest(declared: location.Location) -> None:
    ingest = tidemark_dag(declared.collection).get_task("ingest")
    assert "--file" not in ingest.fixed_args
    ingest.args_of_run({"params": BOUNDS})
    assert declared.job().log.load().state.collection == newly_ordered(declared.collection, None)


def test_a_run_without_an_interval_fails_and_is_not_retried(declared: location.Location) -> None:
    with pytest.raises(AirflowFailException, match="no data interval"):
        tidemark_dag(declared).get_task("seal").execute({"params": {}})


@pytest.mark.parametrize(
    ("lower", "upper", "said"),
    [
        ("2024-01-01T00:00:00Z", "2024-01-02T12:00:00Z", "write 2024-01-02T00:00:00Z or 2024-01-03T00:00:00Z"),
        ("2023-12-31T00:00:00Z", "2024-01-02T00:00:00Z", "outside orders, which starts at 2024-01-01T00:00:00Z"),
        ("2024-01-03T00:00:00Z", "2024-01-05T00:00:00Z", "trigger the run with params lower and upper in between"),
    ],
)
@pytest.mark.parametrize("task", ["ingest", "gate_unsealed", "seal", "drain", "compact"])
def test_an_interval_that_is_none_of_the_collection_is_refused_by_every_task(
    declared: location.Location, task: str, lower: str, upper: str, said: str
) -> None:
    with pytest.raises(AirflowFailException, match=said):
        tidemark_dag(declared).get_task(task).execute({"params": {"lower": lower, "upper": upper}})
    assert declared.job().log.newest_version() == 0


def test_events_that_complete_no_interval_skip_the_run(declared: location.Location) -> None:
    event = SimpleNamespace(extra={"lower": "2024-01-01T03:00:00Z", "upper": "2024-01-01T04:00:00Z"})
    run = {"params": {}, "triggering_asset_events": {asset_of("upstream"): [event]}}
    with pytest.raises(AirflowSkipException, match="completes no interval of orders yet"):
        tidemark_dag(declared).get_task("ingest").execute(run)
    event.extra["upper"] = "2024-01-03T01:00:00Z"
    args = tidemark_dag(declared).get_task("seal").args_of_run(run)
    assert args == ["--lower", "2024-01-01T00:00:00Z", "--upper", "2024-01-03T00:00:00Z"]


@pytest.mark.parametrize(
    ("error", "retried"),
    [
        (InvalidUsage, False),
        (GateFailed, False),
        (Corruption, False),
        (Contention, True),
        (NotReady, True),
        (CommitUnknown, True),
    ],
)
def test_only_what_a_retry_can_help_is_retried(error: Callable[[str], Any], retried: bool) -> None:
    failure = steps.task_failure(error("why"))
    assert isinstance(failure, AirflowException)
    assert isinstance(failure, AirflowFailException) is not retried
    assert "why" in str(failure)


def test_a_small_gate_needs_no_spark(ingested: location.Location) -> None:
    result = app.without_spark("gate", gate_args(ingested))
    assert result is not None
    assert result["outcome"] == "applied"
    state = ingested.job().log.load().state
    assert [state.is_certified(batch) for batch in state.unsealed] == [True]


def test_a_gate_looks_at_what_came_with_its_runs_interval(ingested: location.Location) -> None:
    task = tidemark_dag(ingested).get_task("gate_unsealed")
    assert task.args_of_run({"params": BOUNDS}) == INTERVAL
    argv = [*gate_args(ingested), "--lower", BOUNDS["upper"], "--upper", "2024-01-03T00:00:00Z"]
    result = app.without_spark("gate", argv)
    assert result is not None
    assert result["outcome"] == "nothing to do"
    assert not ingested.job().log.load().state.certificates


def test_a_large_gate_is_left_to_spark(ingested: location.Location, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TIDEMARK_SMALL_MEMORY", "0")
    assert app.without_spark("gate", gate_args(ingested)) is None


def test_a_gate_that_needs_a_session_is_left_to_spark(
    ingested: location.Location, monkeypatch: pytest.MonkeyPatch
) -> None:
    def asks(job: Any, runner: Any, *_: Any) -> Any:
        return runner.spark

    monkeypatch.setattr("tidemark.jobs.steps.gate.corrected_batches", asks)
    assert app.without_spark("gate", gate_args(ingested)) is None
    assert not any(ingested.job().log.load().state.certificates)


def test_a_gate_with_nothing_to_look_at_reads_nothing(ingested: location.Location) -> None:
    result = app.without_spark("gate", gate_args(ingested, Gate.TRACE))
    assert result is not None
    assert result["outcome"] == "nothing to do"


def test_what_a_task_starts_does_not_see_which_dag_it_was_to_parse(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("_AIRFLOW_PARSING_CONTEXT_DAG_ID", "orders")
    monkeypatch.setenv("_AIRFLOW_PARSING_CONTEXT_TASK_ID", "ingest")
    ask = "import os; print([name for name in os.environ if 'PARSING' in name])"

    class Asking(AppOperator):
        def _submit(self, context: Any, argv: list[str]) -> dict[str, Any]:
            return {"seen": subprocess.check_output([sys.executable, "-c", ask], text=True).strip()}

    context = {"ti": SimpleNamespace(run_id="r", task_id="ask", map_index=-1, try_number=1)}
    assert Asking(task_id="ask", app="seal", application="seal.py", launcher="submit").execute(context) == {
        "seen": "[]"
    }
    assert os.environ["_AIRFLOW_PARSING_CONTEXT_DAG_ID"] == "orders"  # Airflow's own, as it was
