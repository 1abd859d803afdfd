"""The law of model/fact.py on arrays: from the facts of many keys to the updates by which new ones change history.

Keys are numbers in order; a value is the number of a row that holds it. Facts that come after all known ones of their
key, learned in the order they happened (nearly all), are resolved in one sweep; keys with others go through the
model's law one by one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tidemark.arrow.rows.columns import Bools, Ints
from tidemark.model.fact import Fact, resolve

NOTHING = -1
"""The number of no value: a tombstone, or nothing held."""


@dataclass(frozen=True)
class Facts:
    """Facts in order of (key, place); `value` is NOTHING for a tombstone, `new` False for those resolved before."""

    key: Ints
    value: Ints
    time: Ints
    event_time: Ints
    new: Bools


@dataclass(frozen=True)
class Changes:
    """Updates in no order, not consolidated: rows of equal values still count as different values."""

    key: Ints
    value: Ints
    time: Ints
    event_time: Ints
    diff: Ints


def changes_of(facts: Facts, base: Ints) -> Changes:
    """How new facts change the history of their keys.

    `base` gives for each key the value held before its oldest fact, or NOTHING.
    """
    slow = _out_of_order(facts, len(base))
    swept = _sweep(facts, base, slow)
    if not slow.any():
        return swept
    others = _one_by_one(facts, base, slow)
    return Changes(*(np.concatenate(pair) for pair in zip(_columns(swept), _columns(others), strict=True)))


def _columns(changes: Changes) -> tuple[Ints, ...]:
    return changes.key, changes.value, changes.time, changes.event_time, changes.diff


def _out_of_order(facts: Facts, keys: int) -> Bools:
    """The keys with a new fact before a known one, or before a new one that was learned earlier."""
    wrong = facts.new[:-1] & (~facts.new[1:] | (facts.time[1:] < facts.time[:-1]))
    wrong &= facts.key[1:] == facts.key[:-1]
    slow = np.zeros(keys, bool)
    slow[facts.key[1:][wrong]] = True
    return slow


def _sweep(facts: Facts, base: Ints, slow: Bools) -> Changes:
    """Each new fact replaces the value of the fact before it."""
    before = np.empty_like(facts.value)
    before[1:] = facts.value[:-1]
    first = np.ones(len(before), bool)
    first[1:] = facts.key[1:] != facts.key[:-1]
    before[first] = base[facts.key[first]]
    swept = facts.new & ~slow[facts.key]
    minus, plus = swept & (before != NOTHING), swept & (facts.value != NOTHING)

    def both(less: Ints, more: Ints) -> Ints:
        return np.concatenate([less[minus], more[plus]])

    ones = np.ones(len(before), np.int64)
    return Changes(
        both(facts.key, facts.key),
        both(before, facts.value),
        both(facts.time, facts.time),
        both(facts.event_time, facts.event_time),
        both(-ones, ones),
    )


def _one_by_one(facts: Facts, base: Ints, slow: Bools) -> Changes:
    told = np.flatnonzero(slow[facts.key])
    columns = (facts.key[told], facts.value[told], facts.time[told], facts.event_time[told])
    cells = zip(*(column.tolist() for column in columns), strict=True)
    each = [Fact((key,), _value(row), t, e, (place,)) for place, (key, row, t, e) in enumerate(cells)]
    new, before = facts.new[told].tolist(), base[slow].tolist()
    bounds = np.flatnonzero(np.append(True, np.diff(columns[0]) != 0)).tolist()
    updates = []
    for start, end, held in zip(bounds, [*bounds[1:], len(each)], before, strict=True):
        known = [each[at] for at in range(start, end) if not new[at]]
        updates += resolve(_value(held), known, [each[at] for at in range(start, end) if new[at]])
    flat = np.array([(u.key[0], u.value[0], u.time, u.event_time, u.diff) for u in updates], np.int64)
    return Changes(*flat.reshape(-1, 5).T)


def _value(row: int) -> tuple[int] | None:
    return None if row == NOTHING else (row,)
