"""`spark.readStream.format("tidemark")`: each sealed interval is one batch, the same one whenever it is read."""

from __future__ import annotations

import pickle
import shutil
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxFiles

import tidemark
from pyspark_tidemark import DefaultSource
from tests.spark.support import APPEND, DAY, HOUR, START, UPDATES, UPSERT, Made, day_of
from tests.spark.test_read import rows_of_table
from tidemark.datasource.stream import ChangesReader
from tidemark.errors import InvalidUsage
from tidemark.jobs.steps.collect import AT_ONCE, collect
from tidemark.jobs.steps.compact import compact
from tidemark.jobs.steps.init import declare
from tidemark.model.change import Sealed
from tidemark.model.instant import format_instant

pytestmark = pytest.mark.spark
Row = tuple[Any, ...]
MERGING = "retention: full_merge\n"


def path(made: Made) -> str:
    return f"{made.root}/{made.name}"


def reader(made: Made, **options: str) -> ChangesReader:
    """The reader as the process has it that plans a stream."""
    source = DefaultSource({"path": path(made), "starting": "beginning", **options})
    schema = source.schema()
    found: ChangesReader = pickle.loads(pickle.dumps(source)).streamReader(schema)
    return found


def rows(some: ChangesReader, start: dict[str, Any], end: dict[str, Any]) -> list[Row]:
    """The rows of a batch, as executors have them."""
    tasks = pickle.loads(pickle.dumps((some, some.partitions(start, end))))
    batches = [batch for task in tasks[1] for batch in tasks[0].read(task)]
    return rows_of_table(pa.Table.from_batches(batches)) if batches else []


def offsets(some: ChangesReader, start: dict[str, Any] | None = None) -> list[dict[str, Any]]:
    """The offsets from one on, or from where the stream begins, up to the newest."""
    found = [start or some.initialOffset()]
    limit = some.getDefaultReadLimit()
    while (following := some.latestOffset(found[-1], limit)) != found[-1]:
        found.append(following)
    return found


def seals(made: Made) -> list[int]:
    """The newest sealed instants, one for each seal that moved."""
    records = reversed(list(made.log.history()))
    uppers = [record.change.upper for record in records if isinstance(record.change, Sealed)]
    return [upper - 1 for upper in sorted(set(uppers))]


def filled(folder: Path, text: str, days: int = 3) -> Made:
    """Some days by all steps; from the second on some rows come late."""
    made = Made(folder, text)
    go_on(made, *range(1, days + 1))
    return made


def go_on(made: Made, *days: int) -> None:
    for day in days:
        made.land(day, 80, keys=30)
        made.moved(day)


@pytest.mark.parametrize("text", [APPEND, UPDATES, UPSERT], ids=["append", "updates", "upsert"])
def test_each_seal_is_a_batch_with_the_rows_of_changes(tmp_path: Path, text: str) -> None:
    made = filled(tmp_path, text)
    some = reader(made)
    found = offsets(some)
    assert [offset["upto"] for offset in found] == [-1, *seals(made)]
    assert len(found) > 3
    opened = tidemark.open(made.root, made.name)
    everything = []
    for start, end in pairwise(found):
        expected = opened.changes(None if start["upto"] < 0 else start["upto"], end["upto"]).to_arrow()
        assert rows(some, start, end) == rows_of_table(expected)
        everything += rows_of_table(expected)
    assert sorted(everything, key=repr) == rows_of_table(opened.changes().to_arrow())
    assert some.partitions(found[-1], found[-1]) == []


def test_a_batch_is_the_same_whenever_it_is_read(tmp_path: Path) -> None:
    """After rows came late, all was merged and `since` has moved past it: also its event times."""
    made = filled(tmp_path, UPSERT + MERGING, 2)
    before = reader(made)
    found = offsets(before)
    batches = [rows(before, start, end) for start, end in pairwise(found)]
    assert sum(map(len, batches)) > 100
    go_on(made, 3, 4, 5)
    assert made.log.load().state.since > found[-1]["upto"]
    with pytest.raises(InvalidUsage, match="outside the readable"):
        tidemark.open(made.root, made.name).changes(found[1]["upto"], found[2]["upto"])
    after = reader(made)
    again = [rows(after, start, end) for start, end in pairwise(found)]
    assert again == batches


def test_where_a_stream_starts(tmp_path: Path) -> None:
    made = filled(tmp_path, APPEND)
    ends = seals(made)
    noon = START + DAY + 12 * HOUR
    assert [one["upto"] for one in offsets(reader(made, starting="newest"))] == ends[-1:]
    for starting, first in [(format_instant(noon), noon), (str(ends[1]), ends[1]), (str(ends[-1]), ends[-1])]:
        found = [one["upto"] for one in offsets(reader(made, starting=starting))]
        assert found == [first, *(end for end in ends if end > first)], starting
    assert [one["upto"] for one in offsets(reader(made, seals_per_batch="2"))] == [-1, *ends[1:-1:2], ends[-1]]
    some = reader(made)
    newest = some.latestOffset(some.initialOffset(), ReadAllAvailable())
    assert (newest["upto"], newest["after"]) == (ends[-1], -1)


def test_a_stream_that_started_at_the_newest_keeps_its_first_batch(tmp_path: Path) -> None:
    """Its process dies behind the first offset, and the next one would start later: the batch is what it was."""
    made = filled(tmp_path, APPEND, 1)
    before = reader(made, starting="newest")
    start = before.initialOffset()
    go_on(made, 2)
    assert before.initialOffset() == start
    end = before.latestOffset(start, ReadMaxFiles(1))
    batch = rows(before, start, end)
    go_on(made, 3)
    after = reader(made, starting="newest")
    assert after.initialOffset()["upto"] > end["upto"]
    assert rows(after, after.initialOffset(), end) == batch
    assert len(batch) > 50


def test_an_empty_collection_waits(tmp_path: Path) -> None:
    made = Made(tmp_path, APPEND)
    made.land(1, 80, keys=30)
    made.step("ingest", 1)
    for starting in ("beginning", "newest", "2023-12-31"):
        some = reader(made, starting=starting, hold="mine")
        assert len(offsets(some)) == 1
    made.step("seal", 1)
    found = offsets(reader(made, starting="newest"), some.initialOffset())
    assert len(found) == 2
    assert len(rows(some, *found)) > 50


def test_versions_that_were_collected_leave_fewer_batches_with_the_same_rows(tmp_path: Path) -> None:
    made = filled(tmp_path, APPEND, 4)
    opened = tidemark.open(made.root, made.name)
    found = offsets(reader(made))
    expected = rows_of_table(opened.changes().to_arrow())
    later = collected(made)
    assert later > found[2]["version"]
    some = reader(made)
    fewer = offsets(some)
    assert 2 <= len(fewer) < len(found)
    all_rows = [row for start, end in pairwise(fewer) for row in rows(some, start, end)]
    assert sorted(all_rows, key=repr) == expected
    assert rows(some, found[0], found[1]) == rows_of_table(opened.refresh().changes(None, found[1]["upto"]).to_arrow())


def collected(made: Made) -> int:
    """Let the collector remove what it may; the oldest version that is left."""
    for _ in range(2):
        collect(made.job(), keep=0, graces=AT_ONCE)
    return made.log.oldest_version()


def test_a_hold_keeps_what_the_stream_has_not_read(tmp_path: Path) -> None:
    made = filled(tmp_path, UPSERT + MERGING, 1)

    def holds() -> list[int]:
        return [hold.since for hold in made.log.load().state.holds if hold.name == "mine"]

    some = reader(made, hold="mine", starting="newest")
    start = some.initialOffset()
    assert holds() == [start["upto"]]
    go_on(made, 2, 3, 4, 5)
    assert made.log.load().state.since <= start["upto"]
    found = offsets(some, start)
    assert len(found) > 2
    some.commit(found[1])
    assert holds() == [found[1]["upto"]]
    version = made.log.newest_version()
    some.commit(found[1])
    assert made.log.newest_version() == version, "the same hold again is no version"
    compact(made.job(), day_of(5))
    assert start["upto"] < made.log.load().state.since <= found[1]["upto"]
    reader(made, hold="mine").latestOffset(found[-1], ReadMaxFiles(1))
    assert holds() == [found[-1]["upto"]], "a stream that goes on holds from its checkpoint on"
    reader(made, hold="late").latestOffset(found[0], ReadMaxFiles(1))
    late = next(hold.since for hold in made.log.load().state.holds if hold.name == "late")
    assert late == made.log.load().state.since > found[0]["upto"], "what was merged cannot be kept any more"


def test_a_checkpoint_that_cannot_be_gone_on_from_is_refused_in_a_line(tmp_path: Path) -> None:
    made = filled(tmp_path, UPSERT + MERGING, 2)
    found = offsets(reader(made))
    go_on(made, 3, 4, 5)
    collected(made)
    with pytest.raises(InvalidUsage) as merged:
        offsets(reader(made), found[1])
    since = format_instant(made.log.load().state.since)
    assert f"since of {made.name} has moved on to {since}" in str(merged.value)
    assert "start there with a new checkpoint, and give the stream a hold" in str(merged.value)
    with pytest.raises(InvalidUsage, match="the beginning is before since"):
        offsets(reader(made))
    shutil.rmtree(made.root / made.name)
    shutil.rmtree(made.landing)
    again = filled(tmp_path, UPSERT, 2)
    for call in (lambda: offsets(reader(again), found[1]), lambda: reader(again).partitions(found[0], found[1])):
        with pytest.raises(InvalidUsage, match="another was created under this name: start with a new checkpoint"):
            call()
    with pytest.raises(InvalidUsage, match="is no offset of a collection"):
        offsets(reader(again), {"upto": "x"})


REFUSED: list[tuple[dict[str, str], str]] = [
    ({"starting": "newst"}, "not a time: 'newst'"),
    ({"starting": "2031-01-01"}, "is not sealed yet in events; the newest readable is 2024-01-01T23:59:59.999999Z"),
    ({"as_of": "2024-01-01"}, "option as_of is one of spark.read; this is spark.readStream"),
    ({"multiplicity": "true"}, "option multiplicity is one of spark.read; this is spark.readStream"),
    ({"version": "1"}, "option version is one of spark.read; this is spark.readStream"),
    ({"seals_per_batch": "0"}, "option seals_per_batch is '0'; it is a whole number from 1 on"),
    ({"columns": "idd"}, "columns: collection events has no column 'idd'; did you mean 'id'?"),
    ({"where": "idd = 1"}, "where: collection events has no column 'idd'; did you mean 'id'?"),
    ({"hold": "My Hold"}, "hold name 'My Hold' must match"),
    ({"starts": "newest"}, "there is no option 'starts'; did you mean 'starting'?"),
]


def test_what_no_stream_can_be_is_refused_in_a_line(tmp_path: Path) -> None:
    made = filled(tmp_path, APPEND, 1)
    for options, message in REFUSED:
        with pytest.raises(InvalidUsage) as refused:
            reader(made, **options).initialOffset()
        assert message in str(refused.value)
    source = DefaultSource({"path": path(made)})
    some = pickle.loads(pickle.dumps(source.streamReader(source.schema())))
    for call in (some.initialOffset, lambda: some.latestOffset({}, ReadMaxFiles(1)), lambda: some.partitions({}, {})):
        with pytest.raises(InvalidUsage, match="where does the stream start"):
            call()


def streamed(spark: Any, made: Made, sink: Path, **options: str) -> list[Counter[str]]:
    """Run a stream over all that is sealed; the rows of each batch so far, by their numbers."""
    frame = spark.readStream.format("tidemark").options(starting="beginning", **options).load(path(made))

    def take(batch: Any, number: int) -> None:
        batch.write.mode("overwrite").json(f"{sink}/{number}")

    query = frame.writeStream.foreachBatch(take).option("checkpointLocation", f"{sink}-checkpoint")
    query.trigger(availableNow=True).start().awaitTermination()
    numbers = sorted(int(one.name) for one in sink.iterdir())
    assert numbers == list(range(len(numbers)))
    return [
        Counter(line for file in (sink / str(n)).glob("*.json") for line in file.read_text().splitlines())
        for n in numbers
    ]


def test_a_query_goes_on_from_its_checkpoint_seal_by_seal(spark: Any, tmp_path: Path) -> None:
    made = filled(tmp_path, APPEND, 2)
    options = {"columns": "id,kind", "hold": "mine", "where": "id < 20"}
    first = streamed(spark, made, tmp_path / "sink", **options)
    assert len(first) == len(seals(made))
    go_on(made, 3)
    both = streamed(spark, made, tmp_path / "sink", **options)
    assert both[: len(first)] == first
    assert len(both) == len(seals(made)) > len(first)
    once = streamed(spark, made, tmp_path / "once", seals_per_batch="100", **options)
    assert len(once) == 1
    assert sum(both, Counter()) == once[0]
    expected = tidemark.open(made.root, made.name).changes(columns=["id", "kind"], where="id < 20").count()
    assert sum(once[0].values()) == expected > 30


def test_a_query_fails_with_the_line_and_no_traceback(spark: Any, tmp_path: Path) -> None:
    made = filled(tmp_path, UPSERT + MERGING, 2)
    streamed(spark, made, tmp_path / "sink")
    shutil.rmtree(made.root / made.name)
    shutil.rmtree(made.landing)
    filled(tmp_path, UPSERT, 2)
    unsaid = spark.readStream.format("tidemark").load(path(made)).writeStream.format("noop")
    query = unsaid.option("checkpointLocation", f"{tmp_path}/unsaid").start()
    with pytest.raises(StreamingQueryException, match="where does the stream start") as refused:
        query.awaitTermination()
    assert "Traceback" not in str(refused.value)
    with pytest.raises(StreamingQueryException) as refused:
        streamed(spark, made, tmp_path / "sink")
    assert "another was created under this name: start with a new checkpoint and an empty sink" in str(refused.value)
    assert "Traceback" not in str(refused.value)


def test_columns_change_while_a_stream_goes_on(tmp_path: Path) -> None:
    """A stream has the columns that it started with. One that is started again has those of today, of all batches; the
    old ones it does not know any more."""
    made = filled(tmp_path, UPSERT, 1)
    begun = reader(made)
    text = UPSERT.replace("since]", "since, note]").replace("since: timestamp,", "since: timestamp, note: string,")
    made.file.write_text(text)
    land_with(made, 2, note="new")
    made.moved(2)
    opened = tidemark.open(made.root, made.name)
    names = ["id", "kind", "amount", "since"]
    for some, columns in [(begun, names), (reader(made), [*names, "note"])]:
        found = offsets(some)
        expected = rows_of_table(opened.changes(columns=columns).to_arrow())
        all_rows = [row for start, end in pairwise(found) for row in rows(some, start, end)]
        assert sorted(all_rows, key=repr) == expected
        assert len(found) > 2
    text = text.replace("amount", "sum").replace("sum: float", "sum: {type: float, was: amount}")
    made.file.write_text(text)
    made.step("seal", 2)
    declare(made.job(), str(made.file))
    renamed = reader(made, columns="id,sum")
    found = offsets(renamed)
    assert sum(len(rows(renamed, *pair)) for pair in pairwise(found)) > 100
    with pytest.raises(InvalidUsage, match="schema: collection people has no column 'amount'"):
        begun.partitions(found[0], found[1])


def land_with(made: Made, day: int, **more: str) -> None:
    """The files of a day with more columns."""
    made.land(day, 80, keys=30)
    for file in (made.landing / made.name / f"2024-01-{day:02d}").iterdir():
        table = pq.read_table(file)
        for name, value in more.items():
            table = table.append_column(name, pa.array([value] * len(table)))
        pq.write_table(table, file)
