"""The corrections that are reported to who follows a collection: those learned in a span, and no others."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from simulation import correcting
from support.world import World, collection, interval
from tidemark.jobs.queries.corrected import CorrectedRows, corrected_between
from tidemark.jobs.steps.ingest import ingest
from tidemark.jobs.steps.quarantine import quarantine, release
from tidemark.jobs.steps.seal import seal
from tidemark.model.collection import Envelope

pytestmark = pytest.mark.simulation
NOTHING = CorrectedRows()


def row(k: int, t: int, v: str = "a") -> dict[str, Any]:
    return correcting.row(k, v, t)


@pytest.fixture
def world(tmp_path: Path) -> World:
    return correcting.made(tmp_path)


def run(world: World, day: int, rows: list[dict[str, Any]] | None = None, name: str = "a") -> dict[str, Any]:
    if rows is not None:
        world.land(day, name, rows)
    return correcting.run(world, day)


def published(world: World, day: int) -> tuple[int, int]:
    """The span that a run of the day adds to what can be read."""
    lower = world.state.trace_upper
    correcting.sealed(world, day)
    return lower, world.state.trace_upper


def corrections(world: World, span: tuple[int, int]) -> CorrectedRows:
    return corrected_between(world.log(), *span)


def test_each_span_tells_its_own_corrections_and_no_ordinary_rows(world: World) -> None:
    run(world, 0, [row(1, 3), row(2, 4)])
    first = published(world, 0)
    run(world, 1, [row(3, 13)])
    second = published(world, 1)
    assert run(world, 0)["changed"] == "nothing changed"
    assert run(world, 0, [row(1, 3), row(2, 4, "b"), row(9, 8)])["changed"] == (
        "1 file corrected, 1 row retracted and 2 added, "
        "happened 1970-01-01T00:00:00.000004Z to 1970-01-01T00:00:00.000008Z"
    )
    third = published(world, 0)
    run(world, 1, [])
    fourth = published(world, 1)
    assert third == (20, 21)
    assert [corrections(world, span) for span in (first, second, third, fourth)] == [
        NOTHING,
        NOTHING,
        CorrectedRows(1, 1, 2, (4, 8)),
        CorrectedRows(1, 1, 0, (13, 13)),
    ]
    assert corrections(world, (20, 22)) == CorrectedRows(2, 2, 2, (4, 13))
    assert corrections(world, (20, 22)).words == (
        "2 files corrected, 2 rows retracted and 2 added, "
        "happened 1970-01-01T00:00:00.000004Z to 1970-01-01T00:00:00.000013Z"
    )
    assert NOTHING.as_dict() == {
        **{"files": 0, "retracted": 0, "added": 0, "event_times": None},
        "changed": "nothing changed",
    }


def test_a_correction_that_was_taken_out_is_not_reported_and_one_put_back_is(world: World) -> None:
    run(world, 0, [row(1, 3)])
    published(world, 0)
    run(world, 0, [row(1, 3, "b")])
    batch = world.state.pending[-1].id
    quarantine(world.job(), batch)
    run(world, 0, [row(1, 3), row(5, 5)])
    assert corrections(world, (10, 11)) == CorrectedRows(1, 0, 1, (5, 5))
    quarantine(world.job(), world.state.pending[-1].id)
    release(world.job(), batch)
    assert corrections(world, (10, 11)) == CorrectedRows(1, 1, 1, (3, 3))


def test_a_seal_that_asked_for_more_and_moved_nothing_hides_no_correction(world: World) -> None:
    """A later day's run seals while the correction is taken out: an earlier day is missing, so nothing moves."""
    run(world, 0, [row(1, 3)])
    published(world, 0)
    run(world, 0, [row(1, 3, "b")])
    batch = world.state.pending[-1].id
    quarantine(world.job(), batch)
    run(world, 2, [row(4, 23)])
    world.run(lambda job: seal(job, interval(2)))
    assert (world.state.seal, world.state.requested_seal) == (10, 30)
    release(world.job(), batch)
    assert corrections(world, published(world, 0)) == CorrectedRows(1, 1, 1, (3, 3))


def test_other_bytes_that_say_the_same_are_nothing_to_tell(world: World) -> None:
    rows = [row(1, 3), row(2, 4)]
    run(world, 0, rows)
    published(world, 0)
    done = run(world, 0, rows[::-1])
    assert done["changed"] == "nothing changed, 1 file holds other bytes and says the same"
    run(world, 1, [row(3, 13)])
    assert corrections(world, published(world, 1)) == NOTHING


def test_a_new_file_of_a_day_that_had_been_read_is_reported_by_the_run(world: World) -> None:
    assert "changed" not in run(world, 0, [row(1, 3)])
    published(world, 0)
    done = run(world, 0, [row(7, 5)], name="b")
    assert done["changed"] == "1 new file, happened 1970-01-01T00:00:00.000005Z"


def test_a_full_snapshot_that_is_withdrawn_is_reported_as_the_rows_it_had(tmp_path: Path) -> None:
    world = World(tmp_path, collection(Envelope.SNAPSHOT, reprocess_for=1000))
    for day in range(2):
        world.land(day, "a", [{"k": 1, "v": "a"}, {"k": 2, "v": "b"}])
        run(world, day)
        published(world, day)
    (world.landing / world.land(0, "a", [])).unlink()
    asked = {"landing_root": str(world.landing), "removed": True, "yes": True}
    batch = world.run(lambda job: ingest(job, interval(0), **asked))["batch"]
    span = published(world, 0)
    assert corrections(world, span) == CorrectedRows(1, 2, 0, (9, 9))
    assert world.state.told == world.state.told.remove(9)
    assert batch
