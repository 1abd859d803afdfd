"""How far the known facts of keys are looked up: to the first that happened after all that is new.

What a new fact changes ends with the next fact of its key. So where one is known that happened after all of a key's
facts that are new or retracted, what happened after that one is as it was, and need not be read. Parts are asked in
order of what they begin with, so of a correction of long ago mostly those of the days around it are.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from tidemark.arrow.rows.arrays import of_bools
from tidemark.arrow.rows.columns import Ints, integers
from tidemark.arrow.rows.order import ranks
from tidemark.arrow.rows.schema import EVENT_TIME
from tidemark.model.batch import Part

NEVER = np.iinfo(np.int64).max


class Following:
    """Narrows a look-up of known facts that are said (`Lookup.rows_of`), of distinct `keys` in order."""

    def __init__(self, keys: pa.RecordBatch) -> None:
        self._keys = keys
        self._last = np.full(keys.num_rows, -1)
        self._next = np.full(keys.num_rows, NEVER)

    def changes(self, numbers: Ints, event_times: Ints) -> None:
        """Facts of keys, by their numbers, that are new or retracted: all of them come before the look-up."""
        np.maximum.at(self._last, numbers, event_times)

    def changes_of(self, rows: pa.RecordBatch) -> None:
        """The same of rows."""
        self.changes(self._numbers(rows), integers(rows, EVENT_TIME))

    def asked(self, part: Part) -> pa.RecordBatch:
        """The keys to look up in a part that begins no earlier than those asked before."""
        open_ = self._next >= part.first_event_time
        return self._keys if open_.all() else self._keys.filter(of_bools(open_))

    def found(self, rows: pa.RecordBatch) -> None:
        """Facts that are known."""
        numbers, event_times = self._numbers(rows), integers(rows, EVENT_TIME)
        later = event_times > self._last[numbers]
        np.minimum.at(self._next, numbers[later], event_times[later])

    def _numbers(self, rows: pa.RecordBatch) -> Ints:
        names = self._keys.schema.names
        both = ranks(pa.concat_batches([self._keys, rows.select(names).cast(self._keys.schema)]), names)
        numbers = np.empty(int(both.max(initial=-1)) + 1, np.int64)
        numbers[both[: self._keys.num_rows]] = np.arange(self._keys.num_rows)
        return numbers[both[self._keys.num_rows :]]
