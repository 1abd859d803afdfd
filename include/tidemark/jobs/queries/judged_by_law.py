"""Whether a collection of windows holds what its definition says, by the pure law of windows: plain Python, row by row,
which shares no code with what computed the collection but the reading of rows.

    read      law_rows.py                     rows of the input and of the collection, within bounds
    cut       model/window/stretches.py       of each key, stretches of rows that can be judged by themselves
    choose    `_chosen`                       all of them, or some from everywhere, as far as the bounds go
    values    law_values.py                   conditions and expressions of the chosen rows
    law       model/window/evaluate.py        the windows of each stretch
    compare   law_windows.py                  with those that the collection has there

What was not looked at is reported, and never called right.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa

from tidemark.arrow.rows.columns import integers
from tidemark.arrow.rows.schema import EVENT_TIME, TIME, arrow_type, key_column_of
from tidemark.definition.computation import Computation, Differing, Input
from tidemark.definition.windows.by_law import Lawful, lawful
from tidemark.definition.windows.checked import checked
from tidemark.jobs.job import Job
from tidemark.jobs.queries.law_rows import (
    SCANNED,
    Group,
    Grouped,
    Opened,
    TooLarge,
    among,
    cells,
    input_opened,
    input_rows,
    micros,
    no_own_rows,
    own_rows,
    within,
)
from tidemark.jobs.queries.law_values import BeyondTheLaw, Seen, value_of
from tidemark.jobs.queries.law_windows import Shown, differing
from tidemark.model.key import Key
from tidemark.model.window.aggregate import Aggregate, Function
from tidemark.model.window.close import closes_at, frozen_from
from tidemark.model.window.contents import Rule
from tidemark.model.window.evaluate import window_rows
from tidemark.model.window.kinds import Session, Window
from tidemark.model.window.stretches import Stretch, reach_of, stretch_of, stretches, visits
from tidemark.model.window.windows import WINDOW_START
from tidemark.plan.read import plan_updates
from tidemark.plan.tasks import KeyRange

LAW_ROWS, LAW_VISITS = 200_000, 2_000_000
"""Rows that the law is asked of at most, and how often it looks at one: some ten seconds of plain Python."""
STRETCH_ROWS = 5_000
_KEPT = (Function.COUNT, Function.SUM)
SOME_KEYS, MOST_KEYS = 20, 1_000
"""Keys that are judged of a collection that cannot be read whole; and of one that can be, so many that it need not be
looked at all of them to choose some of their windows."""


@dataclass(frozen=True)
class Verdict:
    """The first rows that differ; how many windows were judged, and of how many of the keys asked; what was not looked
    at, for people ("": nothing)."""

    differing: tuple[Differing, ...]
    windows: int
    keys: int
    left: str = ""


_NOTHING = Verdict((), 0, 0)


@dataclass(frozen=True)
class Asked:
    """A stretch of a group's rows that is judged; of its windows `only` one, or all."""

    group: Group
    stretch: Stretch
    visits: int
    only: Window | None = None

    def has(self, window: Window) -> bool:
        """Whether a window is judged."""
        return window == self.only if self.only else self.stretch.has(window)


def judge(job: Job, computation: Computation, keys: Sequence[Key] | None, most: int) -> Verdict:
    """The first `most` rows of a collection of windows that are not as its definition says of the input as it was
    consumed; with `keys` (as metadata has them) of the windows with these keys only. Raises BeyondTheLaw where the law
    does not say it, or where too much would have to be read to find out."""
    windows = computation.definition.windows
    assert windows is not None
    (source,) = computation.inputs
    court = _Court(job, computation, source, _with_hidden(lawful(checked(windows, source.shape)), computation))
    try:
        return court.of_all(most) if keys is None else court.of_keys(keys, most)
    except TooLarge as why:
        raise BeyondTheLaw(str(why)) from None
    except ArithmeticError as why:
        raise BeyondTheLaw(f"a value of a row is not exact: {why}") from None


@dataclass
class _Court:
    """Judges one computation."""

    job: Job
    computation: Computation
    source: Input
    law: Lawful
    rule: Rule = field(init=False)

    def __post_init__(self) -> None:
        self.rule = Rule.of(self.law.windows)

    @property
    def _late(self) -> bool:
        """Whether late rows count for a while only."""
        return self.law.windows.counts_late_for is not None

    def of_keys(self, keys: Sequence[Key], most: int) -> Verdict:
        """What is found of some windows."""
        by, own = self.law.windows.by, [column.name for column in self.computation.collection.key]
        columns = [self._key_cells(keys, at, name) for at, name in enumerate(own)]
        key_rows = list(zip(*columns, strict=True))
        windows = [Window(*row[len(by) :]) for row in key_rows]
        reaches = [reach for window in windows if (reach := reach_of(self.rule, window))]
        near = reaches if len(reaches) == len(keys) else None
        opened, fitting = self._fitting([key[: len(by)] for key in keys], 1 if near is None else SCANNED)
        if not fitting:
            return Verdict((), 0, 0, f"{len(keys)} of {len(keys)} keys have too many rows")
        rows, stored = self._read(opened, fitting, near), self._stored(fitting, keys)
        candidates = [
            self._priced(rows, row[: len(by)], stretch_of(self.rule, rows.instants(row[: len(by)]), window), window)
            for key, row, window in zip(keys, key_rows, windows, strict=True)
            if key[: len(by)] in fitting
        ]
        chosen = _within_bounds(candidates)
        left = f"{len(keys) - len(chosen)} of {len(keys)} keys have too many rows" if len(chosen) < len(keys) else ""
        return replace(self._judged(rows, stored, chosen, most), keys=len(chosen), left=left)

    def of_all(self, most: int) -> Verdict:
        """What is found of all windows, or of as many as the bounds allow."""
        opened = self._opened()
        if opened.is_little(()):
            return self._of_groups(opened, None, most)
        keys, width = self._some_keys(), len(self.law.windows.by)
        _, prefixes = self._fitting([key[:width] for key in keys], 1, whole=False)
        of_groups = self._of_groups(opened, prefixes, most) if prefixes else _NOTHING
        others = [key for key in keys if key[:width] not in prefixes]
        scanned = self.of_keys(others, most) if others else _NOTHING
        if not of_groups.windows and not scanned.keys:
            opened.check(())
        differing, windows = (*of_groups.differing, *scanned.differing)[:most], of_groups.windows + scanned.windows
        return Verdict(differing, windows, 0, f"{windows:,} windows were judged, the others were not")

    def _of_groups(self, opened: Opened, prefixes: Sequence[Key] | None, most: int) -> Verdict:
        """What is found of the windows of some groups. TooLarge where none of them can be judged."""
        rows, stored = self._read(opened, prefixes), self._stored(prefixes, prefixes)
        groups = list(dict.fromkeys([*rows.groups, *stored.groups]))
        sampled = groups
        if len(groups) > MOST_KEYS:
            sampled = groups[:: max(1, -(-(rows.rows.num_rows + stored.rows.num_rows) // LAW_ROWS))]
        candidates = [
            self._priced(rows, group, stretch)
            for group in sampled
            for stretch in stretches(self.rule, rows.instants(group), STRETCH_ROWS)
        ]
        chosen = _chosen(candidates)
        if candidates and not chosen:
            raise TooLarge(f"the rows that decide any window of {self.computation.name} are too many")
        whole = len(sampled) == len(groups) and len(chosen) == len(candidates)
        verdict = self._judged(rows, stored, chosen, most)
        return (
            verdict if whole else replace(verdict, left=f"{verdict.windows:,} windows were judged, the others were not")
        )

    # Reading.

    def _opened(self) -> Opened:
        store = self.job.neighbour(self.source.name).store
        return input_opened(store, self.source, updates=self._late or self.law.happened)

    def _leading(self, prefixes: Sequence[Key]) -> list[Key]:
        """The first columns of the input's key that are columns of `by`, of some groups; none where rows of a group are
        in many places."""
        collection, by = self.source.state.collection, self.law.windows.by
        places = []
        for column in () if collection.layout else collection.key:
            if column.name not in by:
                break
            places.append(by.index(column.name))
        return sorted({tuple(prefix[at] for at in places) for prefix in prefixes}) if places else []

    def _fitting(self, prefixes: Sequence[Key], times: int, *, whole: bool = True) -> tuple[Opened, list[Key]]:
        """Those groups whose rows are not too many to be read together, so many `times` as is read otherwise. Where
        rows of a group are in many places TooLarge if all of them are, or without `whole` no group."""
        opened, distinct = self._opened(), list(dict.fromkeys(prefixes))
        if opened.is_little((), times):
            return opened, distinct
        fitting: list[Key] = []
        if not self._leading(distinct):
            if whole:
                opened.check((), times)
            return opened, fitting
        for prefix in distinct:
            if opened.is_little(opened.ranges(self._leading([*fitting, prefix])), times):
                fitting.append(prefix)
        return opened, fitting

    def _some_keys(self) -> list[Key]:
        """Some keys of the collection, from first to last; the bucket of a layout is none."""
        own = Opened.of(self.job.store, plan_updates(self.computation.state))
        width = len(self.computation.collection.key)
        named = (key for part in own.at_rest for key in (*(first for first, _ in part.groups), part.last_key))
        keys = sorted({tuple(key)[-width:] for key in named})
        return keys[:: max(1, -(-len(keys) // SOME_KEYS))]

    def _wanted(self, prefixes: Sequence[Key] | None) -> Mapping[str, pa.Array] | None:
        if prefixes is None:
            return None
        types = {column.name: arrow_type(column.type) for column in self.computation.collection.key}
        return {
            name: key_column_of([prefix[at] for prefix in prefixes], types[name])
            for at, name in enumerate(self.law.windows.by)
        }

    def _read(
        self, opened: Opened, prefixes: Sequence[Key] | None, reaches: Sequence[tuple[int, int]] | None = None
    ) -> Grouped:
        """The rows of the input that are in windows, of some groups and within some reaches of time, and what decides
        whether they came late."""
        law, updates, happened = self.law, self._late, self.law.happened
        ranges = opened.ranges(leading) if prefixes is not None and (leading := self._leading(prefixes)) else ()
        wanted, by = self._wanted(prefixes), law.windows.by
        columns, on = None if updates or happened else law.columns, EVENT_TIME if happened else law.windows.on
        tables = []
        for rows in input_rows(opened, columns, ranges, updates=updates, happened=happened):
            selected = among(rows, by, wanted)
            selected = selected if happened else selected.filter(selected.column(on).is_valid())
            tables.append(within(selected, micros(selected.column(on)), reaches))
        if not tables:
            return Grouped(pa.table({}), np.zeros(0, np.int64), {})
        table = pa.concat_tables(tables)
        return Grouped.of(table, by, micros(table.column(on)))

    def _stored(self, prefixes: Sequence[Key] | None, keys: Sequence[Key] | None) -> Grouped:
        """What the collection holds of some groups, of `keys` or beginnings of them."""
        computation, by = self.computation, self.law.windows.by
        ranges: Sequence[KeyRange] = ()
        if keys is not None and any(keys) and computation.collection.layout is None:
            ranges = Opened.of(self.job.store, plan_updates(computation.state)).ranges(keys)
        wanted = self._wanted(prefixes)
        read = own_rows(self.job.store, computation.state, computation.upper, ranges)
        tables = [no_own_rows(computation.collection), *(among(rows, by, wanted) for rows in read)]
        table = pa.concat_tables([piece.cast(tables[0].schema) for piece in tables])
        return Grouped.of(table, by, micros(table.column(WINDOW_START)))

    def _key_cells(self, keys: Sequence[Key], at: int, name: str) -> list[Any]:
        types = {column.name: arrow_type(column.type) for column in self.computation.collection.key}
        return cells(key_column_of([key[at] for key in keys], types[name]))

    # Judging.

    def _priced(self, rows: Grouped, group: Group, stretch: Stretch, only: Window | None = None) -> Asked:
        instants, times = rows.instants(group), 1
        if self._late and isinstance(self.rule.kind, Session):
            low = rows.groups.get(group, (0, 0))[0]
            stretch_rows = rows.rows.slice(low + stretch.low, stretch.high - stretch.low)
            times = len(np.unique(integers(stretch_rows, TIME))) if stretch_rows.num_rows else 1
        return Asked(group, stretch, visits(self.rule, stretch, instants, times), only)

    def _judged(self, rows: Grouped, stored: Grouped, chosen: Sequence[Asked], most: int) -> Verdict:
        parts = [(rows.groups.get(candidate.group, (0, 0))[0], candidate.stretch) for candidate in chosen]
        numbers = sorted(set(chain.from_iterable(range(at + stretch.low, at + stretch.high) for at, stretch in parts)))
        seen = Seen.of(self.job, self.computation, self.law, rows, numbers)
        compared = Shown.of(self.computation.collection, self.law.windows, seen.floats)
        differences: list[Differing] = []
        judged = 0
        for candidate in chosen:
            low, _ = rows.groups.get(candidate.group, (0, 0))
            own = range(low + candidate.stretch.low, low + candidate.stretch.high)
            seen_rows = [seen.rows[at] for at in own if at in seen.rows]
            desired = {
                window: values
                for _, window, values in window_rows(self.law.windows, seen_rows, value_of)
                if candidate.has(window) and self._is_due(window)
            }
            multiplicities = compared.multiplicities(
                stored, candidate.group, candidate.stretch, partial(self._is_compared, candidate)
            )
            judged += len({*desired, *multiplicities})
            differences += differing(compared, candidate.group, desired, multiplicities)
        return Verdict(tuple(differences[:most]), judged, len({candidate.group for candidate in chosen}))

    def _is_compared(self, candidate: Asked, window: Window) -> bool:
        return candidate.has(window) and not self._stays(window)

    def _is_due(self, window: Window) -> bool:
        """Whether a window's row is to be there, and is not one that stays as it is stored."""
        windows, last = self.law.windows, self.computation.upper - 1
        closed = windows.early or closes_at(windows.kind, window.end, windows.grace) - 1 <= last
        return closed and not self._stays(window)

    def _stays(self, window: Window) -> bool:
        if not self._late:
            return False
        windows = self.law.windows
        return self.source.judging.stays(frozen_from(windows.kind, window.end, windows.grace, windows.counts_late_for))


def _with_hidden(law: Lawful, computation: Computation) -> Lawful:
    """The windows with counts and sums of columns that are kept behind what is shown, where these are known."""
    rule = computation.recipe.by_key if computation.recipe else None
    if law.selects or rule is None or rule.grouped is None:
        return law
    names = {*law.columns, *(law.projection.shown if law.projection else ())}
    hidden = {column.name for column in computation.collection.hidden}
    more = [
        Aggregate(aggregate.name, aggregate.function, aggregate.of or "")
        for aggregate in rule.grouped.aggregates
        if aggregate.name in hidden
        and aggregate.function in _KEPT
        and not aggregate.in_parts
        and (aggregate.of is None or aggregate.of in names)
    ]
    return replace(law, windows=replace(law.windows, aggregates=(*law.windows.aggregates, *more)))


def _within_bounds(candidates: Sequence[Asked]) -> list[Asked]:
    """As many of some stretches, in their order, as the law may be asked of."""
    chosen, rows, seen = [], 0, 0
    for candidate in candidates:
        count = candidate.stretch.high - candidate.stretch.low
        if rows + count <= LAW_ROWS and seen + candidate.visits <= LAW_VISITS:
            chosen.append(candidate)
            rows, seen = rows + count, seen + candidate.visits
    return chosen


def _chosen(candidates: Sequence[Asked]) -> list[Asked]:
    """All stretches, or some from everywhere: first those far from each other, then those between."""
    rows = sum(candidate.stretch.high - candidate.stretch.low for candidate in candidates)
    seen = sum(candidate.visits for candidate in candidates)
    step = max(1, -(-rows // LAW_ROWS), -(-seen // LAW_VISITS))
    ordered = [at for first in range(step) for at in range(first, len(candidates), step)]
    numbered = {id(candidate): at for at, candidate in enumerate(candidates)}
    chosen = _within_bounds([candidates[at] for at in ordered])
    return sorted(chosen, key=lambda candidate: numbered[id(candidate)])
