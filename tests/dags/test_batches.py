"""Runs that load starts: the trigger that watches a landing, the DAG of batches, and why a run takes what it takes."""

from __future__ import annotations

import asyncio
import json
import re
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.sdk.module_loading import import_string

from tests.dags.support import ORDERS
from tidemark.airflow import arrivals, batches_dag, collection_dags, tidemark_dag
from tidemark.airflow.location import location_of
from tidemark.airflow.web.intervals import cuts_in_words
from tidemark.errors import InvalidUsage
from tidemark.jobs import app
from tidemark.jobs.in_process_runner import InProcess
from tidemark.model.batching.reason import Cut, Reason
from tidemark.model.instant import parse_instant
from tidemark.model.interval import Interval

pytestmark = pytest.mark.timeout(300)
TODAY = datetime.now(UTC).replace(minute=0, second=0, microsecond=0) - timedelta(hours=12)
"""When the day began that goes on. It is over in eleven hours at the soonest, whatever time it is when tests begin."""
RULES = "batches: {bytes: 1, fixed: 1s, settle: 0s}\n"


@pytest.fixture
def cut(collections: Path, locations: Path) -> Path:
    """The file of a collection that is cut by load, and whose first day was yesterday."""
    (locations / "landing").mkdir()
    file = collections / "orders.yaml"
    began = (TODAY - timedelta(days=1)).isoformat()
    text = ORDERS.replace("start: 2024-01-01\nend: 2024-01-04", f"start: {began}")
    text = text.replace('schedule: "@daily"', f'schedule: "0 {TODAY.hour} * * *"')
    file.write_text(text.replace("ready: exists", "ready: always") + RULES)
    return file


def land(locations: Path, name: str = "a", day: datetime = TODAY) -> Path:
    folder = locations / "landing" / "orders" / day.date().isoformat()
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.csv").write_text(f"id,status,amount,happened_at\n1,open,{ord(name)},{day.isoformat()}\n")
    return folder


def watching(file: Path) -> Any:
    """The trigger of a collection's DAG of batches, as the triggerer makes it."""
    (watcher,) = arrivals.arrivals_of(location_of(file)).watchers
    path, arguments = watcher.trigger.serialize()
    return import_string(path)(**json.loads(json.dumps(arguments)))


def events_of(trigger: Any, meanwhile: Callable[[], object] = lambda: None) -> list[dict[str, Any]]:
    """What a trigger fires: the first event after something happened, and those of two looks more."""

    async def fired() -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        first = asyncio.Event()

        async def gather() -> None:
            async for event in trigger.run():
                found.append(event.payload)
                first.set()

        watch = asyncio.ensure_future(gather())
        await asyncio.sleep(0.2)
        meanwhile()
        await asyncio.wait_for(first.wait(), timeout=120)
        await asyncio.sleep(2.2)
        assert not watch.done(), "it never ends"
        watch.cancel()
        return found

    return asyncio.run(fired())


@dataclass(frozen=True)
class SomeAsset:
    """As much of an asset as its events are found by."""

    uri: str = "tidemark-landing://orders"


def run_of(*payloads: dict[str, Any], run_after: datetime | None = None) -> dict[str, Any]:
    """As much of a task's context as a cut needs."""
    events = {SomeAsset(): [SimpleNamespace(extra={"from_trigger": True, "payload": payload}) for payload in payloads]}
    dag_run = SimpleNamespace(run_after=run_after, run_type="asset_triggered" if payloads else "manual")
    ti = SimpleNamespace(run_id="r", task_id="ingest", map_index=-1, try_number=1)
    return {"triggering_asset_events": events if payloads else {}, "params": {}, "dag_run": dag_run, "ti": ti}


def ingested(task: Any, context: dict[str, Any]) -> dict[str, Any]:
    """What a task's app does, in this process."""
    argv, store = [*task.fixed_args, *task.args_of_run(context)], task.location.job().store
    return app.run("ingest", app.parser("ingest").parse_args(argv), lambda: InProcess(store))


def test_a_collection_with_batches_has_a_dag_of_them_beside_its_own(cut: Path, collections: Path) -> None:
    made = collection_dags(collections)
    assert sorted(made) == ["orders", "orders.batches"]
    dag = made["orders.batches"]
    assert dag.task_dict.keys() == {"ingest", "gate_unsealed"}
    assert dag.get_task("ingest").downstream_task_ids == {"gate_unsealed"}
    assert dag.max_active_runs == 1
    weights = [task.priority_weight if task.weight_rule == "absolute" else None for task in dag.tasks]
    assert weights == [0, 0], "tasks of the collection's own DAG go first"
    assert "orders.batches" in (made["orders"].doc_md or "")
    assert "every 1s, or 1 bytes" in (dag.doc_md or "")
    cut.write_text(cut.read_text().replace(RULES, ""))
    assert sorted(collection_dags(collections)) == ["orders"]
    with pytest.raises(InvalidUsage, match="orders declares no batches"):
        batches_dag(cut)
    cut.write_text(cut.read_text() + RULES + "dag: own\n")
    assert collection_dags(collections) == {}


def test_another_declaration_is_another_trigger(cut: Path) -> None:
    from airflow.triggers.base import BaseEventTrigger

    def trigger_hash() -> int:
        return BaseEventTrigger.hash(*watching(cut).serialize())

    before = trigger_hash()
    assert trigger_hash() == before
    cut.write_text(cut.read_text().replace("bytes: 1,", "bytes: 2,"))
    assert trigger_hash() != before


def test_it_fires_when_something_landed_and_once(cut: Path, locations: Path) -> None:
    events = events_of(watching(cut), lambda: land(locations))
    assert len(events) == 1
    (event,) = events
    assert (event["lower"], event["upper"]) == tuple(
        day.isoformat().replace("+00:00", "Z") for day in (TODAY, TODAY + timedelta(days=1))
    )
    assert event["cut"]["reason"] == "bytes"
    assert json.loads(json.dumps(event)) == event


def test_a_landing_that_is_not_there_is_waited_for(cut: Path, locations: Path) -> None:
    shutil.rmtree(locations / "landing")
    assert [event["cut"]["reason"] for event in events_of(watching(cut), lambda: land(locations))] == ["bytes"]


def test_what_arrivals_started_takes_what_has_landed_and_the_days_own_run_the_rest(cut: Path, locations: Path) -> None:
    land(locations)
    (event,) = events_of(watching(cut))
    task = batches_dag(cut).get_task("ingest")
    result = ingested(task, run_of(event))
    assert (result["rows"], result["files"], result["cut"]["reason"]) == (1, 1, "bytes")
    state = location_of(cut).job().log.load().state
    assert (state.ingested.members, state.complete_below) == ((), 0)
    assert [batch.rows for batch in state.unsealed] == [1]
    assert ingested(task, run_of(event))["outcome"] == "nothing to do"
    # The day's own run, a day later by Airflow's clock.
    land(locations, "b")
    own = tidemark_dag(cut).get_task("ingest")
    bounds = {"lower": event["lower"], "upper": event["upper"]}
    scheduled = SimpleNamespace(run_after=None, run_type="scheduled")
    result = ingested(own, {**run_of(), "params": bounds, "dag_run": scheduled})
    assert (result["rows"], result["files"], result["cut"]) == (1, 1, {"reason": "end_of_input", "also": ["bytes"]})
    assert ingested(task, run_of(event))["outcome"] == "nothing to do"
    words = [record.change.words for record in location_of(cut).job().log.history()]
    assert sum(" so far: 1 row of 1 file as " in line and "; cut by bytes" in line for line in words) == 1
    day = Interval(parse_instant(event["lower"]), parse_instant(event["upper"]))
    page = cuts_in_words(list(location_of(cut).job().log.history()), day)
    assert re.fullmatch(r"1 batch: 1 by bytes; on average 1 rows, [\d,]+ bytes, open for [\dms]+", page)


def test_a_run_by_hand_cuts_at_once_and_names_the_interval_that_goes_on(cut: Path, locations: Path) -> None:
    land(locations)
    dag = batches_dag(cut)
    now = datetime.now(UTC) + timedelta(seconds=1)
    result = ingested(dag.get_task("ingest"), run_of(run_after=now))
    assert (result["rows"], result["cut"]["reason"], result["cut"]["also"]) == (1, "bytes", ["time", "explicit"])
    assert dag.get_task("gate_unsealed").args_of_run(run_of(run_after=now))[1] == f"{TODAY:%Y-%m-%dT%H:00:00Z}"
    with pytest.raises(InvalidUsage, match=r"no interval of orders goes on at 2024-01-01T00:00:00Z: see its start"):
        dag.get_task("ingest").args_of_run(run_of(run_after=datetime(2024, 1, 1, tzinfo=UTC)))


def test_of_events_that_queued_the_newest_interval_is_taken_with_all_its_reasons(cut: Path) -> None:
    def event(day: int, cut: Cut) -> dict[str, Any]:
        days = (TODAY + timedelta(days=day), TODAY + timedelta(days=day + 1))
        return {"lower": days[0].isoformat(), "upper": days[1].isoformat(), "cut": cut.as_dict()}

    context = run_of(
        event(0, Cut(Reason.TIME, rate=1.0, opened=5, at=10)),
        event(-1, Cut(Reason.EXPLICIT, at=1)),
        event(0, Cut(Reason.COUNT, (Reason.TIME,), 2.0, opened=11, at=20)),
    )
    interval, found = arrivals.cut_of_run(context, location_of(cut).collection)
    assert interval.lower == parse_instant(TODAY.isoformat())
    assert found == Cut(Reason.COUNT, (Reason.TIME,), 2.0, opened=5, at=20)


def test_a_run_with_nothing_to_take_is_green_and_changes_nothing(
    cut: Path, database: None, said: Callable[[], str]
) -> None:
    done = batches_dag(cut, default_args={"retries": 0}).test()
    assert {ti.task_id: str(ti.state) for ti in done.get_task_instances()} == {
        "ingest": "success",
        "gate_unsealed": "success",
    }
    assert "nothing to do" in said()
    assert location_of(cut).job().log.load().state.ingested.members == ()


def test_the_scheduler_and_the_triggerer_read_what_the_dag_file_says(cut: Path) -> None:
    """Through what the database keeps of them: the DAG as JSON, the trigger by its path and arguments."""
    from airflow.serialization.encoders import encode_trigger
    from airflow.serialization.serialized_objects import DagSerialization

    made = DagSerialization.from_dict(json.loads(json.dumps(DagSerialization.to_dict(batches_dag(cut)))))
    assert made.dag_id == "orders.batches"
    assert "tidemark-landing://orders" in json.dumps(DagSerialization.to_dict(batches_dag(cut)))
    (watcher,) = arrivals.arrivals_of(location_of(cut)).watchers
    kept = json.loads(json.dumps(encode_trigger(watcher.trigger)))
    again = import_string(kept["classpath"])(**kept["kwargs"])
    assert again.serialize() == watcher.trigger.serialize()
