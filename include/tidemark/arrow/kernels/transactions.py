"""The law of model/transaction.py on arrays: from facts of transactions, and such with holes, to plain ones.

Only keys that have two facts of one transaction, or one that lacks columns, are looked at; of all others the facts are
plain already. These keys go through the model's law one by one, with their values as numbers of each column's distinct
cells: some 40 microseconds a key.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from itertools import compress

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidemark.arrow.kernels.history import NOTHING, Facts
from tidemark.arrow.rows.arrays import no_rows, of_numbers, of_values
from tidemark.arrow.rows.columns import Bools, Ints, contiguous, values
from tidemark.arrow.rows.lacks import BEFORE, ONLY_KEY
from tidemark.arrow.rows.order import ranks
from tidemark.arrow.rows.schema import (
    DELETED,
    EVENT_TIME,
    FILE,
    LACKS,
    ORDER,
    ROW,
    TRANSACTION,
    keys_of,
    names_at_rest,
    value_columns,
)
from tidemark.errors import InvalidUsage
from tidemark.model.collection import Collection
from tidemark.model.fact import Fact
from tidemark.model.instant import format_instant
from tidemark.model.transaction import HOLE, Cells, Effect, Message, plain


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


def _codes(facts: pa.RecordBatch, name: str) -> tuple[Ints, list[str]]:
    """For each fact the number of its text, -1 for none; and the texts."""
    encoded = contiguous(facts.column(name)).dictionary_encode()
    codes = np.asarray(values(pc.fill_null(encoded.indices, -1).cast(pa.int64())), np.int64)
    return codes, encoded.dictionary.to_pylist()


def _groups(facts: pa.RecordBatch, key: Ints) -> tuple[Ints, Bools]:
    """For each fact a number of its point, and whether that has several facts.

    A point is what a transaction says of a key, or a fact without one.
    """
    transaction, names = _codes(facts, TRANSACTION)
    alone = transaction < 0
    pairs = np.where(alone, -1 - np.arange(len(key)), key * max(1, len(names)) + transaction)
    _, number, count = np.unique(pairs, return_inverse=True, return_counts=True)
    return number, count[number] > 1


def _has_holes(facts: pa.RecordBatch) -> Bools:
    """The facts that lack columns, rather than a before-image or its values."""
    column = facts.column(LACKS)
    if column.null_count == len(column):
        return np.zeros(len(column), bool)
    codes, texts = _codes(facts, LACKS)
    with_holes = np.array([*(any(map(str.isdigit, text)) for text in texts), False])
    deleted = np.asarray(values(contiguous(facts.column(DELETED))), bool)
    return np.asarray(with_holes[codes] & ~deleted)


def depends(facts: pa.RecordBatch, key: Ints) -> Bools:
    """For each key, of numbers from 0 that ascend, whether a fact of it may depend on the row before it."""
    answer = np.zeros(int(key[-1]) + 1 if len(key) else 0, bool)
    answer[key[_groups(facts, key)[1] | _has_holes(facts)]] = True
    return answer


def whole_deletes(facts: pa.RecordBatch, numbered: Facts, base: Ints) -> Deletes:
    """The deletes of facts in order, `base` being what was before the keys' first ones.

    None beside facts that are retracted, of which it is not known what was there before.
    """
    chosen = numbered.new & (numbered.value == NOTHING) & (numbered.diff is None)
    if chosen.any():
        chosen &= ~depends(facts, numbered.key)[numbered.key]
        chosen &= np.asarray(values(contiguous(facts.column(LACKS)).is_null()), bool)
    rows = np.flatnonzero(chosen)
    is_first = (rows == 0) | (numbered.key[rows - 1] != numbered.key[rows])
    before = np.where(is_first, base[numbered.key[rows]], numbered.value[rows - 1])
    return Deletes(rows, before)


def plain_facts(
    facts: pa.RecordBatch, rows_before: pa.RecordBatch, numbered: Facts, base: Ints, collection: Collection
) -> Lowered:
    """The same facts, of which none depends on what was before.

    Raises:
        InvalidUsage: A fact lacks a column that no row before it has.
    """
    names = value_columns(collection)
    nothing = no_rows(facts.select(names).schema)
    slow = depends(facts, numbered.key)
    if not slow.any():
        return Lowered(numbered, nothing, np.zeros(0, np.int64), 0)
    placed = _placed(numbered)
    keyed = _Keyed(facts, rows_before, placed, base, collection, slow=slow)
    lowered = _as_facts([fact for key in np.flatnonzero(slow).tolist() for fact in keyed.lowered(key)])
    return Lowered(_merged(_without(placed, slow), lowered), keyed.cells(), keyed.keys(), keyed.unmatched)


class _Keyed:
    """The facts of the keys that depend on others, as messages of the model."""

    def __init__(
        self,
        facts: pa.RecordBatch,
        rows_before: pa.RecordBatch,
        numbered: _Placed,
        base: Ints,
        collection: Collection,
        *,
        slow: Bools,
    ) -> None:
        self._facts, self._numbered, self._base, self._collection = facts, numbered, base, collection
        self._names = value_columns(collection)
        dropped = names_at_rest(collection, (column.id for column in collection.dropped))
        self._optional = {*collection.landed.source.optional, *dropped}
        self._before = rows_before.select(self._names)
        self._bounds = np.searchsorted(numbered.key, np.arange(len(base) + 1))
        rows = np.flatnonzero(slow[numbered.key])
        stored = base[slow & (base != NOTHING)] - facts.num_rows
        self._number_of = {row: at for at, row in enumerate([*rows.tolist(), *(stored + facts.num_rows).tolist()])}
        images = facts.select(self._names).take(of_numbers(rows))
        self._images = pa.concat_batches([images, self._before.take(of_numbers(stored)).cast(images.schema)])
        columns = [ranks(self._images, [name]).tolist() for name in self._names]
        self._cells: list[Cells] = list(zip(*columns, strict=True)) if columns else [()] * self._images.num_rows
        self._transactions, _ = _codes(facts, TRANSACTION)
        self._places = ranks(facts.select([ORDER]), [ORDER])
        self._effects = _effects(facts, rows)
        self._holes(rows)
        self._rows: dict[tuple[int, Cells], int] = {}
        self._filled: list[tuple[int, Cells]] = []
        self.unmatched = 0

    def _holes(self, rows: Ints) -> None:
        codes, texts = _codes(self._facts.select([LACKS]).take(of_numbers(rows)), LACKS)
        absent = [set(names_at_rest(self._collection, map(int, filter(str.isdigit, t.split(","))))) for t in texts]
        for at in np.flatnonzero(codes >= 0).tolist():
            if names := absent[codes[at]]:
                row = zip(self._names, self._cells[at], strict=True)
                self._cells[at] = tuple(HOLE if name in names else cell for name, cell in row)

    def lowered(self, key: int) -> Iterator[tuple[Fact, bool]]:
        """The plain facts of a key, each with whether it is new; values are tuples of one number of a row."""
        start, end = int(self._bounds[key]), int(self._bounds[key + 1])
        is_new = self._numbered.new[start:end]
        messages = [self._message(key, row) for row in range(start, end)]
        row = int(self._base[key])
        base = None if row == NOTHING else self._known_row(key, row)
        older, newer = (list(compress(messages, chosen)) for chosen in (~is_new, is_new))
        before, changes, unmatched = plain(base, older, newer)
        self.unmatched += unmatched
        for facts, new in ((before, False), (changes, True)):
            for fact in facts:
                value = None if fact.value is None else (self._row_of(key, fact),)
                yield replace(fact, key=(key,), value=value), new

    def _message(self, key: int, row: int) -> Message:
        at, numbered = self._number_of[row], self._numbered
        transaction = int(self._transactions[row])
        cells = self._cells[at]
        if HOLE not in cells:
            self._rows.setdefault((key, cells), row)
        return Message(
            (key,),
            cells,
            self._effects[at],
            None if transaction < 0 else str(transaction),
            int(numbered.time[row]),
            int(numbered.event_time[row]),
            (int(self._places[row]), int(numbered.place[row])),
            int(numbered.diff[row]),
        )

    def _known_row(self, key: int, row: int) -> Cells:
        cells = self._cells[self._number_of[row]]
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
            self._rows[key, cells] = self._facts.num_rows + self._before.num_rows + len(self._filled)
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


def _effects(facts: pa.RecordBatch, rows: Ints) -> list[Effect]:
    """What some facts do to their keys."""
    said = facts.select([DELETED, LACKS]).take(of_numbers(rows))
    effects = []
    for deleted, lacks in zip(said.column(DELETED).to_pylist(), said.column(LACKS).to_pylist(), strict=True):
        if deleted:
            effects.append(Effect.TAKE_ANY if lacks == ONLY_KEY else Effect.TAKE)
        else:
            effects.append(Effect.REPLACE if (lacks or "").startswith(BEFORE) else Effect.PUT)
    return effects


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


def _without(facts: _Placed, slow: Bools) -> _Placed:
    """The facts of the other keys."""
    rest = ~slow[facts.key]
    return _Placed(*(getattr(facts, each.name)[rest] for each in fields(facts)))


def _as_facts(lowered: Sequence[tuple[Fact, bool]]) -> _Placed:
    """Facts of the model as arrays."""
    cells = [
        (f.key[0], NOTHING if f.value is None else f.value[0], f.time, f.event_time, new, f.diff, f.order[-1])
        for f, new in lowered
    ]
    key, value, time, event_time, new, diff, place = np.array(cells, np.int64).reshape(-1, 7).T
    return _Placed(key, value, time, event_time, new.astype(bool), diff, place)


def _merged(left: _Placed, right: _Placed) -> Facts:
    """Facts in one order, in which equal ones are the same."""
    columns = [np.concatenate([getattr(left, each.name), getattr(right, each.name)]) for each in fields(_Placed)]
    key, value, place = columns[0], columns[1], columns[-1]
    order = np.lexsort((value, place, key))
    ordered = _Placed(*(column[order] for column in columns))
    begins = np.ones(len(order), bool)
    begins[1:] = (ordered.place[1:] != ordered.place[:-1]) | (ordered.value[1:] != ordered.value[:-1])
    same = np.flatnonzero(begins)[np.cumsum(begins) - 1]
    return Facts(**{each.name: getattr(ordered, each.name) for each in fields(ordered)}, same=same)
