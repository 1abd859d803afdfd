"""A landed collection of random rows, and windows over it, as the product holds them and as the SQL oracle says.

The product's side goes through the door a user takes: files are landed, ingested, sealed and drained; the windows are
declared and then corrected, whole at first and from changes afterwards.
"""

from __future__ import annotations

import random
import struct
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet

from tests.oracles.random_windows import COLUMNS, DAY, INPUT, START, Row, Rows
from tests.oracles.sql_windows.in_time import DIFF, LEARNED
from tests.oracles.sql_windows.oracle import UPDATE, Input, windows_sql
from tests.spark.support import INSTANT, Made, day_of
from tests.spark.test_derived import Deriving
from tests.support.world import certify
from tidemark.arrow.read import changes_of
from tidemark.arrow.rows.schema import arrow_type
from tidemark.definition.recipe import HAPPENED
from tidemark.errors import Uncertified
from tidemark.jobs.job import Job
from tidemark.jobs.steps.drain import drain
from tidemark.jobs.steps.seal import seal
from tidemark.model.canonical_json import canonical
from tidemark.model.collection import Column, ColumnType, Envelope, Gate, ValueType
from tidemark.model.derived import Definition, Derived
from tidemark.model.interval import Interval
from tidemark.model.window.aggregate import Function
from tidemark.model.window.close import is_closed
from tidemark.model.window.windows import WINDOW_END, Windows
from tidemark.plan.read import plan_updates, read_tasks
from tidemark.spark.derive.settings import AS_IT_IS, isolated_session
from tidemark.storage.sidecars import parts_table

FILE = """\
name: {name}
key: [id]
value: [{value}]
columns: {{{columns}, {other}, learned: timestamp}}
start: 2024-01-01
live_batches: 2
retention: all
time: {{column: learned}}
{more}
source: {{path: "{{{{ landing }}}}/{name}/{{{{ ds }}}}/*.parquet", format: parquet, {envelope}}}
"""
_LATE = "event_time: {column: happened}\nlate: {reemit: {max_lateness: 9d}}"
_ASKED = {
    Envelope.UPDATES: ("moves", "happened: timestamp", "envelope: updates, diff: change"),
    Envelope.APPEND: ("booked", "happened: timestamp", "envelope: append"),
    Envelope.UPSERT: ("kept", "gone: bool", 'envelope: upsert, delete_when: "gone = TRUE"'),
}
FILES = {
    envelope: FILE.format(
        name=name,
        value=", ".join(column for column in COLUMNS if column != "id"),
        columns=", ".join(f'{column}: "{of}"' for column, of in COLUMNS.items()),
        other=other,
        more="" if envelope is Envelope.UPSERT else _LATE,
        envelope=source,
    )
    for envelope, (name, other, source) in _ASKED.items()
}
"""The files of inputs that are alike in all but how they land."""
Multiset = Counter[tuple[Any, ...]]


@dataclass
class Followed:
    """Random rows of a seed, day by day, and how they are asked."""

    made: Made
    spark: Any
    seed: int
    envelope: Envelope
    days: int = 0
    there: list[Row] = field(default_factory=list)

    @classmethod
    def of(cls, folder: Path, spark: Any, seed: int, envelope: Envelope) -> Followed:
        """An input of an envelope, without rows."""
        return cls(Made(folder, FILES[envelope]), spark, seed, envelope)

    def next_day(self, rows: int, gone: int) -> None:
        """So many rows more, and so many that were there retracted: of `upsert` half of them changed."""
        landed = self._drawn(rows, gone)
        land(self.made, self.days, landed)

    def skip(self, days: Iterable[tuple[int, int]]) -> None:
        """Know what was landed on some days, where that was done before."""
        for rows, gone in days:
            self._drawn(rows, gone)

    def _drawn(self, rows: int, gone: int) -> list[Row]:
        """The rows that come on the next day."""
        self.days += 1
        chance = random.Random(f"{self.envelope} {self.seed} {self.days}")
        drawn = Rows(chance)
        new = [drawn.row(self.days * 1000 + number, self.days) for number in range(rows)]
        landed, left = [*new], []
        taken = [] if self.envelope is Envelope.APPEND else chance.sample(self.there, min(gone, len(self.there)))
        for number, row in enumerate(taken):
            learned = START + (self.days - 1) * DAY + chance.randrange(DAY)
            self.there.remove(row)
            if self.envelope is Envelope.UPSERT:
                landed.append((row if number % 2 else drawn.row(row["id"], self.days)) | {"learned": learned})
                landed[-1]["gone"] = bool(number % 2)
                left += [landed[-1]] * (1 - number % 2)
                continue
            landed.append(row | {"change": -chance.randint(1, row["change"]), "learned": learned})
            if many := row["change"] + landed[-1]["change"]:
                left.append(row | {"change": many})
        self.there += [*new, *left]
        return landed

    def deriving(self, name: str, windows: Windows) -> Deriving:
        """Windows over the input, not declared yet."""
        return Deriving(self.made, self.spark, name, Derived((self.made.name,), Definition(windows=windows)))

    def oracle(self) -> Oracle:
        """What the oracle says of the rows there are now."""
        return Oracle.of(self)


def land(made: Made, day: int, rows: Sequence[Row]) -> None:
    """The file of a day, through all steps."""
    types: dict[str, pa.DataType] = {name: _landed(of) for name, of in COLUMNS.items()}
    types |= {"happened": INSTANT, "learned": INSTANT, "gone": pa.bool_()}
    if made.name == "moves":
        types["change"] = pa.int64()
    whole = {INSTANT: pa.int64(), pa.date32(): pa.int32()}
    columns = {name: pa.array([row[name] for row in rows], whole.get(of, of)).cast(of) for name, of in types.items()}
    folder = made.landing / made.name / f"2024-01-{day:02d}"
    folder.mkdir(parents=True)
    pyarrow.parquet.write_table(pa.table(columns), folder / "0.parquet")
    made.step("ingest", day)
    through(made.job, day, seal, drain)


def through(job: Callable[[], Job], day: int, *steps: Callable[[Job, Interval], Any]) -> None:
    """Some steps of a day, as if all gates between them were passed."""
    certify(job(), Gate.UNSEALED)
    for step in steps:
        try:
            step(job(), day_of(day))
        except Uncertified as missing:
            certify(job(), Gate(missing.gate), missing.intervals)
            step(job(), day_of(day))
    certify(job(), Gate.TRACE)


def _landed(of: ValueType) -> pa.DataType:
    return pa.string() if of is ColumnType.JSON else arrow_type(of)


@dataclass(frozen=True)
class Oracle:
    """The SQL oracle over the updates of an input, as they are now."""

    spark: Any
    given: Input
    close: int

    @classmethod
    def of(cls, followed: Followed) -> Oracle:
        spark = isolated_session(followed.spark)
        for name, value in AS_IT_IS.items():
            spark.conf.set(name, value)
        table = updates(followed.made)
        frame = spark.createDataFrame(pa.Table.from_batches(table.to_batches()))
        frame.persist().createOrReplaceTempView("updates")
        frame.count()
        return cls(spark, Input(followed.made.name, INPUT), START + followed.days * DAY)

    def rows(self, windows: Windows, columns: Sequence[Column], *, in_order: bool = False) -> tuple[Multiset, Multiset]:
        """All rows of the windows, and those that are to be there now, as `emitted_rows` returns them. With `in_order`
        sums of whole numbers raise where those of some rows do not fit, as Spark adds them up."""
        types = {column.name: column.type for column in columns}
        sums = [one.name for one in windows.aggregates if one.function is Function.SUM]
        wide = () if in_order else [name for name in sums if types[name] is ColumnType.INT]
        found = self.spark.sql(windows_sql(self.spark, self.given, windows, wide)).toArrow()
        _check_types(found.schema, columns)
        found = _as_stored(found, columns)
        counted: Multiset = Counter(cells(found, columns))
        return counted, shown(counted, windows, columns, self.close)

    def done(self) -> None:
        """Nothing is kept of the input, nor of the settings: PySpark goes on with the session that made a frame last.
        So queries of the tests that follow would be interpreted, too."""
        self.spark.table("updates").unpersist()
        for name in AS_IT_IS:
            self.spark.conf.unset(name)


def _as_stored(found: pa.Table, columns: Sequence[Column]) -> pa.Table:
    """Lists as a collection stores them: canonical JSON."""
    for column in columns:
        if column.type is ColumnType.JSON:
            texts = [None if text is None else canonical(text) for text in found.column(column.name).to_pylist()]
            at = found.schema.get_field_index(column.name)
            found = found.set_column(at, column.name, pa.array(texts, pa.string()))
    return found


def updates(made: Made) -> pa.Table:
    """The updates of a landed collection as the oracle reads them."""
    job = made.job()
    tasks = read_tasks(*parts_table.opened_read(job.store, plan_updates(job.log.load().state)))
    table = pa.Table.from_batches([batch for task in tasks for batch in changes_of(job.store, task, net=False)])
    times = table.column("_commit_version").to_pylist()
    # Nothing is complete before the first day is.
    learned = [None if time < START + DAY else time // DAY * DAY for time in times]
    arrays = [table.column(column.name) for column in INPUT]
    arrays += [
        table.column("_event_time").cast(pa.int64()).cast(INSTANT),
        pa.array(learned, pa.int64()),
        table.column("diff").cast(pa.int64()),
        pa.array(range(table.num_rows), pa.int64()),
    ]
    return pa.table(arrays, [*(column.name for column in INPUT), HAPPENED, LEARNED, DIFF, UPDATE])


def emitted_rows(one: Deriving, windows: Windows, close: int) -> tuple[Multiset, Multiset]:
    """What a collection of windows holds, sealed or not: of all windows, and of those that are there before `close`."""
    job = one.job()
    state = job.log.load().state
    tasks = read_tasks(*parts_table.opened_read(job.store, plan_updates(state)))
    every: Multiset = Counter()
    now: Multiset = Counter()
    for task in tasks:
        for batch in changes_of(job.store, task, net=False):
            rows = cells(batch, state.collection.columns, as_they_are=True)
            times, diffs = (batch.column(name).to_pylist() for name in ("_commit_version", "diff"))
            for row, time, diff in zip(rows, times, diffs, strict=True):
                every[row] += diff
                if time < close:
                    now[row] += diff
    return _net(every), _net(now)


def _net(rows: Multiset) -> Multiset:
    return Counter({row: count for row, count in rows.items() if count})


def shown(rows: Multiset, windows: Windows, columns: Sequence[Column], close: int) -> Multiset:
    """The rows of windows that are to be there before a time."""
    if windows.early:
        return rows
    end = [column.name for column in columns].index(WINDOW_END)
    return Counter(
        {row: count for row, count in rows.items() if is_closed(windows.kind, row[end], windows.grace, close)}
    )


def cells(
    rows: pa.Table | pa.RecordBatch, columns: Sequence[Column], *, as_they_are: bool = False
) -> Iterable[tuple[Any, ...]]:
    """Rows as values that are equal only where they are the same to the last bit. Of what SQL gives -0.0 is 0.0, and a
    NaN is the one NaN, as a collection holds them."""
    found = []
    for column in columns:
        array = rows.column(column.name)
        if pa.types.is_timestamp(array.type):
            array = array.cast(pa.int64())
        values = array.to_pylist()
        if column.type is ColumnType.FLOAT:
            values = [None if value is None else _bits(float(value), as_they_are) for value in values]
        found.append(values)
    return zip(*found, strict=True)


def _bits(value: float, as_it_is: bool) -> bytes:
    if not as_it_is:
        value = float("nan") if value != value else value + 0.0
    return struct.pack(">d", value)


def _check_types(schema: pa.Schema, columns: Sequence[Column]) -> None:
    """Raise AssertionError unless SQL gives the columns that are declared."""
    assert set(schema.names) == {column.name for column in columns}, (schema.names, columns)
    for column in columns:
        given, declared = schema.field(column.name).type, arrow_type(column.type)
        whole = declared == pa.int64() and pa.types.is_integer(given)
        floats = declared == pa.float64() and pa.types.is_floating(given)
        same = given == declared or (pa.types.is_timestamp(given) and pa.types.is_timestamp(declared))
        assert whole or floats or same, (column, given)


def differences(ours: Mapping[Any, int], theirs: Mapping[Any, int], columns: Sequence[Column]) -> str:
    """What the product holds and the oracle does not say, and the other way round; for people."""
    names = [column.name for column in columns]

    def by_name(row: tuple[Any, ...]) -> dict[str, Any]:
        return {
            name: struct.unpack(">d", cell)[0] if isinstance(cell, bytes) and column.type is ColumnType.FLOAT else cell
            for name, cell, column in zip(names, row, columns, strict=True)
        }

    product = [(by_name(row), count) for row, count in ours.items() if theirs.get(row) != count]
    oracle = [(by_name(row), count) for row, count in theirs.items() if ours.get(row) != count]
    return f"product {sorted(product, key=repr)[:3]}\noracle  {sorted(oracle, key=repr)[:3]}"
