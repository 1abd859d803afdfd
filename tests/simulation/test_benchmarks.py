"""The benchmarks, small: they check their own answers, so they must run; and what they claim must hold here too."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import longevity
from benchmarks import workload as workloads
from benchmarks.engines import opened
from benchmarks.feed import fingerprint_of
from benchmarks.semantics import FEED, STORIES, cases
from benchmarks.spark_peers.life import life
from benchmarks.spark_peers.ours import InOneProcess
from benchmarks.workload import Held, Workload, minus
from tidemark.model.collection import Envelope

pytestmark = pytest.mark.simulation


def test_every_case_that_goes_wrong_elsewhere_is_right() -> None:
    assert cases(["tidemark"]) == [{"case": name, "tidemark": "right"} for name in [*(s.name for s in STORIES), FEED]]


@pytest.mark.parametrize("envelope", [Envelope.APPEND, Envelope.UPSERT])
def test_a_short_life_has_right_answers_and_writes_little(envelope: Envelope, monkeypatch: pytest.MonkeyPatch) -> None:
    workload = Workload(envelope, base=2_000, ingests=30, rows=40)
    monkeypatch.setattr(longevity, "land", workloads._land)  # here and now, not in a process of its own
    life = longevity._longevity(workload)
    assert life["writing"]["of_optimum"] <= 1.3
    assert len(life["rounds"]) == longevity.ROUNDS
    assert len(life["days"]) == workload.ingests
    for day in life["days"]:
        assert day["created"]["version"] >= 6
        assert day["created"]["part"] >= 1
        assert "table" not in day["created"], "a table of one part is an object of its own"


def test_what_is_held_is_what_an_engine_holds(tmp_path: Path) -> None:
    workload = Workload(Envelope.UPSERT, base=500, ingests=4, rows=120)
    engine, held = opened("tidemark", tmp_path), Held(workload)
    expected = []
    for day in range(workload.ingests + 1):
        rows = workload.day(day)
        expected.append(held.after(rows))
        engine.ingest(day, rows.table(workload.envelope))
    assert [fingerprint_of(engine.as_of(day), "held") for day in range(5)] == expected
    assert fingerprint_of(engine.changes(1, 3), "held") == minus(expected[3], expected[1])
    assert all(count > 0 for count in engine.stored().values())


def test_a_life_beside_the_peers_of_spark_is_answered_right(tmp_path: Path):
    workload = Workload(Envelope.UPSERT, base=1_000, ingests=4, rows=200)
    found = life(InOneProcess(tmp_path / "stored"), tmp_path, workload, every=2)
    assert {what: read["answer"] for what, read in found["reads"].items()} == dict.fromkeys(found["reads"], "right")
    assert len(found["reads"]) == 5
    assert 0 < found["bytes_after_clean"] < found["bytes_before_clean"]
