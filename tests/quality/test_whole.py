"""What is about all rows of an interval is asked once of its whole content, also where that has no rows."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from support.relanded import relanded
from support.world import DAY, World, certify, collection, interval
from tests.support.reading import as_of
from tidemark.errors import GateFailed, InvalidUsage, Uncertified
from tidemark.jobs.steps.drain import drain
from tidemark.jobs.steps.gate import gate
from tidemark.jobs.steps.ingest import ingest
from tidemark.jobs.steps.quarantine import quarantine, release
from tidemark.jobs.steps.replay import replay
from tidemark.jobs.steps.seal import seal
from tidemark.model.batching.cutting import Batching
from tidemark.model.batching.reason import Cut, Reason
from tidemark.model.collection import Envelope, Gate, Late
from tidemark.plan.gate import plan_gate
from tidemark.quality.results import Results
from tidemark.storage.stores.private import open_private

pytestmark = pytest.mark.quality

SOME = {"expect_table_row_count_to_be_between": {"min_value": 1}}
TWO = {"expect_table_row_count_to_equal": {"value": 2}}
SMALL = {"expect_column_max_to_be_between": {"column": "k", "max_value": 5}}
KEYS = {"expect_column_values_to_be_between": {"column": "k", "min_value": 0}}
WHY = "the source was closed"
COUNT = Cut(Reason.COUNT, (), 2.5, opened=1, at=None)
ENVELOPES = list(Envelope)


@pytest.fixture(autouse=True)
def docs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TIDEMARK_DOCS", str(tmp_path / "docs"))
    return tmp_path / "docs"


def made(folder: Path, envelope: Envelope, *rules: dict[str, Any], share: float | None = 0, **landed: Any) -> World:
    """A world whose collection has rules, and where full snapshots are not compared unless by a `share`."""
    declared = collection(envelope, quality=tuple(map(json.dumps, rules)))
    if envelope is Envelope.SNAPSHOT:
        landed["source"] = replace(declared.landed.source, min_share=share)
    return World(folder / "landing", relanded(declared, **landed))


def row(key: int, day: int = 0, time: int | None = None) -> dict[str, Any]:
    at = day * DAY + 3 if time is None else time
    return {"k": key, "v": "a", "t": at, "e": at, "o": 1, "d": 1, "gone": False}


def rows(world: World, *keys: int, day: int = 0) -> list[dict[str, Any]]:
    whole = world.collection.kind.whole_intervals
    return [{"k": key, "v": "a"} if whole else row(key, day) for key in keys]


def read(world: World, day: int = 0, cut: Cut | None = None, **options: Any) -> dict[str, Any]:
    return world.run(lambda job: ingest(job, interval(day), landing_root=str(world.landing), cut=cut, **options))


def landed(world: World, day: int, *files: Sequence[int]) -> dict[str, Any]:
    """A day with files of these keys, read."""
    (world.landing / str(day * DAY)).mkdir(parents=True, exist_ok=True)
    for number, keys in enumerate(files):
        world.land(day, f"{number}", rows(world, *keys, day=day))
    return read(world, day)


def judged(world: World, day: int | None = None, **more: Any) -> dict[str, Any]:
    return gate(world.job(), Gate.UNSEALED, intervals=[] if day is None else [interval(day)], **more)


def refused(world: World, day: int | None = None) -> GateFailed:
    with pytest.raises(GateFailed) as failed:
        judged(world, day)
    return failed.value


def moved(world: World, day: int) -> None:
    """Sealed by the certificates there are, and drained."""
    seal(world.job(), interval(day))
    certify(world.job(), Gate.FRONTIER)
    drain(world.job(), interval(day))
    certify(world.job(), Gate.TRACE)


def keys_of(world: World) -> list[int]:
    return sorted(found["k"] for found in as_of(world.truth, world.state).to_pylist())


def checks(docs: Path, about: str = "", newest: int = 0) -> dict[str, tuple[bool, bool, str]]:
    """Of a kept result, the newest, by expectation: whether it passed, whether it was not asked, what was observed."""
    results = Results(open_private(str(docs)))
    name = list(results.names("tides", Gate.UNSEALED))[newest]
    found = (results.load("tides", Gate.UNSEALED, name) or {})["results"]
    assert len({(one["rule"], one["batch"]) for one in found}) == len(found), "each is asked once"
    owned = [one for one in found if one["rule"].startswith("expect_") and one["batch"].startswith(about)]
    return {one["rule"].partition("(")[0]: (one["passed"], one["not_asked"], one["observed"]) for one in owned}


@pytest.mark.parametrize(
    ("envelope", "files"),
    # A day without files says nothing of a full snapshot: there is none.
    [(envelope, files) for envelope in ENVELOPES for files in (0, 1) if files or envelope is not Envelope.SNAPSHOT],
)
def test_a_day_without_rows_fails_a_row_count_holds_the_seal_and_may_be_accepted(
    tmp_path: Path, docs: Path, envelope: Envelope, files: int
) -> None:
    world = made(tmp_path, envelope, SOME, SMALL, KEYS)
    landed(world, 0, [1, 2])
    judged(world, 0)
    moved(world, 0)
    landed(world, 1, *[[]] * files)
    failed = refused(world, 1)
    (empty,) = world.state.without_rows
    assert failed.details["batches"] == [empty.id]
    assert "observed 0, not min_value 1" in str(failed)
    assert f"`tidemark gate tides unsealed --accept {empty.id[:12]} --reason TEXT`" in str(failed)
    assert checks(docs) == {
        "expect_table_row_count_to_be_between": (False, False, "0"),
        "expect_column_max_to_be_between": (True, True, "not asked: there are no rows"),
    }
    with pytest.raises(Uncertified, match=empty.id) as blocked:
        seal(world.job(), interval(1))
    assert blocked.value.intervals == (interval(1),)
    certify(world.job(), Gate.FRONTIER)
    drain(world.job(), interval(1))
    assert (keys_of(world), world.state.complete_below) == ([1, 2], DAY), "nothing is deleted"

    accepted = judged(world, 1, accept=empty.id[:7], reason=WHY, by="ada")
    assert (accepted["batches"], [one.batch for one in world.state.accepted]) == ([empty.id], [empty.id])
    moved(world, 1)
    assert (world.state.complete_below, world.state.empty, world.state.snapshots) == (2 * DAY, (), ())
    assert keys_of(world) == ([] if envelope is Envelope.SNAPSHOT else [1, 2])
    assert [one.reason for one in world.state.accepted] == [WHY]
    assert not {one.batch for one in world.state.certificates} & {empty.id}


@pytest.mark.parametrize("envelope", [Envelope.APPEND, Envelope.UPSERT, Envelope.SNAPSHOT])
def test_a_later_day_passes_its_own_gate_and_waits_behind_it(tmp_path: Path, envelope: Envelope) -> None:
    world = made(tmp_path, envelope, SOME)
    landed(world, 0, [])
    landed(world, 1, [1])
    judged(world, 1)
    with pytest.raises(Uncertified):
        seal(world.job(), interval(1))
    (empty,) = world.state.without_rows
    world.run(lambda job: quarantine(job, empty.id))
    assert (world.state.without_rows, [one.id for one in world.state.taken_out]) == ((), [empty.id])
    landed(world, 0, [2])
    judged(world)
    moved(world, 1)
    assert keys_of(world) == ([1] if envelope is Envelope.SNAPSHOT else [1, 2])


def test_one_that_was_taken_out_is_put_back_until_its_day_is_complete(tmp_path: Path) -> None:
    world = made(tmp_path, Envelope.APPEND, SOME)
    landed(world, 0, [])
    (empty,) = world.state.without_rows
    for step in (quarantine, release, quarantine, release):
        for _ in range(2):
            world.run(lambda job, step=step: step(job, empty.id))
    assert world.state.without_rows == (empty,)
    refused(world)
    world.run(lambda job: quarantine(job, empty.id))
    moved(world, 0)
    assert world.state.complete_below == DAY, "the day counts as read, and says nothing"


def test_without_files_there_is_nothing_to_take_out_and_what_lands_then_is_the_day(tmp_path: Path) -> None:
    world = made(tmp_path, Envelope.APPEND, SOME)
    landed(world, 0)
    (empty,) = world.state.without_rows
    with pytest.raises(InvalidUsage, match="is an interval without files, there is nothing to take out"):
        quarantine(world.job(), empty.id)
    landed(world, 0, [1])
    assert judged(world)["outcome"] == "applied"
    assert world.state.empty == ()
    moved(world, 0)
    assert keys_of(world) == [1]


@pytest.mark.parametrize("envelope", ENVELOPES)
def test_a_mended_file_is_the_day_where_files_may_be_corrected(tmp_path: Path, envelope: Envelope) -> None:
    world = made(tmp_path, envelope, TWO, reprocess_for=10 * DAY)
    landed(world, 0, [])
    refused(world)
    landed(world, 0, [1])
    assert "observed 1, not value 2" in str(refused(world)), "the one row is all there is"
    landed(world, 0, [1, 2])
    judged(world)
    moved(world, 0)
    assert keys_of(world) == [1, 2]


@pytest.mark.parametrize("envelope", [Envelope.APPEND, Envelope.SNAPSHOT])
def test_what_is_left_when_a_part_is_taken_out_is_judged_again(tmp_path: Path, envelope: Envelope) -> None:
    rules = [SOME] if envelope is Envelope.APPEND else []
    world = made(tmp_path, envelope, *rules, reprocess_for=10 * DAY, share=None)
    landed(world, 0, [1])
    judged(world)
    moved(world, 0)
    landed(world, 1, [])
    refused(world)
    mended = landed(world, 1, [2])["batch"]
    judged(world)
    world.run(lambda job: quarantine(job, mended))
    with pytest.raises(Uncertified):
        seal(world.job(), interval(1))
    refused(world)
    assert keys_of(world) == [1]


@pytest.mark.parametrize("rest", [[], [3]], ids=["nothing comes at the end", "a row comes at the end"])
def test_cuts_are_one_whole_that_is_judged_once_when_the_interval_is_over(
    tmp_path: Path, docs: Path, rest: list[int]
) -> None:
    count = {"expect_table_row_count_to_equal": {"value": 2 + len(rest)}}
    world = made(tmp_path, Envelope.APPEND, count, SMALL, KEYS, batching=Batching(count=1, settle=0))
    for number in (1, 2):
        world.land(0, f"{number}", rows(world, number))
        batch = read(world, 0, COUNT)["batch"]
        judged(world, 0)
        found = checks(docs, batch)
        assert found["expect_table_row_count_to_equal"][1:] == (
            True,
            "not asked: the interval goes on, and is judged when it is over",
        )
        assert found["expect_column_values_to_be_between"] == (True, False, "0 of 1 unexpected")
    if rest:
        world.land(0, "3", rows(world, *rest))
    read(world, 0)
    with pytest.raises(Uncertified):
        seal(world.job(), interval(0))
    judged(world, 0)
    assert checks(docs)["expect_table_row_count_to_equal"] == (True, False, str(2 + len(rest)))
    assert checks(docs)["expect_column_max_to_be_between"] == (True, False, str(max([2, *rest])))
    moved(world, 0)


def test_cuts_that_are_too_few_together_fail_where_the_end_brings_nothing(tmp_path: Path) -> None:
    world = made(tmp_path, Envelope.APPEND, TWO, batching=Batching(count=1, settle=0))
    world.land(0, "1", rows(world, 1))
    read(world, 0, COUNT)
    judged(world)
    read(world, 0)
    assert "observed 1, not value 2" in str(refused(world))
    with pytest.raises(Uncertified):
        seal(world.job(), interval(0))


def test_of_two_readings_of_a_day_both_are_the_whole(tmp_path: Path) -> None:
    world = made(tmp_path, Envelope.APPEND, TWO)
    landed(world, 0, [1])
    refused(world)
    world.land(0, "later", rows(world, 2))
    read(world, 0)
    assert len(judged(world)["batches"]) == 2


def test_what_a_correction_or_a_replay_changes_is_never_the_whole(tmp_path: Path, docs: Path) -> None:
    late = Late("discard")
    world = made(tmp_path, Envelope.APPEND, TWO, KEYS, reprocess_for=10 * DAY, late=late)
    landed(world, 0, [1, 2])
    judged(world)
    moved(world, 0)
    world.land(1, "0", [*rows(world, 3, 4, day=1), row(5, time=2)])
    read(world, 1)
    judged(world)
    moved(world, 1)
    landed(world, 0, [1, 2, 6])
    judged(world)
    differs = (True, True, "not asked: these rows are what a correction or a replay changes")
    assert checks(docs)["expect_table_row_count_to_equal"] == differs
    assert checks(docs)["expect_column_values_to_be_between"][1] is False, "what is about rows is asked of each batch"
    moved(world, 1)
    assert world.run(replay)["rows"] == 1
    judged(world)
    assert checks(docs)["expect_table_row_count_to_equal"] == differs


def test_a_file_that_comes_after_its_day_was_drained_is_not_the_day(tmp_path: Path, docs: Path) -> None:
    world = made(tmp_path, Envelope.APPEND, TWO)
    landed(world, 0, [1, 2])
    judged(world)
    moved(world, 0)
    world.land(0, "later", rows(world, 3))
    read(world, 0)
    judged(world)
    assert checks(docs)["expect_table_row_count_to_equal"][1:] == (
        True,
        "not asked: other rows of the interval are drained",
    )


def test_without_such_a_rule_a_day_without_rows_costs_nothing(tmp_path: Path) -> None:
    world = made(tmp_path, Envelope.APPEND, KEYS)
    landed(world, 0, [])
    before = world.head.version
    assert plan_gate(world.state, Gate.UNSEALED) is None
    assert judged(world)["outcome"] == "nothing to do"
    assert world.head.version == before
    assert world.state.empty == ()


def test_a_figure_of_rows_that_a_condition_leaves_out_is_not_asked(tmp_path: Path, docs: Path) -> None:
    only = {"row_condition": {"type": "comparison", "column": "k", "operator": ">", "parameter": 100}}
    mean = {"expect_column_mean_to_be_between": {"column": "k", "min_value": 100, **only}}
    world = made(tmp_path, Envelope.APPEND, mean, SOME)
    landed(world, 0, [1])
    result = judged(world)
    assert (result["not_asked"], checks(docs)["expect_column_mean_to_be_between"][1]) == (1, True)


def test_a_full_snapshot_of_fewer_than_half_asks_as_it_is(tmp_path: Path) -> None:
    world = made(tmp_path, Envelope.SNAPSHOT, share=None)
    landed(world, 0, range(1_000))
    judged(world)
    moved(world, 0)
    landed(world, 1, range(499))
    failed = refused(world)
    assert failed.details["acceptable"]
    assert "rows of the full snapshot before" in str(failed)
    assert "has 499 rows, the full snapshot before has 1,000, and all others would be deleted; " in str(failed)
    assert "source.min_share 0.5 lets it have 500 or more" in str(failed)
    landed(world, 2, [])
    message = str(refused(world, 2))
    assert "has 0 rows, the full snapshot before has 1,000" in message
    (empty,) = world.state.without_rows
    judged(world, 1, accept=world.state.unsealed[-1].id, reason=WHY, by="ada")
    moved(world, 1)
    assert len(keys_of(world)) == 499
    refused(world)
    judged(world, accept=empty.id, reason=WHY, by="ada")
    moved(world, 2)
    assert keys_of(world) == []
    landed(world, 3, [])
    judged(world)
    moved(world, 3)


def test_a_correction_that_takes_most_of_a_full_snapshot_asks(tmp_path: Path) -> None:
    world = made(tmp_path, Envelope.SNAPSHOT, share=None, reprocess_for=10 * DAY)
    landed(world, 0, range(1_000))
    judged(world)
    moved(world, 0)
    landed(world, 1, range(1_000))
    judged(world)
    moved(world, 1)
    landed(world, 0, range(400))
    assert "has 400 rows, the full snapshot before has 1,000" in str(refused(world))
    judged(world, accept=world.state.unsealed[-1].id, reason=WHY, by="ada")
    moved(world, 1)
    landed(world, 0, range(390))
    judged(world)


def test_0_lets_a_full_snapshot_be_empty(tmp_path: Path) -> None:
    world = made(tmp_path, Envelope.SNAPSHOT, share=0)
    for keys in ([1], []):
        landed(world, bool(not keys), keys)
        judged(world)
    moved(world, 1)
    assert keys_of(world) == []
