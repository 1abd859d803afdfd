"""Real flights: one run of many days, and the same days one by one, end in equal collections (docs/decisions/0048)."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta
from pathlib import Path

from demo import layout
from support.world import World
from tests.support.reading import as_of, changes
from tidemark.config.collection_file import load
from tidemark.config.schedule import Schedule
from tidemark.jobs.queries.late import late_rows
from tidemark.jobs.steps.drain import drain
from tidemark.jobs.steps.ingest import ingest
from tidemark.jobs.steps.seal import seal
from tidemark.model.interval import Interval

FLIGHTS = Path(__file__).resolve().parents[2] / "include" / "collections" / "flights.yaml"
DAY = 86_400_000_000
DAYS = 40


def ran(landing: Path, runs: list[list[Interval]]) -> World:
    """Runs of some days each, sealed and drained when all of them are read."""
    world = World(landing, load(FLIGHTS))
    for days in runs:
        for day in days:
            world.run(lambda job, day=day: ingest(job, day, landing_root=str(landing)))
        last = max(days)
        world.run(lambda job, last=last: seal(job, last))
        world.run(lambda job, last=last: drain(job, last))
    return world


def contents(world: World) -> list[Counter[str]]:
    """Its history, what it holds, and its late rows."""
    found = late_rows(world.truth, world.state, limit=10**6).rows
    rows = changes(world.truth, world.state, after=-1), as_of(world.truth, world.state)
    return [*(Counter(map(repr, table.to_pylist())) for table in rows), Counter(repr(row) for row in found)]


def test_one_run_of_many_days_ends_as_a_run_for_each(tmp_path: Path) -> None:
    last = layout.FIRST_DAY + timedelta(days=DAYS - 1)
    layout.lay_out(tmp_path, first=layout.FIRST_DAY, last=last)
    first = load(FLIGHTS).start
    days = Schedule("@daily").beginning(first, first + DAYS * DAY)
    daily = contents(ran(tmp_path, [[day] for day in days]))
    assert contents(ran(tmp_path, [days])) == daily
    assert contents(ran(tmp_path, [days[:1], list(reversed(days[1:]))])) == daily
    assert daily[2].total() > 100 * (DAYS - 2), "about a hundred rows a day are late"
