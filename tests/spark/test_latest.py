"""Latest rows and point-in-time joins at scale are those without a JVM, however the keys are cut into tasks."""

from __future__ import annotations

import random
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet
import pytest

import tidemark
from tests.spark.support import DAY, HOUR, START, UPDATES, UPDATES_BY_TIME, UPSERT, Made, rows_of
from tests.spark.test_read import rows_of_frame, rows_of_table
from tests.support.budget import budget
from tidemark.arrow.parts.writer import PartWriter

pytestmark = pytest.mark.spark
INSTANT = pa.timestamp("us", "UTC")
TIMELINES = {UPDATES: "seen", UPDATES_BY_TIME: "seen", UPSERT: "since"}
Pair = tuple[tidemark.OpenCollection, str]


@pytest.fixture(params=budget(ci=[UPSERT], deep=list(TIMELINES)), ids=lambda text: text.split()[1], scope="module")
def opened(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Pair:
    """Two days, the second not drained, and the timeline."""
    made = Made(tmp_path_factory.mktemp("latest"), request.param)
    with pytest.MonkeyPatch.context() as patched:
        patched.setitem(PartWriter.__init__.__kwdefaults__, "group_rows", 32)  # tasks begin where row groups do
        for day in (1, 2):
            if request.param is not UPSERT:
                land_updates(made, day, request.param is UPDATES_BY_TIME)
            else:
                made.land(day, 300, keys=60)
            made.moved(day, "ingest", "seal")
        made.moved(1, "drain")
    return tidemark.open(made.root, made.name), TIMELINES[request.param]


def land_updates(made: Made, day: int, by_time: bool) -> None:
    """Rows of which some are retracted on the second day, and none before it is there."""
    rows = rows_of("stock", random.Random(1), 1, 300, 60)
    at = rows.schema.get_field_index("change")
    rows = rows.set_column(at, "change", pa.array([1] * 300))
    if day == 2:
        gone = rows.slice(0, 100).set_column(at, "change", pa.array([-1] * 100))
        rows = pa.concat_tables([gone, rows.slice(150, 50)])
        later = pc.add(rows["at"], pa.scalar(DAY, pa.duration("us")))
        rows = rows.set_column(rows.schema.get_field_index("at"), "at", later)
    if by_time:
        at = rows.schema.get_field_index("seen")
        rows = rows.set_column(at, "seen", rows["seen"].cast(INSTANT))
    folder = made.landing / "stock" / f"2024-01-{day:02d}"
    folder.mkdir(parents=True)
    pyarrow.parquet.write_table(rows, folder / "0.parquet")


@pytest.fixture(autouse=True)
def many_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    """So few rows a task that there are several."""
    from tidemark.spark import read

    monkeypatch.setattr(read, "LEAST_TASK_ROWS", 40)


def probes_of(collection: tidemark.OpenCollection, timeline: str) -> pa.Table:
    """Keys that are contained and keys that are not, some twice, at times of the timeline and between; nulls, too."""
    draw = random.Random(7)
    current = collection.as_of().to_arrow()
    times = current[timeline].drop_null()
    rows = current.take([draw.randrange(current.num_rows) for _ in range(200)]).select(collection.key)
    asked = times.take([draw.randrange(len(times)) for _ in range(200)])
    known = pa.array([START + draw.randrange(2 * DAY) for _ in range(199)] + [None], pa.int64()).cast(INSTANT)
    table = rows.append_column(timeline, asked).append_column("known", known).append_column("n", [range(200)])
    odd = table.slice(0, 3).set_column(0, "id", pa.array([None, 10**9, -5], pa.int64()))
    return pa.concat_tables([table, odd, table.slice(0, 20)], promote_options="permissive")


def test_the_latest_rows_of_all_keys(spark: Any, opened: Pair) -> None:
    collection, timeline = opened
    newest = collection.as_of().to_arrow()[timeline].drop_null().sort()
    for asked in (
        {},
        {"each": True},
        {"where": "id < 30", "columns": ["id", timeline, "kind"]},
        {"time": START + HOUR},
    ):
        answer = collection.latest_at(timeline, newest[len(newest) // 2].as_py(), **asked)
        table, frame = answer.to_arrow(), answer.to_spark(spark)
        assert frame.columns == table.column_names
        assert rows_of_frame(frame, table.column_names) == rows_of_table(table), asked
        assert table.num_rows > 3, asked
        assert frame.rdd.getNumPartitions() > 1


def test_point_in_time_joins(spark: Any, opened: Pair) -> None:
    """Of a table, and of a data frame that is on the executors."""
    collection, timeline = opened
    table = probes_of(collection, timeline)
    frame = spark.createDataFrame(table)
    for asked in ({}, {"known_at": "known"}, {"each": True, "within": "400d", "columns": ["kind", timeline]}):
        answer = collection.latest_at(timeline, at=table, **asked)
        wanted = rows_of_table(answer.to_arrow())
        assert sum(row[-1] is not None for row in wanted) > 20, asked
        for at in (table, frame):
            found = collection.latest_at(timeline, at=at, **asked).to_spark(spark)
            assert found.columns == answer.schema.names
            assert rows_of_frame(found, found.columns) == wanted, asked


def test_a_frame_is_answered_by_executors_alone(spark: Any, opened: Pair) -> None:
    collection, timeline = opened
    table = probes_of(collection, timeline)
    answer = collection.latest_at(timeline, at=spark.createDataFrame(table), known_at="known")
    assert "a data frame of Spark" in repr(answer)
    with pytest.raises(tidemark.InvalidUsage, match=r"read by its executors: call to_spark\(spark\); or give a table"):
        answer.to_arrow()
    with pytest.raises(tidemark.InvalidUsage, match="the table has no column 'nothing'"):
        collection.latest_at(timeline, at=spark.createDataFrame(table), known_at="nothing")
    late = table.set_column(
        table.schema.get_field_index("known"), "known", pa.array([9 * 10**15] * len(table), INSTANT)
    )
    unreadable = collection.latest_at(timeline, at=spark.createDataFrame(late), known_at="known").to_spark(spark)
    with pytest.raises(Exception, match=r"known_at 2255-03-14T16:00:00Z is outside the readable \[since 1970"):
        unreadable.count()


def test_a_table_that_spark_cannot_have_is_refused_in_one_line(spark: Any, opened: Pair) -> None:
    collection, timeline = opened
    table = probes_of(collection, timeline).append_column("odd", pa.array([0] * 223, pa.uint64()))
    assert collection.latest_at(timeline, at=table).count() == 223
    with pytest.raises(tidemark.InvalidUsage, match="at: Spark cannot have the table as a data frame") as refused:
        collection.latest_at(timeline, at=table).to_spark(spark)
    assert "\n" not in str(refused.value)


def test_a_range_of_a_timeline_is_the_same_through_executors(spark: Any, opened: Pair) -> None:
    """Of few row groups, by the name of it and as a condition; some columns, and in order."""
    collection, timeline = opened
    times = sorted(collection.as_of().to_arrow()[timeline].drop_null().to_pylist())
    lower, upper = times[len(times) // 3], times[len(times) // 2]
    answer = collection.range(timeline, lower, upper)
    assert 0 < answer.count() < collection.as_of().count()
    assert rows_of_frame(answer.to_spark(spark), answer.schema.names) == rows_of_table(answer.to_arrow())
    text = f"{timeline} BETWEEN '{lower.isoformat()}' AND '{upper.isoformat()}'"
    assert rows_of_frame(collection.as_of(where=text).to_spark(spark), answer.schema.names) == rows_of_table(
        answer.to_arrow()
    )
    few = collection.range(timeline, lower, upper, columns=[timeline])
    assert rows_of_frame(few.to_spark(spark), few.schema.names) == rows_of_table(few.to_arrow())
    ordered = collection.range(timeline, lower, upper, in_order=True)
    assert ordered.to_spark(spark).toArrow()[timeline].to_pylist() == ordered.to_arrow()[timeline].to_pylist()
