"""Trimming: a part of an unsealed batch rewritten, in its order, without the rows nobody needs any more, and those that
are left in parts that are due at different times."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

import pyarrow as pa

from tidemark.arrow.kernels.ahead import cut_of, split_ahead
from tidemark.arrow.kernels.merge import Tally
from tidemark.arrow.kernels.retracted import retracts
from tidemark.arrow.parts.reader import Fetched, read_groups
from tidemark.arrow.parts.writer import PartWriter
from tidemark.arrow.rows.columns import integers
from tidemark.arrow.rows.schema import EVENT_TIME, TIME, facts_schema, key_at_rest, some_of, updates_schema
from tidemark.plan.tasks import TrimTask, WriteAnswer
from tidemark.storage.stores.store import ObjectStore

GROUPS_AT_ONCE = 8


def trim_part(store: ObjectStore, task: TrimTask) -> WriteAnswer:
    """Write the rows of the part that are at `lower` or later, or happened at `horizon` or later; maybe none.

    The answer counts what was read, all of it. Raises Corruption if the part is not what was recorded.
    """
    tally = Tally()
    schema = (facts_schema if task.facts else updates_schema)(task.collection)
    times = some_of(schema, [TIME, EVENT_TIME])
    cut = cut_of(_kept(store, task, times, tally.fetched), task.lower, task.width, facts=task.facts)
    with ExitStack() as stack:
        writers = [_writer(stack, store, task, schema) for _ in range(cut.parts)]
        groups = read_groups(store, task.part, schema=schema, fetched=tally.fetched, groups_at_once=GROUPS_AT_ONCE)
        for batch in groups:
            tally.add(batch)
            for number, rows in split_ahead(_needed(batch, task), cut):
                writers[number].write(rows)
        parts = tuple(part for writer in writers for part in writer.close())
        return WriteAnswer(parts, tally.rows, tally.digest, tally.fetched.bytes)


def _writer(stack: ExitStack, store: ObjectStore, task: TrimTask, schema: pa.Schema) -> PartWriter:
    key_width, retracted = len(key_at_rest(task.collection)), task.facts and retracts(task.part)
    writer = PartWriter(store, task.prefix, schema, key_width=key_width, facts=task.facts, retracted=retracted)
    return stack.enter_context(writer)


def _kept(store: ObjectStore, task: TrimTask, schema: pa.Schema, fetched: Fetched) -> Iterator[pa.RecordBatch]:
    groups = read_groups(store, task.part, schema=schema, fetched=fetched, groups_at_once=GROUPS_AT_ONCE)
    return (_needed(batch, task) for batch in groups)


def _needed(rows: pa.RecordBatch, task: TrimTask) -> pa.RecordBatch:
    kept = (integers(rows, TIME) >= task.lower) | (integers(rows, EVENT_TIME) >= task.horizon)
    return rows.filter(pa.array(kept))
