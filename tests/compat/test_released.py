"""What older formats wrote is read for ever: checked-in collections answer as they did, and are left as they are."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from support.world import DAY, World
from tests.compat import make_v1, make_v2
from tests.compat.make_v1 import ANSWERS, answers, files
from tests.compat.second_reader import SecondReader
from tests.support.reading import as_of
from tidemark.errors import UpgradeRequired
from tidemark.jobs.queries.late import late_rows
from tidemark.jobs.queries.status import status
from tidemark.jobs.queries.verify import verify
from tidemark.jobs.steps.retain import hold
from tidemark.model.arrangement import Hold
from tidemark.model.collection import Envelope
from tidemark.storage.documents import document
from tidemark.storage.documents.upgrade import FORMAT
from tidemark.storage.log.versions import CHECKPOINT_EVERY

pytestmark = pytest.mark.simulation
FOLDERS = {1: make_v1.V1, 2: make_v2.V2, 3: make_v2.V3}
MAKERS: dict[int, ModuleType] = {1: make_v1, 2: make_v2, 3: make_v2}
RECORDED: dict[int, dict[str, dict[str, Any]]] = {
    number: json.loads((folder / ANSWERS).read_text()) for number, folder in FOLDERS.items()
}
EACH = pytest.mark.parametrize(
    ("number", "name"), [(number, name) for number, maker in MAKERS.items() for name in sorted(maker.COLLECTIONS)]
)


def opened(number: int, name: str, root: Path | None = None) -> World:
    """A collection as it was written, or the copy of it below `root`."""
    made: World = MAKERS[number].reader((root or FOLDERS[number]) / name, name)
    return made


def copied(number: int, folder: Path) -> Path:
    """A copy of all collections of a format: one may be derived from another."""
    return Path(shutil.copytree(FOLDERS[number], folder / f"v{number}"))


@pytest.mark.parametrize("number", MAKERS)
def test_every_envelope_is_there_and_small(number: int):
    declared = MAKERS[number].COLLECTIONS
    assert sorted(RECORDED[number]) == sorted(declared)
    assert {each.landed.source.envelope for each in declared.values() if not each.is_derived} == set(Envelope)
    assert any(each.is_derived for each in declared.values()) == (number > 1)
    assert sum(path.stat().st_size for path in FOLDERS[number].rglob("*") if path.is_file()) < 900_000


def test_every_older_format_is_there():
    assert set(MAKERS) == set(range(1, FORMAT))


@EACH
def test_its_files_are_as_they_were_written(number: int, name: str):
    assert files(FOLDERS[number] / name) == RECORDED[number][name]["files"]
    assert set(_formats(FOLDERS[number] / name)) == {number}


@EACH
def test_it_answers_as_it_did(number: int, name: str):
    made = opened(number, name)
    assert _json(answers(made.truth, made.state)) == RECORDED[number][name]["answers"]
    assert files(FOLDERS[number] / name) == RECORDED[number][name]["files"], "a read wrote something"


@pytest.mark.parametrize(("number", "name"), [(1, "appended"), (2, "tides")])
def test_late_rows_say_by_the_word_of_today_what_they_were_judged_by(number: int, name: str):
    made = opened(number, name)
    rows = late_rows(made.truth, made.state, limit=9).rows
    assert rows
    assert all(row["_complete_below"] - row["_original_event_time"] == row["_lateness"] for row in rows)


@EACH
def test_nothing_is_at_fault_in_it(number: int, name: str):
    made = opened(number, name)
    report = verify(made.job(), data=True)
    assert report.findings == ()
    assert report.rows_read > 0
    # Checksums are written since format 3: both say so.
    assert report.unverified_parts == (report.parts if number < 3 else 0) == status(made.head).unverified_parts
    assert files(FOLDERS[number] / name) == RECORDED[number][name]["files"]


@EACH
def test_its_status_is_reported(number: int, name: str):
    report, expected = status(opened(number, name).head), RECORDED[number][name]["answers"]
    assert (report.seal, report.since) == (expected["seal"], expected["since"])
    assert list(report.quarantined) == expected["quarantined"]
    assert [[hold.name, hold.since] for hold in report.holds] == expected["holds"]
    assert report.next_step


@EACH
def test_a_later_version_goes_on_with_it(number: int, name: str, tmp_path: Path):
    copy = copied(number, tmp_path) / name
    assert _json(MAKERS[number].a_day_more(copy, name, tmp_path / "landing")) == RECORDED[number][name]["a day more"]
    report = verify(opened(number, name, copy.parent).job(), data=True)
    assert report.findings == ()
    assert report.unverified_parts < report.parts, "what is written now is verified"
    assert set(_formats(copy)) == {number, FORMAT}


@EACH
def test_what_a_later_version_wrote_is_refused_by_readers_of_that_format(
    number: int, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    copy = copied(number, tmp_path)
    hold(opened(number, name, copy).job(), "later", since=opened(number, name).state.since)
    monkeypatch.setattr(document, "FORMAT", number)
    with pytest.raises(UpgradeRequired, match=f"has format {FORMAT}, this Tidemark reads up to {number}"):
        opened(number, name, copy)


@EACH
def test_history_goes_on_in_the_format_of_today_over_checkpoints(number: int, name: str, tmp_path: Path):
    """The state is the same from an old checkpoint, through later ones, and from the oldest version on."""
    copy = copied(number, tmp_path) / name
    made = opened(number, name, copy.parent)
    before, newest = made.state, made.head.version
    for at in range(CHECKPOINT_EVERY + 1):
        hold(made.job(), f"later{at}", since=before.since)
    assert [*_formats(copy)] == sorted(_formats(copy))
    assert _formats(copy)[-CHECKPOINT_EVERY - 2 :] == [number, *[FORMAT] * (CHECKPOINT_EVERY + 1)]
    later = tuple(Hold(f"later{at}", before.since) for at in range(CHECKPOINT_EVERY + 1))
    assert made.log().replay().state == made.log().load().state == replace(before, holds=(*before.holds, *later))
    assert made.log().load(newest).state == before
    ours, theirs = (SecondReader(folder).as_of(before.seal - 1) for folder in (copy, FOLDERS[number] / name))
    assert sorted(map(_shown, ours)) == sorted(map(_shown, theirs))


def _formats(folder: Path) -> list[int]:
    """The formats of the versions of a collection, in their order."""
    return [json.loads(path.read_bytes())["format"] for path in sorted(folder.glob("versions/*/*.json"))]


@EACH
def test_the_second_reader_agrees(number: int, name: str):
    made = opened(number, name)
    theirs = SecondReader(FOLDERS[number] / name)
    for time in (made.state.since, made.state.seal - DAY - 1, made.state.seal - 1):
        table = as_of(made.truth, made.state, time=time)
        names = table.column_names[:-1]
        ours = {_shown((name, row[name]) for name in names): row["_multiplicity"] for row in table.to_pylist()}
        assert len(ours) == table.num_rows
        assert {_shown(item): count for item, count in theirs.as_of(time).items()} == ours


@pytest.mark.parametrize("number", MAKERS)
def test_a_wrong_answer_would_be_seen(number: int):
    name = sorted(RECORDED[number])[0]
    wrong = json.loads(json.dumps(RECORDED[number][name]["answers"]))
    next(rows for _, _, rows in wrong["as_of"] if rows and rows != "refused")[0][-1] += 1
    made = opened(number, name)
    assert _json(answers(made.truth, made.state)) != wrong


def _shown(item: Iterable[tuple[str, Any]]) -> str:
    """As text, in which NaN equals NaN."""
    return ", ".join(f"{name} {cell!r}" for name, cell in item)


def _json(value: Any) -> Any:
    return json.loads(json.dumps(value, allow_nan=False))
