"""Days through a real Airflow scheduler: in order, again, out of order, with a killed worker, with a gate that fails.

The tests run in the order they are written, and each brings a collection of its own.
"""

from __future__ import annotations

import os
import signal
import time
from datetime import UTC, date, datetime, timedelta
from typing import Any

import psutil
import pytest

from demo import answers, independent, layout
from tests.e2e.instance import PROJECT, Airflow
from tests.e2e.orders import HEADER, amounts, orders, seal_of, sound
from tests.launch.support import is_dead
from tidemark.airflow.question import Answer
from tidemark.model.instant import format_instant

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(1800)]

FIRST, LAST = date(2012, 12, 31), date(2013, 1, 1)
STEPS = ("ingest", "seal", "drain", "compact")
GATES = ("gate_unsealed", "gate_frontier", "gate_trace", "gate_compaction")
TASKS = {*STEPS, *GATES, "published"}


def content(airflow: Airflow, name: str) -> Any:
    """What a no-op leaves as it is: batches, frontiers, ledger."""
    state = airflow.log(name).load().state
    return state.unsealed, state.trace, state.quarantined, state.ledger, state.seal, state.since, state.ingested


def last_log(airflow: Airflow, name: str, run: str, task: str) -> str:
    """What a task's last try has logged; a busy machine may have taken a worker before it."""
    return airflow.log_of(name, run, task, airflow.tasks(name, run)[task]["try_number"])


def moment(text: str) -> datetime:
    return datetime.fromisoformat(text)


@pytest.fixture(scope="module")
def backfilled(airflow: Airflow) -> list[dict[str, Any]]:
    """The demo's first two days, by date range: their run, ended."""
    layout.lay_out(airflow.landing, first=FIRST, last=LAST)
    flights = airflow.declare((PROJECT / "include/collections/flights.yaml").read_text())
    airflow.api.unpause(flights)
    airflow.api.backfill(flights, FIRST.isoformat(), LAST.isoformat())

    def ended() -> list[dict[str, Any]] | None:
        found = airflow.api.runs(flights)
        return found if found and all(run["state"] in ("success", "failed") for run in found) else None

    return airflow.until("both days are run", ended)


class TestBackfill:
    def test_both_days_are_one_run_and_each_has_its_own_commit(
        self, airflow: Airflow, backfilled: list[dict[str, Any]]
    ) -> None:
        (run,) = backfilled
        bounds = [run[f"data_interval_{name}"][:10] for name in ("start", "end")]
        assert (run["state"], bounds) == ("success", [FIRST.isoformat(), (LAST + timedelta(days=1)).isoformat()])
        assert airflow.states("flights", run["dag_run_id"]) == dict.fromkeys(TASKS, "success")
        state = airflow.log("flights").load().state
        assert format_instant(state.seal) == format_instant(state.trace_upper) == "2013-01-02T00:00:00Z"
        changes = [record.change for record in airflow.log("flights").history()]
        assert [format_instant(one.upper) for one in changes if one.kind == "sealed"] == ["2013-01-02T00:00:00Z"]
        read = [format_instant(one.fence.interval.lower)[:10] for one in changes if one.kind == "ingested"]
        assert read == [LAST.isoformat(), FIRST.isoformat()]
        assert sound(airflow, "flights")

    def test_figures_are_those_of_the_independent_calculation(
        self, airflow: Airflow, backfilled: list[dict[str, Any]]
    ) -> None:
        ours = answers.figures(airflow.opened("flights"), first=LAST, days=1)
        theirs = independent.figures(first=LAST, days=1)
        assert ours == theirs
        assert theirs[0]["now"]["flights"] > 800, "too few flights to mean anything"

    def test_a_cleared_day_is_a_no_op(self, airflow: Airflow, backfilled: list[dict[str, Any]]) -> None:
        run = backfilled[-1]["dag_run_id"]
        before, version = content(airflow, "flights"), airflow.log("flights").newest_version()
        airflow.clear("flights", run)
        airflow.ended("flights", run)
        states = airflow.states("flights", run)
        assert states == {**dict.fromkeys(TASKS, "success"), "published": "skipped"}, "nothing new, so no event"
        assert content(airflow, "flights") == before
        assert airflow.log("flights").newest_version() == version, "a no-op commits nothing"


class TestOutOfOrder:
    """Day 2 by hand first, then day 1 by a backfill."""

    def test_day_two_waits_and_day_one_passes_both(self, airflow: Airflow) -> None:
        first_day = [(1, 10, "2024-03-01T10:00:00Z"), (2, 20, "2024-03-01T11:00:00Z")]
        second_day = [(1, 11, "2024-03-02T10:00:00Z"), (3, 30, "2024-03-02T11:00:00Z")]
        airflow.land("mixed/2024-03-01/a.csv", HEADER, *first_day)
        airflow.land("mixed/2024-03-02/a.csv", HEADER, *second_day)
        name = airflow.declare(orders("mixed", "2024-03-01", "2024-03-03"))
        airflow.api.unpause(name)
        second = airflow.trigger(name, "2024-03-02T00:00:00Z", "2024-03-03T00:00:00Z")
        airflow.ended(name, second, state="failed")
        assert airflow.states(name, second) == dict.fromkeys(TASKS, "success") | {"published": "failed"}
        missing = "waits for [2024-03-01T00:00:00Z, 2024-03-02T00:00:00Z), which no run is about to ingest"
        assert missing in last_log(airflow, name, second, "published")
        state = airflow.log(name).load().state
        assert format_instant(state.seal) <= "2024-03-01T00:00:00Z", "the seal has passed the missing day"
        assert sum(batch.rows for batch in state.unsealed) == 2
        airflow.api.backfill(name, "2024-03-01", "2024-03-01")
        (first,) = airflow.until(
            "the run of day 1", lambda: [run for run in airflow.api.runs(name) if run["run_type"] == "backfill"]
        )
        airflow.ended(name, first["dag_run_id"])
        assert seal_of(airflow, name) == "2024-03-03T00:00:00Z"
        assert amounts(airflow, name) == {1: 11, 2: 20, 3: 30}
        assert airflow.states(name, first["dag_run_id"])["published"] == "success"
        airflow.clear(name, second)
        airflow.ended(name, second)
        assert airflow.states(name, second)["published"] == "skipped", "the run of day 1 has reported both"
        assert sound(airflow, name)

    def test_a_backfill_run_backwards_ends_green_and_complete(self, airflow: Airflow) -> None:
        """The later days find the earlier ones queued: nothing to worry about, as that run shows."""
        for day in (1, 2, 3):
            airflow.land(f"backwards/2024-03-0{day}/a.csv", HEADER, (day, day, f"2024-03-0{day}T10:00:00Z"))
        wide = "airflow: {backfill_intervals: 2, max_active_runs: 1}\n"
        name = airflow.declare(orders("backwards", "2024-03-01", "2024-03-04") + wide)
        airflow.api.unpause(name)
        days = {"from_date": "2024-02-01T00:00:00Z", "to_date": "2024-03-31T00:00:00Z"}
        how = {"max_active_runs": 1, "run_backwards": True, "dag_run_conf": {}}
        airflow.api.call("POST", "/api/v2/backfills", {"dag_id": name, **days, **how})

        def ended() -> list[dict[str, Any]] | None:
            found = airflow.api.runs(name)
            return found if found and all(run["state"] in ("success", "failed") for run in found) else None

        runs = airflow.until("the days are run", ended)
        assert [run["state"] for run in runs] == ["success"] * 2, "the backfill is kept within start and end"
        assert moment(runs[1]["end_date"]) <= moment(runs[0]["start_date"])
        assert airflow.states(name, runs[1]["dag_run_id"])["published"] == "skipped"
        assert seal_of(airflow, name) == "2024-03-04T00:00:00Z"
        assert amounts(airflow, name) == {1: 1, 2: 2, 3: 3}


class TestTrigger:
    """Single runs of a collection that ended long ago, as from the form: with the params, and without."""

    def test_what_a_single_run_is_about(self, airflow: Airflow) -> None:
        for day in (1, 2):
            airflow.land(f"single/2024-03-0{day}/a.csv", HEADER, (day, day, f"2024-03-0{day}T10:00:00Z"))
        name = airflow.declare(orders("single", "2024-03-01", "2024-03-03"))
        airflow.api.unpause(name)
        now = datetime.now(UTC)
        for run_id, seconds, conf in (
            ("with_params", 0, {"lower": "2024-03-01T00:00:00Z", "upper": "2024-03-03T00:00:00Z"}),
            ("without", 1, {}),
        ):
            body = {"logical_date": (now + timedelta(seconds=seconds)).isoformat(), "conf": conf}
            airflow.api.call("POST", f"/api/v2/dags/{name}/dagRuns", {"dag_run_id": run_id, **body})
        airflow.ended(name, "with_params")
        assert airflow.states(name, "with_params") == dict.fromkeys(TASKS, "success")
        assert amounts(airflow, name) == {1: 1, 2: 2}, "two days, each from its own folder"
        airflow.ended(name, "without", state="failed")
        assert "trigger the run with params lower and upper" in last_log(airflow, name, "without", "ingest")

    def test_a_day_that_lands_late_is_waited_for_without_a_worker(self, airflow: Airflow) -> None:
        name = airflow.declare(orders("tardy", "2024-03-01", "2024-03-02"))
        airflow.api.unpause(name)
        run = airflow.trigger(name, "2024-03-01T00:00:00Z", "2024-03-02T00:00:00Z")
        airflow.until("the ingest waits", lambda: airflow.states(name, run)["ingest"] == "deferred")
        airflow.land("tardy/2024-03-01/a.csv", HEADER, (1, 1, "2024-03-01T10:00:00Z"))
        airflow.ended(name, run)
        assert amounts(airflow, name) == {1: 1}


class TestFailingGate:
    """A row that breaks the owner's expectation stops its run; quarantine, a mended file and *Clear* lead out of it. So
    they do for the next day, whose run is green and waits."""

    def test_the_way_in_and_the_way_out(self, airflow: Airflow) -> None:
        rows = [(1, 10, "2024-03-01T10:00:00Z"), (2, -7, "2024-03-01T11:00:00Z")]
        bad = airflow.land("bad/2024-03-01/a.csv", HEADER, *rows)
        airflow.land("bad/2024-03-02/a.csv", HEADER, (3, 30, "2024-03-02T10:00:00Z"))
        name = airflow.declare(orders("bad", "2024-03-01", "2024-03-03"))
        airflow.api.unpause(name)
        run = airflow.trigger(name, "2024-03-01T00:00:00Z", "2024-03-02T00:00:00Z")
        airflow.question(name, run, "gate_unsealed")
        airflow.answer(name, run, "gate_unsealed", Answer.FAIL)
        airflow.ended(name, run, state="failed")
        tasks = airflow.tasks(name, run)
        assert (tasks["ingest"]["state"], tasks["gate_unsealed"]["state"]) == ("success", "failed")
        assert tasks["gate_unsealed"]["try_number"] == 1, "wrong data was retried"
        assert {tasks[later]["state"] for later in TASKS - {"ingest", "gate_unsealed"}} == {"upstream_failed"}
        said = airflow.log_of(name, run, "gate_unsealed", 1)
        assert "-7" in said, "the failing row is not shown"
        assert "GateFailed" in said
        state = airflow.log(name).load().state
        assert (state.seal, state.trace) == (0, ()) or state.seal <= state.collection.landed.start, "it went on"

        later = airflow.trigger(name, "2024-03-02T00:00:00Z", "2024-03-03T00:00:00Z")
        airflow.ended(name, later)
        behind = TASKS - {"ingest", "gate_unsealed", "seal"}
        assert airflow.states(name, later) == dict.fromkeys(TASKS, "success") | dict.fromkeys(behind, "skipped")
        assert len({airflow.tasks(name, later)[task]["end_date"] for task in behind}) == 1, "skipped level by level"

        airflow.tidemark("quarantine", name, state.unsealed[0].id[:8])
        bad.write_text(bad.read_text().replace("-7", "7"))
        airflow.clear(name, run)
        airflow.ended(name, run)
        assert airflow.states(name, run) == dict.fromkeys(TASKS, "success"), "it asked what was answered before"
        assert amounts(airflow, name) == {1: 10, 2: 7, 3: 30}
        assert seal_of(airflow, name) == "2024-03-03T00:00:00Z"
        assert sound(airflow, name)


class TestGateAsks:
    """A gate that fails parks, holds nobody up, and does what is answered."""

    def test_accepted_and_mended_days_are_green_and_the_days_behind_them_are_sealed(self, airflow: Airflow) -> None:
        airflow.land("asking/2024-03-01/a.csv", HEADER, (1, -1, "2024-03-01T10:00:00Z"))
        second = airflow.land("asking/2024-03-02/a.csv", HEADER, (2, -2, "2024-03-02T10:00:00Z"))
        airflow.land("asking/2024-03-03/a.csv", HEADER, (3, 30, "2024-03-03T10:00:00Z"))
        name, gate = airflow.declare(orders("asking", "2024-03-01", "2024-03-04")), "gate_unsealed"
        airflow.api.unpause(name)
        runs = [
            airflow.trigger(name, f"2024-03-0{day}T00:00:00Z", f"2024-03-0{day + 1}T00:00:00Z") for day in (1, 2, 3)
        ]
        asked = airflow.question(name, runs[0], gate)
        assert asked["subject"] == "asking: 1 check failed for [2024-03-01T00:00:00Z, 2024-03-02T00:00:00Z)"
        airflow.question(name, runs[1], gate)
        airflow.ended(name, runs[2])
        assert airflow.states(name, runs[2])["published"] == "skipped", "it did not wait behind those that ask"

        airflow.answer(name, runs[0], gate, Answer.ACCEPT, reason="ok")
        second.write_text(second.read_text().replace("-2", "20"))
        airflow.answer(name, runs[1], gate, Answer.MENDED)
        airflow.ended(name, runs[1])
        asked = airflow.question(name, runs[0], gate)
        airflow.answer(
            name, runs[0], gate, Answer.ACCEPT, reason="refunds of that day", batch=asked["params"]["batch"]["value"]
        )
        airflow.ended(name, runs[0])
        assert airflow.states(name, runs[0]) == dict.fromkeys(TASKS, "success")
        assert amounts(airflow, name) == {1: -1, 2: 20, 3: 30}
        assert seal_of(airflow, name) == "2024-03-04T00:00:00Z"
        (kept,) = airflow.tidemark("status", name)["accepted"]
        assert (kept["by"], kept["reason"], kept["failures"][0]["failing"]) == ("admin", "refunds of that day", 1)
        assert sound(airflow, name)


class TestCorrected:
    """A day that was wrong: its file is mended, and the day is run again, by *Clear* and by a backfill."""

    def test_a_day_run_again_writes_what_its_file_says_otherwise_now(self, airflow: Airflow) -> None:
        at = "2024-03-01T10:00:00Z"
        airflow.land("counts/2024-03-01/a.csv", HEADER, (1, 10, at), (2, 20, at))
        text = orders("counts", "2024-03-01", "2024-03-02").replace("upsert", "append") + "reprocess_for: 30d\n"
        name = airflow.declare(text)
        airflow.api.unpause(name)
        airflow.api.backfill(name, "2024-03-01", "2024-03-01")
        (first,) = airflow.until("the day's run", lambda: airflow.api.runs(name))
        run = first["dag_run_id"]
        airflow.ended(name, run)

        airflow.land("counts/2024-03-01/a.csv", HEADER, (1, 10, at), (2, 21, at), (3, 30, at))
        airflow.clear(name, run)
        airflow.ended(name, run)
        assert amounts(airflow, name) == {1: 10, 2: 21, 3: 30}
        result = airflow.returned(name, run, "ingest")
        words = f"1 file corrected, 1 row retracted and 2 added, happened {at}"
        assert (result["retracted"], result["added"], result["changed"]) == (1, 2, words)
        assert words in airflow.log_of(name, run, "ingest", airflow.tasks(name, run)["ingest"]["try_number"])

        airflow.land("counts/2024-03-01/a.csv", HEADER, (1, 10, at), (3, 30, at))
        over = f"/api/v2/backfills?dag_id={name}"
        airflow.until(
            "the first backfill is over",
            lambda: all(backfill["completed_at"] for backfill in airflow.api.call("GET", over)["backfills"]),
        )
        airflow.api.backfill(name, "2024-03-01", "2024-03-01")
        airflow.until("the day is run again", lambda: amounts(airflow, name) == {1: 10, 3: 30})
        airflow.ended(name, run)
        corrected = airflow.returned(name, run, "published")["corrected"]
        assert (corrected["files"], corrected["retracted"], corrected["added"], corrected["event_times"]) == (
            1,
            1,
            0,
            [at, at],
        )
        assert sound(airflow, name)


class TestKilledWorker:
    """The process of a task dies in the middle of a step, with everything: what a machine that goes away looks like."""

    def test_it_is_noticed_within_a_minute_and_the_run_ends_right(self, airflow: Airflow) -> None:
        airflow.land("killed/2024-03-01/a.csv", HEADER, *((n, n, "2024-03-01T10:00:00Z") for n in range(50)))
        airflow.killing.plan("drain", "first file", "wait", collection="killed")
        name = airflow.declare(orders("killed", "2024-03-01", "2024-03-02") + "airflow: {spark: always}\n")
        airflow.api.unpause(name)
        run = airflow.trigger(name, "2024-03-01T00:00:00Z", "2024-03-02T00:00:00Z")
        driver = airflow.killing.hit(within=600)
        task = airflow.tasks(name, run)["drain"]
        assert (task["state"], task["try_number"]) == ("running", 1)
        versions = airflow.log(name).newest_version()
        began = time.monotonic()
        kill_worker(task["pid"])
        airflow.until("the app of the killed task is dead", lambda: is_dead(driver), within=10)

        def noticed() -> bool:
            now = airflow.tasks(name, run)["drain"]
            return now["state"] != "running" or now["try_number"] > 1

        airflow.until("the scheduler notices", noticed, within=60)
        print(f"noticed after {time.monotonic() - began:.0f} s")
        assert airflow.log(name).newest_version() == versions, "the dead attempt has committed something"
        airflow.ended(name, run)
        assert airflow.tasks(name, run)["drain"]["try_number"] == 2
        assert airflow.states(name, run) == dict.fromkeys(TASKS, "success")
        assert amounts(airflow, name) == {n: n for n in range(50)}
        assert len(airflow.log(name).load().state.trace) == 1
        assert sound(airflow, name)


def kill_worker(pid: int) -> None:
    """SIGKILL the process of a task and the executor's worker above it, the worker first: nobody is left to report."""
    task = psutil.Process(pid)
    worker = task.parent()
    assert worker is not None
    for process in (worker, task):
        os.kill(process.pid, signal.SIGKILL)


def test_unpausing_starts_no_run_outside_start_and_end_and_of_the_past_the_last_interval_only(
    airflow: Airflow,
) -> None:
    """One ended long ago, one begins the day after tomorrow, one began three days ago."""
    today = datetime.now(UTC).date()
    soon, before = today + timedelta(days=2), today - timedelta(days=3)
    later = airflow.declare(orders("later", soon.isoformat(), (soon + timedelta(days=5)).isoformat()))
    current = airflow.declare(orders("current", before.isoformat(), (today + timedelta(days=5)).isoformat()))
    ended = airflow.declare(orders("ended", "2024-01-01", "2024-01-03"))
    for name in (ended, later, current):
        airflow.api.unpause(name)
    (run,) = airflow.until("the run of the last whole day", lambda: airflow.api.runs(current), within=300)
    bounds = (run["data_interval_start"][:10], run["data_interval_end"][:10])
    days = {today, datetime.now(UTC).date()}  # two where midnight came between
    assert bounds in [((day - timedelta(days=1)).isoformat(), day.isoformat()) for day in days]
    assert airflow.api.runs(later) == airflow.api.runs(ended) == []
    assert len(airflow.api.runs(current)) == 1
