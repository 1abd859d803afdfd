"""The inputs of a definition as Spark sees them, each under its name: what it holds at the time it is consumed to, a
row as often as its multiplicity says; or what changed of it since it was consumed before."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from tidemark.arrow.read import MULTIPLICITY, updates_in, updates_of
from tidemark.definition.computation import Computation, Input
from tidemark.definition.exact_sum import EXACT_SUM, exact_sum
from tidemark.model.batch import Part
from tidemark.model.collection import Collection
from tidemark.model.update import Row
from tidemark.plan.ranges import groups_among
from tidemark.plan.read import ReadRequest, at_rest, plan_as_of, plan_changes, plan_updates, read_tasks_within
from tidemark.plan.tasks import ALL_KEYS, KeyRange
from tidemark.spark import read
from tidemark.spark.derive.columns import spark_schema
from tidemark.spark.session import SETTINGS
from tidemark.storage import ObjectStore, open_store
from tidemark.storage.sidecars import parts_table

OWN_SETTINGS = {
    **{name: value for name, value in SETTINGS.items() if name.startswith("spark.sql.") and "shuffle" not in name},
    "spark.sql.ansi.enabled": "true",
}
"""What an answer must not depend on, whatever the session was told."""
LITTLE_ROWS, LITTLE_BYTES = 2**17, 2**24
"""What is read, or written, by the driver itself: a job of Spark's takes longer than so much."""
IN_ONE_TASK = {"spark.sql.shuffle.partitions": "1", "spark.sql.adaptive.enabled": "false"}
"""For what one task computes sooner than several do."""
AS_IT_IS = IN_ONE_TASK | {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}
"""For rows so few that compiling a query takes longer than to interpret it."""
_KEPT = ("spark.sql.shuffle.partitions", "spark.sql.adaptive.enabled")


@dataclass
class Views:
    """Reads the inputs of one computation, and the collection itself, and counts what is at rest of what was asked for.

    It works in a session of its own, in which the inputs' names are free. At the end of its block what it had Spark
    keep is let go: a run that catches up computes many times."""

    computation: Computation
    spark: SparkSession
    rows_read: int = 0
    bytes_read: int = 0
    _seen: set[tuple[str, int]] = field(default_factory=set)
    _kept: list[DataFrame] = field(default_factory=list)

    def __enter__(self) -> Views:
        return self

    def __exit__(self, *_: object) -> None:
        for frame in self._kept:
            frame.unpersist()

    def kept(self, frame: DataFrame) -> DataFrame:
        """A frame that is computed once."""
        self._kept.append(frame.persist())
        return self._kept[-1]

    def held(self, name: str, ranges: Sequence[KeyRange] = ()) -> DataFrame:
        """What an input holds, a row as often as its multiplicity says; with `ranges` of these keys only."""
        asked = self.computation.input(name)
        request = plan_as_of(asked.state, asked.upper - 1)
        frame = read.held_rows(self.spark, self._opened(asked.url, request, ranges), request, ranges)
        return repeated(frame, asked.state.collection, MULTIPLICITY)

    def changes(self, name: str) -> DataFrame:
        """The updates of an input since it was consumed before; all of them, where it was not. Times as its history
        has them now."""
        request = self._changes(name)
        return read.updates(self.spark, self._opened(self.computation.input(name).url, request, ()), request)

    def rows_changed(self, name: str) -> int:
        """How many updates of an input `changes` gives at most."""
        request, parts = parts_table.opened_read(open_store(self.computation.input(name).url), self._changes(name))
        rows = sum(part.rows for some in at_rest(request, parts) for part in some.parts)
        return rows + sum(batch.rows for batch in request.unsealed.batches)

    def _changes(self, name: str) -> ReadRequest:
        asked = self.computation.input(name)
        if asked.previous is None:
            return plan_updates(asked.state, asked.upper - 1)
        return plan_changes(asked.state, asked.previous - 1, asked.upper - 1)

    def own(self, ranges: Sequence[KeyRange] = ()) -> DataFrame:
        """All updates that the collection itself holds, hidden columns too; with `ranges` of these keys only."""
        request = plan_updates(self.computation.state)
        store = self._opened(self.computation.url, request, ranges)
        return read.updates(self.spark, store, request, ranges, self._stored)

    def own_here(self, ranges: Sequence[KeyRange]) -> pa.Table | None:
        """The same, read by this process without Spark: None where that is more than LITTLE_ROWS or LITTLE_BYTES."""
        url, collection = self.computation.url, self.computation.collection
        request, parts = parts_table.opened_read(open_store(url), plan_updates(self.computation.state))
        opened = [held for some in at_rest(request, parts) for part in some.parts for held in _groups(part, ranges)]
        if sum(rows for _, rows, _ in opened) > LITTLE_ROWS or sum(size for *_, size in opened) > LITTLE_BYTES:
            return None
        store = self._opened(url, request, ranges)
        tasks = read_tasks_within(request, parts, ranges or (ALL_KEYS,), target_rows=LITTLE_ROWS)
        batches = [rows for task in tasks for rows in updates_of(store, task, self._stored)]
        return pa.Table.from_batches(batches, schema=updates_in(collection, self._stored))

    @property
    def _stored(self) -> list[str]:
        collection = self.computation.collection
        return [column.name for column in (*collection.columns, *collection.hidden)]

    def groups(self, name: str) -> list[Row]:
        """The first keys of the row groups that hold an input, or the collection itself (by its own name)."""
        own = name == self.computation.name
        asked = None if own else self.computation.input(name)
        request = plan_as_of(asked.state, asked.upper - 1) if asked else plan_updates(self.computation.state)
        opened = at_rest(*parts_table.opened_read(open_store(asked.url if asked else self.computation.url), request))
        return sorted(key for some in opened for part in some.parts for key, _ in part.groups)

    def _opened(self, url: str, request: ReadRequest, ranges: Sequence[KeyRange]) -> ObjectStore:
        """The store at `url`; the row groups that answer the request are counted, each once."""
        store = open_store(url)
        for some in at_rest(*parts_table.opened_read(store, request)):
            for part in some.parts:
                for at, rows, size in _groups(part, ranges):
                    if (part.file.key, at) not in self._seen:
                        self._seen.add((part.file.key, at))
                        self.rows_read += rows
                        self.bytes_read += size
        return store


def _groups(part: Part, ranges: Sequence[KeyRange]) -> Iterator[tuple[int, int, int]]:
    """The row groups of a part that can hold keys of some ranges (none: all): number, rows and about how many bytes."""
    for at in groups_among(part, ranges or (ALL_KEYS,)):
        rows = part.groups[at][1]
        yield at, rows, part.file.bytes * rows // part.rows


def repeated(frame: DataFrame, collection: Collection, count: str) -> DataFrame:
    """Rows as often as `count` says, which is refused where it is negative. Where a key holds one value, it is 1."""
    if collection.kind.one_value:
        return frame.drop(count)
    key = F.to_json(F.struct(*(F.col(f"`{column.name}`") for column in collection.key)))
    message = F.concat(
        F.lit(f"collection {collection.name} holds a row of key "),
        key,
        F.lit(" "),
        F.col(count).cast("string"),
        F.lit(" times; a definition sees rows that are there: correct the input"),
    )
    times = F.when(F.col(count) < 0, F.raise_error(message).cast("int")).otherwise(F.col(count).cast("int"))
    shown = [F.col(f"`{name}`") for name in frame.columns if name != count]
    return frame.select(*shown, F.explode(F.array_repeat(F.lit(True), times)).alias(count)).drop(count)


def apart(spark: SparkSession) -> SparkSession:
    """A session in which no view has a name yet, with settings that make answers what they should be, and the function
    that recipes call."""
    own = spark.newSession()
    for name in _KEPT:
        own.conf.set(name, str(spark.conf.get(name)))
    for name, value in OWN_SETTINGS.items():
        own.conf.set(name, value)
    own.udf.register(EXACT_SUM, F.udf(exact_sum, "double", useArrow=True))
    return own


@contextmanager
def told(spark: SparkSession, settings: Mapping[str, str]) -> Iterator[None]:
    """Settings of a session, for what is planned in the block."""
    before = {name: spark.conf.get(name, None) for name in settings}
    for name, value in settings.items():
        spark.conf.set(name, value)
    try:
        yield
    finally:
        for name, held in before.items():
            spark.conf.unset(name) if held is None else spark.conf.set(name, held)


@contextmanager
def called(frames: Mapping[str, DataFrame]) -> Iterator[None]:
    """The frames as views of their names."""
    for name, frame in frames.items():
        frame.createOrReplaceTempView(name)
    try:
        yield
    finally:
        for name, frame in frames.items():
            frame.sparkSession.catalog.dropTempView(name)


def empty(spark: SparkSession, computed: Input) -> DataFrame:
    """The view of an input without rows: what a definition is analysed over."""
    return spark.createDataFrame([], spark_schema(computed.state.collection.columns))
