"""The kernel of corrections: source files that are read again, less what they have contributed.

The law is the docstring of model/reread.py. Both sides are rows in order: what the files say now, sorted as an
ingest sorts it, and what they contributed, in parts that are kept. Of updates one streaming merge forwards them, the
one side with its diffs turned, and sums up what is equal: what did not change cancels where it is read, in bounded
memory. Both sums of an update are known then: they distinguish what the files retracted from what they newly say. Facts
are compared by groups (restate.py). What fits into memory is not written before it is compared.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from itertools import takewhile

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidemark.arrow.kernels.ingest import SORTED_BYTES, SORTED_ROWS, taken
from tidemark.arrow.kernels.lateness import Judged, LatenessBounds
from tidemark.arrow.kernels.letters import StillReplayed
from tidemark.arrow.kernels.merge import BUFFERED_ROWS, Piece, Run, chained, pieces_in_memory, pieces_of, rounds, summed
from tidemark.arrow.kernels.restate import restatements
from tidemark.arrow.kernels.retracted import write_signed
from tidemark.arrow.parts.writer import PartWriter
from tidemark.arrow.rows.columns import Ints, integers, replaced
from tidemark.arrow.rows.consolidate import addable, consolidated, forwarded, learned_at
from tidemark.arrow.rows.cuts import PIECE_BYTES, sorted_pieces
from tidemark.arrow.rows.memory import Gathered
from tidemark.arrow.rows.order import starts
from tidemark.arrow.rows.schema import (
    DIFF,
    EVENT_TIME,
    FILE,
    SOURCE,
    facts_schema,
    key_at_rest,
    names_at_rest,
    some_of,
    sort_columns,
    sourced_schema,
)
from tidemark.model.batch import Part
from tidemark.model.ledger import LedgerEntry, Status
from tidemark.plan.tasks import (
    ALL_KEYS,
    Contributed,
    KeyRange,
    NotContributedTask,
    Reread,
    RereadAnswer,
    RereadTask,
    RetractedShareTask,
)
from tidemark.storage.stores.store import ObjectStore

SIDE = "_side"
"""Of updates that are compared: +1 of what files say now, -1 of what they contributed."""


def reread_files(store: ObjectStore, task: RereadTask) -> RereadAnswer:
    """Read the task's files again and write what differs from what they contributed.

    A file that cannot be taken gives a quarantined entry with its reason, and what it contributed stays. Raises
    Corruption if a part is not what was recorded, NotReady and Unavailable as an ingest.
    """
    with Gathered("sorted") as room:
        return _reread(store, task, _Now(store, task, room))


def _reread(store: ObjectStore, task: RereadTask, now: _Now) -> RereadAnswer:
    letters: list[LedgerEntry] = []
    entries = [_read(store, task, file, number, now, letters) for number, file in enumerate(task.files, task.first)]
    bad = {n for n, entry in enumerate(entries, task.first) if entry.status is Status.QUARANTINED}
    in_memory, spilled = now.runs()
    written = _Written(task)
    write = _restated if task.collection.kind.facts else _differing
    parts = write(store, task, in_memory, spilled, bad, written)
    counted = [replace(entry, rows=written.rows[n]) for n, entry in enumerate(entries, task.first)]
    figures = written.added, written.retracted, written.event_times
    return RereadAnswer(parts, tuple(counted), tuple(letters), *figures)


def _differing(
    store: ObjectStore,
    task: RereadTask,
    in_memory: Sequence[pa.RecordBatch],
    spilled: Sequence[Part],
    bad: Set[int],
    written: _Written,
) -> tuple[Part, ...]:
    schema = sourced_schema(task.collection)
    with _writer(store, task) as writer:
        for sides in compared(store, task, in_memory, spilled, leaving=bad):
            before, now = counts(sides, _order(task))
            written.count(added=excess(now, before), retracted=excess(before, now))
            if (rows := consolidated(sides.select(schema.names), _order(task))).num_rows:
                written.add(rows)
                if task.writes:
                    writer.write(rows)
        return writer.close()


def _restated(
    store: ObjectStore,
    task: RereadTask,
    in_memory: Sequence[pa.RecordBatch],
    spilled: Sequence[Part],
    bad: Set[int],
    written: _Written,
) -> tuple[Part, ...]:
    """Facts at rest have no sign: facts that are said and facts that are retracted are written separately."""

    def counted() -> Iterator[pa.RecordBatch]:
        for rows in restatements(store, task, in_memory, spilled, leaving=bad):
            diffs = integers(rows, DIFF)
            written.count(added=int((diffs > 0).sum()), retracted=int((diffs < 0).sum()))
            written.add(rows)
            yield rows

    return write_signed(store, task.collection, task.prefix, counted())


def _read(
    store: ObjectStore, task: RereadTask, file: Reread, number: int, now: _Now, letters: list[LedgerEntry]
) -> LedgerEntry:
    """The entry of a file; what it says is added to `now`, and the entries of its letters to `letters`."""
    if file.file is None:
        return LedgerEntry(file.path, 0, "", "", task.interval, Status.INGESTED, task.batch)
    turn, arrival = task.collection.landed.complete_before(task.interval), task.interval.upper - 1
    bounds = LatenessBounds(file.complete_below, file.seal, file.since, arrival, file.late, turn)
    with StillReplayed(store, task, file.replayed, number) as replayed:

        def take(judged: Judged) -> None:
            now.add(judged.applied)
            for rows in replayed.again(judged.late):
                now.add(rows)

        entry = taken(store, task, file.file, bounds, number, take)
        letters += replayed.entries(entry)
    return entry


class _Now:
    """What the files say now, in sorted runs: the last in memory, those before it as parts."""

    def __init__(self, store: ObjectStore, task: RereadTask, room: Gathered) -> None:
        self._store, self._task, self._room = store, task, room
        self._order = _order(task)
        self._batches: list[pa.RecordBatch] = []
        self._rows = self._bytes = 0
        self._parts: list[tuple[Part, ...]] = []

    def add(self, rows: pa.RecordBatch) -> None:
        """Take over rows to apply."""
        if not rows.num_rows:
            return
        if self._batches and (self._rows + rows.num_rows > SORTED_ROWS or self._bytes + rows.nbytes > SORTED_BYTES):
            self._spill()
        if not self._room.add(rows.nbytes) and self._batches:
            self._spill()
            self._room.add(rows.nbytes)  # the only rows kept need no room
        self._batches.append(rows)
        self._rows += rows.num_rows
        self._bytes += rows.nbytes

    def _spill(self) -> None:
        with self._room, _writer(self._store, self._task) as writer:
            for piece in self._sorted():
                writer.write(piece)
            self._parts.append(writer.close())
        self._batches, self._rows, self._bytes = [], 0, 0

    def runs(self) -> tuple[list[pa.RecordBatch], list[Part]]:
        """The rows in memory, in order, and the parts that hold the others."""
        return list(self._sorted()) if self._batches else [], [part for parts in self._parts for part in parts]

    def _sorted(self) -> Iterator[pa.RecordBatch]:
        return sorted_pieces(self._batches, self._order, most=PIECE_BYTES)


def compared(
    store: ObjectStore,
    task: RereadTask | NotContributedTask | RetractedShareTask,
    in_memory: Sequence[pa.RecordBatch] = (),
    spilled: Sequence[Part] = (),
    *,
    written: Sequence[Contributed] = (),
    leaving: Set[int] = frozenset(),
    keys: KeyRange = ALL_KEYS,
    buffered_rows: int = BUFFERED_ROWS,
) -> Iterator[pa.RecordBatch]:
    """The updates of a correction, in order, all of equal ones in one batch: up to one of what the files say now, and
    up to one, its diff turned, of what they contributed; `_side` distinguishes them. Columns that the task is `without`
    are left out. What the files say now is
    `in_memory`, in order, in the parts `spilled`, and `written` by them; what those numbered `leaving` contributed is
    left as it is, and so is what is not within `keys`."""
    order, without = order_of(task), _without(task)
    # Rows at rest are in order of the columns before the first that is left out.
    whole = _order(task)[: -len((EVENT_TIME, SOURCE))]
    together, sided = tuple(takewhile(lambda name: name not in without, whole)), [*order, SIDE]
    schema = some_of(sourced_schema(task.collection), {*order, SOURCE, DIFF})
    numbers = {
        part.file.key: {old: new for old, new in some.numbers if new not in leaving}
        for some in (*task.contributed, *written)
        for part in some.parts
    }
    new = {part.file.key: None for part in spilled}
    sides = [(chain, +1) for chain in chained([*spilled, *_parts(written)])]
    sides += [(chain, -1) for chain in chained(_parts(task.contributed))]
    capacity = buffered_rows // max(1, len(sides) + bool(in_memory))

    def read(chain: Sequence[Part], sign: int) -> Iterator[Piece]:
        return pieces_of(
            store,
            chain,
            keys,
            capacity,
            schema=lambda _: schema,
            prepare=lambda part, rows: _as_of(
                rows if part.file.key in new else _of(rows, numbers[part.file.key]), task, sign
            ),
            key_columns=key_at_rest(task.collection),
        )

    runs = [Run(read(chain, sign), together, capacity) for chain, sign in sides]
    runs += [Run(pieces_in_memory(in_memory, capacity, lambda rows: _as_of(rows, task, +1)), together, capacity)]
    for batches in rounds(runs, lambda some: list(summed(some, sided, resort=True))):
        for rows in sorted_pieces(batches, sided, together=order, most=PIECE_BYTES):
            yield consolidated(rows, sided)


def counts(sides: pa.RecordBatch, order: Sequence[str]) -> tuple[Ints, Ints]:
    """How often each of the updates that are compared was contributed, and how often the files say it now."""
    firsts = np.flatnonzero(starts(sides, order))
    diffs, now = addable(integers(sides, DIFF)), integers(sides, SIDE) > 0
    if not len(firsts):
        return diffs, diffs
    before = np.add.reduceat(np.where(now, 0, -diffs), firsts)
    return before, np.add.reduceat(np.where(now, diffs, 0), firsts)


def excess(these: Ints, others: Ints) -> int:
    """How many rows these counts have that the others do not have: of -3 and -1 there are two, of -3 and 1 three."""
    same = np.sign(these) == np.sign(others)
    return int((np.abs(these) - np.where(same, np.minimum(np.abs(these), np.abs(others)), 0)).sum())


def _parts(some: Sequence[Contributed]) -> list[Part]:
    return [part for contributed in some for part in contributed.parts]


def _of(rows: pa.RecordBatch, numbers: Mapping[int, int]) -> pa.RecordBatch:
    """The rows of some files, by the numbers these have now."""
    sources = integers(rows, SOURCE)
    old = np.array(sorted(numbers), np.int64)
    wanted = np.isin(sources, old)
    if not wanted.all():
        rows, sources = rows.filter(pa.array(wanted)), sources[wanted]
    new = np.array([numbers[number] for number in old.tolist()], np.int64)
    return replaced(rows, SOURCE, new[np.searchsorted(old, sources)]) if len(sources) else rows


def _as_of(
    rows: pa.RecordBatch, task: RereadTask | NotContributedTask | RetractedShareTask, sign: int
) -> pa.RecordBatch:
    """The rows as they count from the seal on, `sign` times, with their side."""
    rows = forwarded(rows, task.function, [EVENT_TIME])
    rows = learned_at(rows, task.seal)
    rows = rows if sign > 0 else replaced(rows, DIFF, -integers(rows, DIFF))
    return rows.append_column(SIDE, pa.array(np.full(rows.num_rows, sign, np.int64)))


def order_of(task: RereadTask | NotContributedTask | RetractedShareTask) -> tuple[str, ...]:
    """The columns that distinguish the updates of a comparison. Of how much was retracted no file is distinguished."""
    without = (*_without(task), *([SOURCE] if isinstance(task, RetractedShareTask) else []))
    return tuple(name for name in _order(task) if name not in without)


def _without(task: RereadTask | NotContributedTask | RetractedShareTask) -> tuple[str, ...]:
    return names_at_rest(task.collection, task.without) if isinstance(task, RetractedShareTask) else ()


def _order(task: RereadTask | NotContributedTask | RetractedShareTask) -> tuple[str, ...]:
    facts = task.collection.kind.facts
    order = sort_columns(task.collection, facts=facts)
    return order if facts else (*order, SOURCE)


def _writer(store: ObjectStore, task: RereadTask) -> PartWriter:
    collection, facts = task.collection, task.collection.kind.facts
    return PartWriter(
        store,
        task.prefix,
        facts_schema(collection) if facts else sourced_schema(collection),
        key_width=len(key_at_rest(collection)),
        facts=facts,
        records_consolidated=not facts,
    )


@dataclass
class _Written:
    """The totals of a correction, in rows with their multiplicities; `rows` as written, by the number of the file."""

    task: RereadTask
    added: int = 0
    retracted: int = 0
    event_times: tuple[int, int] | None = None
    rows: Counter[int] = field(default_factory=Counter)

    def count(self, *, added: int, retracted: int) -> None:
        """Count what files newly say, and what they said and do not say any more."""
        self.added += added
        self.retracted += retracted

    def add(self, rows: pa.RecordBatch) -> None:
        """Note rows that are written, at least one."""
        happened = integers(rows, EVENT_TIME)
        first, last = self.event_times or (int(happened[0]), int(happened[0]))
        files, counts = np.unique(self._numbers(rows), return_counts=True)
        self.rows.update(dict(zip(files.tolist(), counts.tolist(), strict=True)))
        self.event_times = min(first, int(happened.min())), max(last, int(happened.max()))

    def _numbers(self, rows: pa.RecordBatch) -> Ints:
        """Of each row the number of its file."""
        if SOURCE in rows.schema.names:
            return integers(rows, SOURCE)
        paths = pa.array([file.path for file in self.task.files], pa.string())
        return np.asarray(pc.index_in(rows.column(FILE), value_set=paths)) + self.task.first
