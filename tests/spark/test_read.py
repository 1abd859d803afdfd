"""Reads at scale give the answers of reads without a JVM, whatever shape the collection is in."""

from __future__ import annotations

import math
import random
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet
import pytest

from tests.spark.support import ALL, DAY, HOUR, INSTANT, START, Made, day_of, rows_of
from tests.support import reading, reading_frames
from tidemark.errors import InvalidUsage
from tidemark.jobs.steps.ingest import ingest
from tidemark.jobs.steps.init import declare_collection
from tidemark.model.collection import Column, ColumnType
from tidemark.plan.tasks import KeyRange
from tidemark.storage.sidecars import parts_table

pytestmark = pytest.mark.spark


@pytest.fixture(params=list(ALL), scope="module")
def made(request: pytest.FixtureRequest, spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Made:
    from tidemark.spark.runner import SparkRunner

    # A folder may have any name: Spark takes some of these letters for patterns of names.
    folder: Path = tmp_path_factory.mktemp(f"{request.param} [1] {{x,y}} a*? %20 #\\")
    made = Made(folder, ALL[request.param], lambda store: SparkRunner(spark, store.url))
    for day in (1, 2, 3):
        made.land(day, 400, keys=40)
    return made


def rows_of_table(table: Any) -> list[tuple[Any, ...]]:
    return sorted((tuple(map(_plain, row.values())) for row in table.to_pylist()), key=repr)


def rows_of_frame(frame: Any, columns: list[str]) -> list[tuple[Any, ...]]:
    return sorted((tuple(map(_plain, row.values())) for row in frame.select(columns).toArrow().to_pylist()), key=repr)


def added_up(rows: list[tuple[Any, ...]]) -> Counter[Any]:
    """How many there are of each row, by the last column: rows that are equal in some columns may come as several."""
    found: Counter[Any] = Counter()
    for *row, count in rows:
        found[tuple(row)] += count
    return Counter({row: count for row, count in found.items() if count})


def _plain(value: Any) -> Any:
    return "nan" if isinstance(value, float) and math.isnan(value) else value


def answers(made: Made) -> list[tuple[str, dict[str, Any], pa.Table]]:
    """Reads of the newest state, and what is answered without a JVM."""
    state = made.log.load().state
    last = state.seal - 1
    asked: list[tuple[str, dict[str, Any]]] = [
        ("as_of", {}),
        ("as_of", {"time": last, "event_time": last - DAY // 2}),
        ("as_of", {"time": START + DAY // 3}),
        ("changes", {"after": -1, "net": False}),
        ("changes", {"after": START + 5 * HOUR, "upto": last - HOUR, "net": True}),
    ]
    return [(call, given, getattr(reading, call)(made.store, state, **given)) for call, given in asked]


def rows_answered(made: Made) -> int:
    return sum(table.num_rows for _, _, table in answers(made))


def same_answers(spark: Any, made: Made) -> int:
    """Every read of the newest state answers alike in both; how many rows were compared."""
    state, store = made.log.load().state, made.store
    answered = answers(made)
    for call, given, table in answered:
        frame = getattr(reading_frames, f"{call}_frame")(spark, store, state, **given)
        assert rows_of_frame(frame, table.column_names) == rows_of_table(table), (call, given)
    # Of some keys and columns, in another order.
    keys, some = KeyRange((10,), (31,)), [state.collection.value[0].name, "id"]
    table = reading.as_of(store, state, keys=keys).select([*some, "_multiplicity"])
    frame = reading_frames.as_of_frame(spark, store, state, keys=keys, columns=some)
    assert frame.columns == table.column_names
    assert added_up(rows_of_frame(frame, table.column_names)) == added_up(rows_of_table(table))
    return sum(table.num_rows for _, _, table in answered)


def test_answers_are_those_of_the_arrow_reader(spark: Any, made: Made) -> None:
    """Sealed and not drained; drained beside a day that is only sealed; compacted, with a day unsealed."""
    made.moved(1, "ingest", "seal")
    assert same_answers(spark, made) > 500, "pending rows only"
    made.moved(1, "drain")
    made.moved(2, "ingest", "seal")
    state = made.log.load().state
    assert state.trace_upper < state.seal
    before = same_answers(spark, made)
    assert before > 500, "trace and pending rows"
    made.moved(2, "drain")
    assert same_answers(spark, made) == before, "draining changed an answer"
    made.moved(3, "ingest", "seal", "drain")
    drained = rows_answered(made)
    alive = len(made.log.load().state.trace)
    made.moved(3, "compact")
    assert len(made.log.load().state.trace) < alive == 3
    made.land(4, 100, keys=50)
    made.moved(4, "ingest")
    assert same_answers(spark, made) == drained, "compaction or unsealed rows changed an answer"


def test_a_read_outside_what_is_complete_is_refused(spark: Any, made: Made) -> None:

    state = made.log.load().state
    with pytest.raises(InvalidUsage, match="outside the readable"):
        reading_frames.as_of_frame(spark, made.store, state, time=state.seal)
    with pytest.raises(InvalidUsage, match="outside the readable"):
        reading_frames.changes_frame(spark, made.store, state, after=0, upto=state.seal)


@pytest.mark.parametrize("name", ["append", "upsert"])
def test_answers_are_those_of_the_arrow_reader_after_columns_changed(spark: Any, tmp_path: Path, name: str) -> None:
    """Parts of two declarations side by side: a column renamed, one dropped, one added, one made wider."""
    made = Made(tmp_path, ALL[name])
    made.land(1, 400, keys=40)
    made.moved(1)
    declared = made.log.load().state.collection
    value = tuple(replace(column, name="sort") if column.name == "kind" else column for column in declared.value)
    value = tuple(column for column in value if column.name != "amount")
    asked = replace(declared, value=(*value, Column("of", ColumnType.BOOL)), renames=(("kind", "sort"),))
    assert declare_collection(made.job(), asked)["outcome"] == "redefined"
    assert same_answers(spark, made) > 100, "parts of the earlier declaration alone"
    made.land(2, 400, keys=40)
    for file in (made.landing / made.name / "2024-01-02").iterdir():
        table = pyarrow.parquet.read_table(file).rename_columns({"kind": "sort"})
        pyarrow.parquet.write_table(table.append_column("of", pa.array([True] * table.num_rows)), file)
    step_under(made, 2, "ingest", "seal")
    assert same_answers(spark, made) > 500, "beside rows that wait"
    step_under(made, 2, "drain")
    (old, new) = [batch for batch in made.log.load().state.trace if batch.rows]
    assert [part.schema for part in parts_table.parts_of(made.store, [old, new])] == [0, 1]
    wide = made.log.load().state.collection
    value = tuple(replace(column, type=ColumnType.INT) if column.name == "of" else column for column in wide.value)
    declare_collection(made.job(), replace(wide, value=value))
    assert same_answers(spark, made) > 500, "of two earlier declarations"


def step_under(made: Made, day: int, *steps: str) -> None:
    """Steps under the stored declaration, not under the file's."""
    for step in steps:
        if step == "ingest":
            ingest(made.job(), day_of(day), landing_root=str(made.landing))
        else:
            made.step(step, day)


def test_a_read_is_stable_while_a_writer_goes_on(spark: Any, tmp_path: Path) -> None:

    made = Made(tmp_path, ALL["append"])
    made.land(1, 50, keys=5)
    made.land(2, 50, keys=5)
    made.moved(1)
    state = made.log.load().state
    frame = reading_frames.as_of_frame(spark, made.store, state)  # lazy: read only when asked
    table = reading.as_of(made.store, state)
    made.moved(2)
    assert rows_of_frame(frame, table.column_names) == rows_of_table(table)


def land_keys(made: Made, day: int, first_id: int) -> None:
    """A day's rows of 300 keys from `first_id` on, all of one instant, none deleted."""
    table = rows_of(made.name, random.Random(day), day, 300, 300)
    at = pa.array([day_of(day).lower + HOUR] * table.num_rows, pa.int64()).cast(INSTANT)
    ids = pa.array(range(first_id, first_id + table.num_rows), pa.int64())
    instead = {"id": ids, "at": at, "happened": at, "gone": pa.array([False] * table.num_rows)}
    columns = {name: instead.get(name, table[name]) for name in table.column_names}
    folder = made.landing / made.name / f"2024-01-{day:02d}"
    folder.mkdir(parents=True)
    pyarrow.parquet.write_table(pa.table(columns), folder / "0.parquet")


def test_what_need_not_be_merged_comes_through_sparks_own_reader(spark: Any, tmp_path: Path) -> None:
    """Three batches of all types; the last two share keys, the first none. Files that vanish are missed, whatever the
    session says."""
    made = Made(tmp_path, ALL["updates"].replace("live_batches: 2", "live_batches: 8"))
    for day, first_id in enumerate([0, 1000, 1100], start=1):
        land_keys(made, day, first_id)
        made.moved(day, "ingest", "seal", "drain")
    store, state = made.store, made.log.load().state
    batches = [batch for batch in state.trace if batch.rows]
    (alone, *_) = parts = parts_table.parts_of(store, batches)
    assert len(parts) == 3
    some = ["doc", "id", "price"]
    whole = reading.as_of(store, state)
    frame = reading_frames.as_of_frame(spark, store, state, columns=some).where("doc is not null and id < 200")
    expected = whole.filter(pc.field("doc").is_valid() & (pc.field("id") < 200)).select([*some, "_multiplicity"])
    assert added_up(rows_of_frame(frame, expected.column_names)) == added_up(rows_of_table(expected))
    assert expected.num_rows > 20
    for plain, asked in [
        (1, {}),
        (1, {"event_time": day_of(1).upper}),
        (0, {"keys": KeyRange((150,), (1050,))}),
        (1, {"after": -1}),
        (2, {"after": START, "upto": day_of(2).upper, "net": True}),
    ]:
        call = "changes" if "after" in asked else "as_of"
        frame = getattr(reading_frames, f"{call}_frame")(spark, store, state, **asked)
        table = getattr(reading, call)(store, state, **asked)
        assert len(frame.inputFiles()) == plain, asked
        assert frame.columns == table.column_names
        assert rows_of_frame(frame, table.column_names) == rows_of_table(table), asked
        assert table.num_rows > 20
    spark.conf.set("spark.sql.files.ignoreMissingFiles", "true")
    try:
        frame = reading_frames.as_of_frame(spark, store, state)
        Path(store.url, alone.file.key).unlink()
        with pytest.raises(Exception, match=r"FILE_NOT_EXIST|does not exist"):
            frame.collect()
    finally:
        spark.conf.unset("spark.sql.files.ignoreMissingFiles")


SNAPSHOTS = """\
name: shelf
key: [id]
value: [kind]
columns: {id: int, kind: string}
start: 2024-01-01
source: {path: "{{ landing }}/shelf/{{ ds }}/*.parquet", format: parquet, envelope: snapshot}
"""


def land_snapshot(made: Made, day: int, rows: list[tuple[int, str | None]]) -> None:
    """A day's full snapshot in two files."""
    folder = made.landing / made.name / f"2024-01-{day:02d}"
    folder.mkdir(parents=True)
    for number in range(2):
        ids, kinds = [row[0] for row in rows[number::2]], [row[1] for row in rows[number::2]]
        table = pa.table({"id": pa.array(ids, pa.int64()), "kind": pa.array(kinds, pa.string())})
        pyarrow.parquet.write_table(table, folder / f"{number}.parquet")


def test_full_snapshots_beyond_the_trace_answer_alike_drained_or_not(spark: Any, tmp_path: Path) -> None:
    from tidemark.spark.runner import SparkRunner

    unguarded = SNAPSHOTS.replace("envelope: snapshot", "envelope: snapshot, min_share: 0")  # a day has no rows
    made = Made(tmp_path, unguarded, lambda store: SparkRunner(spark, store.url))
    snapshot: list[tuple[int, str | None]] = [(n % 40, "ab"[n % 2] if n % 7 else None) for n in range(300)]
    for day, rows in enumerate([snapshot, snapshot[20:] + snapshot[:60], [], snapshot[::2]], start=1):
        land_snapshot(made, day, rows)

    def answers() -> list[Any]:
        state, store = made.log.load().state, made.store
        pairs = [
            (reading.as_of(store, state, time=at), reading_frames.as_of_frame(spark, store, state, time=at))
            for at in (None, day_of(2).upper - 1, day_of(3).upper)
        ]
        changes = reading.changes(store, state, after=-1)
        pairs.append((changes, reading_frames.changes_frame(spark, store, state, after=-1)))
        found = [rows_of_table(table) for table, _ in pairs]
        assert found == [rows_of_frame(frame, table.column_names) for table, frame in pairs]
        return found

    made.moved(1)
    for day in (2, 3, 4):
        made.moved(day, "ingest", "seal")
    before = answers()
    assert [sum(row[2] for row in rows) for rows in before[:3]] == [150, 340, 0]
    assert len(before[3]) > 200
    made.moved(4, "drain", "compact")
    assert answers() == before
