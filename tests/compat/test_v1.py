"""What format 1 wrote is read for ever: the checked-in collections answer as they did, and are left as they are."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from support.relanded import relanded
from support.world import DAY, World, interval
from tests.compat.make_v1 import ANSWERS, COLLECTIONS, DAYS, V1, a_day_more, answers, files, pass_day, reader
from tests.compat.second_reader import SecondReader
from tests.support.reading import as_of
from tidemark.errors import InvalidUsage
from tidemark.jobs.questions.late import late_rows
from tidemark.jobs.questions.status import status
from tidemark.jobs.questions.verify import verify
from tidemark.jobs.steps.ingest import ingest
from tidemark.jobs.steps.init import declare_collection
from tidemark.jobs.steps.retain import hold
from tidemark.jobs.steps.seal import seal
from tidemark.model.arrangement import Hold
from tidemark.model.collection import Envelope
from tidemark.storage.documents.upgrade import FORMAT
from tidemark.storage.log.versions import CHECKPOINT_EVERY

pytestmark = pytest.mark.simulation
TOLD: dict[str, dict[str, Any]] = json.loads((V1 / ANSWERS).read_text())
EACH = pytest.mark.parametrize("name", sorted(COLLECTIONS))


def test_every_envelope_is_there_and_small():
    assert sorted(TOLD) == sorted(COLLECTIONS)
    assert {declared.landed.source.envelope for declared in COLLECTIONS.values()} == set(Envelope)
    assert sum(path.stat().st_size for path in V1.rglob("*") if path.is_file()) < 500_000


@EACH
def test_its_files_are_as_they_were_written(name: str):
    assert files(V1 / name) == TOLD[name]["files"]


@EACH
def test_it_answers_as_it_did(name: str):
    made = reader(V1 / name, name)
    assert _json(answers(made.truth, made.state)) == TOLD[name]["answers"]
    assert files(V1 / name) == TOLD[name]["files"], "a read wrote something"


def test_late_rows_say_by_the_word_of_today_what_they_were_judged_by():
    made = reader(V1 / "appended", "appended")
    rows = late_rows(made.truth, made.state, limit=9).rows
    assert rows
    assert all(row["_complete_below"] - row["_original_event_time"] == row["_lateness"] for row in rows)


@pytest.mark.parametrize("newest", [47, 48], ids=["from changes", "from a checkpoint"])
def test_late_rows_that_waited_for_a_day_to_come_are_learned_without_one(tmp_path: Path, newest: int):
    copy = tmp_path / "appended"
    shutil.copytree(V1 / "appended", copy)
    for path in copy.glob("versions/*/*.json"):
        if int(path.stem) > newest:
            path.unlink()
    made = reader(copy, "appended")
    assert (made.state.complete_below, made.state.seal) == (50, 50)
    before = as_of(made.truth, made.state)
    made.run(lambda job: seal(job, interval(4)))
    assert (made.state.complete_below, made.state.seal) == (50, 51)
    assert as_of(made.truth, made.state, time=49) == before
    assert as_of(made.truth, made.state) != before
    assert made.run(lambda job: seal(job, interval(4)))["outcome"] == "nothing to do"


@EACH
def test_nothing_is_at_fault_in_it(name: str):
    report = verify(reader(V1 / name, name).job(), data=True)
    assert report.findings == ()
    assert report.rows_read > 0
    assert files(V1 / name) == TOLD[name]["files"]


@EACH
def test_its_status_can_be_told(name: str):
    told, expected = status(reader(V1 / name, name).head), TOLD[name]["answers"]
    assert (told.seal, told.since) == (expected["seal"], expected["since"])
    assert list(told.quarantined) == expected["quarantined"]
    assert [[hold.name, hold.since] for hold in told.holds] == expected["holds"]
    assert told.next_step


@EACH
def test_a_later_version_goes_on_with_it(name: str, tmp_path: Path):
    copy = tmp_path / name
    shutil.copytree(V1 / name, copy)
    assert _json(a_day_more(copy, name, tmp_path / "landing")) == TOLD[name]["a day more"]
    report = verify(reader(copy, name).job(), data=True)
    assert report.findings == ()
    assert set(_formats(copy)) == {1, FORMAT}


def test_what_was_ingested_in_format_1_is_not_corrected_and_what_comes_after_is(tmp_path: Path):
    """Nothing was kept to correct it by: refused with the instant from which on files are, and nothing is lost."""
    copy = tmp_path / "updated"
    shutil.copytree(V1 / "updated", copy)
    made = reader(copy, "updated", tmp_path / "landing")
    made.run(lambda job: declare_collection(job, relanded(COLLECTIONS["updated"], reprocess_for=1000)))
    before = as_of(made.truth, made.state)
    made.land(2, "a", [])
    with pytest.raises(
        InvalidUsage, match=r"changed after it was ingested: .*; reprocess_for 1ms lets intervals be corr"
    ):
        made.run(lambda job: ingest(job, interval(2), landing_root=str(made.landing)))
    assert as_of(made.truth, made.state) == before
    last = DAYS["updated"]
    pass_day(made, "updated", last)
    made.land(last, "a", [])
    done = made.run(lambda job: ingest(job, interval(last), landing_root=str(made.landing)))
    assert (done["corrected"], done["added"]) == (1, 0)
    assert done["retracted"] > 0


@EACH
def test_history_goes_on_in_the_format_of_today_over_checkpoints(name: str, tmp_path: Path):
    """The state is the same from a checkpoint of format 1, through later ones, and from the oldest version on."""
    copy = tmp_path / name
    shutil.copytree(V1 / name, copy)
    made = reader(copy, name)
    before, newest = made.state, made.head.version
    for at in range(CHECKPOINT_EVERY + 1):
        hold(made.job(), f"later{at}", since=before.since)
    assert [*_formats(copy)] == sorted(_formats(copy))
    assert _formats(copy)[-CHECKPOINT_EVERY - 2 :] == [1, *[FORMAT] * (CHECKPOINT_EVERY + 1)]
    later = tuple(Hold(f"later{at}", before.since) for at in range(CHECKPOINT_EVERY + 1))
    assert made.log().replay().state == made.log().load().state == replace(before, holds=(*before.holds, *later))
    assert made.log().load(newest).state == before
    ours, theirs = (SecondReader(folder).as_of(before.seal - 1) for folder in (copy, V1 / name))
    assert sorted(map(_shown, ours)) == sorted(map(_shown, theirs))


def _formats(folder: Path) -> list[int]:
    """The formats of the versions of a collection, in their order."""
    return [json.loads(path.read_bytes())["format"] for path in sorted(folder.glob("versions/*/*.json"))]


@EACH
def test_the_second_reader_agrees(name: str):
    made = reader(V1 / name, name)
    theirs = SecondReader(V1 / name)
    for time in (made.state.since, made.state.seal - DAY - 1, made.state.seal - 1):
        told = as_of(made.truth, made.state, time=time)
        names = told.column_names[:-1]
        ours = {_shown((name, row[name]) for name in names): row["_multiplicity"] for row in told.to_pylist()}
        assert len(ours) == told.num_rows
        assert {_shown(item): count for item, count in theirs.as_of(time).items()} == ours


def _shown(item: Iterable[tuple[str, Any]]) -> str:
    """As text, in which NaN equals NaN."""
    return ", ".join(f"{name} {cell!r}" for name, cell in item)


def _json(value: Any) -> Any:
    return json.loads(json.dumps(value, allow_nan=False))


def test_a_wrong_answer_would_be_seen():
    wrong = json.loads(json.dumps(TOLD["appended"]["answers"]))
    wrong["as_of"][-1][2][0][-1] += 1
    made: World = reader(V1 / "appended", "appended")
    assert _json(answers(made.truth, made.state)) != wrong
