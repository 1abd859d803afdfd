"""The kernels behind the gate's questions: was what a correction retracted there before, and how much was it?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import takewhile

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidemark.arrow.kernels.merge import BUFFERED_ROWS, Piece, Run, chained, pieces_of, rounds, summed
from tidemark.arrow.kernels.reread import compared, counts, excess, order_of
from tidemark.arrow.kernels.retracted import retracts, signed, signed_schema
from tidemark.arrow.rows.columns import integers
from tidemark.arrow.rows.consolidate import learned_at
from tidemark.arrow.rows.schema import (
    DIFF,
    FILE,
    ROW,
    TIME,
    facts_schema,
    key_at_rest,
    keys_of,
    names_at_rest,
    said_columns,
    some_of,
    sort_columns,
    updates_schema,
)
from tidemark.model.batch import Part
from tidemark.model.collection import Envelope
from tidemark.plan.tasks import NotContributedAnswer, NotContributedTask, RetractedShareAnswer, RetractedShareTask
from tidemark.storage.stores.store import ObjectStore


def not_contributed(store: ObjectStore, task: NotContributedTask) -> NotContributedAnswer:
    """Add up all that the files contributed, corrections among it: a row that there are fewer than none of was
    retracted without having been contributed.

    True of facts, and of the envelope `append`, whose files never say that there is less of a row. Raises Corruption if
    a part is not what was recorded.
    """
    width, missing = len(key_at_rest(task.collection)), 0
    # Of updates what was contributed is turned: the difference to files that say nothing.
    facts = task.collection.kind.facts
    for rows in _facts(store, task) if facts else compared(store, task, keys=task.keys):
        if not rows.num_rows:
            continue
        sums = integers(rows, DIFF) * (-1 if facts else 1)
        missing += int(sums[sums > 0].sum())
        if keys_of(rows, [rows.num_rows - 1], width)[0] > task.last:
            break
    return NotContributedAnswer(missing)


def retracted_share(store: ObjectStore, task: RetractedShareTask) -> RetractedShareAnswer:
    """Add up what the files had contributed before the correction, and by how much each row of it is less after it.

    Raises Corruption if a part is not what was recorded.
    """
    if task.collection.landed.source.envelope is not Envelope.UPDATES:
        return RetractedShareAnswer(0, _net_retracted(store, task))
    order = order_of(task)
    contributed = retracted = 0
    for sides in compared(store, task, written=task.written, keys=task.keys):
        before, differs = counts(sides, order)
        contributed += excess(before, np.zeros_like(before))
        retracted += excess(before, before + differs)
    return RetractedShareAnswer(contributed, retracted)


def _net_retracted(store: ObjectStore, task: RetractedShareTask) -> int:
    """How many rows were retracted and not stated again, in any file, with other values in what is not compared."""
    facts, without = task.collection.kind.facts, names_at_rest(task.collection, task.without)
    order, schema = sort_columns(task.collection, facts=facts), updates_schema(task.collection)
    if facts:  # the file that says a fact, and the number of its row there, say nothing of it
        order, schema = order[: -len((FILE, ROW))], signed_schema(task.collection)
    columns = [*order, *([*said_columns(task.collection), TIME] if facts else [])]
    columns = [name for name in columns if name not in without]
    schema = some_of(schema, {*columns, DIFF})
    at_rest = some_of(schema, set(schema.names) - ({DIFF} if facts else set()))

    def prepare(part: Part, rows: pa.RecordBatch) -> pa.RecordBatch:
        return signed(rows, schema, -1 if retracts(part) else 1) if facts else rows

    def read(chain: Sequence[Part]) -> Iterator[Piece]:
        names = key_at_rest(task.collection)
        return pieces_of(
            store, chain, task.keys, capacity, schema=lambda _: at_rest, prepare=prepare, key_columns=names
        )

    chains = chained(part for written in task.written for part in written.parts)
    capacity = BUFFERED_ROWS // max(1, len(chains))
    together = tuple(takewhile(lambda name: name not in without, order))
    runs, taken = [Run(read(chain), together, capacity) for chain in chains], 0
    for batches in rounds(runs, lambda batches: list(summed(batches, columns, resort=True))):
        for rows in summed(batches, columns, resort=True):
            diffs = integers(rows, DIFF)
            taken -= int(diffs[diffs < 0].sum())
    return taken


def _facts(store: ObjectStore, task: NotContributedTask) -> Iterator[pa.RecordBatch]:
    """The facts that the files contributed, in order, each with its multiplicity from the seal on."""
    schema, with_sign = facts_schema(task.collection), signed_schema(task.collection)
    order = sort_columns(task.collection, facts=True)
    columns = [*order, *said_columns(task.collection), TIME]
    files = {
        part.file.key: pa.array([task.paths[now] for _, now in some.numbers], pa.string())
        for some in task.contributed
        for part in some.parts
    }

    def prepare(part: Part, rows: pa.RecordBatch) -> pa.RecordBatch:
        some = rows.filter(pc.is_in(rows.column(FILE), value_set=files[part.file.key]))
        return signed(learned_at(some, task.seal), with_sign, -1 if retracts(part) else 1)

    def read(chain: Sequence[Part]) -> Iterator[Piece]:
        keys = [column.name for column in task.collection.key]
        return pieces_of(store, chain, task.keys, capacity, schema=lambda _: schema, prepare=prepare, key_columns=keys)

    chains = chained(part for some in task.contributed for part in some.parts)
    capacity = BUFFERED_ROWS // max(1, len(chains))
    runs = [Run(read(chain), order, capacity) for chain in chains]
    for batches in rounds(runs, lambda kept: list(summed(kept, columns, resort=True))):
        yield from summed(batches, columns, resort=True)
