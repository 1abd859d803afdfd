"""Every type of column, as key and as value, on every path that a row can take, and every answer that tells of it."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import tidemark
from support.budget import budget
from support.typed import BAD, CASES, GOOD, IN_TURN, TYPES, Typed, TypedWorld, as_answered
from support.world import interval
from tidemark.airflow.web import overview
from tidemark.airflow.web.page import collection_page
from tidemark.errors import FileRefused, InvalidUsage
from tidemark.jobs.queries.verify import verify
from tidemark.jobs.steps.init import declare_collection
from tidemark.jobs.steps.quarantine import quarantine, release
from tidemark.jobs.steps.replay import replay
from tidemark.jobs.steps.seal import seal
from tidemark.model.collection import ColumnType, Envelope, Format, Late

pytestmark = pytest.mark.simulation
EVERY = pytest.mark.parametrize("case", budget(ci=IN_TURN, deep=CASES), ids=str)
"""Each type in each role; all envelopes with each of them in make test-deep."""
FORMATS = pytest.mark.parametrize("file_format", budget(ci=[Format.JSONL, Format.PARQUET], deep=list(Format)))
APPENDED = [case for case in CASES if case.envelope is Envelope.APPEND]


def now(world: TypedWorld) -> Counter[Any]:
    """What the collection holds, as a reader of Python's sees it."""
    rows = tidemark.open(world.root, "tides").as_of().to_arrow().to_pylist()
    return Counter({(row["k"], row["v"]): row["_multiplicity"] for row in rows})


def answers(world: TypedWorld) -> None:
    """Every question that is asked of a collection has an answer that can be written down."""
    opened = tidemark.open(world.root, "tides")
    for answer in (
        opened.status().as_dict(),
        opened.late(limit=100).as_dict(),
        [e.as_dict() for e in opened.history()],
    ):
        json.dumps(answer)
    described = overview.describe(world.root, "tides", lambda name: True)
    assert described is not None
    assert "error" not in json.loads(json.dumps(described))
    assert "tides" in collection_page("tides", described).html
    assert world.run(lambda job: verify(job, data=True)).sound


@FORMATS
@EVERY
def test_good_rows(tmp_path: Path, case: Typed, file_format: Format) -> None:
    world = TypedWorld(tmp_path, case, file_format)
    world.put(0, "a", case.rows())
    assert world.ingested()["rows"] == len(case.numbers)
    world.run(lambda job: seal(job, interval(0)))
    assert now(world) == case.expected(*case.numbers, file_format=file_format)
    world.moved()
    assert now(world) == case.expected(*case.numbers, file_format=file_format)
    answers(world)


@FORMATS
@EVERY
def test_a_bad_value_stops_its_interval(tmp_path: Path, case: Typed, file_format: Format) -> None:
    """In one line, as often as it is tried, whatever came before; the mended file is taken."""
    world = TypedWorld(tmp_path, case, file_format)
    world.put_bad(0, "a")
    for _ in range(2):
        with pytest.raises(FileRefused, match=r"column [kv]|not UTF-8") as failed:
            world.run(lambda job: tidemark_ingest(world, job), attempts=1)
        assert "\n" not in str(failed.value)
    answers(world)
    world.put(0, "a", case.rows())
    assert world.ingested()["rows"] == len(case.numbers)
    world.moved()
    assert now(world) == case.expected(*case.numbers, file_format=file_format)


@FORMATS
@EVERY
def test_a_bad_file_is_set_aside(tmp_path: Path, case: Typed, file_format: Format) -> None:
    """Once; the other files of the interval count."""
    world = TypedWorld(tmp_path, case, file_format, bad_files="quarantine")
    world.put_bad(0, "a")
    world.put(0, "b", case.rows())
    result = world.ingested()
    assert (result["rows"], result["bad_files"]) == (len(case.numbers), 1)
    assert world.ingested()["outcome"] == "nothing to do"
    world.moved()
    assert now(world) == case.expected(*case.numbers, file_format=file_format)
    answers(world)


@EVERY
def test_a_null_key_is_refused_and_a_null_value_is_none(tmp_path: Path, case: Typed) -> None:
    world = TypedWorld(tmp_path, case)
    world.put(0, "a", [{**case.row(0), "k" if case.role == "key" else "v": None}])
    if case.role == "key":
        with pytest.raises(FileRefused, match="line 1: column k is null; a key never is"):
            world.ingested()
    else:
        world.ingested()
        world.moved()
        assert now(world) == Counter([(0, None)])


@EVERY
def test_late_rows_are_listed_and_replayed(tmp_path: Path, case: Typed) -> None:
    world = TypedWorld(tmp_path, case, late=Late("discard"), event_time=True)
    world.put(0, "a", case.rows()[:1])
    world.ingested()
    world.moved()
    world.put(1, "b", [case.row(number, 13, e=4) for number in case.numbers[1:]])
    assert world.ingested(1)["late_discarded"] == len(case.numbers) - 1
    opened = tidemark.open(world.root, "tides")
    listed = opened.late(limit=10)
    assert len(listed.rows) == listed.discarded == len(case.numbers) - 1
    answers(world)
    result = world.run(replay)
    if case.envelope is Envelope.UPSERT:
        assert (result["rows"], result["left"]) == (0, len(case.numbers) - 1), (
            "history there is merged: as if they came now"
        )
        result = world.run(lambda job: replay(job, as_now=True))
    assert result["rows"] == len(case.numbers) - 1
    world.moved(1)
    assert now(world) == case.expected(*case.numbers)
    answers(world)


@EVERY
def test_files_that_are_run_again(tmp_path: Path, case: Typed) -> None:
    """Changed, added and removed ones; and a batch that corrects is taken out, and put back."""
    world = TypedWorld(tmp_path, case, reprocess_for=1000)
    world.put(0, "a", [case.row(0)])
    world.ingested()
    world.moved()
    world.put(0, "a", [case.row(1)])
    result = world.ingested()
    assert (result["corrected"], result["retracted"], result["added"]) == (1, 1, 1)
    batch = result["batch"]
    world.run(lambda job: quarantine(job, batch))
    answers(world)
    world.run(lambda job: release(job, batch))
    world.moved()
    assert now(world) == case.expected(1)
    world.put(0, "b", [case.row(0)])
    world.ingested()
    world.moved()
    answers(world)
    world.path(0, "a").unlink()
    result = world.ingested(removed=True)
    assert (result["corrected"], result["retracted"], result["added"]) == (1, 1, 0)
    world.moved()
    assert world.path(0, "b").exists()
    answers(world)


@EVERY
def test_a_bad_file_in_place_of_a_good_one(tmp_path: Path, case: Typed) -> None:
    """What it said before stays."""
    for bad_files in ("stop", "quarantine"):
        world = TypedWorld(tmp_path / bad_files, case, reprocess_for=1000, bad_files=bad_files)
        world.put(0, "a", case.rows())
        world.ingested()
        world.moved()
        world.put_bad(0, "a")
        if bad_files == "stop":
            with pytest.raises(FileRefused, match="what it said before stays"):
                world.ingested()
        else:
            assert world.ingested()["bad_files"] == 1
            world.moved()
        assert now(world) == case.expected(*case.numbers)
        answers(world)


@EVERY
def test_every_reading_door(tmp_path: Path, case: Typed) -> None:
    world = TypedWorld(tmp_path, case)
    world.put(0, "a", case.rows())
    world.ingested()
    world.run(lambda job: seal(job, interval(0)))
    world.moved()
    world.put(1, "b", [case.row(0, 13, o=2, **({"gone": True} if case.envelope is Envelope.UPSERT else {"d": -1}))])
    world.ingested(1)
    world.run(lambda job: seal(job, interval(1)))
    left = {Envelope.APPEND: [0, *case.numbers], Envelope.UPDATES: case.numbers[1:], Envelope.UPSERT: case.numbers[1:]}
    assert now(world) == case.expected(*left[case.envelope])
    opened = tidemark.open(world.root, "tides")
    assert len(opened.schema) == 2
    name = "k" if case.role == "key" else "v"
    for answer in (
        opened.as_of(),
        opened.as_of(time=9),
        opened.as_of(event_time=9),
        opened.as_of(columns=[name]),
        opened.changes(),
        opened.changes(net=True),
        opened.changes(columns=[name], net=True),
    ):
        table = answer.to_arrow()
        assert table.num_rows == answer.count() == len(answer.to_pandas())
        assert answer.reader().read_all() == table
        assert repr(answer)
    for number in case.numbers:
        value = case.row(number)[name]
        found = opened.as_of(time=9, where={name: _asked(value, case)}).to_arrow().column(name).to_pylist()
        assert found == [as_answered(value, case.of)]
    missing = opened.as_of(time=9, where={name: [_asked(GOOD[case.of][0], case)]}, columns=[name]).to_arrow()
    assert missing.num_rows == 1


@pytest.mark.parametrize("case", APPENDED, ids=str)
def test_a_value_that_is_none_is_refused_where_it_is_asked_for(tmp_path: Path, case: Typed) -> None:
    world = TypedWorld(tmp_path, case)
    world.put(0, "a", case.rows())
    world.ingested()
    world.moved()
    name = "k" if case.role == "key" else "v"
    wrong: Any = object()
    with pytest.raises(InvalidUsage, match=rf"column {name}\b|{name}") as refused:
        tidemark.open(world.root, "tides").as_of(where={name: wrong}).to_arrow()
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("of", TYPES, ids=str)
def test_a_column_of_the_type_comes_and_goes(tmp_path: Path, of: Any) -> None:
    """Rows that were there before have nothing in it, and are no different when it is gone."""
    from dataclasses import replace

    case = Typed(of, "value")
    world = TypedWorld(tmp_path, case)
    whole = world.collection
    bare = replace(whole, value=())
    world.put(0, "a", case.rows())
    world.ingested()
    world.moved()
    world.run(lambda job: declare_collection(job, bare))
    rows = tidemark.open(world.root, "tides").as_of().to_arrow().to_pylist()
    assert [row["k"] for row in rows] == [0, 1, 2]
    answers(world)
    world.run(lambda job: declare_collection(job, whole))
    assert now(world) == Counter([(number, None) for number in case.numbers])
    world.put(1, "b", [case.row(0, 13)])
    world.ingested(1)
    world.moved(1)
    assert now(world) == Counter([*((number, None) for number in case.numbers), *case.expected(0)])
    answers(world)


def test_the_table_knows_every_type() -> None:
    assert set(BAD) == set(GOOD) == set(TYPES) >= set(ColumnType)


def _asked(value: Any, case: Typed) -> Any:
    return as_answered(value, case.of)


def tidemark_ingest(world: TypedWorld, job: Any) -> Any:
    from tidemark.jobs.steps.ingest import ingest

    return ingest(job, interval(0), landing_root=str(world.landing))
