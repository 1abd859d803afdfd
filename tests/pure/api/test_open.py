"""`import tidemark`: a collection is opened at a version, asked, and says what is wrong at the call."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import tidemark
from support.world import interval
from tests.pure.api.made import ROWS, Made
from tidemark.jobs.queries.history import history
from tidemark.jobs.queries.status import status
from tidemark.jobs.steps.collect import AT_ONCE, collect
from tidemark.jobs.steps.ingest import ingest
from tidemark.jobs.steps.seal import seal
from tidemark.model.collection import Envelope, Retention
from tidemark.storage.stores.memory import MemoryStore

pytestmark = pytest.mark.pure
HEAVY = ("airflow", "boto3", "great_expectations", "numpy", "pandas", "pyarrow", "pydantic", "pyspark", "typer")


@pytest.fixture
def made(tmp_path: Path) -> Made:
    made = Made(tmp_path)
    made.drained(0)
    made.sealed(1)
    return made


@pytest.fixture
def tides(made: Made) -> tidemark.OpenCollection:
    return tidemark.open(made.root, "tides")


def fresh(script: str) -> str:
    """What a script prints in an interpreter of its own."""
    path = {"PYTHONPATH": str(Path(tidemark.__file__).parent.parent)}
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, env=os.environ | path)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_importing_it_imports_nothing_slow_and_knows_its_names() -> None:
    printed = fresh(f"import sys, tidemark\nprint([name for name in {HEAVY!r} if name in sys.modules])")
    assert printed == "[]"
    assert set(tidemark.__all__) <= set(dir(tidemark))
    assert all(getattr(tidemark, name) is not None for name in tidemark.__all__)
    with pytest.raises(AttributeError, match="has no attribute 'opened'"):
        tidemark.opened  # type: ignore[attr-defined]  # noqa: B018


@pytest.mark.parametrize("envelope", list(ROWS))
def test_every_kind_of_collection_answers_in_every_shape(tmp_path: Path, envelope: Envelope) -> None:
    made = Made(tmp_path, envelope)
    made.drained(0)
    made.sealed(1)
    tides = tidemark.open(made.root, "tides")
    for answer in (tides.as_of(), tides.changes(), tides.changes(net=True)):
        table = answer.to_arrow()
        assert table.num_rows == answer.count() > 0
        assert answer.schema == table.schema == answer.reader().schema
        assert answer.reader().read_all() == pa.Table.from_batches(answer, answer.schema) == table
        assert pa.table(answer) == table, "as any library takes it that knows Arrow's C streams"
        frame = answer.to_pandas()
        assert list(frame.columns) == table.column_names
        assert str(frame["k"].dtype) == "Int64"
        assert answer.to_arrow() == table, "it may be read again"


def test_what_it_is_can_be_seen_without_reading(tides: tidemark.OpenCollection) -> None:
    assert (tides.name, tides.key) == ("tides", ("k",))
    assert tides.schema == pa.schema([pa.field("k", pa.int64(), nullable=False), pa.field("v", pa.string())])
    assert repr(tides) == (
        f"<tidemark collection tides, version {tides.version}: complete below 1970-01-01T00:00:00.000020Z, "
        f"in {tides.store.url}>"
    )
    assert repr(tides.as_of(9, columns="k", where="v = 'a'")) == (
        f"<tides as known at 1970-01-01T00:00:00.000009Z; where \"v = 'a'\"; version {tides.version}, "
        "complete below 1970-01-01T00:00:00.000020Z; columns k, _multiplicity; not read yet>"
    )
    assert tides.status() == status(tides.log.load())
    assert tides.history() == list(history(tides.log))
    assert [entry.version for entry in tides.history(limit=2)] == [tides.version, tides.version - 1]


def test_an_answer_and_a_collection_stay_as_they_were_while_others_write(made: Made) -> None:
    tides = tidemark.open(made.root, "tides")
    answer, before = tides.as_of(), tides.as_of().to_arrow()
    half = iter(answer)
    first = next(half)
    made.sealed(2, [{"k": 9, "v": "new", "t": 21, "e": 21}])
    assert pa.Table.from_batches([first, *half]) == before == answer.to_arrow() == tides.as_of().to_arrow()
    version = tides.version
    assert tides.history()[0].version == version
    assert tidemark.open(made.root, "tides").as_of(where={"k": 9}).count() == 1
    assert tidemark.open(made.root, "tides", version=version).as_of().to_arrow() == before
    assert tides.refresh() is tides
    assert (tides.version > version, tides.as_of(where="k = 9").count()) == (True, 1)
    assert answer.to_arrow() == before, "asked before the refresh"


def test_threads_and_other_processes_read_one_collection(tides: tidemark.OpenCollection) -> None:
    answer, table = tides.as_of(), tides.as_of().to_arrow()
    with ThreadPoolExecutor(8) as pool:
        assert all(found == table for found in pool.map(lambda _: answer.to_arrow(), range(24)))
    assert pickle.loads(pickle.dumps(answer)).to_arrow() == table
    changes = tides.changes(after=3, net=True, columns=["v"], where={"k": [1, 3]})
    assert pickle.loads(pickle.dumps(changes)).to_arrow() == changes.to_arrow()
    found = pickle.loads(pickle.dumps(tides))
    assert (found.version, found.as_of().to_arrow()) == (tides.version, table)
    assert len(pickle.dumps(answer)) < 500, "the question crosses, not the rows nor the state"


@pytest.mark.parametrize(
    ("asked", "rows"),
    [
        *(("k = 1", 2), ("k >= 2 AND v IS NOT NULL", 1), ("NOT (k = 1) OR v = 'b'", 3), ("k IN (2, 3)", 2)),
        *(("k > 1.5 AND k < 2.5", 1), ("k > 9223372036854775807", 0), ("k <= 9223372036854775807", 4)),
        *(({"k": 1, "v": "a"}, 1), ({"v": None}, 1), ({"k": [1, 2]}, 3), ({"k": 2**63 - 1}, 0)),
        *(([{"k": 1}, "v = 'a'"], 1), ({}, 4)),
    ],
    ids=repr,
)
def test_rows_that_fit(tides: tidemark.OpenCollection, asked: Any, rows: int) -> None:
    assert tides.as_of(where=asked).count() == rows
    assert tides.changes(net=True, where=asked).count() == rows


def test_a_condition_on_the_key_opens_no_other_part(made: Made) -> None:
    tides = tidemark.open(made.root, "tides")
    store = MemoryStore.named(f"{made.root}/tides")
    data = [key for key in store.objects if key.endswith(".parquet")]
    removed = {key: store.objects.pop(key) for key in data}
    try:
        assert tides.as_of(where="k >= 4").to_arrow().num_rows == 0, "no part can hold it, so none is opened"
    finally:
        store.objects.update(removed)


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda c: c.as_of(20), r"outside the readable \[since .*, seal 1970-01-01T00:00:00.000020Z\)"),
        (lambda c: c.as_of("2013-01-02"), r"outside the readable .*; the newest readable is"),
        (lambda c: c.as_of(1.5), r"time is 1.5 \(float\); write text like"),
        (lambda c: c.as_of(event_time="noon"), r"not a time: 'noon'"),
        (lambda c: c.changes(after=5, upto=2), r"the first must not be later than the second"),
        (lambda c: c.as_of(columns=["kk"]), r"columns: collection tides has no column 'kk'; did you mean 'k'\?"),
        (lambda c: c.as_of(columns=["zzz"]), r"no column 'zzz'; there are k, v"),
        (lambda c: c.as_of(columns=[1]), r"no column 1; there are k, v"),
        (lambda c: c.as_of(columns=[]), r"columns is empty"),
        (lambda c: c.as_of(columns=7), r"columns is 7 \(int\); write a list of names"),
        (lambda c: c.as_of(columns={"k"}), r"columns is \{'k'\} \(set\); write a list of names, in their order"),
        (lambda c: c.as_of(where="v = '\ud800'"), r"where: .* cannot be compared"),
        (lambda c: c.as_of(where={"v": "\ud800"}), r"column v is of type string; .* is no value of it"),
        (lambda c: c.history(limit=-1), r"limit is -1"),
        (lambda c: c.history("3"), r"limit is '3' \(str\); it is a whole number"),
        (lambda c: c.history(1.5), r"limit is 1.5 \(float\); it is a whole number"),
        (lambda c: c.late(-1), r"limit is -1"),
        (lambda c: c.late(path=3), r"path is 3 \(int\)"),
        (lambda c: c.changes(net="false"), r"net is 'false' \(str\); it is True or False"),
        (lambda c: c.windows(open="false"), r"open is 'false' \(str\); it is True or False"),
        (lambda c: c.as_of().to_spark(None), r"spark is None \(NoneType\); give a SparkSession"),
        (lambda c: c.hold(7), r"the name of a hold is text, not 7 \(int\)"),
        (lambda c: c.as_of(columns=["k", "k"]), r"columns names some twice: k, k"),
        (lambda c: c.as_of(where="kk = 1"), r"where: collection tides has no column 'kk'; did you mean 'k'\?"),
        (lambda c: c.as_of(where={"kk": 1}), r"where: collection tides has no column 'kk'"),
        (lambda c: c.as_of(where="k = 'one'"), r"where compares column k, of type int, with 'one'; write a number"),
        (lambda c: c.as_of(where="k ="), r"where: expected .*, found the end at position"),
        (lambda c: c.as_of(where={"k": "one"}), r"column k is of type int; 'one' is no value of it"),
        (lambda c: c.as_of(where={"k": True}), r"column k is of type int; True is no value of it"),
        *(
            (lambda c, text=text: c.as_of(where={"k": text}), r"column k is of type int; .* is no value of it")
            for text in (" 1", "1_0", "\u0663", "1.0", "")
        ),
        (lambda c: c.as_of(where=7), r"where is 7 \(int\); write a condition"),
        (lambda c: c.as_of(where=[7]), r"where is 7 \(int\); write a condition"),
        (lambda c: c.hold("no name", at=3), r"hold name 'no name' must match"),
        (lambda c: c.hold("report", lasts=1.5), r"lasts is 1.5 \(float\)"),
    ],
)
def test_what_is_wrong_is_said_at_the_call(tides: tidemark.OpenCollection, ask: Any, message: str) -> None:
    with pytest.raises(tidemark.InvalidUsage, match=message):
        ask(tides)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("memory://nowhere", "tides"), "no collection tides, nor any other, under"),
        (("/nowhere/at/all", "tides"), "root /nowhere/at/all does not exist"),
        ((7, "tides"), r"root is 7 \(int\); write a folder or s3://bucket/prefix"),
        (("", "tides"), "root is ''"),
        (("\0", "tides"), r"root is '\\x00'"),
        (("ftp://x", "tides"), "cannot open 'ftp://x"),
        (("memory://nowhere", 7), "the name of a collection is text, not 7"),
    ],
)
def test_what_cannot_be_opened(words: tuple[Any, ...], message: str) -> None:
    with pytest.raises(tidemark.InvalidUsage, match=message):
        tidemark.open(*words)


def test_names_and_addresses(tmp_path: Path, made: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    root = tmp_path / "root"
    for name in ("tides", "rivers"):
        for key, data in MemoryStore.named(f"{made.root}/tides").objects.items():
            file = root / name / key
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(data)
    (root / "lost+found").mkdir()
    assert tidemark.collections(root) == tidemark.collections(str(root)) == ["rivers", "tides"]
    whole = tidemark.open(root, "tides").as_of().to_arrow()
    assert tidemark.open(root / "tides").as_of().to_arrow() == whole, "a collection's own address"
    assert tidemark.open(f"file://{root}", "tides").as_of().to_arrow() == whole
    with pytest.raises(tidemark.InvalidUsage, match=r"no collection tide under .*; existing: rivers, tides"):
        tidemark.open(root, "tide")
    with pytest.raises(tidemark.InvalidUsage, match="is not a folder"):
        tidemark.collections(next((root / "tides" / "versions").rglob("*.json")))
    for nowhere in (tmp_path / "nowhere", f"file://{tmp_path}/nowhere"):
        with pytest.raises(tidemark.InvalidUsage, match="does not exist"):
            tidemark.collections(nowhere)
    monkeypatch.chdir(tmp_path)
    answer = pickle.dumps(tidemark.open("root", "tides").as_of())
    monkeypatch.chdir(root / "tides")
    assert tidemark.open(".").name == "tides"
    assert pickle.loads(answer).to_arrow() == whole, "read where another folder is the working one"


@pytest.mark.parametrize("version", [0, 999, "3", 1.0, True])
def test_a_version_that_is_none(made: Made, version: Any) -> None:
    with pytest.raises(tidemark.InvalidUsage, match="version"):
        tidemark.open(made.root, "tides", version=version)


def test_a_version_that_was_collected_says_so(made: Made) -> None:
    tides = tidemark.open(made.root, "tides")
    answer = tides.as_of()
    for day in range(2, 12):
        made.drained(day, [{"k": day, "v": "x", "t": 10 * day, "e": 10 * day}])
        made.compacted(day)
    for _ in range(2):
        made.world.clock.now += 100
        collect(made.world.job(), keep=0, graces=AT_ONCE)
    with pytest.raises(tidemark.InvalidUsage, match=rf"version {tides.version} of tides was collected since it was"):
        answer.to_arrow()
    with pytest.raises(tidemark.InvalidUsage, match=rf"version {tides.version} of tides was collected since it was"):
        answer.reader().read_all()
    with pytest.raises(tidemark.InvalidUsage, match=rf"version {tides.version} of tides was collected since it was"):
        tides.history()
    with pytest.raises(tidemark.InvalidUsage, match=rf"version {tides.version} was collected; the oldest retained is"):
        tidemark.open(made.root, "tides", version=tides.version)


def test_a_hold_is_placed_at_once_and_released_at_the_end(made: Made) -> None:
    tides = tidemark.open(made.root, "tides")
    placed = tides.hold("report", at=5, lasts="2d")
    assert (placed.name, placed.at) == ("report", 5)
    assert [hold.name for hold in tides.refresh().status().holds] == ["report"]
    with pytest.raises(KeyError), placed:
        raise KeyError
    assert tides.refresh().status().holds == ()
    kept = tides.hold("kept", at="1970-01-01")
    assert kept.expires == "never"
    kept.release()
    kept.release()
    assert tides.refresh().status().holds == ()


def test_without_a_time_it_is_all_that_is_known(tmp_path: Path) -> None:
    """A late row is read at once; as known when the day was complete, there is none."""
    made = Made(tmp_path)
    made.sealed(0)
    tides = tidemark.open(made.root, "tides")
    before = tides.as_of().count()
    made.world.land(0, "late", [{"k": 9, "v": "late", "t": 9, "e": 4}])
    made.world.run(lambda job: ingest(job, interval(0), landing_root=str(made.world.landing)))
    made.world.run(lambda job: seal(job, interval(0)))
    assert tides.refresh().as_of().count() == before + 1
    assert tides.as_of(9).count() == before
    assert tides.changes(after=9).count() == 1
    at = "1970-01-01T00:00:00.0000"
    assert f"complete below {at}10Z, known up to {at}11Z, in" in repr(tides)


def test_nothing_sealed_yet_is_said(tmp_path: Path) -> None:
    made = Made(tmp_path)
    tides = tidemark.open(made.root, "tides")
    assert "nothing complete yet" in repr(tides)
    for ask in (tides.as_of, tides.changes):
        with pytest.raises(tidemark.InvalidUsage, match="nothing is sealed yet"):
            ask()


def test_the_beginning_that_was_merged_is_refused_with_what_can_be_said(tmp_path: Path) -> None:
    made = Made(tmp_path, retention=Retention("full_merge"))
    made.drained(0)
    made.drained(1)
    made.compacted(1)
    tides = tidemark.open(made.root, "tides")
    with pytest.raises(tidemark.InvalidUsage, match=r"the beginning is outside the readable \[since .*say after which"):
        tides.changes()


def test_polars_that_is_not_installed_is_said(tides: tidemark.OpenCollection, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tidemark.errors.find_spec", lambda name: None)
    with pytest.raises(tidemark.MissingExtra, match="polars is not installed: pip install polars"):
        tides.as_of().to_polars()
