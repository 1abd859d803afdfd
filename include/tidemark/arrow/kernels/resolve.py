"""Resolving the facts of keyed collections into updates, key range by key range, in bounded memory.

What a new fact changes follows from its neighbours in its key's history: the law is in model/fact.py. Here these are
found, for many keys at a time:

1. New facts are merged by key from their parts (merge.py), in *blocks* that hold all new facts of their keys.
2. The facts known before, of the block's keys and as far as they are remembered, are looked up in unsealed parts.
3. Where a key's oldest fact is a new one, the value before it is looked up in the trace.
4. The law is applied to all keys of the block at once (history.py), and equal updates are added up.

An example. Of key k the collection learned: A at event time 10, B at 30. Both are drained, so the trace holds +A at 10,
-A and +B at 30. The horizon is 25: the fact of B is remembered, that of A no longer. Now a fact comes late: C at 28.
Its neighbour after it is B, a known fact; before it there is none, and up to 25 the trace adds up to A. So the updates
are -A +C at 28, and +A -C at 30, where what was A until B came is retracted and becomes what was C.

The value before the oldest fact of a key is the sum of its updates that happened up to and at the horizon. At it,
because the updates of older facts may have been moved up to `since`, which the horizon may equal. The sum then also
has what known facts at the horizon itself changed, and that does not matter: a new fact before one of these happened at
the horizon too, so what it puts there it takes away at the same event time, and the two cancel.

Of a fact that is retracted this is not so: what it hid may be what was current before it. So the horizon of a task is
below all that is retracted, and there the sum holds nothing of it (kernels/retracted.py).

Costs: every new fact is read once. Of known facts and of the trace only the row groups that can hold one of the block's
keys are read (parts/lookup.py, docs/decisions/0034), and of known facts those up to the one that follows on the key's
new ones (following.py), or all where what follows may depend on them (transactions.py). In memory are one block,
BLOCK_BYTES, and what is looked up for it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from tidemark.arrow.kernels.following import Following
from tidemark.arrow.kernels.history import NOTHING, Changes, Facts, changes_of
from tidemark.arrow.kernels.merge import BUFFERED_ROWS, Piece, Run, Tally, chained, pieces_of, rounds, write_updates
from tidemark.arrow.kernels.messages import depends, known_reads
from tidemark.arrow.kernels.retracted import any_retracted, current_facts, retracts, signed, signed_schema
from tidemark.arrow.kernels.transactions import Past, plain_facts, whole_deletes
from tidemark.arrow.parts.lookup import Lookup, TooWide, Wanted
from tidemark.arrow.rows.arrays import no_rows, of_bools, of_numbers
from tidemark.arrow.rows.columns import Bools, Ints, contiguous, integers, values
from tidemark.arrow.rows.consolidate import consolidated
from tidemark.arrow.rows.cuts import PIECE_BYTES, gathered_pieces, ranks_of, sorted_pieces
from tidemark.arrow.rows.order import ranks, sort, sort_indices, starts
from tidemark.arrow.rows.schema import (
    DELETED,
    DIFF,
    EVENT_TIME,
    TIME,
    facts_schema,
    keys_of,
    said_columns,
    some_of,
    sort_columns,
    updates_schema,
    value_columns,
)
from tidemark.errors import Corruption
from tidemark.model.batch import Part
from tidemark.model.chunk.law import meets_keys
from tidemark.model.key import Key
from tidemark.plan.tasks import ResolveTask, WriteAnswer
from tidemark.storage.stores.store import ObjectStore

BLOCK_BYTES = 32 * 2**20
"""Bytes of facts that are resolved at once, and of what is looked up for them, but for those of a single key."""
MANY = 2**62


def resolve_range(store: ObjectStore, task: ResolveTask) -> WriteAnswer:
    """Write the updates by which the task's new facts change the history of their keys.

    Raises Corruption if a part is not what was recorded, or if the trace holds for a key anything but one value.
    """
    tally = Tally()
    return write_updates(store, task, updates_from(store, task, tally), tally)


def updates_from(
    store: ObjectStore, task: ResolveTask, tally: Tally, *, buffered_rows: int = BUFFERED_ROWS
) -> Iterator[pa.RecordBatch]:
    """The updates of a task without writing them (its prefix is not used), in order, block by block of keys."""
    key_columns = [column.name for column in task.collection.key]
    order = sort_columns(task.collection, facts=True)
    parts = [part for part in task.facts if meets_keys(part, task.keys) and part.first_time < task.upper]
    chains = chained(part for part in parts if part.last_time >= task.lower)
    capacity = buffered_rows // max(1, len(chains))
    runs = [Run(_facts_of(store, chain, task, tally, capacity), key_columns, capacity) for chain in chains]
    with _Past(store, task, tally) as past:
        for batches in rounds(runs, lambda kept: kept):
            for facts in sorted_pieces(batches, order, together=key_columns, resort=False, most=BLOCK_BYTES):
                for block in past.blocks(facts):
                    yield from _updates(block, task, tally)


def _facts_of(
    store: ObjectStore, chain: Sequence[Part], task: ResolveTask, tally: Tally, capacity: int
) -> Iterator[Piece]:
    """The facts of a chain of parts, new ones and remembered ones; the new ones are tallied."""
    schema = facts_schema(task.collection)
    with_sign = signed_schema(task.collection) if any_retracted(task.facts) else None

    def prepare(part: Part, rows: pa.RecordBatch) -> pa.RecordBatch:
        times, event_times = integers(rows, TIME), integers(rows, EVENT_TIME)
        new = (times >= task.lower) & (times < task.upper)
        _check_horizon(part, event_times[new], task.horizon)
        tally.add(_filtered(rows, new))
        wanted = _filtered(rows, new | _is_remembered(rows, task))
        return wanted if with_sign is None else signed(wanted, with_sign, -1 if retracts(part) else 1)

    return pieces_of(
        store,
        chain,
        task.keys,
        capacity,
        schema=lambda _: schema,
        prepare=prepare,
        key_columns=[column.name for column in task.collection.key],
        fetched=tally.fetched,
    )


def _filtered(rows: pa.RecordBatch, kept: Bools) -> pa.RecordBatch:
    return rows if kept.all() else rows.filter(of_bools(kept))


def _check_horizon(part: Part, event_times: Ints, horizon: int) -> None:
    if not len(event_times):
        return
    if event_times.min() < horizon:
        raise Corruption(
            f"{part.file.key} holds a new fact that happened at {event_times.min()}, below the horizon {horizon}"
        )
    if event_times.min() == horizon and retracts(part):
        raise Corruption(
            f"{part.file.key} retracts a fact that happened at the horizon {horizon}: what it hid is not known there"
        )


def _is_remembered(rows: pa.RecordBatch, task: ResolveTask) -> Bools:
    """The facts resolved by earlier drains that new ones are placed among."""
    return np.asarray((integers(rows, TIME) < task.lower) & (integers(rows, EVENT_TIME) >= task.horizon))


def _is_nothing(part: Part, horizon: int) -> bool:
    """Whether what a part of the trace holds up to the horizon is nothing, as all of it is and adds up to that."""
    return part.cancels and part.last_event_time <= horizon


@dataclass(frozen=True)
class _Block:
    """All facts of some keys that are remembered or new, in order, and updates of the values before them.

    Attributes:
        after: The updates behind the horizon, of keys with known rows of snapshots.
    """

    facts: pa.RecordBatch
    keys: pa.RecordBatch
    before: pa.RecordBatch
    after: pa.RecordBatch


class _Past:
    """What is known of keys: facts resolved by earlier drains, and the trace. A context manager."""

    def __init__(self, store: ObjectStore, task: ResolveTask, tally: Tally) -> None:
        self._task = task
        self._key_columns = [column.name for column in task.collection.key]
        self._order = sort_columns(task.collection, facts=True)
        facts, updates = facts_schema(task.collection), updates_schema(task.collection)
        columns = [*value_columns(task.collection), EVENT_TIME, DIFF]
        known = [p for p in task.facts if p.last_time < task.lower and p.last_event_time >= task.horizon]
        trace = [p for p in task.trace if p.first_event_time <= task.horizon and not _is_nothing(p, task.horizon)]
        self._signed = signed_schema(task.collection) if any_retracted(task.facts) else None
        self._known = {
            sign: Lookup(
                store,
                sorted(some, key=lambda part: part.first_event_time),
                keys=some_of(facts, self._key_columns),
                others=some_of(facts, set(facts.names) - set(self._key_columns)),
                wanted=Wanted(
                    some_of(facts, [TIME, EVENT_TIME]),
                    lambda rows: _is_remembered(rows, task),
                    self._all_remembered,
                ),
                fetched=tally.fetched,
            )
            for sign in (+1, -1)
            if (some := [part for part in known if retracts(part) == (sign < 0)])
        }
        keys, others = some_of(updates, self._key_columns), some_of(updates, columns)
        up_to = Wanted(
            some_of(updates, [EVENT_TIME]),
            lambda rows: np.asarray(integers(rows, EVENT_TIME) <= task.horizon),
            lambda part: part.last_event_time <= task.horizon,
        )
        behind = Wanted(
            up_to.columns,
            lambda rows: np.asarray(integers(rows, EVENT_TIME) > task.horizon),
            lambda part: part.first_event_time > task.horizon,
        )
        later = [part for part in task.trace if part.last_event_time > task.horizon]
        self._trace = Lookup(store, trace, keys=keys, others=others, wanted=up_to, fetched=tally.fetched)
        self._later = Lookup(store, later, keys=keys, others=others, wanted=behind, fetched=tally.fetched)
        self._keys_at_once = MANY
        self._nothing = no_rows(some_of(updates, [*self._key_columns, *columns]))

    def _all_remembered(self, part: Part) -> bool:
        """Whether that is true of every fact of a part, by its bounds."""
        return part.last_time < self._task.lower and part.first_event_time >= self._task.horizon

    def __enter__(self) -> _Past:
        with ExitStack() as stack:
            for known in self._known.values():
                stack.enter_context(known)
            stack.enter_context(self._trace)
            stack.enter_context(self._later)
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def blocks(self, facts: pa.RecordBatch) -> Iterator[_Block]:
        """The facts, which are all of their keys, with all that is remembered of these; without keys of which none is
        new. In several blocks where what is remembered is wide."""
        begins = np.append(np.flatnonzero(starts(facts, self._key_columns)), facts.num_rows)
        done, keys = 0, len(begins) - 1
        while done < keys:
            some = min(self._keys_at_once, keys - done)
            start, end = int(begins[done]), int(begins[done + some])
            try:
                block = self._block(facts.slice(start, end - start))
            except TooWide:
                self._keys_at_once = max(1, some // 2)
                continue
            done += some
            self._keys_at_once = min(MANY, 2 * self._keys_at_once)
            if block is not None:
                yield block

    def _block(self, facts: pa.RecordBatch) -> _Block | None:
        begins = starts(facts, self._key_columns)
        numbers = np.cumsum(begins) - 1
        new = integers(facts, TIME) >= self._task.lower
        touched = np.zeros(int(numbers[-1]) + 1, bool) if len(numbers) else np.zeros(0, bool)
        touched[numbers[new]] = True
        if not touched.any():
            return None
        if not touched.all():
            facts = facts.filter(of_bools(touched[numbers]))
            begins = starts(facts, self._key_columns)
        keys = facts.select(self._key_columns).filter(of_bools(begins))
        if known := self._known_of(facts, keys):
            facts = sort(pa.concat_batches([facts, *(rows.cast(facts.schema) for rows in known)]), self._order)
        return _Block(facts, keys, self._before(facts, keys), self._after(facts, keys))

    def _known_of(self, facts: pa.RecordBatch, keys: pa.RecordBatch) -> list[pa.RecordBatch]:
        """The remembered facts of keys in the parts that hold no new ones, as far as they can matter to `facts`."""
        following = None if self._task.collection.has_transactions else Following(keys)
        changes = integers(facts, TIME) >= self._task.lower
        if self._signed is not None:
            changes |= integers(facts, DIFF) < 0
        numbers = np.cumsum(starts(facts, self._key_columns)) - 1
        if following:
            following.changes(numbers[changes], integers(facts, EVENT_TIME)[changes])
        taken = self._known[-1].rows_of(keys, BLOCK_BYTES) if -1 in self._known else []
        if following:
            for rows in taken:
                following.changes_of(rows)
        said = self._known[+1].rows_of(keys, BLOCK_BYTES, following) if +1 in self._known else []
        if self._signed is None:
            return said
        schema = facts_schema(self._task.collection)
        both = [(-1, rows) for rows in taken] + [(+1, rows) for rows in said]
        return [signed(rows.select(schema.names).cast(schema), self._signed, sign) for sign, rows in both]

    def _before(self, facts: pa.RecordBatch, keys: pa.RecordBatch) -> pa.RecordBatch:
        """The updates up to the horizon of the keys whose history may begin with a new fact, or with another one."""
        begins = starts(facts, self._key_columns)
        new = integers(facts, TIME) >= self._task.lower
        touched = new[begins]
        if self._signed is not None:
            touched[(np.cumsum(begins) - 1)[integers(facts, DIFF) < 0]] = True
        if self._task.collection.has_transactions:
            np.logical_or(touched, depends(facts, np.cumsum(begins) - 1, new), out=touched)
        return self._looked_up(self._trace, keys, touched)

    def _after(self, facts: pa.RecordBatch, keys: pa.RecordBatch) -> pa.RecordBatch:
        """The updates behind the horizon of the keys of which rows of snapshots are known."""
        if not self._task.collection.has_transactions:
            return self._nothing
        key, new = np.cumsum(starts(facts, self._key_columns)) - 1, integers(facts, TIME) >= self._task.lower
        return self._looked_up(self._later, keys, known_reads(facts, key, new))

    def _looked_up(self, trace: Lookup, keys: pa.RecordBatch, wanted: Bools) -> pa.RecordBatch:
        if not wanted.any():
            return self._nothing
        return pa.concat_batches([self._nothing, *trace.rows_of(keys.filter(of_bools(wanted)), BLOCK_BYTES)])


def _updates(block: _Block, task: ResolveTask, tally: Tally) -> Iterator[pa.RecordBatch]:
    """The law over a block: keys as numbers, values as the rows that hold them; and as columns again."""
    key_columns = [column.name for column in task.collection.key]
    value_names = value_columns(task.collection)
    row_of_key, keys_before, rows_before = _values_before(block, key_columns, value_names)
    facts, numbered = _numbers(block, task, key_columns, value_names)
    base = np.where(row_of_key == NOTHING, NOTHING, row_of_key + facts.num_rows)
    cells = [facts.select(value_names), rows_before.select(value_names)]
    keys = [numbered.key, keys_before]
    deletes = None
    if task.collection.has_transactions:
        deletes = whole_deletes(facts, numbered, base)
        after = sort(block.after, key_columns)
        past = Past(base, rows_before, after, _keys_of_rows(block, after, key_columns))
        lowered = plain_facts(facts, numbered, past, task.collection)
        numbered = lowered.facts
        tally.unmatched += lowered.unmatched
        cells.append(lowered.cells)
        keys.append(lowered.keys)
    changed = changes_of(numbered, base)
    if not len(changed.key) and not (deletes and len(deletes.images)):
        return
    numbers = _numbered(cells, keys)
    if deletes:
        tally.unmatched += int(np.count_nonzero(deletes.differ(numbers)))
    if not len(changed.key):
        return
    net = _net(changed, numbers)
    schema, start = updates_schema(task.collection), 0
    for piece in gathered_pieces(cells, net.value, PIECE_BYTES) if value_names else [None]:
        end = len(net.key) if piece is None else start + piece.num_rows
        columns = block.keys.take(of_numbers(net.key[start:end])).columns
        columns += piece.columns if piece is not None else []
        columns += [of_numbers(column[start:end]) for column in (net.time, net.event_time, net.diff)]
        yield pa.RecordBatch.from_arrays(columns, schema=schema)
        start = end


def _numbers(
    block: _Block, task: ResolveTask, key_columns: list[str], value_names: list[str]
) -> tuple[pa.RecordBatch, Facts]:
    """The facts of a block that count, and what they say in numbers."""
    facts, new = block.facts, integers(block.facts, TIME) >= task.lower
    key = np.cumsum(starts(facts, key_columns)) - 1
    diff = place = same = None
    if DIFF in facts.schema.names:
        order = sort_columns(task.collection, facts=True)
        said = said_columns(task.collection)
        facts, kept, place, same = current_facts(facts, new, order, key_columns, said)
        key, new, diff = key[kept], new[kept], integers(facts, DIFF)
    deleted = np.asarray(values(contiguous(facts.column(DELETED))), bool)
    holds = np.arange(facts.num_rows) if same is None else same
    value = np.where(deleted, NOTHING, holds)
    return facts, Facts(key, value, integers(facts, TIME), integers(facts, EVENT_TIME), new, diff, place, same)


def _numbered(cells: Sequence[pa.RecordBatch], keys: Sequence[Ints]) -> Ints:
    """Numbers of rows, in order of the rows' keys and values; equal for equal rows."""
    names = [str(at) for at in range(cells[0].num_columns + 1)]
    rows = [
        pa.RecordBatch.from_arrays([of_numbers(key), *some.columns], names)
        for some, key in zip(cells, keys, strict=True)
    ]
    return ranks_of(rows, names, PIECE_BYTES)


def _net(changed: Changes, numbers: Ints) -> Changes:
    """The changes in order of key, value and times, equal ones summed up; `numbers` are those of the rows that hold
    the values, by which keys and values are in order."""
    columns = {"value": numbers[changed.value], "time": changed.time, "event_time": changed.event_time}
    batch = pa.RecordBatch.from_arrays([of_numbers(column) for column in columns.values()], list(columns))
    order = values(sort_indices(batch, list(columns)))
    firsts = np.flatnonzero(starts(batch.take(of_numbers(order)), list(columns)))
    sums = np.add.reduceat(changed.diff[order], firsts)
    kept = order[firsts[sums != 0]]
    return Changes(
        changed.key[kept], changed.value[kept], changed.time[kept], changed.event_time[kept], sums[sums != 0]
    )


def _values_before(block: _Block, key_columns: list[str], value_names: list[str]) -> tuple[Ints, Ints, pa.RecordBatch]:
    """For each key the row that holds the one value before its facts, or NOTHING; the keys of these rows; and
    the rows."""
    row_of_key = np.full(block.keys.num_rows, NOTHING)
    rows = block.before
    keys, diffs = _keys_of_rows(block, rows, key_columns), integers(rows, DIFF)
    # Values may be wide: they are compared only where a key has several updates.
    if not _one_each(keys, diffs):
        columns = [*key_columns, *value_names]
        rows = consolidated(sort(rows, columns), columns)
        keys, diffs = _keys_of_rows(block, rows, key_columns), integers(rows, DIFF)
    if not _one_each(keys, diffs):
        key = int(keys[np.argmax((diffs != 1) | (np.bincount(keys)[keys] != 1))])
        raise Corruption(
            f"the trace holds for key {_named(block.keys, key)} not one value before its facts, "
            f"but multiplicities {diffs[keys == key].tolist()}"
        )
    row_of_key[keys] = np.arange(rows.num_rows)
    return row_of_key, keys, rows


def _keys_of_rows(block: _Block, rows: pa.RecordBatch, key_columns: list[str]) -> Ints:
    """The place of each row's key among those of a block."""
    both = pa.concat_batches([block.keys, rows.select(key_columns)])
    return ranks(both, key_columns)[block.keys.num_rows :]


def _one_each(keys: Ints, diffs: Ints) -> bool:
    """Whether no key has more than one row, and each is there once."""
    return bool((diffs == 1).all() and (np.bincount(keys) <= 1).all())


def _named(keys: pa.RecordBatch, row: int) -> Key:
    return keys_of(keys, [row], keys.num_columns)[0]
