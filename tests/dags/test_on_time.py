"""Intervals that are overdue, and runs that never began, are named by maintenance."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from airflow.sdk import DAG
from airflow.sdk.exceptions import AirflowFailException

from tests.dags.support import parsed
from tidemark.airflow import maintenance_dag, on_time
from tidemark.airflow.location import location_of
from tidemark.airflow.on_time import OnTimeOperator, overdue_seals, without_runs
from tidemark.jobs import app
from tidemark.model.instant import format_instant, parse_instant

NOON = parse_instant("2024-01-03T12:00:00Z")


def ingest(file: Path, day: int) -> None:
    """Read an empty day, and seal it."""
    location = location_of(file)
    location.declare()
    landing = file.parent / "landing"
    (landing / "orders" / f"2024-01-0{day}").mkdir(parents=True, exist_ok=True)
    argv = ["--root", location.store_root, "--collection", location.name]
    bounds = ["--lower", f"2024-01-0{day}T00:00:00Z", "--upper", f"2024-01-0{day + 1}T00:00:00Z"]
    app.without_spark("ingest", [*argv, "--landing", str(landing), *bounds])
    app.without_spark("seal", [*argv, *bounds])


def test_the_oldest_overdue_interval_of_each_collection_that_says_how_long(declared: Path) -> None:
    late = overdue_seals(NOON)[declared.stem]
    assert [format_instant(at)[:10] for at in (late.interval.lower, late.upto)] == ["2024-01-01", "2024-01-03"]
    ingest(declared, 1)
    assert overdue_seals(NOON)[declared.stem].interval.lower == parse_instant("2024-01-02")
    ingest(declared, 2)
    assert overdue_seals(NOON, of=declared.stem) == {}
    assert "orders" not in overdue_seals(NOON), "its file does not say when it is overdue"
    (declared.parent / "wrong.yaml").write_text("overdue: [")
    assert overdue_seals(NOON) == {}


def test_a_file_is_parsed_once_until_it_changes(declared: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    parsed: list[str] = []

    def counted(file: Path, **options: Any) -> Any:
        parsed.append(file.name)
        return location_of(file, **options)

    monkeypatch.setattr(on_time, "location_of", counted)
    for _ in range(3):
        assert set(overdue_seals(NOON)) == {declared.stem}
    assert parsed == [declared.name], "and those that do not say when they are overdue are not parsed at all"
    declared.write_text(declared.read_text().replace("overdue: 3h", "overdue: 3000d"))
    assert overdue_seals(NOON) == {}


def test_a_derived_collection_is_overdue_by_the_intervals_of_its_inputs(declared: Path) -> None:
    file = declared.with_name("totals.yaml")
    file.write_text(
        f"name: totals\nfrom: {declared.stem}\nselect: SELECT id FROM {declared.stem}\nkey: [id]\n"
        "airflow: {overdue: 1h}\n"
    )
    assert overdue_seals(NOON, of="totals") == {}, "nobody knows what it is computed from"
    ingest(declared, 1)
    late = overdue_seals(NOON)["totals"]
    assert (late.interval.lower, late.upto) == (parse_instant("2024-01-01"), parse_instant("2024-01-03"))
    assert late.since == parse_instant("2024-01-02T01:00:00Z"), "it has its own patience"


def states(dag: Any) -> dict[str, str]:
    done = dag.test(logical_date=datetime(2024, 2, 1, tzinfo=UTC))
    return {ti.task_id: str(ti.state) for ti in done.get_task_instances()}


@pytest.mark.timeout(300)
def test_the_dag_of_overdue_intervals_is_red_until_they_are_sealed(
    declared: Path, database: None, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(on_time.time, "time_ns", lambda: NOON * 1000)
    ingest(declared, 1)
    dag = maintenance_dag()["tidemark_overdue"]
    assert states(dag) == {"on_time": "failed"}
    late = f"{declared.stem}: [2024-01-02T00:00:00Z, 2024-01-03T00:00:00Z) is overdue by 9 hours"
    assert late in capfd.readouterr().out
    ingest(declared, 2)
    assert states(dag) == {"on_time": "success"}


def test_there_is_no_such_dag_where_no_file_says_when(collections: Path) -> None:
    assert set(maintenance_dag()) == {"tidemark_maintenance"}


def test_it_is_unpaused_and_explains_itself(declared: Path) -> None:
    dag = parsed().dags["tidemark_overdue"]
    assert dag.is_paused_upon_creation is False
    assert f"`{declared.stem}`" in dag.doc_md
    assert dag.get_task("on_time").doc_md


def test_an_interval_without_a_run_is_named(declared: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    location = location_of(declared)
    active = {"is_paused": False}
    have: set[Any] = set()
    monkeypatch.setattr(on_time, "_is_active", lambda dag_id: dag_id == declared.stem and not active["is_paused"])
    monkeypatch.setattr(on_time, "with_runs", lambda context, some, states, dag_id: have)
    assert without_runs({}, location, NOON) == [], "nobody has begun with it"
    ingest(declared, 1)
    (missing,) = without_runs({}, location, NOON)
    assert missing.lower == parse_instant("2024-01-02")
    assert without_runs({}, location, parse_instant("2024-01-03T00:59:00Z")) == [], "the scheduler has some time"
    with DAG("any", schedule=None):
        task = OnTimeOperator(collections=[declared])
    monkeypatch.setattr(on_time.time, "time_ns", lambda: NOON * 1000)
    sent: dict[str, int] = {}
    monkeypatch.setattr("airflow.sdk.observability.stats.gauge", lambda name, value: sent.update({name: value}))
    with pytest.raises(AirflowFailException, match=r"no run began for \[2024-01-02T00:00:00Z"):
        task.execute({})
    assert sent == {f"tidemark.overdue_seconds.{declared.stem}": 9 * 3600}
    have.add(missing)
    assert without_runs({}, location, NOON) == []
    have.clear()
    active["is_paused"] = True
    assert without_runs({}, location, NOON) == [], "somebody stopped it"


@pytest.mark.timeout(300)
def test_airflow_is_asked_which_runs_there_are(declared: Path, database: None) -> None:
    """`dag.test` answers as a worker's supervisor does."""
    from airflow.models.dag import DagModel
    from airflow.sdk import task
    from airflow.utils.session import create_session

    ingest(declared, 1)
    found: list[Any] = []
    dag = maintenance_dag()["tidemark_overdue"]
    with dag:

        @task
        def ask(**context: Any) -> None:
            found.append([format_instant(one.lower)[:10] for one in without_runs(context, location_of(declared), NOON)])

        ask()
    assert states(dag)["ask"] == "success"
    with create_session() as session:
        model = session.get(DagModel, declared.stem)
        assert model is not None
        model.is_paused = False
    assert states(dag)["ask"] == "success"
    assert found == [[], ["2024-01-02"]], "paused, then not"
