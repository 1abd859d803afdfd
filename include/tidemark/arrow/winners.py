"""What is asked of the latest rows of keys, and which of some rows they are.

A row with a negative multiplicity refuses the read unless the latest row is later: then whatever is missing of it
cannot be the latest. So the refusal depends on the rows at the answer's time and after it alone, and a read that does
not open what is before them refuses the same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from tidemark.arrow.kernels.latest import has_value, newest, plain_times
from tidemark.arrow.rows.arrays import of_numbers
from tidemark.arrow.rows.columns import Ints, integers
from tidemark.arrow.rows.plain import plain_values
from tidemark.arrow.rows.schema import DIFF, updates_schema
from tidemark.arrow.runs import Keep
from tidemark.errors import InvalidUsage
from tidemark.model.collection import Collection

AT = "_at"
"""What is behind the name of a column for the time of its value, and what the time of a whole row is called beside a
probe."""
Target = str | None
"""What is looked for: the latest row, or the latest value of a column."""


@dataclass(frozen=True)
class Latest:
    """The latest row of each key by `timeline`, in the columns `shown`; with `each` the latest value of each of them.

    Between rows of one time those decide that are greater in the columns `ties`. Of rows that `keep` (None: all) leaves
    once it has looked at the columns `looked_at`; they are `of_one_key` if it leaves those of one key alone.
    """

    timeline: str
    ties: tuple[str, ...]
    shown: tuple[str, ...]
    each: bool
    looked_at: tuple[str, ...] = ()
    keep: Keep | None = None
    of_one_key: bool = False

    def read(self, collection: Collection) -> list[str]:
        """The columns that are read, in their order at rest: the key, and of the value all up to the last one that is
        looked at. Rows that differ only in columns behind it have the same answer."""
        needed = {self.timeline, *self.ties, *self.shown, *self.looked_at}
        value = [column.name for column in collection.stored_value if column not in collection.unseen]
        last = max(at for at, name in enumerate(value) if name in needed)
        return [*(column.name for column in collection.key), *value[: last + 1]]

    def values(self, collection: Collection) -> list[str]:
        """The columns shown that have a time of their own: with `each` all of the value but the timeline."""
        key = {column.name for column in collection.key}
        return [name for name in self.shown if self.each and name not in key and name != self.timeline]

    def targets(self, collection: Collection) -> list[Target]:
        """What is looked for in the rows of each key."""
        return [None, *self.values(collection)]


def latest_schema(collection: Collection, ask: Latest) -> pa.Schema:
    """The columns shown; with `each` behind each of the value when that was so."""
    schema, own = updates_schema(collection), ask.values(collection)
    at = schema.field(ask.timeline).type
    fields: list[pa.Field] = []
    for name in ask.shown:
        fields += [schema.field(name), pa.field(f"{name}{AT}", at)] if name in own else [schema.field(name)]
    return pa.schema([field.remove_metadata() for field in fields])


@dataclass(frozen=True)
class Winners:
    """Of some rows of whole keys, by what is looked for: the place of the latest row of each key with a positive
    multiplicity, and of the latest one with a negative one, if any row has it; -1 where there is none."""

    rows: pa.RecordBatch
    latest: dict[Target, Ints]
    below: dict[Target, Ints]

    @property
    def places(self) -> Ints:
        """The rows that win, and those that refuse unless a later row comes, in order."""
        places = np.unique(np.concatenate([*self.latest.values(), *self.below.values()]))
        return places[places >= 0]

    def check(self, collection: Collection, ask: Latest) -> None:
        """Raise InvalidUsage for a key whose latest row cannot be said."""
        check_below_zero(self.rows, ask.timeline, [column.name for column in collection.key], self.latest, self.below)

    def answer(self, collection: Collection, ask: Latest) -> pa.RecordBatch:
        """In the columns of `latest_schema`, a row for each key. Raises InvalidUsage as `check`."""
        self.check(collection, ask)
        columns = [of for name in ask.shown for of in self._shown(name, ask.timeline)]
        return pa.RecordBatch.from_arrays(columns, schema=latest_schema(collection, ask))

    def _shown(self, name: str, timeline: str) -> list[pa.Array]:
        """A column of the answer, with its times behind it where it has any."""
        own = name in self.latest
        places = self.latest[name if own else None]
        at = of_numbers(places, places < 0)
        return [self.rows.column(column).take(at) for column in ((name, timeline) if own else (name,))]


def winners_of(rows: pa.RecordBatch, collection: Collection, ask: Latest, targets: Sequence[Target]) -> Winners:
    """The winners of some rows of whole keys, all of which have a time, with the multiplicity of each as `_diff`:
    never 0."""
    key = [column.name for column in collection.key]
    diffs = integers(rows, DIFF)
    latest, below = dict[Target, Ints](), dict[Target, Ints]()
    is_below = diffs < 0
    some_are = is_below.any()
    for target in targets:
        among = np.ones(rows.num_rows, bool) if target is None else has_value(rows, target)
        latest[target] = newest(rows, key, ask.timeline, ask.ties, among & ~is_below if some_are else among)
        if some_are:
            below[target] = newest(rows, key, ask.timeline, ask.ties, among & is_below)
    return Winners(rows, latest, below)


def check_below_zero(
    rows: pa.RecordBatch, timeline: str, key: Sequence[str], latest: Mapping[Target, Ints], below: Mapping[Target, Ints]
) -> None:
    """Raise InvalidUsage, naming the key, where a row of `latest` is not later than the one of `below` beside it,
    whose multiplicity is negative: by what is looked for, places of rows, -1 where there is none."""
    times = plain_times(rows.column(timeline))
    for target, places in below.items():
        wrong = places[(places >= 0) & ((latest[target] < 0) | (times[places] >= times[latest[target]]))]
        if len(wrong):
            row = int(wrong[0])
            named = ", ".join(f"{name}={plain_values(rows.column(name).slice(row, 1))[0]!r}" for name in key)
            raise InvalidUsage(
                f"a row of the key {named} has a negative multiplicity, so its latest row is not "
                "known; correct the source, or leave the key out by a condition"
            )
