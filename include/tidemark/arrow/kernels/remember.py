"""Merging remembered facts: a set, in one streaming merge in order of their places (plan/remember.py)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from tidemark.arrow.kernels.merge import BUFFERED_ROWS, Piece, Run, Tally, chained, pieces_of, rounds
from tidemark.arrow.kernels.retracted import retracts, signed, signed_schema, write_signed
from tidemark.arrow.rows.columns import integers, replaced
from tidemark.arrow.rows.consolidate import consolidated
from tidemark.arrow.rows.cuts import PIECE_BYTES, sorted_pieces
from tidemark.arrow.rows.digest import digest
from tidemark.arrow.rows.order import sort, starts
from tidemark.arrow.rows.schema import DIFF, EVENT_TIME, TIME, facts_schema, said_columns, sort_columns
from tidemark.model.batch import DIGEST_MODULUS, Part
from tidemark.plan.tasks import RememberTask, WriteAnswer
from tidemark.storage.stores.store import ObjectStore

LONG_AGO = 0
"""The time that remembered facts have once they are merged: it is below every trace upper."""


@dataclass
class KeptTally(Tally):
    """Also the sum of what stays."""

    kept: int = 0

    def keep(self, facts: pa.RecordBatch, sign: int) -> None:
        """Count facts that stay, said (+1) or retracted (-1)."""
        self.kept = (self.kept + sign * digest(facts)) % DIGEST_MODULUS


def remember_range(store: ObjectStore, task: RememberTask) -> WriteAnswer:
    """Write the task's facts that stay: facts that are said and facts that are retracted, in separate parts.

    Raises Corruption if a part is not what was recorded.
    """
    tally = KeptTally()
    parts = write_signed(store, task.collection, task.prefix, remaining_facts(store, task, tally))
    return WriteAnswer(parts, tally.rows, tally.digest, tally.fetched.bytes, tally.kept)


def remaining_facts(
    store: ObjectStore, task: RememberTask, tally: KeptTally, *, buffered_rows: int = BUFFERED_ROWS
) -> Iterator[pa.RecordBatch]:
    """The facts that stay, in order, each with a `_diff` of 1 or -1."""
    order = sort_columns(task.collection, facts=True)
    said = [*order, *said_columns(task.collection)]
    chains = chained(task.parts)
    capacity = buffered_rows // max(1, len(chains))
    runs = [Run(_pieces(store, chain, task, tally, capacity), order, capacity) for chain in chains]
    for batches in rounds(runs, lambda kept: kept):
        for rows in sorted_pieces(batches, order, together=order, resort=False, most=PIECE_BYTES):
            if (left := _summed(rows, order, said)).num_rows:
                yield left


def _pieces(
    store: ObjectStore, chain: Sequence[Part], task: RememberTask, tally: KeptTally, capacity: int
) -> Iterator[Piece]:
    schema, with_sign = facts_schema(task.collection), signed_schema(task.collection)

    def prepare(part: Part, rows: pa.RecordBatch) -> pa.RecordBatch:
        tally.add(rows)
        happened = integers(rows, EVENT_TIME)
        kept = rows if (happened >= task.horizon).all() else rows.filter(pa.array(happened >= task.horizon))
        forgetful = replaced(kept, TIME, np.full(kept.num_rows, LONG_AGO))
        sign = -1 if retracts(part) else 1
        tally.keep(forgetful, sign)
        return signed(forgetful, with_sign, sign)

    return pieces_of(
        store,
        chain,
        task.keys,
        capacity,
        schema=lambda _: schema,
        prepare=prepare,
        key_columns=[column.name for column in task.collection.key],
        fetched=tally.fetched,
    )


def _summed(rows: pa.RecordBatch, order: Sequence[str], said: Sequence[str]) -> pa.RecordBatch:
    """The facts, summed up. What retracts a fact may be in a batch that is not merged with these: then the fact may be
    said twice here."""
    if starts(rows, order).all():
        return rows
    sums = consolidated(sort(rows, said), said)
    times = integers(sums, DIFF)
    each = sums.take(pa.array(np.repeat(np.arange(sums.num_rows), np.abs(times))))
    return replaced(each, DIFF, np.repeat(np.sign(times), np.abs(times)))
