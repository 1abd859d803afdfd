"""A day whose gate fails is its own run's: later runs are green and wait, and the run that mends it seals them all."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from airflow.sdk import DAG, TaskGroup, get_current_context, task

import tidemark
from tests.dags.test_run import events
from tidemark.airflow import sealed_by, tidemark_dag
from tidemark.airflow.location import location_of
from tidemark.jobs import app
from tidemark.jobs.steps.quarantine import quarantine
from tidemark.model.collection import Gate
from tidemark.model.instant import format_instant

pytestmark = pytest.mark.timeout(300)

OWN = ("ingest", "gate_unsealed", "seal")
BEHIND = ("gate_frontier", "drain", "gate_trace", "compact", "gate_compaction", "published")
GREEN = dict.fromkeys((*OWN, *BEHIND), "success")
WAITS = dict.fromkeys(OWN, "success") | dict.fromkeys(BEHIND, "skipped")
FAILED = {"ingest": "success", "gate_unsealed": "failed"} | dict.fromkeys(("seal", *BEHIND), "upstream_failed")


@dataclass
class Days:
    """Four days of a collection with a name of its own, and its runs."""

    file: Path
    landing: Path
    logged: Callable[[], str]
    prepare: Callable[[DAG], None] = field(default=lambda dag: None)

    @property
    def name(self) -> str:
        return self.file.stem

    @property
    def state(self) -> Any:
        return location_of(self.file).job().log.load().state

    def land(self, day: int, status: str = "open") -> None:
        folder = self.landing / self.name / f"2024-01-0{day}"
        folder.mkdir(parents=True, exist_ok=True)
        row = f"{day},{status},{day}0,2024-01-0{day}T09:00:00Z"
        (folder / "a.csv").write_text(f"id,status,amount,happened_at\n{row}\n")

    def run(self, day: int, *, upper: int | None = None, date: str | None = None) -> tuple[str, dict[str, str]]:
        """The run of a day, or of several: its state, and its tasks' states. Again, it is the run cleared."""
        dag = tidemark_dag(self.file, default_args={"retries": 0})
        assert dag.max_active_runs == 4
        self.prepare(dag)
        at = datetime.fromisoformat(date or f"2024-01-0{day}").replace(tzinfo=UTC)
        conf = {"lower": f"2024-01-0{day}T00:00:00Z", "upper": f"2024-01-0{upper or day + 1}T00:00:00Z"}
        done = dag.test(logical_date=at, run_conf=conf)
        return str(done.state), {ti.task_id: str(ti.state) for ti in done.get_task_instances()}

    def mend(self, day: int) -> None:
        """As the way out says: the batch is taken out, and its file mended."""
        self.take_out(day)
        self.land(day)

    def take_out(self, day: int) -> None:
        batches = self.state.pending
        (bad,) = [batch for batch in batches if format_instant(batch.interval.lower)[:10] == f"2024-01-0{day}"]
        quarantine(location_of(self.file).job(), bad.id)

    @property
    def complete(self) -> str:
        return format_instant(self.state.complete_below)[:10]

    def ids(self) -> list[int]:
        rows = tidemark.open(location_of(self.file).store_root, self.name).as_of().to_arrow()
        return sorted(rows["id"].to_pylist())

    def results(self) -> list[str]:
        """What became of the unsealed gate, each time it looked at something, oldest first."""
        from tidemark.quality.results import results_of

        results = results_of(location_of(self.file).store_root)
        assert results is not None
        kept = [name.outcome for name in results.names(self.name, Gate.UNSEALED)]
        return [outcome for outcome in reversed(kept) if outcome != "nothing"]


def test_later_runs_are_green_and_wait_and_the_run_that_mends_it_seals_them_all(days: Days) -> None:
    for day, status in ((1, "open"), (2, "lost"), (3, "open"), (4, "paid")):
        days.land(day, status)
    assert days.run(1) == ("success", GREEN)
    assert days.run(2) == ("failed", FAILED)
    before = len(events())
    days.logged()
    assert days.run(3) == ("success", WAITS)
    why = days.logged()
    assert (
        "[2024-01-03T00:00:00Z, 2024-01-04T00:00:00Z) is sealed when [2024-01-02T00:00:00Z, 2024-01-03T00:00:00Z)"
        in why
    )
    assert f"`tidemark quarantine {days.name} {days.state.pending[0].id[:12]}`, mend the file, clear its run" in why
    assert days.run(4) == ("success", WAITS)
    assert (days.complete, days.ids(), len(events())) == ("2024-01-02", [1], before)
    assert days.results() == ["passed", "failed", "passed", "passed"], "nobody else judges the bad day"

    assert days.run(2)[0] == "failed", "cleared, and not mended"
    days.mend(2)
    assert days.run(2) == ("success", GREEN)
    assert (days.complete, days.ids()) == ("2024-01-05", [1, 2, 3, 4])
    (event,) = events()[before:]
    assert (event["lower"], event["upper"]) == ("2024-01-02T00:00:00Z", "2024-01-05T00:00:00Z")
    for day in (3, 4):
        state, tasks = days.run(day)
        assert (state, tasks) == ("success", GREEN | {"published": "skipped"}), "there is nothing left to do"


def test_all_behind_the_seal_is_skipped_by_it_whatever_its_rules_but_what_tears_down(days: Days) -> None:
    seen: list[list[str]] = []

    def prepare(dag: DAG) -> None:
        with dag:

            @task
            def tell() -> None:
                some = sealed_by(get_current_context(), schedule="@daily")
                seen.append([format_instant(interval.lower)[:10] for interval in some])

            @task(trigger_rule="all_done")
            def always() -> None:
                seen.append(["always"])

            @task(trigger_rule="none_failed")
            def late() -> None:
                seen.append(["late"])

            @task
            def beside() -> None:
                pass

            @task
            def room() -> None:
                pass

            @task
            def room_back() -> None:
                pass

            with TaskGroup("mine") as mine:
                tell() >> always()
            seal = dag.get_task("seal")
            seal >> mine >> late()
            dag.get_task("gate_unsealed") >> beside()
            made = room().as_setup()
            made >> dag.get_task("ingest")
            dag.get_task("published") >> room_back().as_teardown(setups=made)

    days.prepare = prepare
    for day, status in ((1, "lost"), (2, "open"), (3, "open")):
        days.land(day, status)
    assert days.run(1)[0] == "failed"
    seen.clear()
    state, tasks = days.run(2)
    assert state == "success"
    assert {name for name, of in tasks.items() if of == "success"} == {*OWN, "beside", "room", "room_back"}
    assert {name for name, of in tasks.items() if of == "skipped"} == {*BEHIND, "mine.tell", "mine.always", "late"}
    assert skipped_by(days.name, "seal") == {*BEHIND, "mine.tell", "mine.always", "late"}, "not level by level"
    assert days.run(3)[0] == "success"
    assert seen == []
    days.mend(1)
    assert days.run(1)[0] == "success"
    assert seen == [["2024-01-01", "2024-01-02", "2024-01-03"], ["always"], ["late"]]
    seen.clear()
    assert days.run(2)[0] == "success"
    assert seen[0] == ["2024-01-02"], "a run that is repeated has its own"


def skipped_by(dag_id: str, task_id: str) -> set[str]:
    """What the newest try of a task has skipped itself."""
    from airflow.models.xcom import XComModel
    from airflow.utils.session import create_session
    from sqlalchemy import select

    wanted = (XComModel.dag_id == dag_id, XComModel.task_id == task_id, XComModel.key == "skipmixin_key")
    with create_session() as session:
        newest = session.scalars(select(XComModel).where(*wanted).order_by(XComModel.timestamp.desc())).first()
        return set(XComModel.deserialize_value(newest)["skipped"])


def test_a_day_of_a_run_over_several_is_known_by_what_its_gate_kept(days: Days) -> None:
    for day, status in ((1, "open"), (2, "lost"), (3, "open"), (4, "open")):
        days.land(day, status)
    assert days.run(1, upper=4, date="2024-05-01")[0] == "failed"
    assert days.run(4) == ("success", WAITS)
    assert days.complete == "2024-01-02", "the first day of the failed run waits for nobody"
    assert days.results().count("failed") == 1
    days.mend(2)
    assert days.run(1, upper=4, date="2024-05-01") == ("success", GREEN)
    assert (days.complete, days.ids()) == ("2024-01-05", [1, 2, 3, 4])


def test_where_no_run_is_red_for_it_the_first_to_meet_it_is(days: Days) -> None:
    """Somebody ingested a day by hand. Whoever finds it wrong is red until it is mended; all others are green."""
    for day, status in ((1, "lost"), (2, "open"), (3, "open")):
        days.land(day, status)
    location = location_of(days.file)
    location.declare()
    argv = ["--root", location.store_root, "--collection", days.name, "--landing", str(days.landing)]
    argv += ["--lower", "2024-01-01T00:00:00Z", "--upper", "2024-01-02T00:00:00Z"]
    app.without_spark("ingest", argv, parallelism=1)
    red = dict.fromkeys(OWN, "success") | {"seal": "failed"} | dict.fromkeys(BEHIND, "upstream_failed")
    assert days.run(2) == ("failed", red)
    assert days.run(3) == ("success", WAITS)
    assert days.run(2) == ("failed", red), "cleared, it is red still: nobody else is"
    days.mend(1)
    assert days.run(1) == ("success", GREEN)
    assert (days.complete, days.ids()) == ("2024-01-04", [1, 2, 3])


def test_a_day_that_is_missing_is_reported_as_ever_beside_a_bad_one(days: Days) -> None:
    for day, status in ((1, "lost"), (3, "open")):
        days.land(day, status)
    assert days.run(1)[0] == "failed"
    days.logged()
    assert days.run(3) == ("failed", GREEN | {"published": "failed"})
    assert "which no run is about to ingest" in days.logged()


def test_a_day_that_is_complete_is_corrected_while_a_later_one_is_bad(days: Days) -> None:
    for day, status in ((1, "open"), (2, "lost"), (3, "open")):
        days.land(day, status)
    assert [days.run(day)[1] for day in (1, 2, 3)] == [GREEN, FAILED, WAITS]
    before = len(events())
    days.land(1, "paid")
    assert days.run(1) == ("success", GREEN)
    (event,) = events()[before:]
    assert (event["upper"], event["corrected"]["files"]) == ("2024-01-02T00:00:00.000001Z", 1)
    days.mend(2)
    assert days.run(2) == ("success", GREEN)
    assert (days.complete, days.ids()) == ("2024-01-04", [1, 2, 3])
    upper = events()[-1]
    assert (upper["lower"], upper["upper"]) == ("2024-01-02T00:00:00.000001Z", "2024-01-04T00:00:00Z")


def test_rules_that_changed_are_asked_of_all_that_waits(days: Days) -> None:
    """The bad value is right after all, and another is not: the run that the owner clears finds it, and is red."""
    for day, status in ((1, "lost"), (2, "open"), (3, "paid")):
        days.land(day, status)
    assert [days.run(day)[1] for day in (1, 2, 3)] == [FAILED, WAITS, WAITS]
    days.file.write_text(days.file.read_text().replace("[open, paid]", "[open, lost]"))
    state, tasks = days.run(1)
    assert (state, tasks["gate_unsealed"], tasks["seal"]) == ("failed", "success", "failed")
    assert days.complete == "2024-01-03", "what need not wait is sealed"
    assert days.run(2) == ("success", GREEN), "its day is sealed, and somebody is red for the other"
    days.file.write_text(days.file.read_text().replace("[open, lost]", "[open, lost, paid]"))
    assert days.run(1)[0] == "success"
    assert (days.complete, days.ids()) == ("2024-01-04", [1, 2, 3])


def test_a_file_of_a_wide_run_that_cannot_be_read_stops_no_other_day(days: Days) -> None:
    for day in (1, 2, 3, 4):
        days.land(day)
    bad = days.landing / days.name / "2024-01-02" / "a.csv"
    bad.write_text("id,status,amount,happened_at\n2,open,many,2024-01-02T09:00:00Z\n")
    days.logged()
    state, tasks = days.run(1, upper=5, date="2024-05-01")
    assert (state, tasks["ingest"]) == ("failed", "failed")
    said = days.logged()
    assert "1 of 4 intervals failed, the other 3 are done: [2024-01-02T00:00:00Z" in said
    assert "2024-01-02/a.csv" in said
    assert sorted(format_instant(batch.interval.lower)[:10] for batch in days.state.pending) == [
        "2024-01-01",
        "2024-01-03",
        "2024-01-04",
    ]
    days.land(2)
    version = location_of(days.file).job().log.newest_version()
    assert days.run(1, upper=5, date="2024-05-01") == ("success", GREEN)
    assert (days.complete, days.ids()) == ("2024-01-05", [1, 2, 3, 4])
    history = list(location_of(days.file).job().log.history())
    read = [one.change for one in history if one.version > version and one.change.kind == "ingested"]
    assert [format_instant(one.fence.interval.lower)[:10] for one in read] == ["2024-01-02"], "a retry reads only these"
