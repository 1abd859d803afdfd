"""The point-in-time join: to each probe of a table the latest row of its key at its time, by what was known then.

Probes and rows are passed once, both in order of the key: what is in memory are the probes, the rows of a round, and
of the rows those that answer a probe. A probe that asks as known at a time of its own is answered by the updates that
were learned up to then: a row counts whose updates add up to more than nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from tidemark.arrow.kernels.latest import (
    Asked,
    LatestIndex,
    gathered_keys,
    has_value,
    periods_of,
    plain_times,
    whole_keys,
)
from tidemark.arrow.kernels.merge import summed
from tidemark.arrow.read import ordered_by, rounds_by
from tidemark.arrow.rows.arrays import of_bools, of_numbers
from tidemark.arrow.rows.columns import Ints, one_batch
from tidemark.arrow.rows.cuts import gathered, joined
from tidemark.arrow.rows.layout import placed_names
from tidemark.arrow.rows.order import ranks, rows_before, rows_up_to, sort_key_at, starts
from tidemark.arrow.rows.probes import Probes
from tidemark.arrow.rows.schema import DIFF, TIME, keys_of, updates_schema
from tidemark.arrow.runs import runs_of
from tidemark.arrow.winners import AT, Latest, Target, check_below_zero
from tidemark.model.chunk.law import Interval, Span
from tidemark.model.collection import Collection
from tidemark.model.frontier import CompactionFunction
from tidemark.plan.latest import MOST_KEYS, check_known, narrowed_between, narrowed_to
from tidemark.plan.tasks import ReadTask
from tidemark.storage.stores.store import ObjectStore

PIECE_ROWS = 2**15
"""Probes of which the answers are put together at once."""
_SIGN = np.uint64(2**63)


@dataclass(frozen=True)
class Join:
    """The latest rows of probes, not further below their times than `within`; if `by_knowledge` each as known at its
    own time of knowledge."""

    ask: Latest
    within: int | None = None
    by_knowledge: bool = False

    def columns(self, collection: Collection) -> list[str]:
        """The columns of updates that are read."""
        return [*self.ask.read(collection), *([TIME] if self.by_knowledge else []), DIFF]

    def span(self, probes: Probes) -> tuple[int | None, int]:
        """Between which times, both included, all rows are that can answer one of some probes."""
        lower = self.lower(probes.upto)
        return (None if lower is None else int(lower.min())), int(probes.upto.max())

    def lower(self, upto: Ints) -> Ints | None:
        """The first time at which a row may answer, for each of some times."""
        if self.within is None or self.within >= 2**64:
            return None
        # Counted from the least time on, so that no difference is beyond what a number holds.
        counted, within = upto.view(np.uint64) ^ _SIGN, np.uint64(self.within)
        return np.asarray(((counted - np.minimum(counted, within)) ^ _SIGN).view(np.int64), np.int64)


def value_fields(collection: Collection, ask: Latest) -> pa.Schema:
    """The columns that are put behind those of a probe: those shown, the timeline's as `_at`; with `each` behind each
    when that was so."""
    schema, own = updates_schema(collection), ask.values(collection)
    at = schema.field(ask.timeline).type
    fields: list[pa.Field] = []
    for name in ask.shown:
        if name == ask.timeline:
            fields.append(pa.field(AT, at))
            continue
        fields.append(pa.field(name, schema.field(name).type))
        fields += [pa.field(f"{name}{AT}", at)] if name in own else []
    return pa.schema(fields)


class Found:
    """The rows that answer probes: which one of all that were kept, for each row of the table; -1 where none does."""

    def __init__(self, probes: int, ask: Latest, collection: Collection) -> None:
        self.ask = ask
        self.own = ask.values(collection)
        self.places = {target: np.full(probes, -1, np.int64) for target in (None, *self.own)}
        self.fields = value_fields(collection, ask)
        self._names = list(dict.fromkeys([*ask.shown, ask.timeline]))
        self._kept: list[pa.RecordBatch] = []
        self._count = 0

    def add(self, rows: pa.RecordBatch, chosen: dict[Target, Ints], numbers: Ints) -> None:
        """Keep of some rows those `chosen` by the probes with these `numbers`."""
        every = _every(chosen)
        if not len(every):
            return
        self._kept.append(rows.select(self._names).take(of_numbers(every)))
        for target, places in chosen.items():
            answered = places >= 0
            self.places[target][numbers[answered]] = self._count + np.searchsorted(every, places[answered])
        self._count += len(every)

    def columns(self, start: int, end: int) -> list[pa.Array]:
        """The columns of `value_fields` for some rows of the table."""
        columns: list[pa.Array] = []
        for name in self.ask.shown:
            target = name if name in self.own else None
            wanted = [name] if target is None else [name, self.ask.timeline]
            columns += self._taken(wanted, self.places[target][start:end])
        return columns

    def _taken(self, names: list[str], places: Ints) -> list[pa.Array]:
        answered = places >= 0
        if not answered.any():
            return [pa.nulls(len(places)) for _ in names]
        answers = gathered([rows.select(names) for rows in self._kept], places[answered])
        at = of_numbers(np.cumsum(answered) - 1, ~answered)
        return [answers.column(name).take(at) for name in names]


def joined_to(
    store: ObjectStore, tasks: Iterable[ReadTask], table: pa.Table, probes: Probes, join: Join, schema: pa.Schema
) -> Iterator[pa.RecordBatch]:
    """The rows of a table, in its order, with the columns of `value_fields` behind its own: those of `schema`.

    Raises InvalidUsage, naming the key, where a row that could answer a probe has a negative multiplicity.
    """
    matches: Found | None = None
    for task in tasks:
        matches = matches or Found(table.num_rows, join.ask, task.collection)
        look_up(store, task, probes, join, matches)
    assert matches is not None
    yield from _put_together(matches, table, schema)


def joined_to_rows(
    rows: Iterable[pa.RecordBatch],
    collection: Collection,
    table: pa.Table,
    probes: Probes,
    join: Join,
    schema: pa.Schema,
) -> Iterator[pa.RecordBatch]:
    """The same of rows as `updates_asked` has them, in any order, all updates of a row in one batch."""
    matches = Found(table.num_rows, join.ask, collection)
    if len(probes):
        _look_up_among(rows, collection, probes, join, matches)
    yield from _put_together(matches, table, schema)


def _put_together(matches: Found, table: pa.Table, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    for start in range(0, table.num_rows, PIECE_ROWS):
        own = one_batch(table.slice(start, PIECE_ROWS))
        columns = [*own.columns, *matches.columns(start, start + own.num_rows)]
        yield pa.RecordBatch.from_arrays(
            [column.cast(field.type) for column, field in zip(columns, schema, strict=True)], schema=schema
        )


def check_knowledge(probes: Probes, function: CompactionFunction, seal: int) -> None:
    """Raise InvalidUsage unless it can be said what was known at all times of knowledge that probes have."""
    knowledge = probes.known
    if knowledge is not None and len(knowledge):
        check_known(
            np.unique(knowledge).tolist() if function.rungs else [int(knowledge.min()), int(knowledge.max())],
            function,
            seal,
        )


def look_up(store: ObjectStore, task: ReadTask, probes: Probes, join: Join, matches: Found) -> None:
    """Find the rows of a task that answer probes."""
    if not len(probes):
        return
    collection = task.collection
    span = join.span(probes)
    if collection.layout:
        rows = updates_asked(store, within_times(task, join.ask.timeline, span), join)
        _look_up_among(rows, collection, probes, join, matches)
    elif own := _narrowed(task, probes.distinct):
        asking = _Asking.of(collection, probes, join, matches)
        rows = updates_asked(store, within_times(own, join.ask.timeline, span), join)
        for whole in whole_keys(rows, asking.key, asking.reduced):
            asking.answer(whole, matches)


def _look_up_among(
    rows: Iterable[pa.RecordBatch], collection: Collection, probes: Probes, join: Join, matches: Found
) -> None:
    """Find those of some rows that answer probes, where rows of a key are anywhere."""
    asking = _Asking.of(collection, probes, join, matches)
    for whole in gathered_keys(map(asking.probed, rows), join.columns(collection)[:-1], asking.reduced):
        asking.answer(whole, matches)


def _narrowed(task: ReadTask, keys: pa.RecordBatch) -> ReadTask | None:
    """A task of the keys that are looked for, one by one unless these are many."""
    few = keys.num_rows <= MOST_KEYS
    key_values = keys_of(keys, range(keys.num_rows) if few else [0, keys.num_rows - 1], keys.num_columns)
    return narrowed_to(task, key_values) if few else narrowed_between(task, *key_values)


def within_times(task: ReadTask, timeline: str, interval: Interval) -> ReadTask:
    """A task of the rows that have their time in an interval."""
    span = Span.of(task.collection.column(timeline), (interval,))
    return task if span in task.spans else replace(task, spans=(*task.spans, span))


def updates_asked(store: ObjectStore, task: ReadTask, join: Join) -> Iterator[pa.RecordBatch]:
    """The rows of a task that may answer probes, in order at rest, in the columns of the join, all updates of a row in
    one batch; each row once, unless it matters when it came and went. A row without a time is none of them."""
    *by, diff = placed_names(task.collection, join.columns(task.collection))
    names = [name for name in by if name != TIME]
    together = ordered_by(task.collection, names)
    resort = join.by_knowledge or together != names
    runs = runs_of(store, task, [*by, diff], together, join.ask.keep)
    for batches in rounds_by(together, runs, lambda waiting: list(summed(waiting, by, resort=resort))):
        yield joined(list(summed(batches, by, resort=resort)))


@dataclass(frozen=True)
class _Asking:
    """Asks rows of whole keys for those that answer probes."""

    join: Join
    targets: Sequence[Target]
    names: Sequence[str]
    key: Sequence[str]
    probes: Probes

    @classmethod
    def of(cls, collection: Collection, probes: Probes, join: Join, matches: Found) -> _Asking:
        """What asks rows of a collection."""
        key = [column.name for column in collection.key]
        return cls(join, list(matches.places), join.ask.read(collection), key, probes)

    def answer(self, rows: pa.RecordBatch, matches: Found) -> None:
        """Find what rows answer. Raises InvalidUsage where the answer to a probe cannot be said."""
        first, end, chosen, below = self._chosen(rows)
        check_below_zero(rows, self.join.ask.timeline, self.key, chosen, below)
        matches.add(rows, chosen, self.probes.number[first:end])

    def probed(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """The rows of keys that some probe has."""
        distinct = self.probes.distinct
        if not rows.num_rows or not distinct.num_rows:
            return rows.slice(0, 0)
        own = rows.select(list(self.key))
        both = [pa.RecordBatch.from_arrays(batch.columns, list(self.key)) for batch in (own, distinct)]
        numbers = ranks(joined(both), self.key)
        return rows.filter(of_bools(np.isin(numbers[: rows.num_rows], numbers[rows.num_rows :])))

    def reduced(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """The rows that answer a probe, or refuse to, with all their updates: more rows of their key may come, and
        answer others."""
        _, _, chosen, below = self._chosen(rows)
        every = np.union1d(_every(chosen), _every(below))
        begins = np.flatnonzero(starts(rows, self.names))
        row = np.repeat(begins, np.diff(begins, append=rows.num_rows))
        return rows.filter(of_bools(np.isin(row, every)))

    def _chosen(self, rows: pa.RecordBatch) -> tuple[int, int, dict[Target, Ints], dict[Target, Ints]]:
        """From which probe to which the keys of the rows are; by what is looked for the row of each of these, and the
        latest row with a negative multiplicity."""
        probes, distinct = self.probes, self.probes.distinct
        low = rows_before(distinct, sort_key_at(rows, 0, self.key), self.key)
        high = rows_up_to(distinct, sort_key_at(rows, rows.num_rows - 1, self.key), self.key)
        first, end = int(probes.firsts[low]), int(probes.firsts[high])
        if low == high:
            none = {target: np.empty(0, np.int64) for target in self.targets}
            return first, first, none, none
        group, groups = self._groups(rows, distinct.slice(low, high - low))
        queries = self._asked(np.repeat(groups, np.diff(probes.firsts[low : high + 1])), first, end)
        periods = periods_of(rows, self.names)
        index = LatestIndex(periods, group, plain_times(rows.column(self.join.ask.timeline)), self._ranks(rows))
        are_asked = np.zeros(1 + max(int(group.max()), int(groups.max())), bool)
        are_asked[groups] = True
        periods = periods if are_asked.all() else periods.where(are_asked[group[periods.row]])
        chosen, below = dict[Target, Ints](), dict[Target, Ints]()
        for target in self.targets:
            valued = periods if target is None else periods.where(has_value(rows, target)[periods.row])
            chosen[target] = replace(index, periods=valued.where(valued.sign > 0)).latest(queries)
            below[target] = replace(index, periods=valued.where(valued.sign < 0)).latest(queries)
        return first, end, chosen, below

    def _groups(self, rows: pa.RecordBatch, probed: pa.RecordBatch) -> tuple[Ints, Ints]:
        """Numbers for the keys of rows and of probes, equal for equal ones."""
        begins = starts(rows, self.key)
        own = rows.select(list(self.key)).take(of_numbers(np.flatnonzero(begins)))
        both = [pa.RecordBatch.from_arrays(batch.columns, list(self.key)) for batch in (own, probed)]
        numbers = ranks(joined(both), self.key)
        lengths = np.diff(np.flatnonzero(begins), append=rows.num_rows)
        return np.repeat(numbers[: own.num_rows], lengths), numbers[own.num_rows :]

    def _asked(self, group: Ints, first: int, end: int) -> Asked:
        upto, knowledge = self.probes.upto[first:end], self.probes.known
        return Asked(group, upto, self.join.lower(upto), None if knowledge is None else knowledge[first:end])

    def _ranks(self, rows: pa.RecordBatch) -> Ints | None:
        ties = self.join.ask.ties
        return ranks(rows, ties) if ties else None


def _every(chosen: dict[Target, Ints]) -> Ints:
    """The rows that are chosen at all, in order."""
    places = np.unique(np.concatenate(list(chosen.values())))
    return places[places >= 0]
