"""The benchmarks, small: they check their own answers, so they must run; and what they claim must hold here too."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import longevity, undue
from benchmarks import workload as workloads
from benchmarks.corrections import ENVELOPES, reprocess
from benchmarks.corrections.history import History
from benchmarks.corrections.life import life as corrected_life
from benchmarks.corrections.ours import InOneProcess as InOneProcessAgain
from benchmarks.corrections.plain import PlainParquet
from benchmarks.corrections.rerun import rerun
from benchmarks.feed import fingerprint_of
from benchmarks.peers.engines import opened
from benchmarks.peers.semantics import FEED, STORIES, cases
from benchmarks.peers.spark.life import life
from benchmarks.peers.spark.ours import InOneProcess
from benchmarks.workload import CurrentRows, Workload, minus
from tidemark.model.collection import Envelope

pytestmark = pytest.mark.simulation


def test_every_case_that_goes_wrong_elsewhere_is_right() -> None:
    assert cases(["tidemark"]) == [{"case": name, "tidemark": "right"} for name in [*(s.name for s in STORIES), FEED]]


def test_days_beside_what_waits_are_answered_right_and_read_no_more() -> None:
    # The table of what waits is read too, some 12 kB: days have rows enough for that to be little.
    none, some = undue.days_beside((0, 20_000), 2_000, 4, 1)
    assert some["drain_bytes"] <= undue.SAME * none["drain_bytes"]
    assert some["read_bytes"] <= undue.SAME * none["read_bytes"]
    year = undue.bookings(20, 5, 1)
    tables = list(undue.figures({"beside": [none, some], "bookings": [year]}))
    assert [len(table.rows) for table in tables] == [2, 1]
    assert len(list(undue.targets({"beside": [none, some]}))) == 4


@pytest.mark.parametrize(("envelope", "late_days"), [(Envelope.APPEND, None), (Envelope.UPSERT, 10)])
def test_a_short_life_has_right_answers_and_writes_little(
    envelope: Envelope, late_days: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    workload = Workload(envelope, base=2_000, ingests=30, rows=40, late_days=late_days)
    monkeypatch.setattr(longevity, "land", workloads._land)  # here and now, not in a process of its own
    life = longevity._longevity(workload)
    assert life["writing"]["of_optimum"] <= 1.3
    assert len(life["rounds"]) == longevity.ROUNDS
    assert len(life["days"]) == workload.ingests
    for day in life["days"]:
        assert day["created"]["version"] >= 6
        assert day["created"]["part"] >= 1
        assert "table" not in day["created"], "a table of one part is an object of its own"


def test_the_current_rows_are_those_of_an_engine(tmp_path: Path) -> None:
    workload = Workload(Envelope.UPSERT, base=500, ingests=4, rows=120)
    engine, current = opened("tidemark", tmp_path), CurrentRows(workload.feed)
    expected = []
    for day in range(workload.ingests + 1):
        rows = workload.day(day)
        expected.append(current.after(rows))
        engine.ingest(day, rows.table(workload.envelope))
    assert [fingerprint_of(engine.as_of(day), "multiplicity") for day in range(5)] == expected
    assert fingerprint_of(engine.changes(1, 3), "multiplicity") == minus(expected[3], expected[1])
    assert all(count > 0 for count in engine.stored().values())


def test_a_life_beside_the_peers_of_spark_is_answered_right(tmp_path: Path):
    workload = Workload(Envelope.UPSERT, base=1_000, ingests=4, rows=200)
    found = life(InOneProcess(tmp_path / "stored"), tmp_path, workload, every=2)
    assert {what: read["answer"] for what, read in found["reads"].items()} == dict.fromkeys(found["reads"], "right")
    assert len(found["reads"]) == 5
    assert 0 < found["bytes_after_clean"] < found["bytes_before_clean"]


@pytest.mark.parametrize("envelope", ENVELOPES)
@pytest.mark.parametrize("engine", [InOneProcessAgain, PlainParquet])
def test_a_corrected_file_is_answered_right_on_all_days(engine: type, envelope: Envelope, tmp_path: Path) -> None:
    history = History(envelope, days=7, rows=60)
    found = corrected_life(engine(tmp_path / "table", history), tmp_path, history)
    for answers in (found["answers_before"], *(way["answers"] for way in found["ways"])):
        assert (answers["right"], answers["days"]) == (7, 7)
    assert all(0 < way["bytes"] < found["bytes_loaded"] for way in found["ways"])


@pytest.mark.parametrize("envelope", ENVELOPES)
def test_a_day_run_again_without_a_change_writes_nothing(envelope: Envelope) -> None:
    found = rerun(History(envelope, days=6, rows=60))
    for case in ("as it was", "touched"):
        cost = found["cases"][case]
        assert (cost["objects_of_data"], cost["versions"], cost["bytes_written"]) == (0, 0, 0)
    assert found["cases"]["written anew, equal rows"]["objects_of_data"] == 0
    assert found["cases"]["one file corrected"]["objects_of_data"] > 0


@pytest.mark.parametrize("envelope", ENVELOPES)
def test_a_collection_that_can_be_corrected_holds_the_same(envelope: Envelope) -> None:
    found = reprocess._reprocess(History(envelope, days=3, rows=60))
    assert found["with"]["objects"] >= found["without"]["objects"]
    assert set(found["with"]["cpu_seconds"]) == set(found["without"]["cpu_seconds"])
