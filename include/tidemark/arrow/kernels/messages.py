"""Facts of transactions as messages of the model (model/transaction.py), on arrays; and which keys need its law."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidemark.arrow.rows.arrays import of_numbers
from tidemark.arrow.rows.columns import Bools, Ints, contiguous, values
from tidemark.arrow.rows.lacks import BEFORE, ONLY_KEY, READ
from tidemark.arrow.rows.order import ranks
from tidemark.arrow.rows.schema import DELETED, LACKS, ORDER, TRANSACTION, names_at_rest, value_columns
from tidemark.model.collection import Collection
from tidemark.model.transaction import Effect


@dataclass(frozen=True)
class Messages:
    """What some facts say, in order.

    Attributes:
        rows: Which facts they are.
        point: A number of its point: what a transaction says of a key, or a fact without one.
        transaction: A number of its transaction, -1 for none.
        log: The rank of its place in the database's log.
        takes: Whether it leaves no row of its own.
        has_only_key: Whether values that it has are guessed.
        replaces: Whether it is put in the place of the row that is there.
        holes: Of the columns that some lack which do.
    """

    rows: Ints
    point: Ints
    transaction: Ints
    log: Ints
    takes: Bools
    has_only_key: Bools
    replaces: Bools
    reads: Bools
    holes: dict[str, Bools]

    @classmethod
    def of(cls, facts: pa.RecordBatch, key: Ints, rows: Ints, collection: Collection) -> Messages:
        """Those of some rows."""
        chosen = facts.select([DELETED, ORDER, TRANSACTION, LACKS]).take(of_numbers(rows))
        transaction, point = _points(chosen, key[rows])
        takes = _bools(chosen, DELETED)
        codes, texts = coded(chosen, LACKS)
        items = [set(text.split(",")) for text in texts]
        ids = {int(item) for each in items for item in each if item.isdigit()}
        lacking = {
            name: _coded_with(codes, (str(number) in each for each in items))
            for number in sorted(ids)
            for name in names_at_rest(collection, [number])
        }
        return cls(
            rows,
            point,
            transaction,
            ranks(chosen, [ORDER]),
            takes,
            takes & _coded_with(codes, (ONLY_KEY in each for each in items)),
            ~takes & _coded_with(codes, (BEFORE in each for each in items)),
            ~takes & _coded_with(codes, (READ in each for each in items)),
            {name: lacking[name] for name in value_columns(collection) if name in lacking},
        )

    def moved(self, key: Ints) -> Bools:
        """The rows of snapshots that are behind a message of their key which is later in the log."""
        return np.asarray(self.reads & _is_behind(key[self.rows], self.log))

    def effect(self, at: int) -> Effect:
        """What a message does to its key."""
        if self.takes[at]:
            return Effect.TAKE_ANY if self.has_only_key[at] else Effect.TAKE
        return Effect.REPLACE if self.replaces[at] else Effect.PUT


def depends(facts: pa.RecordBatch, key: Ints, new: Bools) -> Bools:
    """For each key, of numbers from 0 that ascend, whether a fact of it may depend on others of it."""
    answer = np.zeros(int(key[-1]) + 1 if len(key) else 0, bool)
    _, point = _points(facts, key)
    answer[key[np.bincount(point)[point] > 1]] = True
    if facts.column(LACKS).null_count < facts.num_rows:
        codes, texts = coded(facts, LACKS)
        has_holes = _coded_with(codes, (any(map(str.isdigit, text)) for text in texts))
        answer[key[has_holes & ~_bools(facts, DELETED)]] = True
        reads = _coded_with(codes, (text.startswith(READ) for text in texts))
        answer |= known_reads(facts, key, new)
        rows = np.flatnonzero((np.bincount(key, reads) * (np.bincount(key) > 1) > 0)[key])
        log = ranks(facts.select([ORDER]).take(of_numbers(rows)), [ORDER])
        answer[key[rows[reads[rows] & _is_behind(key[rows], log)]]] = True
    return answer


def known_reads(facts: pa.RecordBatch, key: Ints, new: Bools) -> Bools:
    """For each key whether a row of a snapshot is known of it, which may be spent."""
    codes, texts = coded(facts, LACKS)
    reads = _coded_with(codes, (text.startswith(READ) for text in texts))
    return np.bincount(key, reads & ~new) > 0


def _is_behind(key: Ints, log: Ints) -> Bools:
    """Where a fact is behind one of its key that is later in the log."""
    number = key * (int(log.max(initial=0)) + 1) + log
    return np.asarray(np.maximum.accumulate(number) > number)


def coded(facts: pa.RecordBatch, name: str) -> tuple[Ints, list[str]]:
    """For each fact the number of its text, -1 for none; and the texts."""
    encoded = contiguous(facts.column(name)).dictionary_encode()
    codes = np.asarray(values(pc.fill_null(encoded.indices, -1).cast(pa.int64())), np.int64)
    return codes, encoded.dictionary.to_pylist()


def _coded_with(codes: Ints, chosen: Iterable[bool]) -> Bools:
    return np.array([*chosen, False])[codes]


def _points(facts: pa.RecordBatch, key: Ints) -> tuple[Ints, Ints]:
    """For each fact, in order of keys, the number of its transaction, and that of its point."""
    transaction, names = coded(facts, TRANSACTION)
    pairs = np.where(transaction < 0, -1 - np.arange(len(key)), key * max(1, len(names)) + transaction)
    ascends = pairs[1:] >= pairs[:-1]
    if ascends.all():  # as where each key has one transaction
        return transaction, np.cumsum(np.append(True, pairs[1:] > pairs[:-1])[: len(pairs)]) - 1
    return transaction, np.unique(pairs, return_inverse=True)[1]


def _bools(facts: pa.RecordBatch, name: str) -> Bools:
    return np.asarray(values(contiguous(facts.column(name))), bool)
