"""Facts that files say when read again, less those they have contributed: the difference of two readings, by groups.

The law is `restated` in model/reread.py: what a file says of a key at one event time and of one order is a group,
and one that differs is retracted whole and said again. Both sides are in order of their places, so one streaming merge
brings a group together; in memory are the rows of a round, and all of a group.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidemark.arrow.kernels.merge import BUFFERED_ROWS, Piece, Run, chained, pieces_in_memory, pieces_of, rounds
from tidemark.arrow.kernels.retracted import retracts, signed, signed_schema
from tidemark.arrow.rows.columns import Bools, integers, replaced
from tidemark.arrow.rows.consolidate import consolidated, learned_at
from tidemark.arrow.rows.cuts import PIECE_BYTES, sorted_pieces
from tidemark.arrow.rows.order import sort, starts
from tidemark.arrow.rows.schema import DIFF, EVENT_TIME, FILE, TIME, facts_schema, keys_of, said_columns, sort_columns
from tidemark.errors import Corruption
from tidemark.model.batch import Part
from tidemark.plan.tasks import ALL_KEYS, RereadTask
from tidemark.storage.stores.store import ObjectStore

NOW = 0
"""The sign, while two readings are compared, of what the files say now; what they contributed has that of its part."""


def restatements(
    store: ObjectStore,
    task: RereadTask,
    in_memory: Sequence[pa.RecordBatch],
    spilled: Sequence[Part],
    *,
    leaving: Set[int] = frozenset(),
    buffered_rows: int = BUFFERED_ROWS,
) -> Iterator[pa.RecordBatch]:
    """The facts of a correction, in order, with a `_diff` of +1 or -1. What the files say now is `in_memory`, in
    order, and in the parts `spilled`; what those numbered `leaving` contributed is left as it is.

    Raises Corruption if what a file contributed does not say each fact once.
    """
    order = sort_columns(task.collection, facts=True)
    group = order[:-1]
    files = _files(task, leaving)
    sides: list[tuple[list[Part], dict[str, pa.Array] | None]] = [(chain, None) for chain in chained(spilled)]
    sides += [(chain, files) for chain in chained(part for some in task.contributed for part in some.parts)]
    capacity = buffered_rows // max(1, len(sides) + bool(in_memory))
    schema, with_sign = facts_schema(task.collection), signed_schema(task.collection)

    def read(chain: Sequence[Part], of: dict[str, pa.Array] | None) -> Iterator[Piece]:
        def prepare(part: Part, rows: pa.RecordBatch) -> pa.RecordBatch:
            sign = NOW if of is None else -1 if retracts(part) else 1
            some = rows if of is None else rows.filter(pc.is_in(rows.column(FILE), value_set=of[part.file.key]))
            return signed(learned_at(some, task.seal), with_sign, sign)

        keys = [column.name for column in task.collection.key]
        return pieces_of(store, chain, ALL_KEYS, capacity, schema=lambda _: schema, prepare=prepare, key_columns=keys)

    def said(rows: pa.RecordBatch) -> pa.RecordBatch:
        return signed(learned_at(rows, task.seal), with_sign, NOW)

    runs = [Run(read(chain, of), group, capacity) for chain, of in sides]
    runs += [Run(pieces_in_memory(in_memory, capacity, said), group, capacity)]
    for batches in rounds(runs, lambda some: some):
        for rows in sorted_pieces(batches, order, together=group, resort=False, most=PIECE_BYTES):
            if (found := _differing(_contributed_once(rows, task), task)).num_rows:
                yield found


def _files(task: RereadTask, leaving: Set[int]) -> dict[str, pa.Array]:
    """Of each part by its object the files whose facts count."""
    paths = {number: file.path for number, file in enumerate(task.files, task.first) if number not in leaving}
    return {
        part.file.key: pa.array([paths[new] for _, new in some.numbers if new in paths], pa.string())
        for some in task.contributed
        for part in some.parts
    }


def _contributed_once(rows: pa.RecordBatch, task: RereadTask) -> pa.RecordBatch:
    """The rows, in order, with what was contributed summed up: a row may have been due, and then only later."""
    diffs, order = integers(rows, DIFF), sort_columns(task.collection, facts=True)
    before = rows if (diffs != NOW).all() else rows.filter(pa.array(diffs != NOW))
    if (diffs >= 0).all() and starts(before, order).all():
        return rows
    columns = [*order, *said_columns(task.collection), TIME]
    sums = consolidated(sort(before, columns), columns)
    if (wrong := integers(sums, DIFF) != 1).any():
        row = int(np.argmax(wrong))
        raise Corruption(
            f"{sums.column(FILE)[row].as_py()} contributed a fact of key "
            f"{keys_of(sums, [row], len(task.collection.key))[0]} that happened at {integers(sums, EVENT_TIME)[row]} "
            f"{integers(sums, DIFF)[row]} times"
        )
    return sort(pa.concat_batches([sums, rows.filter(pa.array(diffs == NOW))]), order)


def _differing(rows: pa.RecordBatch, task: RereadTask) -> pa.RecordBatch:
    """The facts of the groups of which the two readings do not say the same in the same sequence."""
    if not rows.num_rows:
        return rows
    now = integers(rows, DIFF) == NOW
    group = np.cumsum(starts(rows, sort_columns(task.collection, facts=True)[:-1])) - 1
    counts = [np.bincount(group[side], minlength=group[-1] + 1) for side in (~now, now)]
    differs = counts[0] != counts[1]
    pairs = [np.flatnonzero(side & ~differs[group]) for side in (~now, now)]
    if len(pairs[0]):
        names = [*said_columns(task.collection), TIME]
        both = rows.select(names).take(pa.array(np.stack(pairs, axis=1).reshape(-1)))
        differs[group[pairs[0][starts(both, names)[1::2]]]] = True
    return _with_signs(rows, now, differs[group])


def _with_signs(rows: pa.RecordBatch, now: Bools, kept: Bools) -> pa.RecordBatch:
    found = replaced(rows, DIFF, np.where(now, 1, -1))
    return found if kept.all() else found.filter(pa.array(kept))
