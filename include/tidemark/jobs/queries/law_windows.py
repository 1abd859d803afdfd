"""The rows of windows that the law gives, beside those that a collection holds."""

from __future__ import annotations

import json
import math
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pyarrow as pa

from tidemark.arrow.rows.columns import integers
from tidemark.arrow.rows.plain import plain_values
from tidemark.arrow.rows.schema import DIFF, arrow_type
from tidemark.definition.computation import Differing
from tidemark.jobs.queries.law_rows import Group, Grouped, cells, micros
from tidemark.model.collection import Collection, Column, ColumnType
from tidemark.model.window.aggregate import Aggregate, Function
from tidemark.model.window.kinds import AlignedKind, Window
from tidemark.model.window.stretches import Stretch
from tidemark.model.window.windows import WINDOW_END, WINDOW_START, Windows

Values = tuple[Any, ...]
"""The values of a window's aggregates, in their order."""
_SKETCH = 0.25
"""By which part of it an estimate of different values may be off: five times the standard error of the sketch."""


@dataclass(frozen=True)
class Shown:
    """The columns of a collection of windows in which its rows are compared: those that people see, and of those that
    are `kept` behind them the ones that are aggregates of columns."""

    columns: tuple[Column, ...]
    by: tuple[str, ...]
    aggregates: tuple[Aggregate, ...]
    kept: frozenset[str]
    floats: frozenset[str]
    """Aggregates of floats."""
    estimated: bool
    """Whether a count of different values may be that of a sketch."""

    @classmethod
    def of(cls, collection: Collection, windows: Windows, floats: frozenset[str]) -> Shown:
        """The columns of a collection of windows; `floats` are its aggregates of floats."""
        aligned = isinstance(windows.kind, AlignedKind)
        aggregated = {aggregate.name for aggregate in windows.aggregates}
        hidden = tuple(column for column in collection.hidden if column.name in aggregated)
        columns, names = (*collection.columns, *hidden), frozenset(column.name for column in hidden)
        return cls(columns, windows.by, windows.aggregates, names, floats, aligned)

    def multiplicities(
        self, rows: Grouped, group: Group, stretch: Stretch, judged: Callable[[Window], bool]
    ) -> dict[Window, Counter[Values]]:
        """How often each row of those windows of a stretch that are judged is stored."""
        low, high = rows.groups.get(group, (0, 0))
        starts = rows.places[low:high].tolist()
        first = 0 if stretch.first is None else bisect_left(starts, stretch.first)
        before = len(starts) if stretch.before is None else bisect_left(starts, stretch.before)
        stored = rows.rows.slice(low + first, before - first)
        windows = zip(
            micros(stored.column(WINDOW_START)).tolist(), micros(stored.column(WINDOW_END)).tolist(), strict=True
        )
        lists = [cells(stored.column(aggregate.name)) for aggregate in self.aggregates]
        values = zip(*lists, strict=True) if lists else iter([()] * stored.num_rows)
        counts: dict[Window, Counter[Values]] = {}
        for bounds, row, diff in zip(windows, values, integers(stored, DIFF).tolist(), strict=True):
            if judged(window := Window(*bounds)):
                counts.setdefault(window, Counter())[row] += diff
        positive = {
            window: Counter({row: count for row, count in each.items() if count}) for window, each in counts.items()
        }
        return {window: each for window, each in positive.items() if each}

    def same(self, desired: Values, stored: Values) -> bool:
        """Whether a row that is stored is what the law says."""
        return all(
            self._same(aggregate, mine, its)
            for aggregate, mine, its in zip(self.aggregates, desired, stored, strict=True)
        )

    def _same(self, aggregate: Aggregate, desired: Any, stored: Any) -> bool:
        if aggregate.name in self.kept:
            return bool((desired or 0) == stored)  # a sum of nothing, to be added to
        if desired is None or stored is None:
            return desired is stored
        if aggregate.function is Function.COLLECT:
            # Java and Python write floats in their own ways.
            number = float if aggregate.name in self.floats else Decimal
            return bool(json.loads(desired, parse_float=number) == json.loads(stored, parse_float=number))
        if aggregate.function is Function.APPROX_DISTINCT and self.estimated:
            return abs(int(desired) - int(stored)) <= math.ceil(_SKETCH * int(desired))
        return bool(desired == stored) or (desired != desired and stored != stored)

    def as_differing(self, group: Group, window: Window, values: Values, desired: int, stored: int) -> Differing:
        """A row that differs, as text."""
        named = dict(zip(self.by, group, strict=True)) | {WINDOW_START: window.start, WINDOW_END: window.end}
        named |= {aggregate.name: value for aggregate, value in zip(self.aggregates, values, strict=True)}
        row = [(column.name, str(_plain(named[column.name], column))) for column in self.columns]
        return Differing(tuple(row), desired, stored)


def differing(
    columns: Shown, group: Group, desired: Mapping[Window, Values], stored: Mapping[Window, Counter[Values]]
) -> list[Differing]:
    """The rows of a group's windows that are not there as often as they should be, which is once or not at all."""
    differences = []
    for window in sorted({*desired, *stored}):
        wanted = desired.get(window)
        counts = stored.get(window, Counter())
        equal = [row for row in counts if wanted is not None and columns.same(wanted, row)]
        if wanted is not None and not equal:
            differences.append(columns.as_differing(group, window, wanted, 1, 0))
        differences += [
            columns.as_differing(group, window, row, int(row in equal), count)
            for row, count in counts.items()
            if count != int(row in equal)
        ]
    return differences


def _plain(value: Any, column: Column) -> Any:
    """A value as a collection's column shows it."""
    type_ = arrow_type(column.type)
    if value is None:
        return None
    if column.type is ColumnType.TIMESTAMP:
        array = pa.array([value], pa.int64()).cast(type_)
    elif column.type is ColumnType.DATE:
        array = pa.array([value], pa.int32()).cast(type_)
    elif pa.types.is_decimal(type_):
        array = pa.array([Decimal(value)], type_)
    else:
        array = pa.array([value], type_)
    return plain_values(array)[0]
