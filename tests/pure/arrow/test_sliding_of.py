"""Sliding windows of rows that are here, against the law of windows in plain Python."""

from __future__ import annotations

from decimal import Decimal
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from tidemark.arrow.kernels.aggregates.sums import Overflowed
from tidemark.arrow.kernels.windows import sliding
from tidemark.arrow.kernels.windows.keys import GROUP, keys_in
from tidemark.arrow.kernels.windows.sliding import sliding_of
from tidemark.definition.aggregated import result_type
from tidemark.definition.recipe import AggregateColumn
from tidemark.definition.windows.rows import END, START
from tidemark.model.collection import ColumnType, DecimalType
from tidemark.model.window.aggregate import Aggregate, Function
from tidemark.model.window.evaluate import window_rows
from tidemark.model.window.happened import Happened
from tidemark.model.window.kinds import Sliding
from tidemark.model.window.windows import Windows

pytestmark = pytest.mark.pure

ASKED = (
    Aggregate("rows", Function.COUNT),
    Aggregate("known", Function.COUNT, "n"),
    Aggregate("total", Function.SUM, "n"),
    Aggregate("prices", Function.SUM, "price"),
    Aggregate("least", Function.MIN, "price"),
    Aggregate("most", Function.MAX, "n"),
    Aggregate("first", Function.FIRST, "n"),
    Aggregate("last", Function.LAST, "price"),
    Aggregate("prices_in_order", Function.COLLECT, "price"),
)
TYPES = {"n": ColumnType.INT, "price": DecimalType(28, 2)}
SCHEMA = pa.schema(
    [("b", pa.int64()), ("a", pa.string()), ("n", pa.int64()), ("price", pa.decimal128(28, 2)), ("at", pa.int64())]
)


def computed(one: Aggregate) -> AggregateColumn:
    of = result_type(one.function, TYPES[one.of]) if one.of else ColumnType.INT
    assert of is not None, one.name
    return AggregateColumn(one.name, one.function, one.of or None, of)


COMPUTED = tuple(computed(one) for one in ASKED)


def rows_of(chance: Random, count: int, span: int) -> pa.Table:
    rows = [
        {
            "b": chance.randrange(-1, 2),
            "a": chance.choice(["", "x", "é", "\uffee", "\U0001f600"]),
            "n": chance.choice([None, 0, -(2**50), 5]),
            "price": chance.choice([None, Decimal("9" * 26 + ".99"), Decimal("-0.01")]),
            "at": chance.randrange(-span, span),
        }
        for _ in range(count)
    ]
    return pa.Table.from_pylist(rows, SCHEMA)


def kernel(rows: pa.Table, by: tuple[str, ...], kind: Sliding) -> list[tuple[Any, ...]]:
    """The windows in the order they come in."""
    keys = keys_in(rows, by)
    found: list[tuple[Any, ...]] = []
    for windows in sliding_of(rows, keys.numbers, rows.column("at").to_numpy(), kind, COMPUTED):
        of = keys.values.take(windows.column(GROUP)).to_pylist() if by else [{}] * windows.num_rows
        columns = [windows.column(name).to_pylist() for name in (START, END, *(one.name for one in COMPUTED))]
        found += [(*key.values(), *values) for key, *values in zip(of, *columns, strict=True)]
    return found


def law(rows: pa.Table, by: tuple[str, ...], kind: Sliding) -> list[tuple[Any, ...]]:
    happened = [
        Happened(tuple(row[name] for name in by), (number, *row.items()), row["at"], 0)
        for number, row in enumerate(rows.to_pylist())
    ]
    found = window_rows(Windows(by, "at", kind, ASKED), happened, lambda one, row: dict(row[1:])[one.of])
    return sorted(((*key, *window, *values) for key, window, values in found), key=lambda row: row[: len(by) + 2])


@pytest.mark.parametrize("by", [(), ("a",), ("b", "a")])
@pytest.mark.parametrize("seed", range(6))
def test_windows_come_in_order_and_are_what_the_law_says(
    by: tuple[str, ...], seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    chance = Random(seed)
    monkeypatch.setattr(sliding, "_SLICE", chance.choice([1, 3, 7, 1000]))
    kind = Sliding(chance.choice([0, 1, 6, 40, 10**6]), clamp_start_at_zero=chance.random() < 0.5)
    rows = rows_of(chance, chance.choice([1, 2, 30, 80]), chance.choice([2, 20, 200]))
    if chance.random() < 0.5 and by:  # as they come where these lead the key
        rows = rows.sort_by([(name, "ascending") for name in by])
    assert kernel(rows, by, kind) == law(rows, by, kind)


def test_distant_values_do_not_mix_keys() -> None:
    far = 1 << 60
    rows = pa.Table.from_pylist(
        [{"b": b, "a": "", "n": 1, "price": None, "at": at} for b in (1, 2) for at in (-far, 0, far)], SCHEMA
    )
    for size in (3, far, far + 1, 2 * far - 1):
        assert kernel(rows, ("b",), Sliding(size)) == law(rows, ("b",), Sliding(size)), size


def test_a_sum_of_rows_at_one_instant_that_does_not_fit_is_refused() -> None:
    rows = pa.Table.from_pylist([{"b": 1, "a": "", "n": 2**62, "price": None, "at": 5}] * 2, SCHEMA)
    with pytest.raises(Overflowed, match="64 bits"):
        list(sliding_of(rows, np.zeros(2, np.int64), np.full(2, 5), Sliding(1), COMPUTED))
