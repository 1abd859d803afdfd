"""A task that waits for a collection: deferred, until all is complete below a time."""

from __future__ import annotations

import asyncio
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from airflow.sdk import DAG
from airflow.sdk.exceptions import AirflowFailException, TaskDeferred
from airflow.sdk.module_loading import import_string
from airflow.sdk.serde import deserialize, serialize

from tests.dags.test_on_time import ingest
from tidemark.airflow import wait, wait_for_seal
from tidemark.airflow.wait import SealTrigger
from tidemark.errors import InvalidUsage
from tidemark.model.instant import parse_instant

SECOND = "2024-01-02T00:00:00Z"


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wait, "FIRST_PAUSE", 0.05)


def waiting(file: Path, **options: Any) -> Any:
    with DAG("any", schedule=None):
        return wait_for_seal(file.stem, **{"upto": SECOND, **options})


def deferred(task: Any, context: Any = None) -> TaskDeferred:
    with pytest.raises(TaskDeferred) as found:
        task.execute(context or {})
    return found.value


def as_the_triggerer_has_it(found: TaskDeferred) -> Any:
    path, arguments = found.trigger.serialize()
    return import_string(path)(**deserialize(serialize(arguments)))


async def first(trigger: Any) -> dict[str, Any]:
    async for event in trigger.run():
        return dict(event.payload)
    raise AssertionError("it ended without an event")


def test_what_is_sealed_is_not_waited_for(declared: Path) -> None:
    ingest(declared, 1)
    assert waiting(declared).execute({}) == {"collection": declared.stem, "upto": SECOND, "complete_below": SECOND}


def test_the_wait_ends_when_another_run_seals(declared: Path) -> None:
    found = deferred(task := waiting(declared))
    assert found.method_name == "sealed"

    async def both() -> dict[str, Any]:
        wait_ends = asyncio.create_task(first(as_the_triggerer_has_it(found)))
        await asyncio.sleep(0.2)
        assert not wait_ends.done(), "the collection is not there yet"
        await asyncio.to_thread(ingest, declared, 1)
        return await asyncio.wait_for(wait_ends, 60)

    event = asyncio.run(both())
    assert task.sealed({}, event=event, **found.kwargs)["complete_below"] == SECOND


def test_a_wait_in_vain_fails_and_says_how_far_it_came(declared: Path) -> None:
    ingest(declared, 1)
    task = waiting(declared, upto="2024-01-03T00:00:00Z", timeout=timedelta(seconds=0.2))
    found = deferred(task)
    event = asyncio.run(first(as_the_triggerer_has_it(found)))
    with pytest.raises(AirflowFailException, match=f"not sealed up to 2024-01-03.*complete below {SECOND}; clear"):
        task.sealed({}, event=event, **found.kwargs)


def test_a_store_that_is_away_is_waited_for(declared: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def away(root: str, name: str) -> Any:
        raise OSError("no route to host")

    monkeypatch.setattr(wait, "state_of", away)
    trigger = SealTrigger(declared.stem, "root", parse_instant(SECOND), time.time() + 0.2)
    assert asyncio.run(first(trigger)) == {"sealed": False, "complete_below": 0, "error": "no route to host"}


def test_without_a_time_it_is_the_end_of_what_the_run_is_about(declared: Path) -> None:
    params = {"lower": "2024-01-02T00:00:00Z", "upper": "2024-01-04T00:00:00Z"}
    found = deferred(waiting(declared, upto=""), {"params": params})
    assert found.kwargs == {"upto": parse_instant("2024-01-04")}


def test_grace_and_end(declared: Path) -> None:
    text = declared.read_text()
    declared.write_text(text + "grace: 6h\nend: 2024-01-03\n")
    ingest(declared, 1)
    assert waiting(declared).execute({})["complete_below"] == "2024-01-01T18:00:00Z", "its interval is sealed"
    deferred(waiting(declared, upto="2024-01-03T00:00:00Z"))
    ingest(declared, 2)
    assert waiting(declared, upto="2030-01-01").execute({}), "nothing more is to come"


def test_what_makes_no_sense_is_refused_when_the_file_is_parsed(declared: Path) -> None:
    with pytest.raises(InvalidUsage, match="collection 'No' is no name"):
        wait_for_seal("No")
    with pytest.raises(InvalidUsage, match="soon"):
        waiting(declared, upto="soon")
    made = waiting(declared, upto="{{ data_interval_end }}")
    assert made.task_id == f"wait_for_{declared.stem}"
    assert made.template_fields == ("collection", "upto")
