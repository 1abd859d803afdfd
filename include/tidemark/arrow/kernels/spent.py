"""Which keys have a known row of a snapshot that may be spent (model/transaction.py): another row is stored.

This is asked of all keys with such rows at once; the model's law then says which rows are.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from tidemark.arrow.kernels.history import NOTHING, Facts
from tidemark.arrow.kernels.points import Points
from tidemark.arrow.rows.arrays import of_numbers
from tidemark.arrow.rows.columns import Bools, Ints, integers
from tidemark.arrow.rows.cuts import gathered
from tidemark.arrow.rows.order import ranks
from tidemark.arrow.rows.schema import DIFF, EVENT_TIME


def may_be_spent(
    reads: Bools, numbered: Facts, base: Ints, common: Points, *, tables: tuple[pa.RecordBatch, ...], after_keys: Ints
) -> Bools:
    """For each key whether the rows stored at the times of known rows of snapshots are not those of its points.

    Args:
        reads: Which facts are rows of snapshots.
        numbered: The facts.
        base: For each key the row before its facts.
        common: The points of the keys that are asked.
        tables: The facts, the rows before them, and updates behind the horizon in order of their keys.
        after_keys: The keys of these.
    """
    answer = np.zeros(len(base), bool)
    is_known = ~numbered.new[common.rows]
    rows, value = common.rows[is_known], common.value[is_known]
    at = np.flatnonzero(reads[rows])
    if not len(at):
        return answer
    key, event_time = numbered.key[rows], numbered.event_time[rows]
    is_last = np.append((key[1:] != key[:-1]) | (event_time[1:] != event_time[:-1]), True)
    lasts = np.flatnonzero(is_last)
    expected = value[lasts[np.searchsorted(lasts, at)]]
    keys, times = key[at], event_time[at]

    facts, before, after = tables
    first, end = (np.searchsorted(after_keys, keys, side) for side in ("left", "right"))
    number = np.repeat(np.arange(len(at)), end - first)
    update = np.arange(len(number)) - np.repeat(np.cumsum(end - first) - (end - first), end - first) + first[number]
    in_time = integers(after, EVENT_TIME)[update] <= times[number]
    number, update = number[in_time], update[in_time]
    has_base, has_row = np.flatnonzero(base[keys] != NOTHING), np.flatnonzero(expected != NOTHING)
    names = common.filled.schema.names
    own = [table.select(names).cast(common.filled.schema) for table in (facts, before)]
    wanted = np.concatenate([base[keys[has_base]], expected[has_row]])
    cells = [gathered([*own, common.filled], wanted), after.select(names).take(of_numbers(update))]
    rank = ranks(pa.concat_batches([cells[0], cells[1].cast(cells[0].schema)]), names)
    # Added up, what is stored must be what is expected, and nothing else.
    numbers = np.concatenate([has_base, has_row, number])
    sums = np.concatenate([np.ones(len(has_base)), -np.ones(len(has_row)), integers(after, DIFF)[update]])
    _, pair = np.unique(numbers * (int(rank.max(initial=0)) + 1) + rank, return_inverse=True)
    left = np.bincount(pair, sums)[pair] != 0
    answer[keys[numbers[left]]] = True
    return answer
