"""The keys and instants at which rows of data-driven windows changed, found by this process."""

from __future__ import annotations

import pyarrow as pa

from tidemark.arrow.kernels.aggregates.instants import micros_of
from tidemark.arrow.kernels.windows.gaps import check_near
from tidemark.arrow.rows.columns import integers
from tidemark.arrow.rows.schema import DIFF, arrow_type
from tidemark.definition.recipe import SessionPlan, SlidingPlan
from tidemark.errors import InvalidUsage
from tidemark.spark.derive.here.rows import placed_rows
from tidemark.spark.derive.touched import are_many, different, named
from tidemark.spark.derive.views import Views


def changed_at(rule: SlidingPlan | SessionPlan) -> str:
    """What the instants that changed are called among touched values."""
    return f"k{len(rule.by)}"


def changed_here(views: Views, rule: SlidingPlan | SessionPlan) -> tuple[pa.Table, int] | None:
    """The keys and instants at which something changed, as k0, k1, …, each once, and how many rows more than before are
    at no instant; None where changes are not little, or these instants are many, or one is beyond
    2^61."""
    changed = views.changes_here(rule.input)
    if changed is None:
        return None
    found: pa.Table | None = None
    unplaced = 0
    for rows in changed:
        placed = placed_rows(rows, rule.on)
        unplaced += int(integers(rows, DIFF)[~placed].sum())
        rows = rows.filter(pa.array(placed))
        try:
            at = micros_of(rows.column(rule.on))
            check_near(at)
        except (InvalidUsage, ArithmeticError):
            return None
        columns = [*(rows.column(name) for name in rule.by), pa.array(at)]
        some = pa.table(columns, [*named(rule.by).values(), changed_at(rule)])
        found = different(found, some)
        if are_many(found):
            return None
    return (_nothing(views, rule) if found is None else found), unplaced


def _nothing(views: Views, rule: SlidingPlan | SessionPlan) -> pa.Table:
    types = views.types_here(rule.input)
    by = [(key, arrow_type(types[name])) for name, key in named(rule.by).items()]
    return pa.schema([*by, (changed_at(rule), pa.int64())]).empty_table()
