"""A file that cannot be taken stops its interval, and never what others did with it meanwhile."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest

from support.faulty import InterruptedStore
from support.relanded import relanded
from support.world import World, collection, interval
from tidemark.errors import Contention, FileRefused
from tidemark.jobs.job import Job
from tidemark.jobs.steps.ingest import ingest, recorded_run, sources_of
from tidemark.jobs.steps.init import declare_collection
from tidemark.model.change import Refused
from tidemark.model.collection import Collection, Column, ColumnType
from tidemark.model.ledger import set_aside
from tidemark.storage import landing

pytestmark = pytest.mark.simulation
V = Column("v", ColumnType.STRING)
GOOD = [{"k": 1, "v": "a", "t": 3, "e": 3}]


def take(world: World):
    def step(job: Job):
        return ingest(job, interval(0), landing_root=str(world.landing))

    return step


@pytest.mark.usefixtures("nothing_is_small")
def test_a_refusal_that_comes_after_the_mended_file_was_counted_changes_nothing(tmp_path, stores):
    world = World(tmp_path, collection(), stores())
    world.land(0, "a", [{"k": "not a number", "v": "a", "t": 3, "e": 3}])

    def mended_and_taken() -> None:
        world.land(0, "a", GOOD)
        newer = world.run(take(world))
        assert newer["rows"] == 1

    truth = world.truth
    # The slow attempt has read the bad file when it writes what the ledger shall remember of it.
    interrupted = InterruptedStore(truth, "create", mended_and_taken, after=False)
    slow = world.job()
    slow.store = interrupted
    with pytest.raises(Contention):
        take(world)(slow)
    assert interrupted.interrupted
    assert world.run(take(world))["outcome"] == "nothing to do"
    assert world.state.totals.rows_ingested == 1


def test_a_mended_file_is_taken_after_the_refusal(tmp_path, stores):
    world = World(tmp_path, collection(), stores())
    world.land(0, "a", [{"k": "not a number", "v": "a", "t": 3, "e": 3}])
    with pytest.raises(FileRefused, match=r"a\.jsonl"):
        world.run(take(world))
    world.land(0, "a", GOOD)
    assert world.run(take(world))["rows"] == 1
    assert world.run(take(world))["outcome"] == "nothing to do"


def quarantining(**changed) -> Collection:
    declared = collection()
    return relanded(declared, source=replace(declared.landed.source, bad_files="quarantine", **changed))


def test_a_file_set_aside_is_read_once_the_declaration_is_mended(tmp_path, stores):
    world = World(tmp_path, quarantining(), stores())
    world.land(0, "a", [{"k": 1, "v": "a", "w": 0.5, "t": 3, "e": 3}])
    declared = replace(quarantining(), value=(V, Column("w", ColumnType.INT)))
    world.run(lambda job: declare_collection(job, declared))
    assert world.run(take(world))["bad_files"] == 1
    assert world.run(take(world))["outcome"] == "nothing to do"
    wider = replace(declared, value=(V, Column("w", ColumnType.FLOAT)))
    world.run(lambda job: declare_collection(job, wider))
    assert world.run(take(world))["rows"] == 1
    assert world.run(take(world))["outcome"] == "nothing to do"


def test_a_file_refused_by_stop_is_counted_once_it_may_be_set_aside(tmp_path, stores):
    world = World(tmp_path, collection(), stores())
    world.land(0, "a", [{"k": "not a number", "v": "a", "t": 3, "e": 3}])
    with pytest.raises(FileRefused):
        world.run(take(world))
    world.run(lambda job: declare_collection(job, quarantining()))
    assert world.run(take(world))["bad_files"] == 1
    assert world.run(take(world))["outcome"] == "nothing to do"


@pytest.mark.parametrize("lacks", ["a checksum", "what judged it"])
def test_a_verdict_that_an_earlier_version_gave_is_given_again(tmp_path, stores, lacks):
    """Entries without a checksum were of files that could not be opened; none said by what declaration it was made."""
    declared = quarantining()
    world = World(tmp_path, declared, stores())
    identity = world.land(0, "a", GOOD)
    (file,) = landing.list_sources(str(tmp_path / identity))
    sha256 = "" if lacks == "a checksum" else landing.sha256_of(file.path)
    entry = set_aside(declared, interval(0), replace(file, name=identity), sha256, "cannot be read: Permission denied")
    entry = replace(entry, judged_by=None) if lacks == "what judged it" else entry
    job = world.job()
    head, fence = job.fenced(job.log.load(), "ingest", interval(0))
    job.log.commit(head, Refused(recorded_run(job, [entry]), fence, sources_of([entry])))
    assert world.run(take(world))["rows"] == 1
    assert world.run(take(world))["outcome"] == "nothing to do"


@pytest.mark.parametrize("policy", ["stop", "quarantine"])
def test_a_file_name_that_is_not_utf8_is_a_bad_file(tmp_path, stores, policy):
    declared = quarantining() if policy == "quarantine" else collection()
    world = World(tmp_path, declared, stores())
    folder = (tmp_path / world.land(0, "a", GOOD)).parent
    odd = os.fsencode(folder) + b"/b\xff.jsonl"
    Path(os.fsdecode(odd)).write_text(json.dumps({"k": 2, "v": "b", "t": 3, "e": 3}) + "\n")
    if policy == "stop":
        with pytest.raises(FileRefused, match=r"b\\xff\.jsonl: the bytes of its name are not UTF-8; rename it"):
            world.run(take(world))
    else:
        report = world.run(take(world))
        assert (report["rows"], report["bad_files"]) == (1, 1)
        assert world.run(take(world))["outcome"] == "nothing to do"
        assert world.state.totals.rows_ingested == 1
    Path(os.fsdecode(odd)).rename(folder / "b.jsonl")
    world.run(take(world))
    assert world.state.totals.rows_ingested == 2
