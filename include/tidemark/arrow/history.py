"""The law of model/fact.py on arrays: from the facts of many keys to the updates by which new ones change history.

Keys and values are numbers that order as they do. Facts that come after all known ones of their key, learned in the
order they happened (nearly all), are resolved in one sweep; keys with others go through the model's law one by one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from tidemark.arrow.columns import Bools, Ints
from tidemark.arrow.consolidate import consolidated
from tidemark.arrow.order import sort
from tidemark.arrow.schema import DIFF, EVENT_TIME, TIME
from tidemark.model.fact import Fact, resolve

KEY = "key"
VALUE = "value"
NOTHING = -1
"""The number of no value: a tombstone, or nothing held."""

_COLUMNS = (KEY, VALUE, TIME, EVENT_TIME)


@dataclass(frozen=True)
class Facts:
    """Facts in order of (key, place); `value` is NOTHING for a tombstone, `new` False for those resolved before."""

    key: Ints
    value: Ints
    time: Ints
    event_time: Ints
    new: Bools


def updates_of(facts: Facts, base: Ints) -> pa.RecordBatch:
    """The consolidated updates, in order, as columns `key`, `value` (numbers), `_time`, `_event_time`, `_diff`.

    `base` gives for each key the value held before its oldest fact, or NOTHING.
    """
    slow = _out_of_order(facts, len(base))
    rows = pa.concat_batches([_sweep(facts, base, slow), _one_by_one(facts, base, slow)])
    return consolidated(sort(rows, _COLUMNS), _COLUMNS)


def _out_of_order(facts: Facts, keys: int) -> Bools:
    """The keys with a new fact before a known one, or before a new one that was learned earlier."""
    wrong = facts.new[:-1] & (~facts.new[1:] | (facts.time[1:] < facts.time[:-1]))
    wrong &= facts.key[1:] == facts.key[:-1]
    slow = np.zeros(keys, bool)
    slow[facts.key[1:][wrong]] = True
    return slow


def _sweep(facts: Facts, base: Ints, slow: Bools) -> pa.RecordBatch:
    """Each new fact replaces the value of the fact before it."""
    before = np.empty_like(facts.value)
    before[1:] = facts.value[:-1]
    first = np.ones(len(before), bool)
    first[1:] = facts.key[1:] != facts.key[:-1]
    before[first] = base[facts.key[first]]
    changed = facts.new & ~slow[facts.key] & (before != facts.value)
    minus, plus = changed & (before != NOTHING), changed & (facts.value != NOTHING)

    def both(less: Ints, more: Ints) -> Ints:
        return np.concatenate([less[minus], more[plus]])

    ones = np.ones(len(before), np.int64)
    return _rows(
        both(facts.key, facts.key),
        both(before, facts.value),
        both(facts.time, facts.time),
        both(facts.event_time, facts.event_time),
        both(-ones, ones),
    )


def _one_by_one(facts: Facts, base: Ints, slow: Bools) -> pa.RecordBatch:
    updates = []
    for key in np.flatnonzero(slow).tolist():
        start, end = np.searchsorted(facts.key, [key, key + 1]).tolist()
        told = [_fact(facts, row) for row in range(start, end)]
        new = facts.new[start:end].tolist()
        updates += resolve(
            _value(int(base[key])),
            [fact for fact, is_new in zip(told, new, strict=True) if not is_new],
            [fact for fact, is_new in zip(told, new, strict=True) if is_new],
        )
    flat = np.array([(u.key[0], u.value[0], u.time, u.event_time, u.diff) for u in updates], np.int64)
    return _rows(*flat.reshape(-1, 5).T)


def _fact(facts: Facts, row: int) -> Fact:
    """A fact as the model has it; its row number orders it among those of one event time."""
    value = _value(int(facts.value[row]))
    return Fact((int(facts.key[row]),), value, int(facts.time[row]), int(facts.event_time[row]), (row,))


def _value(number: int) -> tuple[int] | None:
    return None if number == NOTHING else (number,)


def _rows(key: Ints, value: Ints, time: Ints, event_time: Ints, diff: Ints) -> pa.RecordBatch:
    columns = [np.ascontiguousarray(column) for column in (key, value, time, event_time, diff)]
    return pa.RecordBatch.from_arrays([pa.array(column) for column in columns], names=[*_COLUMNS, DIFF])
