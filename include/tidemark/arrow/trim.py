"""Trimming: a part of an unsealed batch rewritten, in its order, without the rows nobody needs any more."""

from __future__ import annotations

import pyarrow as pa

from tidemark.arrow.columns import integers
from tidemark.arrow.merge import Tally
from tidemark.arrow.parts import PartWriter, read_groups
from tidemark.arrow.schema import EVENT_TIME, TIME, facts_schema, updates_schema
from tidemark.plan.tasks import TrimTask, WriteAnswer
from tidemark.storage.store import ObjectStore

GROUPS_AT_ONCE = 8


def trim_part(store: ObjectStore, task: TrimTask) -> WriteAnswer:
    """Write the rows of the part that are at `lower` or later, or happened at `horizon` or later; maybe none.

    The answer counts what was read, all of it. Raises Corruption if the part is not what was recorded.
    """
    tally = Tally()
    schema = (facts_schema if task.facts else updates_schema)(task.collection)
    groups = read_groups(store, task.part, schema=schema, fetched=tally.fetched, groups_at_once=GROUPS_AT_ONCE)
    with PartWriter(store, task.prefix, schema, key_width=len(task.collection.key), facts=task.facts) as writer:
        for batch in groups:
            tally.add(batch)
            kept = (integers(batch, TIME) >= task.lower) | (integers(batch, EVENT_TIME) >= task.horizon)
            writer.write(batch.filter(pa.array(kept)))
        return WriteAnswer(writer.close(), tally.rows, tally.digest, tally.fetched.bytes)
