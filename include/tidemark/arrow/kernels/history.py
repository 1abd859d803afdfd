"""The law of model/fact.py on arrays: from the facts of many keys to the updates by which new ones change history.

Keys are numbers in order; a value is the number of a row that holds it. Facts that come after all known ones of their
key, learned in the order they happened (nearly all), are resolved in one sweep. Of keys with others, or of which facts
are retracted, the history before is compared with the one after, where all was learned at one time, as late rows and
corrections are; the few that are left go through the model's law one by one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tidemark.arrow.rows.columns import Bools, Ints
from tidemark.model.fact import Fact, resolve

NOTHING = -1
"""The number of no value: a tombstone, or nothing stored."""


@dataclass(frozen=True)
class Facts:
    """Facts in order of (key, place); `value` is NOTHING for a tombstone, `new` False for those resolved before.

    Where some are retracted (`diff` -1; those are new), `place` numbers the places, and `same` is for each fact the
    first row that says the same at its place, whose number `value` is, too. None of the three: there are none, and
    every fact has a place of its own.
    """

    key: Ints
    value: Ints
    time: Ints
    event_time: Ints
    new: Bools
    diff: Ints | None = None
    place: Ints | None = None
    same: Ints | None = None


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

    `base` gives for each key the value before its oldest fact, or NOTHING.
    """
    slow = out_of_order(facts, len(base))
    swept = _sweep(facts, base, slow)
    if not slow.any():
        return swept
    at_once = _learned_at_once(facts, slow)
    found = [swept, _compared(facts, base, at_once)]
    if (others := slow & ~at_once).any():
        found.append(_one_by_one(facts, base, others))
    return Changes(*(np.concatenate(some) for some in zip(*map(_columns, found), strict=True)))


def _columns(changes: Changes) -> tuple[Ints, ...]:
    return changes.key, changes.value, changes.time, changes.event_time, changes.diff


def out_of_order(facts: Facts, keys: int) -> Bools:
    """The keys with a new fact before a known one, or before a new one that was learned earlier, or retracted."""
    wrong = facts.new[:-1] & (~facts.new[1:] | (facts.time[1:] < facts.time[:-1]))
    wrong &= facts.key[1:] == facts.key[:-1]
    slow = np.zeros(keys, bool)
    slow[facts.key[1:][wrong]] = True
    if facts.diff is not None:
        slow[facts.key[facts.diff < 0]] = True
    return slow


def _learned_at_once(facts: Facts, slow: Bools) -> Bools:
    """Of the slow keys those whose new facts were learned at one time."""
    new = np.flatnonzero(facts.new & slow[facts.key])
    keys, times = facts.key[new], facts.time[new]
    begins = np.flatnonzero(np.append(True, keys[1:] != keys[:-1]))
    one = np.minimum.reduceat(times, begins) == np.maximum.reduceat(times, begins)
    at_once = np.zeros_like(slow)
    at_once[keys[begins[one]]] = True
    return at_once


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


def _compared(facts: Facts, base: Ints, wanted: Bools) -> Changes:
    """The history after minus the one before, of keys whose new facts were learned at one time."""
    rows = np.flatnonzero(wanted[facts.key])
    diff = np.ones(len(rows), np.int64) if facts.diff is None else facts.diff[rows]
    distinct, number = np.unique(rows if facts.same is None else facts.same[rows], return_inverse=True)
    before, after = np.zeros(len(distinct), np.int64), np.zeros(len(distinct), np.int64)
    np.add.at(before, number, np.where(facts.new[rows], 0, diff))
    np.add.at(after, number, diff)
    learned = np.zeros(len(base), np.int64)
    new = rows[facts.new[rows]]
    learned[facts.key[new]] = facts.time[new]

    follows = [_followed(facts.key[distinct], some > 0) for some in (before, after)]
    stays = (before > 0) & (after > 0) & (follows[0] == follows[1])
    found = [
        _said(facts, base, learned, distinct, follows[at], (some > 0) & ~stays, sign)
        for at, (some, sign) in enumerate(((before, -1), (after, +1)))
    ]
    return Changes(*(np.concatenate(some) for some in zip(*map(_columns, found), strict=True)))


def _followed(key: Ints, contained: Bools) -> Ints:
    """For each fact that is contained the place of the one of its key that it follows, or NOTHING."""
    places = np.flatnonzero(contained)
    follows = np.full(len(contained), NOTHING)
    follows[places[1:]] = np.where(key[places[1:]] == key[places[:-1]], places[:-1], NOTHING)
    return follows


def _said(facts: Facts, base: Ints, learned: Ints, rows: Ints, follows: Ints, chosen: Bools, sign: int) -> Changes:
    """What the chosen facts change, each from what it follows, `sign` times."""
    key, event_time, value = facts.key[rows], facts.event_time[rows], facts.value[rows]
    before = np.where(follows == NOTHING, base[key], value[follows])
    minus, plus = chosen & (before != NOTHING), chosen & (value != NOTHING)

    def both(of_minus: Ints, of_plus: Ints) -> Ints:
        return np.concatenate([of_minus[minus], of_plus[plus]])

    signs = np.full(len(rows), sign)
    return Changes(
        both(key, key),
        both(before, value),
        both(learned[key], learned[key]),
        both(event_time, event_time),
        both(-signs, signs),
    )


def _one_by_one(facts: Facts, base: Ints, wanted: Bools) -> Changes:
    rows = np.flatnonzero(wanted[facts.key])
    place = rows if facts.place is None else facts.place[rows]
    diff = np.ones(len(rows), np.int64) if facts.diff is None else facts.diff[rows]
    columns = (facts.key[rows], facts.value[rows], facts.time[rows], facts.event_time[rows], place, diff)
    cells = zip(*(column.tolist() for column in columns), strict=True)
    each = [Fact((key,), _value(row), t, e, (at,), d) for key, row, t, e, at, d in cells]
    new, before = facts.new[rows].tolist(), base[wanted].tolist()
    bounds = np.flatnonzero(np.append(True, np.diff(columns[0]) != 0)).tolist()
    updates = []
    for start, end, row_before in zip(bounds, [*bounds[1:], len(each)], before, strict=True):
        known = [each[at] for at in range(start, end) if not new[at]]
        updates += resolve(_value(row_before), known, [each[at] for at in range(start, end) if new[at]])
    flat = np.array([(u.key[0], u.value[0], u.time, u.event_time, u.diff) for u in updates], np.int64)
    return Changes(*flat.reshape(-1, 5).T)


def _value(row: int) -> tuple[int] | None:
    return None if row == NOTHING else (row,)
