"""Windows as production computes them: what a collection file declares, of updates that an input holds, by the computer
that `correct` asks. It runs without Spark here, as it does where rows are few."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import count
from typing import Any, NamedTuple, NoReturn

import pyarrow as pa

from tests.conformance.window_declared import AGGREGATES, LawOnly
from tidemark.arrow.parts.reader import read_groups
from tidemark.arrow.parts.writer import PartWriter
from tidemark.arrow.rows.order import sort
from tidemark.arrow.rows.schema import DIFF, EVENT_TIME, TIME, sort_columns, updates_schema
from tidemark.definition.computation import Computation, Input, shape_of
from tidemark.definition.recipe import Recipe
from tidemark.definition.ways import kernel_of
from tidemark.definition.windows.analysed import analysed_windows
from tidemark.model.arrangement import Arrangement
from tidemark.model.batch import DIGEST_MODULUS, Description, Part, TraceBatch, UnsealedBatch
from tidemark.model.collection import Collection, Column, ColumnType, Envelope, Format, Landed, Source
from tidemark.model.derived import Derived, Mode
from tidemark.model.interval import Interval
from tidemark.model.window.happened import Happened
from tidemark.spark.derive.computer import SparkComputer
from tidemark.storage.stores.memory import MemoryStore

INT, TEXT = ColumnType.INT, ColumnType.STRING
ROWS = Collection(
    "rows",
    (Column("record", INT), Column("time", INT)),
    (Column("key", TEXT), Column("value", TEXT), Column("number", INT)),
    Landed(Source("*", Format.JSONL, Envelope.UPDATES)),
)
"""The input: which record a row is of, when it happened, its key, and its value, as a number too where it is one."""
OF_FLOATS = replace(ROWS, value=(*ROWS.value[:2], Column("number", ColumnType.FLOAT)))
TYPES = {"count": INT, "min_time": INT, "max_time": INT, "values": ColumnType.JSON}


class ComputedWindow(NamedTuple):
    """A window: its values, in the order of the aggregates, and from which time on it is there."""

    key: Any
    start: int
    end: int
    aggregates: tuple[Any, ...]
    time: int = 0


def windows(declared: Derived, rows: Iterable[Happened], upper: int) -> list[ComputedWindow]:
    """The windows of rows, as a collection holds them that is computed once, at a frontier: also those that are not due
    then. Raises LawOnly where production does not compute them in this process."""
    return [*_windows(declared, tuple(rows), upper)]


def refreshed(declared: Derived, before: Iterable[Happened], more: Iterable[Happened]) -> list[list[ComputedWindow]]:
    """The windows of rows, and those once more rows came: of what is computed of all, and then of what changed."""
    return [*map(list, _refreshed(declared, tuple(before), tuple(more)))]


def forget() -> None:
    """Let go of what was computed."""
    for remembered in (_windows, _refreshed):
        remembered.cache_clear()


def recipe_of(declared: Derived, given: Collection = ROWS) -> Recipe:
    """How production computes what is declared, of an input."""
    assert declared.definition.windows is not None
    return analysed_windows(declared.definition.windows, shape_of(given.name, given), declared.refresh)


def counts_when_rows_came(declared: Derived) -> bool:
    """Whether these are aligned windows that take late rows for a while only."""
    return is_bounded(recipe_of(declared))


def is_bounded(recipe: Recipe) -> bool:
    return recipe.in_windows is not None and recipe.in_windows.assignment.frozen_after is not None


def input_of(rows: Iterable[Happened]) -> Collection:
    """The input that holds rows: its numbers are floats where one is."""
    return OF_FLOATS if any(isinstance(row.value, float) for row in rows) else ROWS


@lru_cache(maxsize=4096)
def _windows(declared: Derived, rows: tuple[Happened, ...], upper: int) -> tuple[ComputedWindow, ...]:
    with _World(declared, input_of(rows)) as world:
        world.compute(rows, max(upper, world.first(rows)))
        return tuple(world.stored())


@lru_cache(maxsize=512)
def _refreshed(
    declared: Derived, before: tuple[Happened, ...], more: tuple[Happened, ...]
) -> tuple[tuple[ComputedWindow, ...], ...]:
    with _World(declared, input_of((*before, *more))) as world:
        first = world.first(before)
        world.compute(before, first)
        stored = tuple(world.stored())
        world.compute((*before, *more), max(first + 1, world.first(more)))
        return stored, tuple(world.stored())


class _World:
    """An input and a collection of its windows, in memory."""

    _numbers = count(1)

    def __init__(self, declared: Derived, given: Collection) -> None:
        self.given, self.recipe = given, recipe_of(declared, given)
        if not kernel_of(self.recipe) or self.recipe.left_to_spark:
            raise LawOnly(f"Spark SQL computes it: {self.recipe.left_to_spark}")
        self.urls = tuple(f"memory://windows{next(self._numbers)}/{name}" for name in ("rows", "windows"))
        types: dict[str, Any] = {"key": TEXT, "window_start": INT, "window_end": INT, **TYPES}
        types["sum"] = given.column("number").type
        columns = [Column(name, types[name]) for name in self.recipe.columns]
        value, hidden = tuple(columns[3:]), self.recipe.hidden
        self.state = Arrangement(Collection("windows", tuple(columns[:3]), value, declared, hidden=hidden))
        self.computer = SparkComputer(_no_spark)

    def __enter__(self) -> _World:
        return self

    def __exit__(self, *_: object) -> None:
        for url in self.urls:
            MemoryStore._named.pop(url, None)

    def first(self, rows: Sequence[Happened]) -> int:
        """The frontier at which it is computed first: where it counts when rows came, all of them have."""
        came = [row.learned for row in rows] if is_bounded(self.recipe) else []
        return max(came, default=0) + 1

    def compute(self, rows: Sequence[Happened], upper: int) -> None:
        """Bring the collection to what is defined of the rows, those of them that are new by what changed."""
        before = self.state.seal
        came = tuple(sorted({row.learned for row in rows if row.learned > 0}))
        given = Input(
            ROWS.name, self.urls[0], self._read(rows, upper), upper, before or None, ends=came, all_judged=True
        )
        mode = self.recipe.mode if before else Mode.WHOLE
        prefix, derived = f"data/{upper}", self.state.collection.derived
        asked = Computation(
            self.urls[1], self.state, derived.definition, self.recipe, mode, (given,), before, upper, prefix
        )
        found = self.computer.compute(asked)
        batch = _batch(f"w{upper}", found.parts, upper) if found.parts else None
        unsealed = (*self.state.unsealed, *([batch] if batch else []))
        self.state = Arrangement(self.state.collection, upper, upper, unsealed=unsealed)

    def stored(self) -> Iterator[ComputedWindow]:
        """The windows that the collection holds, each row with the time it came with."""
        store, sums, times = MemoryStore.named(self.urls[1]), Counter[ComputedWindow](), dict[ComputedWindow, int]()
        for batch in self.state.unsealed:
            assert isinstance(batch.parts, tuple)
            for part in batch.parts:
                for rows in read_groups(store, part):
                    for row in rows.to_pylist():
                        window = ComputedWindow(row["key"], row["window_start"], row["window_end"], aggregates_in(row))
                        sums[window] += row[DIFF]
                        times[window] = max(times.get(window, 0), row[TIME])
        assert all(many in (0, 1) for many in sums.values()), f"windows that are not there once: {sums}"
        return (window._replace(time=times[window]) for window, many in sums.items() if many)

    def _read(self, rows: Sequence[Happened], upper: int) -> Arrangement:
        """The input's state, which holds the rows."""
        parts = _write(self.urls[0], self.given, f"data/{upper}", updates_of(rows, self.given))
        description = Description(0, upper)
        some = TraceBatch("rows", description, 0, 0, 0, 0)
        if parts:
            some = TraceBatch("rows", description, 0, *_sizes(parts), parts, len(parts), _retractions(parts))
        return Arrangement(self.given, upper, upper, trace=(some,))


def _no_spark() -> NoReturn:
    raise LawOnly("production asks Spark for it")


def updates_of(rows: Sequence[Happened], given: Collection) -> pa.RecordBatch:
    """Rows as updates of an input."""
    cells = [(row.batch, row.at, row.key, *_shown(row.value), row.learned, row.learned, row.diff) for row in rows]
    schema, names = updates_schema(given), ("record", "time", "key", "value", "number", TIME, EVENT_TIME, DIFF)
    columns = {name: [row[at] for row in cells] for at, name in enumerate(names)}
    arrays = [pa.array(columns[name], schema.field(name).type) for name in schema.names]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _shown(value: Any) -> tuple[str | None, float | None]:
    """A value as text, and as a number if it is one."""
    if isinstance(value, float):
        return str(value), value
    text = None if value is None else str(value)
    return text, int(text) if text is not None and text.lstrip("-").isdigit() else None


def _write(url: str, collection: Collection, prefix: str, rows: pa.RecordBatch) -> tuple[Part, ...]:
    if not rows.num_rows:
        return ()
    in_order = sort(rows, sort_columns(collection, facts=False))
    width = len(collection.key)
    with PartWriter(MemoryStore.named(url), prefix, rows.schema, key_width=width, facts=False) as writer:
        writer.write(in_order)
        return writer.close()


def _sizes(parts: Sequence[Part]) -> tuple[int, int, int]:
    digest = sum(part.digest for part in parts) % DIGEST_MODULUS
    return sum(part.rows for part in parts), sum(part.file.bytes for part in parts), digest


def _retractions(parts: Sequence[Part]) -> int:
    return sum(part.retractions for part in parts)


def _batch(name: str, parts: tuple[Part, ...], upper: int) -> UnsealedBatch:
    first, last = min(part.first_time for part in parts), max(part.last_time for part in parts)
    rows, size, digest = _sizes(parts)
    numbers = (upper, upper + 1)
    return UnsealedBatch(
        name, Interval(0, upper), parts, len(parts), rows, size, digest, first, last, first, last, sequence=numbers
    )


def aggregates_in(row: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(row[name] for name in AGGREGATES)
