"""The common points of model/transaction.py on arrays: single messages, and chains of them.

In a chain there is one row at a time: each is replaced or taken away before the next is put there. So what is there
before a message is what the message before it left. Where the messages of a key were learned in order, and each of its
points is a single one or such a chain, its points follow from neighbours, for all keys at once. The test that compares
this with the model's law is tests/pure/arrow/test_resolve_transactions.py.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidemark.arrow.kernels.history import NOTHING, Facts
from tidemark.arrow.kernels.messages import Messages
from tidemark.arrow.rows.arrays import bools_of, of_numbers, scalar_of
from tidemark.arrow.rows.columns import Bools, Ints, contiguous


@dataclass(frozen=True)
class Points:
    """The last messages of the points of common keys.

    Attributes:
        rows: Which facts they are.
        value: What is there from then on: a row of the facts, of those before, or of `filled`; or NOTHING.
        filled: Rows that had holes.
        keys: Of which keys these are values.
        common: Which keys are.
        unmatched: How many new before-images are of no row.
    """

    rows: Ints
    value: Ints
    filled: pa.RecordBatch
    keys: Ints
    common: Bools
    unmatched: int


class _Cells:
    """Columns of the facts and of the rows before them."""

    def __init__(self, facts: pa.RecordBatch, before: pa.RecordBatch, names: list[str]) -> None:
        of_both = ((name, contiguous(facts.column(name)), contiguous(before.column(name))) for name in names)
        self._columns = {name: pa.concat_arrays([own, older.cast(own.type)]) for name, own, older in of_both}

    def take(self, name: str, rows: Ints) -> pa.Array:
        """The values of some rows, null for those below 0."""
        return self._columns[name].take(of_numbers(rows, rows < 0))

    def equal(self, name: str, left: Ints, right: Ints) -> Bools:
        """Which of two rows each have equal values: null is equal to null, and NaN to NaN."""
        first, second = self.take(name, left), self.take(name, right)
        false = scalar_of(False, pa.bool_())
        answer = bools_of(pc.fill_null(pc.equal(first, second), false))
        answer = answer | (bools_of(first.is_null()) & bools_of(second.is_null()))
        if pa.types.is_floating(first.type):
            nan = [bools_of(pc.fill_null(pc.is_nan(each), false)) for each in (first, second)]
            answer |= nan[0] & nan[1]
        return answer


def points(
    messages: Messages,
    numbered: Facts,
    base: Ints,
    tables: tuple[pa.RecordBatch, pa.RecordBatch, list[str]],
    *,
    optional: set[str],
    law: Bools,
) -> Points:
    """The points of keys that are common.

    Args:
        messages: The facts of keys that depend on others.
        numbered: All facts.
        base: For each key the row before its facts.
        tables: The facts; the rows before them; and the names of value columns.
        optional: The columns that are null where no value is known.
        law: For each key whether it is known to need the model's law.
    """
    facts, before, names = tables
    rows, takes = messages.rows, messages.takes
    key = numbered.key[rows]
    is_first, begins = _starts(key), _starts(messages.point)
    ends = np.append(begins[1:], True)[: len(begins)]
    is_chain = ~(begins & ends)
    has_row = np.where(is_first, base[key] != NOTHING, ~_shifted(takes))
    wrong = law[key] | _in_parts(messages, numbered, begins)
    wrong |= is_chain & ~takes & ~messages.replaces & has_row
    is_update = ~begins & _shifted(takes) & (messages.log == _shifted(messages.log))
    alone = (begins & ~has_row) | ~(takes | messages.replaces | is_update)
    sources = {
        name: _sources(~takes & ~holes, is_first, alone, rows, base[key]) for name, holes in messages.holes.items()
    }
    has_takes = np.zeros(len(base), bool)
    has_takes[key[takes]] = True
    for name, holes in messages.holes.items():
        wrong |= ~takes & holes & (sources[name] < 0) & (has_takes[key] | (ends & (name not in optional)))
    cells = _Cells(facts, before, names)
    images = takes & ~messages.has_only_key
    equal = has_row & images
    at = np.flatnonzero(equal)
    row_before = np.where(is_first, base[key], _shifted(rows))
    for name in names:
        left = row_before if name not in sources else np.where(is_first, base[key], _shifted(sources[name]))
        lacks = messages.holes.get(name, np.zeros(len(rows), bool))  # in an image, what is no difference
        equal[at] &= lacks[at] | cells.equal(name, left[at], rows[at])
    wrong |= is_chain & images & ~equal
    common = np.ones(len(base), bool)
    common[key[wrong]] = False

    counted = common[key]
    unmatched = np.count_nonzero(counted & numbered.new[rows] & images & ~is_chain & ~equal)
    last = np.flatnonzero(ends & counted)
    value = np.where(takes[last], NOTHING, rows[last])
    lacking = np.zeros(len(rows), bool)
    for holes in messages.holes.values():
        lacking |= holes & ~takes
    filled = last[lacking[last]]
    value[lacking[last]] = facts.num_rows + before.num_rows + np.arange(len(filled))
    columns = [cells.take(name, sources.get(name, rows)[filled]) for name in names]
    batch = pa.RecordBatch.from_arrays(columns, schema=facts.select(names).schema)
    return Points(rows[last], value, batch, key[filled], common, int(unmatched))


def _starts(numbers: Ints) -> Bools:
    starts = np.ones(len(numbers), bool)
    starts[1:] = numbers[1:] != numbers[:-1]
    return starts


def _shifted(column: Ints | Bools) -> Ints:
    """Of each message what the one before it has."""
    return np.concatenate([column[:1], column[:-1]])


def _in_parts(messages: Messages, numbered: Facts, begins: Bools) -> Bools:
    """Find messages of points that are not next to one another, or of several times, or that were delivered twice."""
    rows, inside = messages.rows, ~begins
    event_time, new, time = (column[rows] for column in (numbered.event_time, numbered.new, numbered.time))
    wrong = inside & ((event_time != _shifted(event_time)) | (new != _shifted(new)))
    wrong |= inside & new & (time != _shifted(time))
    wrong |= inside & (messages.log == _shifted(messages.log)) & ~(_shifted(messages.takes) & ~messages.takes)
    wrong |= begins & (np.bincount(messages.point[begins]) > 1)[messages.point]
    return np.asarray(wrong)


def _sources(has: Bools, is_first: Bools, alone: Bools, rows: Ints, base: Ints) -> Ints:
    """For each message the row that its value of a column is of: its own, else one before it in its key; -1 for none.

    Args:
        has: Which messages have a value.
        is_first: Which are the first of their key.
        alone: Which have nothing of the row before them: there is none, or they only came to their key.
        rows: Of each the row of its facts.
        base: Of each the row before its key's first one.
    """
    at = np.maximum.accumulate(np.where(has | is_first | alone, np.arange(len(rows)), 0))
    return np.where(has[at], rows[at], np.where(is_first[at] & ~alone[at], base[at], -1))
