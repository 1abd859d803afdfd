"""The kernel of sliding windows against windows found by moving a start instant by instant, in plain Python."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Iterator
from datetime import date
from decimal import Context, Decimal
from functools import reduce
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidemark.arrow.kernels.windows.merged import grows, merged
from tidemark.arrow.kernels.windows.sliding import AT, CHUNK, END, START, Slide, sliding, sliding_in_order
from tidemark.arrow.kernels.windows.sums import Overflowed
from tidemark.definition.recipe import BAND
from tidemark.definition.state import Op, State
from tidemark.errors import InvalidUsage

NAN = float("nan")
EXACT = Context(prec=60)
COLUMNS: dict[str, tuple[Op, pa.DataType, Callable[[Random], Any]]] = {
    "n": (Op.ADD, pa.int64(), lambda draw: draw.randrange(-(2**40), 2**40)),
    "large": (Op.ADD, pa.int64(), lambda draw: draw.randrange(-(2**59), 2**59)),
    "total": (Op.ADD, pa.decimal128(38, 2), lambda draw: Decimal(f"{draw.randrange(-(10**36), 10**36)}e-2")),
    "low": (Op.MIN, pa.int64(), lambda draw: draw.choice([None, -(2**63), 2**63 - 1, draw.randrange(9)])),
    "high": (Op.MAX, pa.float64(), lambda draw: draw.choice([None, -0.0, 0.0, 1.5, -math.inf, math.inf, NAN])),
    "least": (Op.MIN, pa.float64(), lambda draw: draw.choice([None, -1.5, 1.5, -math.inf, math.inf, NAN])),
    "name": (Op.MAX, pa.string(), lambda draw: draw.choice([None, "", "a", "é", "aé", "\uffee", "\U0001f600"])),
    "price": (Op.MIN, pa.decimal128(5, 1), lambda draw: draw.choice([None, Decimal(draw.randrange(-99, 99)) / 10])),
    "day": (Op.MAX, pa.date32(), lambda draw: draw.choice([None, date.fromordinal(draw.randrange(1, 10**6))])),
    "yes": (Op.MIN, pa.bool_(), lambda draw: draw.choice([None, True, False])),
    "bits": (Op.BIT_OR, pa.int64(), lambda draw: draw.choice([None, draw.randrange(8)])),
    "first": (Op.FIRST, pa.string(), lambda draw: draw.choice([None, "a", "b", ""])),
    "last": (Op.LAST, pa.int64(), lambda draw: draw.choice([None, draw.randrange(9)])),
    "text": (Op.TEXT, pa.string(), lambda draw: draw.choice([None, "a", "é", "aé", ""])),
    "rest": (Op.CONCAT, pa.list_(pa.float64()), lambda draw: draw.choice([None, [], [draw.random()], [1.0, 0.5]])),
    "kinds": (Op.DISTINCT, pa.list_(pa.string()), lambda draw: draw.choices("abc", k=draw.randrange(3))),
    "numbers": (Op.DISTINCT, pa.list_(pa.float64()), lambda draw: draw.choices([0.0, -0.0, NAN, 2.0], k=2)),
    "median": (Op.QUANTILE, pa.list_(pa.float64()), lambda draw: draw.choices([-3.0, 0.5, 7.0], k=draw.randrange(4))),
}
"""The op of each column of states, its type, and what makes one."""
SCHEMA = pa.schema([("key", pa.string()), (AT, pa.int64()), *((name, of) for name, (_, of, _) in COLUMNS.items())])
STATES = tuple(State(name, op, at=0.5) for name, (op, _, _) in COLUMNS.items())
Cell = dict[str, Any]


def brute(cells: list[Cell], size: int, clamp: bool = False) -> dict[tuple[str, int], list[Cell]]:
    """The cells of each window by its key and start: the smallest start of each set that a start moved up meets."""
    found: dict[tuple[str, int], list[Cell]] = {}
    for key in {cell["key"] for cell in cells}:
        mine = sorted((cell for cell in cells if cell["key"] == key), key=lambda cell: cell[AT])
        before: list[Cell] = []
        lowest = 0 if clamp else mine[0][AT] - size - 2
        for start in range(lowest, mine[-1][AT] + 2):
            inside = [cell for cell in mine if start <= cell[AT] <= start + size]
            if inside and inside != before:
                found[key, start] = inside
            before = inside
    return found


def canonical(value: Any) -> Any:
    return (1, 0.0) if isinstance(value, float) and math.isnan(value) else (0, value + 0 if value == 0 else value)


def told(op: Op, cells: list[Any]) -> Any:
    """What the states of cells, in order of time, come to."""
    held = [one for one in cells if one is not None]
    elements = [one for some in held if isinstance(some, list) for one in some]
    match op:
        case Op.CONCAT:
            return elements
        case Op.DISTINCT:
            return len({canonical(one) for one in elements})
        case Op.QUANTILE:
            return sorted(elements)[math.ceil(len(elements) / 2) - 1] if elements else None
    if not held:
        return None
    match op:
        case Op.ADD:
            return reduce(EXACT.add, held) if isinstance(held[0], Decimal) else sum(held)
        case Op.MIN | Op.MAX:
            least = min if op is Op.MIN else max
            return least(held, key=lambda one: one.encode() if isinstance(one, str) else canonical(one))
        case Op.BIT_OR:
            return int(np.bitwise_or.reduce(held))
        case Op.FIRST:
            return held[0]
        case Op.LAST:
            return held[-1]
        case Op.TEXT:
            return ",".join(held)


def batches(cells: list[Cell], each: int, schema: pa.Schema = SCHEMA) -> Iterator[pa.RecordBatch]:
    names = [name for name in ("key", CHUNK, BAND, AT) if name in schema.names]
    ordered = sorted(cells, key=lambda cell: [cell[name] for name in names])
    for at in range(0, len(ordered), each):
        yield pa.RecordBatch.from_pylist(ordered[at : at + each], schema=schema)


def slid(cells: list[Cell], slide: Slide, each: int = 10_000, schema: pa.Schema = SCHEMA, **how: int) -> list[Cell]:
    return [row for batch in sliding(batches(cells, each, schema), slide, **how) for row in batch.to_pylist()]


def same(one: Any, other: Any) -> bool:
    if isinstance(one, list):
        return isinstance(other, list) and len(one) == len(other)
    return bool(one == other or (one != one and other != other))


def check(cells: list[Cell], size: int, rows: list[Cell], clamp: bool = False) -> None:
    """The windows are those of the brute force, each once, and hold what their cells come to."""
    check_held(brute(cells, size, clamp), size, rows)


def check_held(wanted: dict[tuple[str, int], list[Cell]], size: int, rows: list[Cell]) -> None:
    assert sorted((row["key"], row[START]) for row in rows) == sorted(wanted)
    for row in rows:
        inside = wanted[row["key"], row[START]]
        assert row[END] == row[START] + size
        for name, (op, _, _) in COLUMNS.items():
            assert same(row[name], told(op, [cell[name] for cell in inside])), (name, row, inside)


def drawn_cells(lowest: int) -> st.SearchStrategy[list[Cell]]:
    def made(places: set[tuple[str, int]], seed: int) -> list[Cell]:
        draw = Random(seed)
        return [
            {"key": key, AT: at, **{name: state(draw) for name, (_, _, state) in COLUMNS.items()}}
            for key, at in sorted(places)
        ]

    places = st.sets(st.tuples(st.sampled_from("xy"), st.integers(lowest, 25)), min_size=1, max_size=12)
    return st.builds(made, places, st.integers(0, 2**32))


@given(drawn_cells(-20), st.integers(0, 12), st.integers(1, 5))
@settings(deadline=None, max_examples=60)
def test_each_set_of_cells_is_one_window_whatever_batches_they_come_in(cells: list[Cell], size: int, each: int) -> None:
    check(cells, size, slid(cells, Slide(("key",), size, STATES), each, rows=3, room=40))


@given(drawn_cells(0), st.integers(0, 12), st.integers(1, 5))
@settings(deadline=None, max_examples=40)
def test_no_window_starts_below_zero_where_that_is_asked(cells: list[Cell], size: int, each: int) -> None:
    slide = Slide(("key",), size, STATES, clamp_start_at_zero=True)
    below = [{**cells[0], AT: -3}, {**cells[0], AT: -1}]
    check(cells, size, slid([*below, *cells], slide, each), clamp=True)


def test_batches_of_which_no_cell_is_in_a_window_leave_those_before_complete() -> None:
    cells = [{**dict.fromkeys(COLUMNS), "key": "a", AT: at} for at in (5, 6, 9)]
    below = [{**cells[0], "key": "b", AT: at} for at in (-9, -8, -7)]
    check(cells, 3, slid([*cells, *below], Slide(("key",), 3, STATES, clamp_start_at_zero=True), 3), clamp=True)


@given(drawn_cells(-20), st.integers(0, 6), st.integers(0, 3), st.integers(1, 5), st.booleans())
@settings(deadline=None, max_examples=60)
def test_chunks_with_their_margins_tell_each_window_once(
    cells: list[Cell], size: int, more: int, each: int, clamp: bool
) -> None:
    width = size + 2 + more
    cells = [cell for cell in cells if cell[AT] >= 0] or [{**cells[0], AT: 3}] if clamp else cells
    chunked = [
        {**cell, CHUNK: chunk}
        for cell in cells
        for chunk in range((cell[AT] - size) // width, (cell[AT] + 1) // width + 1)
    ]
    schema = pa.schema([SCHEMA.field("key"), (CHUNK, pa.int64()), *(SCHEMA.field(at) for at in range(1, len(SCHEMA)))])
    rows = slid(chunked, Slide(("key",), size, STATES, clamp, width), each, schema)
    check(cells, size, rows, clamp)


@given(drawn_cells(-20), st.integers(0, 9), st.booleans(), st.integers(1, 5), st.booleans())
@settings(deadline=None, max_examples=80)
def test_windows_may_come_in_order(cells: list[Cell], size: int, chunks: bool, each: int, clamp: bool) -> None:
    columns, width, fixed = (
        list(SCHEMA),
        size + 3 if chunks else None,
        tuple(one for one in STATES if not grows(one.op)),
    )
    if width is not None:
        columns.insert(1, pa.field(CHUNK, pa.int64()))
        lowest = 0 if clamp else -99
        cells = [
            {**cell, CHUNK: chunk}
            for cell in cells
            for chunk in range((cell[AT] - size) // width, (cell[AT] + 1) // width + 1)
            if cell[AT] >= lowest
        ]
    slide = Slide(("key",), size, fixed, clamp, width)
    found = [
        row for some in sliding_in_order(batches(cells, each, pa.schema(columns)), slide) for row in some.to_pylist()
    ]
    assert [(row["key"], row[START]) for row in found] == sorted((row["key"], row[START]) for row in found)
    wanted = slid(cells, slide, each, pa.schema(columns))
    assert repr(found) == repr(sorted(wanted, key=lambda row: (row["key"], row[START])))


def test_what_waits_to_be_in_order_is_what_a_window_reaches() -> None:
    """Of a key of many rows windows are told soon after the cells they are of."""
    count, size = 5_000, 50
    told = ahead = 0

    def stream() -> Iterator[pa.RecordBatch]:
        nonlocal ahead
        for first in range(0, count, 100):
            ahead = max(ahead, first - told)
            yield integers(list(range(first, first + 100)))

    for some in sliding_in_order(stream(), Slide((), size, ())):
        told += some.num_rows
    assert told == count + size
    assert ahead < 500


@given(
    drawn_cells(-20),
    st.integers(0, 6),
    st.booleans(),
    st.integers(1, 5),
    st.sets(st.integers(-25, 25), max_size=4),
    st.randoms(use_true_random=False),
    st.booleans(),
)
@settings(deadline=None, max_examples=80)
def test_bands_of_starts_tell_windows_of_cells_of_their_own(
    cells: list[Cell], size: int, chunks: bool, each: int, some: set[int], draw: Random, clamp: bool
) -> None:
    """Each band has some of the cells: its windows are those of these, and no others start in it."""
    cells = [cell for cell in cells if cell[AT] >= 0] or [{**cells[0], AT: 3}] if clamp else cells
    bounds, width = tuple(sorted(some)), size + 3 if chunks else None
    banded = [{**cell, BAND: band} for band in range(len(bounds) + 1) for cell in cells if draw.random() < 0.7]
    wanted = {
        (key, start): held
        for band in range(len(bounds) + 1)
        if (mine := [cell for cell in banded if cell[BAND] == band])
        for (key, start), held in brute(mine, size, clamp).items()
        if bisect_right(bounds, start) == band
    }
    columns = [SCHEMA.field("key"), (BAND, pa.int64()), *(SCHEMA.field(at) for at in range(1, len(SCHEMA)))]
    if width is not None:
        columns.insert(1, (CHUNK, pa.int64()))
        banded = [
            {**cell, CHUNK: chunk}
            for cell in banded
            for chunk in range((cell[AT] - size) // width, (cell[AT] + 1) // width + 1)
        ]
    slide = Slide(("key",), size, STATES, clamp, width, bounds)
    check_held(wanted, size, slid(banded, slide, each, pa.schema(columns)))


def integers(ats: list[int], **columns: list[Any]) -> pa.RecordBatch:
    return pa.record_batch({AT: pa.array(ats, pa.int64()), **columns})


def starts_of(ats: list[int], size: int) -> list[int]:
    (found,) = sliding([integers(ats)], Slide((), size, ()))
    return sorted(found.column(START).to_pylist())


def test_a_late_row_between_two_makes_the_windows_of_its_own() -> None:
    assert starts_of([0, 10, 11], 10) == [-10, 0, 1, 11]
    assert starts_of([5], 0) == [5]
    assert starts_of([5, 6], 0) == [5, 6]


def test_instants_and_sizes_may_be_far_apart() -> None:
    far = 2**61
    assert starts_of([-far, far], far - 1) == [-far - far + 1, 1]
    many = pa.record_batch({"key": pa.array(range(40)), AT: pa.array([7] * 40, pa.int64())})
    found = pa.Table.from_batches(sliding([many], Slide(("key",), far - 1, ())))
    assert found.column(START).to_pylist() == [7 - far + 1] * 40
    with pytest.raises(InvalidUsage, match="beyond 2\\^61"):
        starts_of([far + 1], 3)
    with pytest.raises(InvalidUsage, match="size of a sliding window is -1"):
        Slide((), -1, ())


@pytest.mark.parametrize(
    ("of", "cells", "sum_"),
    [
        (pa.int64(), [2**62, 2**62 - 1, 2**62, -(2**62)], 2**63 - 1),
        (pa.decimal128(38, 0), [Decimal(10**38 - 1), Decimal(-(10**38) + 1), Decimal(1 - 10**38)], Decimal(1 - 10**38)),
        (pa.decimal128(3, 1), [Decimal("99.9"), Decimal("-0.1"), Decimal("0.1")], Decimal("99.9")),
    ],
)
def test_a_sum_that_fits_is_exact_and_one_that_does_not_is_told(of: pa.DataType, cells: list[Any], sum_: Any) -> None:
    column, none = pa.array([None, *cells], of), np.array([0])
    assert merged(State("n", Op.ADD), column, none, np.array([len(cells) + 1])).to_pylist() == [sum_]
    assert merged(State("n", Op.ADD), column, none, none + 1).to_pylist() == [None]
    below = EXACT.minus(cells[0]) if isinstance(cells[0], Decimal) else -cells[0]
    for one in (cells[0], below):
        twice = pa.array([one, one, one], of)
        with pytest.raises(Overflowed, match="beyond"):
            merged(State("n", Op.ADD), twice, none, np.array([3]))


def test_what_is_carried_is_what_windows_reach_and_what_grows_is_told_in_small_batches() -> None:
    """A group of many cells comes in small blocks: none holds more than a few windows of it."""
    count, size = 20_000, 50
    cells = pa.record_batch({AT: pa.array(np.arange(count)), "text": pa.array(["x" * 100] * count)})
    most = 0

    def stream() -> Iterator[pa.RecordBatch]:
        nonlocal most
        for first in range(0, count, 100):
            most = max(most, pa.total_allocated_bytes() - before)
            yield cells.slice(first, 100)

    rows, before = 0, pa.total_allocated_bytes()
    for batch in sliding(stream(), Slide((), size, (State("text", Op.TEXT),)), rows=1000, room=100_000):
        assert batch.nbytes < 300_000
        rows += len(batch)
    assert rows == count + size, "each cell ends a window, and the last ones begin one"
    assert most < 1_000_000 < cells.nbytes
