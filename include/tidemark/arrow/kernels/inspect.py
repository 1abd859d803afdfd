"""Reading one part in full and reporting what is really in it: the evidence of gates and of `verify --data`."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import accumulate

import numpy as np
import pyarrow as pa

from tidemark.arrow.parts.reader import OpenedPart, readable
from tidemark.arrow.parts.recount import Recount
from tidemark.arrow.rows.columns import Bools, Ints, integers
from tidemark.arrow.rows.digest import digest
from tidemark.arrow.rows.fields import is_earlier
from tidemark.arrow.rows.layout import buckets
from tidemark.arrow.rows.order import neighbours
from tidemark.arrow.rows.schema import (
    BUCKET,
    DIFF,
    EVENT_TIME,
    TIME,
    facts_schema,
    key_at_rest,
    keys_of,
    some_of,
    sort_columns,
    updates_schema,
    without_source,
)
from tidemark.errors import Corruption
from tidemark.model.batch import DIGEST_MODULUS, ObjectRef, Part
from tidemark.model.key import Key
from tidemark.plan.tasks import AuditAnswer, ChecksumAnswer, ChecksumTask, InspectAnswer, InspectTask
from tidemark.storage.stores.store import Missing, ObjectStore

CHUNK_BYTES = 2**20
GROUPS_AT_ONCE = 4


def inspect_part(store: ObjectStore, task: InspectTask) -> InspectAnswer:
    """What the part's file and rows are; a part without rows has no keys and time bounds of 0.

    Raises Corruption if the file is missing, cannot be read, or has another size or other row groups than recorded.
    """
    file = _hashed(store, task.part)
    with OpenedPart(store, task.part) as part:
        found, bounds = _Findings(task, part.schema), Recount(part, len(key_at_rest(task.collection)))
        groups = range(len(task.part.groups))
        for start in range(0, len(groups), GROUPS_AT_ONCE):
            some = groups[start : start + GROUPS_AT_ONCE]
            rows, recorded = part.read(some), [task.part.groups[group] for group in some]
            found.add(rows, recorded)
            bounds.add(rows, [count for _, count in recorded])
        return replace(found.answer(file), misbounded=(*bounds.differences(), *found.misplaced_by_time()))


def audit_part(store: ObjectStore, task: InspectTask) -> AuditAnswer:
    """As inspect_part; Corruption is an answer."""
    try:
        return AuditAnswer(inspect_part(store, task))
    except Corruption as error:
        return AuditAnswer(None, str(error))


def checksums(store: ObjectStore, task: ChecksumTask) -> ChecksumAnswer:
    """The checksums of objects as they are."""
    return ChecksumAnswer(tuple(_checksum(store, key) for key in task.keys))


def _checksum(store: ObjectStore, key: str) -> str:
    try:
        return _read_whole(store, key).sha256
    except Missing:
        return ""


def _hashed(store: ObjectStore, part: Part) -> ObjectRef:
    """The size and SHA-256 the file really has."""
    with readable(part):
        return _read_whole(store, part.file.key)


def _read_whole(store: ObjectStore, key: str) -> ObjectRef:
    sha256, size = hashlib.sha256(), 0
    with store.open_input(key) as native:
        for chunk in _chunks(native):
            sha256.update(chunk)
            size += len(chunk)
    return ObjectRef(key, size, sha256.hexdigest())


def _chunks(native: pa.NativeFile) -> Iterator[bytes]:
    while chunk := native.read(CHUNK_BYTES):
        yield chunk


class _Findings:
    """Counts over the rows seen so far, in the columns they were written with; the last row is kept to compare the next
    one with."""

    def __init__(self, task: InspectTask, schema: pa.Schema) -> None:
        self._key_width = len(key_at_rest(task.collection))
        now = (facts_schema if task.facts else updates_schema)(task.collection)
        schema = some_of(schema, without_source(schema.names))
        same = schema.names == now.names
        self._fits = is_earlier(schema, now) if task.part.schema < task.collection.schema else same
        order = sort_columns(task.collection, facts=task.facts)
        # Names may be other ones today, places are not: facts are in order of their key and of Tidemark's columns.
        own = order[self._key_width :] if task.facts else schema.names[self._key_width : -1]
        self._never_null = [at for at in range(self._key_width) if not now.field(at).nullable]
        self._order = (*schema.names[: self._key_width], *own)
        self.columns = tuple(now.names if self._fits else schema.names)
        self._last: pa.RecordBatch | None = None
        self._first: pa.RecordBatch | None = None
        self._misplaced = self._misbucketed = 0
        self._layout = task.collection.layout
        self._placed_by = schema.names[now.get_field_index(self._layout.by)] if self._layout and self._fits else ""
        self._added = self._retracted = 0
        self._cancels = task.part.cancels
        self._sum = self._uncancelled = 0
        self._rows = self._digest = self._null_keys = self._zero_diffs = self._unsorted = self._repeated = 0
        self._times: list[int] = []
        self._event_times: list[int] = []

    def add(self, batch: pa.RecordBatch, groups: Sequence[tuple[Key, int]]) -> None:
        """Take the rows of some row groups, recorded as (first key, rows) each."""
        if not batch.num_rows:
            return
        self._rows += batch.num_rows
        if not self._fits:
            return
        self._digest = (self._digest + digest(batch)) % DIGEST_MODULUS
        begins = [0, *accumulate(rows for _, rows in groups[:-1])]
        firsts = keys_of(batch, begins, self._key_width)
        self._misplaced += sum(tuple(key) != found for (key, _), found in zip(groups, firsts, strict=True))
        if self._layout is not None:
            wrong = integers(batch, BUCKET) != buckets(batch.column(self._placed_by), self._layout)
            self._misbucketed += int(np.count_nonzero(wrong))
        self._null_keys += sum(batch.column(at).null_count for at in self._never_null)
        if DIFF in batch.schema.names:
            diffs = integers(batch, DIFF)
            self._zero_diffs += int(np.count_nonzero(diffs == 0))
            self._added += int(diffs[diffs > 0].sum())
            self._retracted -= int(diffs[diffs < 0].sum())
        for name, bounds in ((TIME, self._times), (EVENT_TIME, self._event_times)):
            times = integers(batch, name)
            bounds += [int(times.min()), int(times.max())]
        joined = batch if self._last is None else pa.concat_batches([self._last, batch])
        first_of_value = self._in_order(joined)
        if self._cancels:
            self._add_up(integers(batch, DIFF), first_of_value[joined.num_rows - batch.num_rows :])
        self._first = batch.slice(0, 1) if self._first is None else self._first
        self._last = batch.slice(batch.num_rows - 1)

    def _in_order(self, rows: pa.RecordBatch) -> Bools:
        """Count rows that are out of order and rows that occur twice; where a value begins, which two times follow."""
        values = len(self._order) - 2
        begins = differs = np.zeros(0, bool)
        for columns, (wrong, differs) in enumerate(neighbours(rows, self._order), 1):
            self._unsorted += wrong
            if columns == values:
                begins = differs.copy()
        self._repeated += int(np.count_nonzero(~differs))
        return begins

    def _add_up(self, diffs: Ints, begins: Bools) -> None:
        """The sums of the values that end in some rows, of which `begins` says where one starts; the last goes on."""
        edges = np.flatnonzero(begins)
        sums = np.add.reduceat(diffs, edges if begins[0] else np.concatenate([[0], edges]))
        if begins[0]:
            self._uncancelled += self._sum != 0
        else:
            sums[0] += self._sum
        self._uncancelled += int(np.count_nonzero(sums[:-1]))
        self._sum = int(sums[-1])

    def misplaced_by_time(self) -> Iterator[str]:
        """Whether rows are in another bucket than the layout has for them."""
        if self._misbucketed:
            yield f"{self._misbucketed} of {self._rows} rows are in another bucket than their {self._placed_by} says"

    def answer(self, file: ObjectRef) -> InspectAnswer:
        keys = [keys_of(row, [0], self._key_width)[0] if row else None for row in (self._first, self._last)]
        return InspectAnswer(
            file=file,
            sha256=file.sha256,
            rows=self._rows,
            digest=self._digest,
            null_keys=self._null_keys,
            zero_diffs=self._zero_diffs,
            unsorted=self._unsorted,
            first_time=min(self._times, default=0),
            last_time=max(self._times, default=0),
            first_event_time=min(self._event_times, default=0),
            last_event_time=max(self._event_times, default=0),
            first_key=keys[0],
            last_key=keys[1],
            columns=self.columns,
            repeated=self._repeated,
            misplaced=self._misplaced,
            added=self._added,
            retracted=self._retracted,
            uncancelled=self._uncancelled + (self._sum != 0),
        )
