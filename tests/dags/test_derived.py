"""The DAG of a derived collection: what starts it, what it is made of, and what its runs are about."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pendulum
import pytest
from airflow.sdk import Asset
from airflow.sdk.exceptions import AirflowFailException, AirflowSkipException

from tests.dags.support import ORDERS, parsed
from tests.dags.test_parse import CHAIN, shape
from tests.dags.test_schedule import serialized, text_of
from tests.support.graph import Graph
from tidemark.airflow.window import span_of, until_of
from tidemark.errors import InvalidUsage
from tidemark.model.instant import MAX_TIME, parse_instant
from tidemark.model.interval import Interval

TOTALS = """\
name: totals
from: [orders, refunds]
select: |
  SELECT status, sum(amount) AS amount FROM (SELECT * FROM orders UNION ALL SELECT * FROM refunds) GROUP BY ALL
key: [status]
"""
"""Computed from two collections."""


@pytest.fixture
def derived(collections: Path) -> Path:
    """The folder of collection files, with `refunds`, and `totals` of both."""
    (collections / "refunds.yaml").write_text(ORDERS.replace("orders", "refunds"))
    (collections / "totals.yaml").write_text(TOTALS)
    return collections


@pytest.fixture
def dag(derived: Path) -> Any:
    return parsed().dags["totals"]


def test_its_dag_is_the_same_chain_with_correct_for_ingest(dag: Any) -> None:
    assert shape(dag) == CHAIN.replace("ingest", "correct")


def test_any_of_the_events_its_inputs_emit_starts_it(derived: Path) -> None:
    dags = parsed().dags
    condition = serialized(dags["totals"]).timetable.asset_condition.as_expression()
    emitted = [serialized(dags[name]).get_task("published").outlets[0] for name in ("orders", "refunds")]
    assert [one["asset"]["name"] for one in condition["any"]] == ["orders", "refunds"]
    assert [one["asset"]["uri"] for one in condition["any"]] == [asset.uri for asset in emitted]
    assert dags["totals"].max_active_runs == 1


def test_the_scheduler_never_starts_it_by_the_clock(dag: Any) -> None:
    scheduler = serialized(dag)
    assert (
        scheduler.timetable.next_dagrun_info(last_automated_data_interval=None, restriction=scheduler._time_restriction)
        is None
    )
    assert scheduler.next_dagrun_info(last_automated_run_info=None) is None


def test_its_timetable_survives_the_scheduler_and_equals_itself(derived: Path) -> None:
    first = parsed().dags["totals"].timetable
    again = serialized(parsed().dags["totals"]).timetable
    assert type(again) is type(first)
    assert again == first
    assert hash(again) == hash(first)
    (derived / "totals.yaml").write_text(
        TOTALS.replace(", refunds", "").replace(" UNION ALL SELECT * FROM refunds", "")
    )
    assert parsed().dags["totals"].timetable != again


def test_its_page_shows_inputs_definition_and_ways_out(dag: Any) -> None:
    for part in (
        "`orders`, `refunds`",
        "```sql\nSELECT status, sum(amount) AS amount FROM (",
        "`status`",
        "tidemark explain totals",
        "tidemark quarantine totals BATCH",
        "### When a gate asks or fails",
    ):
        assert part in dag.doc_md
    assert sorted(dag.tags) == ["derived", "tidemark"]
    assert all(task.doc_md for task in dag.tasks)
    assert set(dag.params) == {"until", "whole", "check"}


def test_the_page_of_windows_says_what_they_are(derived: Path) -> None:
    (derived / "orders.yaml").write_text(
        ORDERS.replace("[status, amount]", "[status, amount, at]").replace(
            "amount: int,", "amount: int, at: timestamp,"
        )
    )
    (derived / "totals.yaml").write_text(
        "name: totals\nfrom: orders\nwindows: {by: status, on: at, hopping: {size: 1h, every: 10m}, grace: 5m}\n"
        "aggregates: {n: count, most: {max: amount, where: amount > 1}}\n"
    )
    page = parsed().dags["totals"].doc_md
    for part in (
        "hopping windows of 1h every 10m on at, for each status",
        "a row changes at most 6 windows",
        "from 5m after its end on",
        "`status`, `window_start`, `window_end`",
        "| `most` | max of `amount` where `amount > 1` |",
    ):
        assert part in page


def test_a_dag_of_your_own_may_make_it(derived: Path) -> None:
    from tidemark.airflow import seal_group, step_group, tidemark_dag

    made = tidemark_dag(derived / "totals.yaml", dag_id="mine", tags=("money",))
    assert (made.dag_id, sorted(made.tags)) == ("mine", ["derived", "money", "tidemark"])
    with pytest.raises(InvalidUsage, match="totals is derived: it runs when its inputs have more, not by '@daily'"):
        tidemark_dag(derived / "totals.yaml", schedule="@daily")
    with tidemark_dag(derived / "totals.yaml", dag_id="another", schedule=None):
        step_group("correct", derived / "totals.yaml", group_id="g1")
        seal_group(derived / "totals.yaml", group_id="g2")
        with pytest.raises(InvalidUsage, match="ingest is a step of landed collections, and totals is derived"):
            step_group("ingest", derived / "totals.yaml", group_id="g3")
        with pytest.raises(InvalidUsage, match="correct is a step of derived collections, and orders is landed"):
            step_group("correct", derived / "orders.yaml", group_id="g4")


def test_an_input_whose_file_is_wrong_takes_nobody_down(derived: Path) -> None:
    (derived / "refunds.yaml").write_text(ORDERS.replace("orders", "refunds").replace("late: discard", "lat: discard"))
    assert {"orders", "totals"} <= set(parsed().dags)


UNFIT = {
    "inputs": ("name: unfit\nfrom: [ordres]\nselect: SELECT * FROM ordres\n", "unfit.yaml:2: from: no file declares"),
    "circle": (
        "name: unfit\nfrom: two\nselect: SELECT * FROM two\n",
        "unfit.yaml:2: from: unfit is computed from two, that from unfit",
    ),
    "columns": (
        "name: unfit\nfrom: orders\nselect: SELECT stats FROM orders\n",
        "unfit.yaml:3: the select names the column",
    ),
    "keys": (
        "name: unfit\nfrom: orders\nkey: [missing]\nselect: SELECT id FROM orders\n",
        "unfit.yaml:3: the definition has",
    ),
    "windows": (
        "name: unfit\nfrom: upserts\nwindows: {on: event_time, tumbling: 1h}\naggregates: {n: count}\n",
        "unfit.yaml:3: windows.on: rows are placed by when they happened, and an update of upserts says when a value",
    ),
    "expressions": (
        "name: unfit\nfrom: orders\nwindows: {on: amount, tumbling: 1h}\naggregates: {n: {max: amont}}\n",
        "unfit.yaml:4: aggregates.n: names the column amont",
    ),
}
"""Files of which `tidemark explain` refuses the definition, and what it says."""


@pytest.fixture
def upserts(derived: Path) -> Path:
    """The folder, with `upserts` in it, of facts."""
    text = ORDERS.replace("orders", "upserts").replace("envelope: append", "envelope: upsert")
    (derived / "upserts.yaml").write_text(text.replace("late: discard", "late: {reemit: {max_lateness: 3d}}"))
    return derived


@pytest.mark.parametrize("case", UNFIT)
def test_what_explain_refuses_is_an_import_error_and_nobody_elses(upserts: Path, case: str) -> None:
    text, said = UNFIT[case]
    (upserts / "unfit.yaml").write_text(text)
    if case == "circle":
        (upserts / "two.yaml").write_text("name: two\nfrom: unfit\nselect: SELECT * FROM unfit\n")
    bag = parsed()
    (errors,) = bag.import_errors.values()
    assert f"{upserts}/{said}" in errors
    assert "unfit" not in bag.dags
    assert {"orders", "upserts", "totals"} <= set(bag.dags)


def test_it_is_the_line_that_explain_says(upserts: Path) -> None:
    from tidemark.airflow.location import location_of
    from tidemark.config.collection_file import parse
    from tidemark.jobs.queries.explain import explain_declared

    location_of(upserts / "upserts.yaml").declare()
    (upserts / "unfit.yaml").write_text(UNFIT["windows"][0])
    with pytest.raises(InvalidUsage) as refusal:
        explain_declared(location_of(upserts / "unfit.yaml").job(), parse(upserts / "unfit.yaml"))
    (errors,) = parsed().import_errors.values()
    assert str(refusal.value) in errors


def test_one_too_large_to_analyse_at_each_parse_is_left_to_init(derived: Path) -> None:
    columns = ", ".join(f"amount + {at} AS c{at}" for at in range(1000))
    (derived / "large.yaml").write_text(
        f"name: large\nfrom: orders\nkey: [id]\nselect: SELECT id, {columns}, stats FROM orders\n"
    )
    assert "large" in parsed().dags


def test_a_tasks_process_makes_its_own_dag_alone(upserts: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from tidemark.airflow import collection_dags

    (upserts / "unfit.yaml").write_text(UNFIT["windows"][0])
    everything = {"orders", "refunds", "totals", "upserts"}
    assert set(collection_dags()) == everything
    for name in ("totals", "unfit"):  # of its own definition the task says what is wrong
        monkeypatch.setenv("_AIRFLOW_PARSING_CONTEXT_DAG_ID", name)
        assert set(collection_dags()) == {name}
    monkeypatch.setenv("_AIRFLOW_PARSING_CONTEXT_DAG_ID", "another")
    assert collection_dags() == {}


# What a run is about.


def run(run_type: str = "asset_triggered", **context: Any) -> dict[str, Any]:
    after = pendulum.parse("2024-02-01")
    return {"dag_run": SimpleNamespace(run_type=run_type, run_after=after), "params": {}, **context}


def events(*uppers: str) -> dict[Any, Any]:
    return {
        Asset(f"i{at}", uri=f"tidemark://i{at}"): [SimpleNamespace(extra={"lower": "2024-01-01", "upper": upper})]
        for at, upper in enumerate(uppers)
    }


def test_a_run_that_events_started_goes_as_far_as_the_inputs_are() -> None:
    context = run(triggering_asset_events=events("2024-01-02", "2024-01-03T00:00:00.000001Z"))
    assert until_of(context) is None
    assert span_of(context) == Interval(0, parse_instant("2024-01-03") + 1)


def test_a_backfilled_run_goes_to_the_end_of_its_day() -> None:
    day = {"data_interval_start": pendulum.parse("2024-01-02"), "data_interval_end": pendulum.parse("2024-01-03")}
    assert until_of(run("backfill", **day)) == parse_instant("2024-01-03")
    assert span_of(run("backfill", **day)).upper == parse_instant("2024-01-03")
    assert until_of(run("backfill", **day, params={"until": "2024-01-03"})) == parse_instant("2024-01-03")
    with pytest.raises(InvalidUsage, match="its param until is 2024-01-04: leave it empty"):
        until_of(run("backfill", **day, params={"until": "2024-01-04"}))


def test_a_manual_run_goes_until_its_param_or_as_far_as_there_is() -> None:
    now = {"data_interval_start": pendulum.parse("2024-01-02"), "data_interval_end": pendulum.parse("2024-01-02")}
    assert until_of(run("manual", **now)) is None
    assert span_of(run("manual", **now)).upper == parse_instant("2024-02-01")
    assert until_of(run("manual", **now, params={"until": "2024-01-02T06:00:00Z"})) == parse_instant("2024-01-02T06:00")
    assert span_of({}) == Interval(0, MAX_TIME)
    with pytest.raises(InvalidUsage, match="its runs read no intervals; leave lower out"):
        until_of(run("manual", params={"lower": "2024-01-01", "upper": "2024-01-02"}))


# What becomes of its tasks.


@pytest.fixture
def corrected(dag: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Runs the task `correct` with an app that answers `result`; returns the app's arguments and what was pushed."""
    from tidemark.airflow.app_operator import AppOperator

    def execute(result: dict[str, Any], **context: Any) -> tuple[list[str], dict[str, Any]]:
        task, pushed = dag.get_task("correct"), dict[str, Any]()
        monkeypatch.setattr(AppOperator, "execute", lambda self, context: result)
        ti = SimpleNamespace(xcom_push=lambda key, value: pushed.update({key: value}))
        try:
            task.execute(run(**context, ti=ti))
        finally:
            execute.pushed = pushed  # type: ignore[attr-defined]
        return task.app_args, pushed

    return execute


def test_what_a_run_asks_for_reaches_the_step(corrected: Any) -> None:
    done = {"outcome": "applied", "version": 7}
    day = {"data_interval_start": pendulum.parse("2024-01-02"), "data_interval_end": pendulum.parse("2024-01-03")}
    arguments, _ = corrected(done, run_type="backfill", **day)
    assert arguments[-2:] == ["--until", "2024-01-03T00:00:00Z"]
    arguments, _ = corrected(done, run_type="manual", params={"whole": True, "check": True, "until": None})
    assert arguments[-2:] == ["--whole", "--check"]
    arguments, _ = corrected(done, triggering_asset_events=events("2024-01-02"))
    assert arguments[-4:] == ["--lower", "1970-01-01T00:00:00Z", "--upper", "2024-01-02T00:00:00Z"]


def test_a_run_that_must_wait_is_skipped_and_names_who_lags(corrected: Any) -> None:
    waits = {"outcome": "waits", "waits_for": "refunds", "waits": "it is complete below 2024-01-02, orders 2024-01-03"}
    with pytest.raises(AirflowSkipException, match="totals waits for refunds: it is complete below 2024-01-02"):
        corrected(waits)
    assert corrected.pushed == {"waits_for": "refunds"}


def test_a_run_that_must_wait_goes_on_with_what_it_could_have(corrected: Any) -> None:
    """Skipped, the tasks behind it would be too, and what was committed would wait until the next run."""
    waits = {"outcome": "applied", "waits_for": "refunds", "waits": "it is complete below 2024-01-02"}
    corrected({**waits, "unfinished": True})
    assert corrected.pushed == {"waits_for": "refunds"}
    with pytest.raises(AirflowSkipException):
        corrected({**waits, "unfinished": False})


def test_a_run_whose_question_is_wrong_fails_without_a_retry(corrected: Any) -> None:
    with pytest.raises(AirflowFailException, match="leave lower out"):
        corrected({}, run_type="manual", params={"lower": "2024-01-01"})


# What Airflow itself makes of it.


@pytest.fixture
def synced(derived: Path, database: None) -> Iterator[Any]:
    """The DAGs, as the scheduler has them; unpaused. Their events are deleted: other tests have collections
    of the same names."""
    from airflow.dag_processing.dagbag import sync_bag_to_db
    from airflow.models import DagModel
    from airflow.models.asset import AssetEvent
    from airflow.models.dagbundle import DagBundleModel
    from airflow.models.dagrun import DagRun
    from airflow.utils.session import create_session
    from sqlalchemy import delete

    with create_session() as session:
        session.merge(DagBundleModel(name="dags-folder"))
    bag = parsed()
    sync_bag_to_db(bag, "dags-folder", None)
    with create_session() as session:
        for name in ("orders", "refunds", "totals"):
            session.get(DagModel, name).is_paused = False  # type: ignore[union-attr]
    end_runs()
    yield bag
    with create_session() as session:
        session.execute(delete(DagRun).where(DagRun.dag_id == "totals"))
        session.execute(delete(AssetEvent))


def end_runs() -> None:
    """Of one DAG there is one run at a time: those that other tests made are over."""
    from airflow.models.dagrun import DagRun
    from airflow.utils.session import create_session
    from sqlalchemy import update

    with create_session() as session:
        session.execute(update(DagRun).where(DagRun.dag_id == "totals").values(state="success"))


def runs_of(dag_id: str, run_type: str) -> list[Any]:
    from airflow.models.dagrun import DagRun
    from airflow.utils.session import create_session
    from sqlalchemy import select

    with create_session() as session:
        asked = select(DagRun).where(DagRun.dag_id == dag_id, DagRun.run_type == run_type).order_by(DagRun.id)
        return list(session.scalars(asked))


def test_airflow_takes_a_backfill_of_it_and_makes_a_run_of_some_days(
    derived: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    from airflow.models.backfill import ReprocessBehavior, _create_backfill

    monkeypatch.setenv("TIDEMARK_BACKFILL_INTERVALS", "2")
    request.getfixturevalue("synced")
    _create_backfill(
        dag_id="totals",
        from_date=pendulum.parse("2024-01-01"),
        to_date=pendulum.parse("2024-01-03"),
        max_active_runs=1,
        reverse=False,
        dag_run_conf=None,
        triggering_user_name="vera",
        reprocess_behavior=ReprocessBehavior.NONE,
    )
    made = runs_of("totals", "backfill")
    assert [text_of(run.data_interval_end) for run in made] == ["2024-01-03", "2024-01-04"]
    contexts = [run("backfill", data_interval_end=one.data_interval_end) for one in made]
    assert [until_of(context) for context in contexts] == [parse_instant(day) for day in ("2024-01-03", "2024-01-04")]


def test_the_scheduler_starts_it_when_an_input_published_and_not_before(synced: Any) -> None:
    from airflow.assets.manager import AssetManager
    from airflow.jobs.job import Job
    from airflow.jobs.scheduler_job_runner import SchedulerJobRunner
    from airflow.models import DagModel
    from airflow.models.asset import AssetModel
    from airflow.utils.session import create_session
    from sqlalchemy import select

    def scheduled() -> list[str]:
        """The DAGs that assets start now, which the scheduler makes runs of."""
        runner = SchedulerJobRunner(job=Job())
        with create_session() as session:
            models, triggered = DagModel.dags_needing_dagruns(session)
            due = [model for model in models if model.dag_id in triggered]
            runner._create_dag_runs_asset_triggered(dag_models=due, session=session)
            return sorted(model.dag_id for model in due)

    def published(name: str, upper: str) -> None:
        with create_session() as session:
            asset = session.scalars(select(AssetModel).where(AssetModel.name == name)).one()
            extra = {"lower": "2024-01-01T00:00:00Z", "upper": upper}
            AssetManager().register_asset_change(asset=asset, extra=extra, session=session)

    assert scheduled() == []
    published("orders", "2024-01-02T00:00:00Z")
    assert scheduled() == ["totals"]  # one input suffices
    end_runs()
    published("orders", "2024-01-02T00:00:00.000001Z")  # a tick: a Tuesday that was corrected
    published("refunds", "2024-01-03T00:00:00Z")
    assert scheduled() == ["totals"]  # one run for both
    end_runs()
    assert scheduled() == []
    made = runs_of("totals", "asset_triggered")
    assert len(made) == 2
    with create_session() as session:
        uppers = [event.extra["upper"] for event in session.merge(made[-1]).consumed_asset_events]
    assert uppers == ["2024-01-02T00:00:00.000001Z", "2024-01-03T00:00:00Z"]


# The event at its end.


@pytest.fixture
def graph(derived: Path, locations: Path) -> Graph:
    """`orders` for two days and `refunds` for two, and `totals` of both, corrected."""
    graph = Graph(locations / "root")
    graph.land("orders", 2)
    graph.land("refunds", 2)
    graph.derive("totals", "orders", "refunds")
    graph.correct("totals")
    return graph


def published(task: Any, *before: str) -> dict[str, Any]:
    """What the task tells, after events that reach so far."""
    events = [SimpleNamespace(extra={"upper": upper}) for upper in before]
    inlet = SimpleNamespace(ascending=lambda _: SimpleNamespace(limit=lambda _: events))
    outlet_events: dict[Any, Any] = defaultdict(lambda: SimpleNamespace(extra={}))
    context = run(inlet_events=defaultdict(lambda: inlet), outlet_events=outlet_events)
    extra = task.execute(context)
    assert [event.extra for event in outlet_events.values()] == [extra]
    return dict(extra)


def test_what_was_corrected_is_reported_once(dag: Any, graph: Graph) -> None:
    task = dag.get_task("published")
    extra = published(task)
    assert extra == {
        **{"lower": "1970-01-01T00:00:00Z", "upper": "2024-01-03T00:00:00Z", "seal": "2024-01-03T00:00:00Z"},
        "complete_below": "2024-01-03T00:00:00Z",
        "corrected": {"runs": 0, "retracted": 0, "added": 0, "event_times": None, "changed": "nothing changed"},
    }
    with pytest.raises(AirflowSkipException, match="nothing changed: published up to 2024-01-03T00:00:00Z"):
        published(task, "2024-01-03T00:00:00Z")
    graph.land("orders", 3)
    graph.land("refunds", 3)
    graph.correct("totals")
    extra = published(task, "2024-01-03T00:00:00Z")
    assert (extra["lower"], extra["upper"]) == ("2024-01-03T00:00:00Z", "2024-01-04T00:00:00Z")


def test_a_run_that_left_what_is_sealed_unread_is_not_green(dag: Any, graph: Graph) -> None:
    graph.land("orders", 3)
    graph.land("refunds", 3)
    graph.correct("totals", drained=False)
    with pytest.raises(AirflowFailException, match="totals is known up to 2024-01-04T00:00:00Z, and readable below"):
        published(dag.get_task("published"), "2024-01-03T00:00:00Z")
