"""What windows of random definitions are judged by: the same seed gives the same definitions and rows, each of which
can be written as SQL, and together they have all that windows may say."""

from __future__ import annotations

import math
import random
from collections import Counter

import pytest

from tests.oracles.random_windows import COLUMNS, INPUT, KINDS, Definitions, Rows
from tests.oracles.sql_windows.aggregates import AT, END, START, grouped, happening
from tidemark.definition.recipe import HAPPENED, InputShape
from tidemark.model.collection import Column, ColumnType, DecimalType, Envelope
from tidemark.model.window.aggregate import Function
from tidemark.model.window.kinds import Session, Sliding
from tidemark.model.window.windows import EVENT_TIME, Late, Windows

pytestmark = pytest.mark.pure
ENVELOPES = (Envelope.UPDATES, Envelope.APPEND, Envelope.UPSERT)
SHAPE = InputShape("moves", (*INPUT, Column(HAPPENED, ColumnType.TIMESTAMP)), ())


def drawn(seeds: int) -> list[Windows]:
    """Definitions of every kind, over inputs of every envelope."""
    makers = [Definitions(random.Random(f"{one} {seed}"), one) for one in ENVELOPES for seed in range(seeds)]
    return [maker.windows(kind) for maker in makers for kind in KINDS]


def test_the_same_seed_gives_the_same() -> None:
    assert drawn(3) == drawn(3)
    rows = [[repr(Rows(random.Random(seed)).row(7, 2)) for seed in range(5)] for _ in range(2)]
    assert rows[0] == rows[1]
    assert len(set(rows[0])) > 1


def test_every_definition_can_be_written_as_sql() -> None:
    for windows in drawn(3):
        on = HAPPENED if windows.on == EVENT_TIME else windows.on
        column = next(one for one in SHAPE.columns if one.name == on)
        rows, groups = happening(windows, SHAPE, column), grouped(windows, SHAPE, column)
        assert f"AS {AT} FROM" in rows
        assert all(f"`{place}`" in groups for place in (START, END))


def test_all_that_windows_may_say_is_drawn() -> None:
    found = drawn(60)
    said: Counter[object] = Counter()
    for one in found:
        said.update([one.on, one.late, bool(one.where), one.early, bool(one.grace), len(one.by), type(one.kind)])
        said.update((f"late {one.kind.kind}",) if one.counts_late_for is not None else ())
        said.update(aggregate.function for aggregate in one.aggregates)
        said.update("where" for aggregate in one.aggregates if aggregate.where)
        said.update(
            (type(one.kind), part)
            for part in ("clamp_start_at_zero", "exact_gap_merges", "max_length", "sampling")
            if getattr(one.kind, part, None)
        )
    assert set(Function) <= set(said)
    assert set(Late) <= set(said)
    assert {f"late {kind}" for kind in KINDS} <= set(said)
    assert {(Sliding, "clamp_start_at_zero"), (Session, "exact_gap_merges"), (Session, "max_length")} <= set(said)
    assert min(said.values()) > 3
    texts = " ".join(" ".join([one.where, *(f"{of.of} {of.where}" for of in one.aggregates)]) for one in found)
    for word in ("LIKE", "BETWEEN", "CASE", "coalesce", "CAST", "IS NULL", " IN ", "date(", "upper", "DIV", "<=>"):
        assert word in texts, word
    assert all(name in texts for name in COLUMNS)


def test_rows_have_the_values_that_are_hard() -> None:
    chance = Rows(random.Random(5))
    rows = [chance.row(number, 1 + number % 2) for number in range(400)]
    assert all(any(row[name] is None for row in rows) for name in COLUMNS if name != "id")
    floats = [row["x"] for row in rows if row["x"] is not None]
    assert any(value == 0 and math.copysign(1, value) < 0 for value in floats)
    assert any(map(math.isnan, floats))
    assert any(map(math.isinf, floats))
    for name, of in COLUMNS.items():
        if isinstance(of, DecimalType):
            values = [row[name] for row in rows if row[name] is not None]
            assert all(len(value.as_tuple().digits) <= of.precision for value in values), name
    assert max(row["change"] for row in rows) > 1
    assert len({row["at"] for row in rows}) < len(rows), "some are at one instant"
