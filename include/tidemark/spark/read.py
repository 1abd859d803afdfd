"""The answer to a request as Spark DataFrames, at the scale of the cluster. Lazy: nothing is read until an action asks.

A request names batches of one state, so it is stable while writers run. Parts whose rows are the answer as they are
(plan/unmerged.py) come through Spark's own Parquet reader, with its filters and pruning, where the file system speaks
the store's scheme. All others are merged by the Arrow reader in the executors, one key range a task; Spark's optimizer
cannot narrow down what comes from there, so say what is wanted by `keys` and `columns`. Nothing is shuffled: so rows
that are equal in some columns are added up where they meet, and may still come several times; the sum of their
multiplicities is the answer (spark/view.py makes it).

Which rows fit a condition of ours only our kernel can say, in Python. So a read that is given what to `keep` is made of
tasks alone, and only what fits crosses to the JVM; there its own filters may narrow the answer down further.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from collections.abc import Set as Names
from dataclasses import replace
from functools import reduce

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema

from tidemark.arrow import read
from tidemark.arrow.read import CHANGE_TYPE, MULTIPLICITY, Answered, as_of_schema, changes_schema, updates_in
from tidemark.arrow.repeated import repeated
from tidemark.arrow.rows.cuts import pieces
from tidemark.arrow.rows.schema import DIFF, EVENT_TIME, TIME, some_of, updates_schema
from tidemark.arrow.view import Keep
from tidemark.model.batch import Part
from tidemark.plan.ranges import even_target, groups_among
from tidemark.plan.read import ReadRequest, at_rest, read_tasks, read_tasks_within
from tidemark.plan.tasks import AtRest, KeyRange, ReadTask
from tidemark.plan.unmerged import unmerged
from tidemark.plan.unsealed import PartsOf
from tidemark.spark.workers import in_workers
from tidemark.storage import ObjectStore, open_store
from tidemark.storage.documents.codec import decode, encode
from tidemark.storage.sidecars import parts_table

BATCH_BYTES = 16 * 2**20
"""Most bytes of rows handed to the JVM at once, which holds them outside its heap too."""
LEAST_TASK_ROWS = 2**19
"""Rows below about which a task of its own costs more than it spares: merging so many takes 0.1 to 0.3 CPU seconds, and
a task with nothing to do 0.06."""
ROUNDS = 2
"""Tasks for each core, where there are rows enough: so ranges that turn out slow do not leave the others idle."""


def as_of_rows(
    spark: SparkSession,
    store: ObjectStore,
    request: ReadRequest,
    ranges: Sequence[KeyRange] = (),
    columns: Sequence[str] | None = None,
    *,
    event_times: bool = False,
    keep: Keep | None = None,
) -> DataFrame:
    """The answer to a request of `plan_as_of`: columns of key and value, or those of them in `columns`, of which equal
    rows add up, and `_multiplicity` (long, never 0). With `ranges` it has rows of these keys only; with `event_times`
    rows also differ by when they happened (µs). Of the rows it has what `keep` leaves, which may look at these columns
    alone."""
    schema = as_of_schema(request.collection, columns, event_times=event_times)

    def merged(store: ObjectStore, task: ReadTask) -> Iterator[pa.RecordBatch]:
        return read.rows_as_of(store, task, columns, event_times=event_times)

    selected = [*map(F.col, schema.names[:-1]), F.col(DIFF).alias(MULTIPLICITY)]
    return _answered(spark, store, request, schema, selected, merged, keep, times=False, ranges=ranges)


def each_row(spark: SparkSession, store: ObjectStore, request: ReadRequest) -> DataFrame:
    """The answer to a request of `plan_as_of` in the columns of key and value, a row of multiplicity m as m rows.

    A negative multiplicity ends the query in an error (arrow/repeated.py)."""
    schema = as_of_schema(request.collection)
    columns = schema.remove(len(schema) - 1)

    def merged(store: ObjectStore, task: ReadTask) -> Iterator[pa.RecordBatch]:
        return repeated(read.rows_as_of(store, task), task.collection.unshown)

    times = [] if request.collection.kind.one_value else [F.explode(_as_often()).alias(DIFF)]
    selected = [*map(F.col, columns.names), *times]
    return _answered(spark, store, request, columns, selected, merged, None, times=False)


def _as_often() -> Column:
    """An array with as many elements as the multiplicity of a row at rest says."""
    less = F.raise_error(
        F.concat(F.lit("a row has the multiplicity "), F.col(DIFF), F.lit(", which no table can show"))
    )
    often = F.array_repeat(F.lit(True), F.col(DIFF).cast("int"))
    return F.when(F.col(DIFF) > 0, often).otherwise(less.cast("array<boolean>"))


def updates(
    spark: SparkSession,
    store: ObjectStore,
    request: ReadRequest,
    ranges: Sequence[KeyRange] = (),
    columns: Sequence[str] | None = None,
) -> DataFrame:
    """The updates that a request asks for, consolidated: key and value columns, or `columns`, `_time`, `_event_time`,
    `_diff`; with `ranges` of these keys only."""
    schema = updates_in(request.collection, _or_all(request, columns))

    def merged(store: ObjectStore, task: ReadTask) -> Iterator[pa.RecordBatch]:
        return read.updates_of(store, task, schema.names[:-3])

    selected = [F.col(name) for name in schema.names]
    return _answered(spark, store, request, schema, selected, merged, None, times=True, ranges=ranges)


def some_updates(
    spark: SparkSession, store: ObjectStore, request: ReadRequest, columns: Sequence[str] | None = None
) -> DataFrame:
    """Updates that add up to those that a request asks for: `columns` and `_diff`, as they are at rest. Equal rows may
    be there several times, and cancel each other."""
    schema = updates_in(request.collection, _or_all(request, columns))
    names = [*schema.names[:-3], DIFF]

    def merged(store: ObjectStore, task: ReadTask) -> Iterator[pa.RecordBatch]:
        return (rows.select(names) for rows in read.updates_of(store, task, schema.names[:-3]))

    request, parts = parts_table.opened_read(store, request)
    selected, collection = [F.col(name) for name in names], request.collection
    resting = [
        AtRest(tuple(part for part in rest.parts if part.schema == collection.schema), rest.after)
        for rest in (() if collection.unseen or "://" in store.url else at_rest(request, parts))
    ]
    return _of_both(spark, store, request, parts, resting, some_of(schema, names), selected, merged)


def _or_all(request: ReadRequest, columns: Sequence[str] | None) -> Sequence[str]:
    return [column.name for column in request.collection.columns] if columns is None else columns


def merged_rows(
    spark: SparkSession,
    store: ObjectStore,
    request: ReadRequest,
    schema: pa.Schema,
    answer: Answered,
    keep: Keep | None = None,
) -> DataFrame:
    """What `answer` makes of the tasks of a request, in the columns of `schema`, and of it what `keep` leaves: for
    questions that no row answers as it is."""
    request, parts = parts_table.opened_read(store, request)
    tasks = tasks_of(cores(spark), request, parts)
    if not tasks:
        return spark.createDataFrame([], from_arrow_schema(schema, prefer_timestamp_ntz=False))
    return mapped(spark, store.url, schema, tasks, answer, keep)


def change_rows(
    spark: SparkSession,
    store: ObjectStore,
    request: ReadRequest,
    *,
    net: bool = False,
    columns: Sequence[str] | None = None,
    keep: Keep | None = None,
) -> DataFrame:
    """The answer to a request of `plan_changes`, in the columns of Spark's CHANGES.

    One row per consolidated update: key and value columns, or those of them in `columns`, of which equal rows of a time
    add up, `_change_type` (insert or delete by the sign; update_preimage and update_postimage where one value of a
    unique key, all of it among the columns, replaces one other), `_commit_version` (its time, µs), `_commit_timestamp`,
    `_event_time` (µs), `diff` (its multiplicity); of the rows what `keep` leaves, which may look at columns of the
    collection alone. Times below since are given as forwarded, whether or not a compaction has moved them there by now.
    `net` sums over the whole interval and leaves the times out.
    """
    schema = changes_schema(request.collection, net=net, columns=columns)

    def merged(store: ObjectStore, task: ReadTask) -> Iterator[pa.RecordBatch]:
        return read.changes_of(store, task, net=net, columns=columns)

    own = map(F.col, schema.names[: schema.get_field_index(CHANGE_TYPE)])
    sign = F.when(F.col(DIFF) > 0, "insert").otherwise("delete").alias(CHANGE_TYPE)
    version = F.col(TIME).alias("_commit_version")
    times = [] if net else [version, F.timestamp_micros(TIME).alias("_commit_timestamp"), F.col(EVENT_TIME)]
    selected = [*own, sign, *times, F.col(DIFF).alias("diff")]
    return _answered(spark, store, request, schema, selected, merged, keep, times=not net)


def _answered(
    spark: SparkSession,
    store: ObjectStore,
    request: ReadRequest,
    schema: pa.Schema,
    selected: Sequence[Column],
    merged: Answered,
    keep: Keep | None,
    *,
    times: bool,
    ranges: Sequence[KeyRange] = (),
) -> DataFrame:
    """The answer to a request in the columns of `schema`: what is `selected` of rows that need no merging, of others
    what `merged` makes of tasks, and `keep` leaves of that. With `ranges`, which ascend and do not overlap, it has rows
    of these keys only."""
    request, parts = parts_table.opened_read(store, request)
    if ranges:
        request = replace(request, keys=KeyRange(ranges[0].lower, ranges[-1].upper))
    resting = unmerged(request, parts, times=times, ranges=ranges) if keep is None and "://" not in store.url else ()
    return _of_both(spark, store, request, parts, resting, schema, selected, merged, keep, ranges)


def _of_both(
    spark: SparkSession,
    store: ObjectStore,
    request: ReadRequest,
    parts: PartsOf,
    resting: Sequence[AtRest],
    schema: pa.Schema,
    selected: Sequence[Column],
    merged: Answered,
    keep: Keep | None = None,
    ranges: Sequence[KeyRange] = (),
) -> DataFrame:
    """Of the `resting` parts what is `selected` of their rows, of all others what `merged` makes of them."""
    frames = [rows.select(*selected).select(schema.names) for rows in _plain(spark, store, request, resting)]
    tasks = tasks_of(cores(spark), request, parts, ranges, {part.file.key for rest in resting for part in rest.parts})
    if tasks:
        frames.append(mapped(spark, store.url, schema, tasks, merged, keep))
    if not frames:
        return spark.createDataFrame([], from_arrow_schema(schema, prefer_timestamp_ntz=False))
    return reduce(DataFrame.unionAll, frames)


def _plain(
    spark: SparkSession, store: ObjectStore, request: ReadRequest, resting: Sequence[AtRest]
) -> Iterator[DataFrame]:
    """The updates of some parts, as they are there, within the bounds of the request; all that is wholly inside as one
    frame, without conditions."""
    inside: list[Part] = []
    for rest in resting:
        whole = [part for part in rest.parts if _is_inside(part, request, rest.after)]
        cut = [part for part in rest.parts if not _is_inside(part, request, rest.after)]
        inside += whole
        if cut:
            learned = (F.col(TIME) > rest.after) & (F.col(TIME) <= request.upto)
            yield _parquet(spark, store, request, cut).where(learned & (F.col(EVENT_TIME) <= request.event_upto))
    if inside:
        yield _parquet(spark, store, request, inside)


def _is_inside(part: Part, request: ReadRequest, after: int) -> bool:
    return part.first_time > after and part.last_time <= request.upto and part.last_event_time <= request.event_upto


def _parquet(spark: SparkSession, store: ObjectStore, request: ReadRequest, parts: Sequence[Part]) -> DataFrame:
    schema = from_arrow_schema(updates_schema(request.collection), prefer_timestamp_ntz=False)
    # A session may be set to go on without files that are gone or broken; an answer with less is none.
    whole = {"ignoreMissingFiles": "false", "ignoreCorruptFiles": "false"}
    paths = (f"file://{_literally(store.url)}/{part.file.key}" for part in parts)
    return spark.read.schema(schema).options(**whole).parquet(*paths)


def _literally(path: str) -> str:
    """A path as Spark is given it: Hadoop takes `[1]`, `{x}` and the like for patterns of names unless escaped."""
    return re.sub(r"([][{}*?\\])", r"\\\1", path)


def tasks_of(
    at_once: int,
    request: ReadRequest,
    parts: PartsOf,
    ranges: Sequence[KeyRange] = (),
    but: Names[str] = frozenset(),
    *,
    leading: int | None = None,
) -> list[ReadTask]:
    """The tasks of a read whose batches were opened, none where there is nothing: so many that all of the cores that
    work `at_once` have work, so large that they are worth it, and none larger than a task should be; all of like size.
    Parts whose files are in `but` are read otherwise. With `leading` no two have keys that are equal in so many of
    their first columns, where the `ranges` share none, and all keys that are asked for are in one, also those of which
    there is nothing."""
    (whole,) = read_tasks(request, parts, but=but)
    opened = [part for rest in whole.at_rest for part in rest.parts]
    rows = sum(part.groups[at][1] for part in opened for at in groups_among(part, ranges or [request.keys]))
    rows += sum(batch.rows for batch in request.unsealed.batches) if whole.unsealed else 0
    target = even_target(rows, least=LEAST_TASK_ROWS, tasks=ROUNDS * at_once)
    if ranges:
        tasks = read_tasks_within(request, parts, ranges, target_rows=target, but=but, leading=leading)
    else:
        tasks = read_tasks(request, parts, but=but, target_rows=target, leading=leading)
    if leading is not None:
        return tasks
    return [task for task in tasks if task.unsealed or any(rest.parts for rest in task.at_rest)]


def cores(spark: SparkSession) -> int:
    """How many tasks can run at once; a client of Spark Connect knows only how many a shuffle should have."""
    context = getattr(spark, "sparkContext", None)
    if context is None:
        return int(spark.conf.get("spark.sql.shuffle.partitions") or 8)
    return int(context.defaultParallelism)


def mapped(
    spark: SparkSession,
    url: str,
    schema: pa.Schema,
    tasks: Sequence[ReadTask],
    answer: Answered,
    keep: Keep | None = None,
) -> DataFrame:
    """One Spark task for each task, its rows in batches of bounded size. Spark broadcasts tasks that are large."""
    encoded = [encode(task) for task in tasks]

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        store = open_store(url)
        for batch in batches:
            for at in batch.column(0).to_pylist():
                answered = answer(store, decode(encoded[at], ReadTask, name="read task"))
                for rows in map(keep, answered) if keep else answered:
                    if rows.num_rows:
                        yield from pieces(rows, BATCH_BYTES)

    numbers = spark.range(0, len(tasks), 1, len(tasks))
    return numbers.mapInArrow(in_workers(run), from_arrow_schema(schema, prefer_timestamp_ntz=False))
