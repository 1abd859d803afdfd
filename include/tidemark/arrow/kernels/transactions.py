"""The law of model/transaction.py on arrays: from facts of transactions, and such with holes, to plain ones.

Only keys whose facts may depend on one another are looked at (messages.py); of all others the facts are plain already.
Where their points are common ones, arrays do it (points.py), 0.5 to 2.5 microseconds a key. What is left goes through
the model's law key by key, with its values as numbers of each column's distinct cells: some 40 microseconds a key.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from itertools import compress

import numpy as np
import pyarrow as pa

from tidemark.arrow.kernels.history import NOTHING, Facts, out_of_order
from tidemark.arrow.kernels.messages import Messages, depends
from tidemark.arrow.kernels.points import points
from tidemark.arrow.kernels.spent import may_be_spent
from tidemark.arrow.rows.arrays import of_numbers, of_values
from tidemark.arrow.rows.columns import Bools, Ints, contiguous, integers, values
from tidemark.arrow.rows.order import ranks
from tidemark.arrow.rows.schema import (
    DIFF,
    EVENT_TIME,
    FILE,
    LACKS,
    ROW,
    keys_of,
    names_at_rest,
    value_columns,
)
from tidemark.errors import InvalidUsage
from tidemark.model.collection import Collection
from tidemark.model.fact import Fact
from tidemark.model.instant import format_instant
from tidemark.model.transaction import HOLE, Cells, Message, Stored, plain


@dataclass(frozen=True)
class Past:
    """What is stored of keys: for each the row of `before`, by its number behind the facts, or NOTHING.

    Attributes:
        base: These numbers.
        before: Rows up to the horizon.
        after: Updates behind it, of keys with known rows of snapshots, in order of keys.
        after_keys: Of which keys these are.
    """

    base: Ints
    before: pa.RecordBatch
    after: pa.RecordBatch
    after_keys: Ints


@dataclass(frozen=True)
class Lowered:
    """Plain facts, whose values are numbers of rows: of the facts', of those before, and of more.

    Attributes:
        cells: These rows, behind the others.
        keys: Of which keys these are values.
        unmatched: How many before-images of new points are of no row.
    """

    facts: Facts
    cells: pa.RecordBatch
    keys: Ints
    unmatched: int


@dataclass(frozen=True)
class Deletes:
    """New deletes with whole images that are changes of their own: the rows of these, and those of what was there."""

    images: Ints
    before: Ints

    def differ(self, numbers: Ints) -> Bools:
        """Which images are not what was there, by numbers of all rows that are equal for equal ones."""
        if not len(self.images):
            return np.zeros(0, bool)
        return np.asarray((self.before == NOTHING) | (numbers[self.images] != numbers[self.before]))


def whole_deletes(facts: pa.RecordBatch, numbered: Facts, base: Ints) -> Deletes:
    """The deletes of facts in order, `base` being what was before the keys' first ones.

    None beside facts that are retracted, of which it is not known what was there before.
    """
    chosen = numbered.new & (numbered.value == NOTHING) & (numbered.diff is None)
    if chosen.any():
        chosen &= ~depends(facts, numbered.key, numbered.new)[numbered.key]
        chosen &= np.asarray(values(contiguous(facts.column(LACKS)).is_null()), bool)
    rows = np.flatnonzero(chosen)
    is_first = (rows == 0) | (numbered.key[rows - 1] != numbered.key[rows])
    before = np.where(is_first, base[numbered.key[rows]], numbered.value[rows - 1])
    return Deletes(rows, before)


def plain_facts(facts: pa.RecordBatch, numbered: Facts, past: Past, collection: Collection) -> Lowered:
    """The same facts, of which none depends on what was before.

    Raises:
        InvalidUsage: A fact lacks a column that no row before it has.
    """
    names = value_columns(collection)
    slow = depends(facts, numbered.key, numbered.new)
    if not slow.any():
        return Lowered(numbered, facts.select(names).slice(0, 0), np.zeros(0, np.int64), 0)
    placed = _placed(numbered)
    messages = Messages.of(facts, numbered.key, np.flatnonzero(slow[numbered.key]), collection)
    optional = _optional(collection)
    law = _needs_law(messages, numbered, past)
    common = points(messages, numbered, past.base, (facts, past.before, names), optional=optional, law=law)
    known_reads = np.zeros(len(numbered.key), bool)
    known_reads[messages.rows] = messages.reads & ~numbered.new[messages.rows]
    tables = (facts, past.before, past.after)
    law = ~common.common | may_be_spent(
        known_reads, numbered, past.base, common, tables=tables, after_keys=past.after_keys
    )
    others, rows = np.flatnonzero(~slow[placed.key]), ~law[placed.key[common.rows]]
    parts = [_some(placed, others, placed.value[others]), _some(placed, common.rows[rows], common.value[rows])]
    if not law.any():
        return Lowered(_merged(*parts), common.filled, common.keys, common.unmatched)
    first = facts.num_rows + past.before.num_rows + common.filled.num_rows
    keyed = _Keyed(facts, placed, past, collection, slow=law, first=first)
    lowered = _as_facts([fact for key in np.flatnonzero(law).tolist() for fact in keyed.lowered(key)])
    cells = pa.concat_batches([common.filled, keyed.cells()])
    keys = np.concatenate([common.keys, keyed.keys()])
    return Lowered(_merged(*parts, lowered), cells, keys, common.unmatched + keyed.unmatched)


def _optional(collection: Collection) -> set[str]:
    dropped = names_at_rest(collection, (column.id for column in collection.dropped))
    return {*collection.landed.source.optional, *dropped}


def _needs_law(messages: Messages, numbered: Facts, past: Past) -> Bools:
    """The keys whose messages were not learned in order, or with rows of snapshots behind what follows in the log."""
    law = out_of_order(numbered, len(past.base))
    law[numbered.key[messages.rows[messages.moved(numbered.key)]]] = True
    return law


class _Keyed:
    """The facts of keys as messages of the model, and what it makes of them."""

    def __init__(
        self, facts: pa.RecordBatch, numbered: _Placed, past: Past, collection: Collection, *, slow: Bools, first: int
    ) -> None:
        self._facts, self._numbered, self._past, self._collection = facts, numbered, past, collection
        self._names, self._optional = value_columns(collection), _optional(collection)
        rows = np.flatnonzero(slow[numbered.key])
        self._messages = Messages.of(facts, numbered.key, rows, collection)
        stored = past.base[slow & (past.base != NOTHING)] - facts.num_rows
        later = np.flatnonzero(slow[past.after_keys])
        self._at = {row: at for at, row in enumerate([*rows.tolist(), *(stored + facts.num_rows).tolist()])}
        tables = ((facts, rows), (past.before, stored), (past.after, later))
        schema = facts.select(self._names).schema
        self._images = pa.concat_batches(
            [table.select(self._names).take(of_numbers(chosen)).cast(schema) for table, chosen in tables]
        )
        columns = [_cells_of(self._images, name) for name in self._names]
        self._cells: list[Cells] = list(zip(*columns, strict=True)) if columns else [()] * self._images.num_rows
        self._later: dict[int, list[Stored]] = {}
        after = zip(later.tolist(), self._cells[len(self._at) :], strict=True)
        happened, diff = integers(past.after, EVENT_TIME), integers(past.after, DIFF)
        for row, cells in after:
            updates = self._later.setdefault(int(past.after_keys[row]), [])
            updates.append((int(happened[row]), cells, int(diff[row])))
        for at, name in enumerate(self._names):
            for number in np.flatnonzero(self._messages.holes.get(name, False)).tolist():
                cells = self._cells[number]
                self._cells[number] = (*cells[:at], HOLE, *cells[at + 1 :])
        self._bounds = np.searchsorted(numbered.key, np.arange(len(past.base) + 1))
        self._first = first
        self._rows: dict[tuple[int, Cells], int] = {}
        self._filled: list[tuple[int, Cells]] = []
        self.unmatched = 0

    def lowered(self, key: int) -> Iterator[tuple[Fact, bool]]:
        """The plain facts of a key, each with whether it is new; values are tuples of one number of a row."""
        start, end = int(self._bounds[key]), int(self._bounds[key + 1])
        is_new = self._numbered.new[start:end]
        messages = [self._message(key, row) for row in range(start, end)]
        row = int(self._past.base[key])
        base = None if row == NOTHING else self._known_row(key, row)
        older, newer = (list(compress(messages, chosen)) for chosen in (~is_new, is_new))
        before, changes, unmatched = plain(base, older, newer, self._later.get(key, []))
        self.unmatched += unmatched
        for facts, new in ((before, False), (changes, True)):
            for fact in facts:
                value = None if fact.value is None else (self._row_of(key, fact),)
                yield replace(fact, key=(key,), value=value), new

    def _message(self, key: int, row: int) -> Message:
        at, numbered, messages = self._at[row], self._numbered, self._messages
        transaction, cells = int(messages.transaction[at]), self._cells[at]
        if HOLE not in cells:
            self._rows.setdefault((key, cells), row)
        return Message(
            (key,),
            cells,
            messages.effect(at),
            None if transaction < 0 else str(transaction),
            int(numbered.time[row]),
            int(numbered.event_time[row]),
            (int(messages.log[at]), int(numbered.place[row])),
            int(numbered.diff[row]),
            bool(messages.reads[at]),
        )

    def _known_row(self, key: int, row: int) -> Cells:
        cells = self._cells[self._at[row]]
        self._rows.setdefault((key, cells), row)
        return cells

    def _row_of(self, key: int, fact: Fact) -> int:
        """The row that has the values of a fact: one there is, or one that is filled."""
        cells: Cells = fact.value or ()
        if HOLE in cells:
            lacks = [name for name, cell in zip(self._names, cells, strict=True) if cell is HOLE]
            if needed := [name for name in lacks if name not in self._optional]:
                raise self._refusal(fact, needed[0])
            cells = tuple(None if cell is HOLE else cell for cell in cells)
        if (key, cells) not in self._rows:
            self._rows[key, cells] = self._first + len(self._filled)
            self._filled.append((key, cells))
        return self._rows[key, cells]

    def _refusal(self, fact: Fact, name: str) -> InvalidUsage:
        row = int(fact.order[-1])  # type: ignore[call-overload]
        (key,) = keys_of(self._facts, [row], len(self._collection.key))
        where = f"{self._facts.column(FILE)[row].as_py()}, row {self._facts.column(ROW)[row].as_py() + 1}"
        when = format_instant(self._facts.column(EVENT_TIME)[row].as_py())
        return InvalidUsage(
            f"key {key}, of {when}: {where} lacks column {name}, which the database did not log as it did not change, "
            f"and no earlier value of it is known; load the row as it was by a snapshot, or declare the column "
            f"optional: columns: {{{name}: {{optional: true}}}}"
        )

    def cells(self) -> pa.RecordBatch:
        """The rows that were filled."""
        columns = []
        for at, name in enumerate(self._names):
            holder = {cells[at]: number for number, cells in enumerate(self._cells) if cells[at] is not HOLE}
            rows = of_values([holder.get(cells[at]) for _, cells in self._filled], pa.int64())
            columns.append(self._images.column(name).take(rows))
        return pa.RecordBatch.from_arrays(columns, schema=self._images.schema)

    def keys(self) -> Ints:
        """The keys that these rows are values of."""
        return np.array([key for key, _ in self._filled], np.int64)


def _cells_of(rows: pa.RecordBatch, name: str) -> list[int | None]:
    """The values of a column as numbers that are equal for equal ones, None for null."""
    numbers = ranks(rows, [name])
    return of_numbers(numbers, np.asarray(values(rows.column(name).is_null()), bool)).to_pylist()  # type: ignore[no-any-return]


@dataclass(frozen=True)
class _Placed:
    """Facts with a sign each, and as their place the first row that is there."""

    key: Ints
    value: Ints
    time: Ints
    event_time: Ints
    new: Bools
    diff: Ints
    place: Ints


def _placed(facts: Facts) -> _Placed:
    rows = np.arange(len(facts.key))
    place = rows if facts.place is None else np.unique(facts.place, return_index=True)[1][facts.place]
    diff = np.ones(len(rows), np.int64) if facts.diff is None else facts.diff
    return _Placed(facts.key, facts.value, facts.time, facts.event_time, facts.new, diff, place)


def _some(facts: _Placed, rows: Ints, value: Ints) -> _Placed:
    """Some facts, with other values."""
    return replace(_Placed(*(getattr(facts, each.name)[rows] for each in fields(facts))), value=value)


def _as_facts(lowered: Sequence[tuple[Fact, bool]]) -> _Placed:
    """Facts of the model as arrays; as their place the rank of theirs."""
    cells = [
        (f.key[0], NOTHING if f.value is None else f.value[0], f.time, f.event_time, new, f.diff, *f.order)
        for f, new in lowered
    ]
    key, value, time, event_time, new, diff, log, row = np.array(cells, np.int64).reshape(-1, 8).T
    places = np.stack([key, event_time, log, row], axis=1)
    place = np.unique(places, axis=0, return_inverse=True)[1].reshape(-1)
    return _Placed(key, value, time, event_time, new.astype(bool), diff, place)


def _merged(*parts: _Placed) -> Facts:
    """Facts of distinct keys in one order, in which equal ones are the same."""
    columns = [np.concatenate([getattr(part, each.name) for part in parts]) for each in fields(_Placed)]
    key, value, place = columns[0], columns[1], columns[-1]
    order = np.lexsort((value, place, key))
    ordered = _Placed(*(column[order] for column in columns))
    is_other = (ordered.key[1:] != ordered.key[:-1]) | (ordered.place[1:] != ordered.place[:-1])
    begins = np.append(True, is_other)[: len(key)]
    places = np.cumsum(begins) - 1
    begins[1:] |= ordered.value[1:] != ordered.value[:-1]
    same = np.flatnonzero(begins)[np.cumsum(begins) - 1]
    own = {each.name: getattr(ordered, each.name) for each in fields(ordered)}
    return Facts(**{**own, "place": places}, same=same)
