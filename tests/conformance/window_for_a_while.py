"""Sliding windows and sessions that take late rows for a while only, as production computes them: its kernels tell
which rows count, and in which windows.

Production has Spark SQL bring rows to these kernels: it filters, gives rows their bands, adds up updates of equal rows,
and sorts. That is done in Python here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

import pyarrow as pa

from tests.conformance.window_production import ComputedWindow, aggregates_in, input_of, recipe_of, updates_of
from tidemark.arrow.kernels.aggregates.groups_in_order import groups_in_order
from tidemark.arrow.kernels.projected import projected
from tidemark.arrow.kernels.windows import late_sessions, sliding
from tidemark.arrow.kernels.windows.gaps import Gaps
from tidemark.arrow.rows.order import sort
from tidemark.arrow.rows.schema import DIFF, TIME
from tidemark.definition.recipe import BAND, AggregateColumn, SessionPlan, SlidingPlan
from tidemark.model.collection import Collection
from tidemark.model.derived import Derived
from tidemark.model.window.happened import Happened
from tidemark.model.window.judged import Judging
from tidemark.model.window.windows import Late

SHOWN = ("record", "key", "value", "number", "time")


def is_for_a_while(declared: Derived) -> bool:
    """Whether these are such windows."""
    rule = recipe_of(declared).windowed
    return rule is not None and (rule.bounded_lateness if isinstance(rule, SlidingPlan) else rule.after) is not None


@lru_cache(maxsize=4096)
def windows_for_a_while(declared: Derived, rows: tuple[Happened, ...]) -> tuple[ComputedWindow, ...]:
    """The windows of rows, each of which counts as learned at the time it says."""
    rule, given = recipe_of(declared).windowed, input_of(rows)
    assert rule is not None
    updates, of_columns = _in_windows(declared, rows), _plain(declared, given)
    if not updates.num_rows:
        return ()
    found = _slid(rule, updates, of_columns) if isinstance(rule, SlidingPlan) else _met(rule, updates, of_columns)
    start, end = sliding.START, sliding.END
    return tuple(
        ComputedWindow(row["key"], row[start], row[end], aggregates_in(row))
        for some in found
        for row in some.to_pylist()
    )


@lru_cache(maxsize=4096)
def late_for_sessions(declared: Derived, rows: tuple[Happened, ...]) -> tuple[int, ...]:
    """The records that came too late for all sessions, each as often as it is there."""
    rule, updates = recipe_of(declared).windowed, _in_windows(declared, rows)
    assert isinstance(rule, SessionPlan)
    judged = _judged(rule, updates) if updates.num_rows else []
    return tuple(sorted(row["record"] for row in judged for _ in range(row[late_sessions.LATE])))


def forget() -> None:
    """Let go of what was computed."""
    for remembered in (windows_for_a_while, late_for_sessions):
        remembered.cache_clear()


def _plain(declared: Derived, given: Collection) -> tuple[AggregateColumn, ...]:
    """The aggregates, of columns of the input."""
    rule = recipe_of(_for_ever(declared), given).windowed
    assert rule is not None
    assert rule.of_columns is not None
    return rule.of_columns


def _for_ever(declared: Derived) -> Derived:
    """The same windows, in which late rows count for ever: what is said of single rows is known of these."""
    definition = declared.definition
    assert definition.windows is not None
    windows = replace(definition.windows, late=Late.REEMIT, max_lateness=None)
    return replace(declared, definition=replace(definition, windows=windows))


def _in_windows(declared: Derived, rows: Sequence[Happened]) -> pa.RecordBatch:
    """The rows that are in windows, as updates, with AT, in order of key and instant."""
    there, given = [row for row in rows if row.at is not None], input_of(rows)
    updates = projected(updates_of(there, given), recipe_of(_for_ever(declared), given).projection)
    return sort(updates.append_column(sliding.AT, updates.column("time")), ["key", sliding.AT])


def _ends(updates: pa.RecordBatch) -> tuple[int, ...]:
    """Ends of intervals, so that each row counts as learned at its own time."""
    return tuple(sorted(set(updates.column(TIME).to_pylist())))


def _slid(
    rule: SlidingPlan, updates: pa.RecordBatch, aggregates: Sequence[AggregateColumn]
) -> Iterable[pa.RecordBatch]:
    assert rule.bounded_lateness is not None
    ends = _ends(updates)
    bands, judging = rule.bounded_lateness.bands(rule.kind, ends), Judging(ends[0], ends)
    counts: Counter[tuple[Any, ...]] = Counter()
    for row in updates.to_pylist():
        for band in bands.reached(row["time"], judging.learned(row[TIME])):
            counts[(*(row[name] for name in SHOWN), band)] += row[DIFF]
    assert all(many >= 0 for many in counts.values()), "a row is there fewer times than none"
    rows = [dict(zip((*SHOWN, BAND), row, strict=True)) for row, many in counts.items() for _ in range(many)]
    fields = [(name, updates.schema.field(name).type) for name in SHOWN]
    placed = pa.RecordBatch.from_pylist(rows, pa.schema([*fields, (BAND, pa.int64())]))
    placed = placed.append_column(sliding.AT, placed.column("time"))
    slide = sliding.Slide(
        ("key",), rule.kind.size, tuple(aggregates), rule.kind.clamp_start_at_zero, None, bands.bounds
    )
    return sliding.sliding_in_order([sort(placed, [*slide.together, sliding.AT])], slide)


def _judged(rule: SessionPlan, updates: pa.RecordBatch) -> list[dict[str, Any]]:
    assert rule.after is not None
    gaps = Gaps(("key",), rule.kind.gap, rule.kind.exact_gap_merges, rule.kind.max_length)
    lasting = late_sessions.Lasting(gaps, rule.after, _ends(updates), SHOWN)
    return [row for some in late_sessions.judged_updates([updates], lasting, SHOWN) for row in some.to_pylist()]


def _met(rule: SessionPlan, updates: pa.RecordBatch, aggregates: Sequence[AggregateColumn]) -> Iterable[pa.RecordBatch]:
    start, end = late_sessions.START, late_sessions.END
    names = (*SHOWN, start, end)
    counts: Counter[tuple[Any, ...]] = Counter()
    for row in _judged(rule, updates):
        if row[start] is not None:
            counts[tuple(row[name] for name in names)] += row[DIFF]
    assert all(many >= 0 for many in counts.values()), "a row is there fewer times than none"
    rows = [dict(zip(names, row, strict=True)) for row, many in counts.items() for _ in range(many)]
    fields = [(name, updates.schema.field(name).type) for name in SHOWN]
    placed = pa.RecordBatch.from_pylist(rows, pa.schema([*fields, (start, pa.int64()), (end, pa.int64())]))
    placed = placed.append_column(late_sessions.AT, placed.column("time"))
    keys = ["key", start, end]
    return groups_in_order([sort(placed, [*keys, late_sessions.AT])], keys, late_sessions.AT, aggregates)
