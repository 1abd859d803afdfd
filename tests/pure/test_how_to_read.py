"""docs/how-to/read-from-python.md does what it says, on the collection that it tells of."""

from __future__ import annotations

import doctest
import json
from pathlib import Path

import pytest

from support.inprocess import InProcessRunner
from support.world import gated
from tidemark.jobs.job import Job, collection_store, fresh_id
from tidemark.jobs.steps.ingest import ingest
from tidemark.jobs.steps.init import declare
from tidemark.jobs.steps.seal import seal
from tidemark.model.instant import parse_instant
from tidemark.model.interval import Interval
from tidemark.storage.log.log import StateLog

pytestmark = pytest.mark.pure
PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "read-from-python.md"
PEOPLE = """\
name: people
key: [person]
value: [city, fee]
columns: {person: string, city: string, fee: "decimal(6, 2)", gone: bool, happened: timestamp, reported: timestamp}
start: 2024-01-01
time: {column: reported}
event_time: {column: happened}
late: {reemit: {max_lateness: 7d}}
source: {path: "{{ landing }}/people/{{ ds }}/*.jsonl", format: jsonl, envelope: upsert, delete_when: "gone = TRUE"}
"""
DAYS = {
    1: [("ada", "London", "12.50", False, 1, 1), ("cid", "Rome", "9.00", False, 1, 1)],
    2: [("bob", "Paris", "7.00", False, 2, 2)],
    3: [("ada", "Paris", "12.50", False, 2, 3), ("cid", "Rome", "9.00", True, 3, 3)],
}
"""Person, city, fee, gone, the day it happened and the day it was reported."""


def made(folder: Path) -> str:
    """The root of the collection."""
    root, file = folder / "root", folder / "people.yaml"
    file.write_text(PEOPLE)
    store = collection_store(str(root), "people")
    for day, rows in DAYS.items():
        names = ("person", "city", "fee", "gone", "happened", "reported")
        told = [(*row[:4], *(f"2024-01-{at:02}T08:00:00Z" for at in row[4:])) for row in rows]
        landed = folder / "landing" / "people" / f"2024-01-{day:02}" / "a.jsonl"
        landed.parent.mkdir(parents=True)
        landed.write_text("".join(json.dumps(dict(zip(names, row, strict=True))) + "\n" for row in told))
        interval = Interval(parse_instant(f"2024-01-{day:02}"), parse_instant(f"2024-01-{day + 1:02}"))
        job = Job(store, StateLog(store, fresh_id), lambda: InProcessRunner(store), fresh_id())
        declare(job, str(file))
        ingest(job, interval, landing_root=str(folder / "landing"))
        gated(job, lambda job, interval=interval: seal(job, interval))  # type: ignore[misc]
    return str(root)


def test_the_page_shows_what_happens(tmp_path: Path) -> None:
    failed, tried = doctest.testfile(str(PAGE), module_relative=False, globs={"root": made(tmp_path)})
    assert tried >= 20
    assert failed == 0
