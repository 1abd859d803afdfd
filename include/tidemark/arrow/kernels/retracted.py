"""Facts that are retracted, in memory: rows with a `_diff`, which rows at rest do not have.

At rest a part of facts says them all or retracts them all (`Part.retractions`). So parts that retract nothing,
nearly all, are neither larger nor read otherwise; only where a task has one of the others do its facts get a sign.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidemark.arrow.parts.writer import PartWriter
from tidemark.arrow.rows.arrays import of_numbers
from tidemark.arrow.rows.columns import Bools, Ints, integers
from tidemark.arrow.rows.cuts import PIECE_BYTES, ranks_of
from tidemark.arrow.rows.order import starts
from tidemark.arrow.rows.schema import DIFF, EVENT_TIME, TIME, facts_schema, keys_of
from tidemark.errors import Corruption
from tidemark.model.batch import Part
from tidemark.model.collection import Collection
from tidemark.storage.stores.store import ObjectStore

SAID_BEFORE = -1
"""The time that facts resolved by earlier drains count as learned at."""


def retracts(part: Part) -> bool:
    """Whether the facts of a part are retracted. Raises Corruption for one that says some and retracts others."""
    if part.retractions not in (0, part.rows):
        raise Corruption(
            f"{part.file.key} is recorded to retract {part.retractions} of its {part.rows} facts; "
            "a part retracts all or none"
        )
    return part.retractions > 0


def any_retracted(parts: Iterable[Part]) -> bool:
    """Whether facts of any of the parts are retracted, so that facts need a sign."""
    return any(retracts(part) for part in parts)


def signed_schema(collection: Collection) -> pa.Schema:
    """The columns of facts in memory where some are retracted."""
    return facts_schema(collection).append(pa.field(DIFF, pa.int64(), nullable=False))


def signed(facts: pa.RecordBatch, schema: pa.Schema, sign: int) -> pa.RecordBatch:
    """Facts with the one sign they all have."""
    return pa.RecordBatch.from_arrays([*facts.columns, of_numbers(np.full(facts.num_rows, sign))], schema=schema)


def write_signed(
    store: ObjectStore, collection: Collection, prefix: str, facts: Iterable[pa.RecordBatch]
) -> tuple[Part, ...]:
    """Write signed facts, in order, into parts under `prefix`: facts that are said and facts that are retracted
    separately."""
    schema, width = facts_schema(collection), len(collection.key)
    with (
        PartWriter(store, prefix, schema, key_width=width, facts=True) as saying,
        PartWriter(store, prefix, schema, key_width=width, facts=True, retracted=True) as taking,
    ):
        for rows in facts:
            for writer, sign in ((saying, 1), (taking, -1)):
                writer.write(rows.filter(pc.equal(rows.column(DIFF), sign)).select(schema.names))
        return saying.close() + taking.close()


def current_facts(
    facts: pa.RecordBatch, new: Bools, order: Sequence[str], key_columns: Sequence[str], said: Sequence[str]
) -> tuple[pa.RecordBatch, Ints, Ints, Ints]:
    """Signed facts in `order` without what was said and retracted before, or at one time.

    With them, for each, which of the rows it was, the number of its place, and the first row that says the same at its
    place. Known facts that are left are said. Raises Corruption if a fact is retracted when it was not said.
    """
    same = _same(facts, order, said)
    when = np.where(new, integers(facts, TIME), SAID_BEFORE)
    by = np.lexsort((when, same))
    begins = np.ones(len(by), bool)
    begins[1:] = (same[by][1:] != same[by][:-1]) | (when[by][1:] != when[by][:-1])
    firsts = np.flatnonzero(begins)
    rows = by[firsts]
    # How often each is said by then; what counts is whether it is.
    sums = np.cumsum(np.add.reduceat(integers(facts, DIFF)[by], firsts)) if len(by) else np.zeros(0, np.int64)
    leads = np.ones(len(rows), bool)
    leads[1:] = same[rows][1:] != same[rows][:-1]
    before = np.append(0, sums[:-1])
    sums = sums - np.repeat(before[leads], np.diff(np.append(np.flatnonzero(leads), len(rows))))
    if (sums < 0).any():
        row = int(rows[np.argmax(sums < 0)])
        raise Corruption(
            f"a fact of key {keys_of(facts, [row], len(key_columns))[0]} that happened at "
            f"{int(integers(facts, EVENT_TIME)[row])} is retracted, but was never said"
        )
    is_said = sums > 0
    changed = is_said ^ np.where(leads, False, np.append(False, is_said[:-1]))
    kept = np.sort(rows[changed])
    signs = np.zeros(facts.num_rows, np.int64)
    signs[rows[changed]] = np.where(is_said[changed], 1, -1)
    left = facts.take(of_numbers(kept))
    left = left.set_column(left.schema.get_field_index(DIFF), left.schema.field(DIFF), of_numbers(signs[kept]))
    place = np.cumsum(starts(left, order)) - 1
    _, first, number = np.unique(same[kept], return_index=True, return_inverse=True)
    return left, kept, place, first[number]


def _same(facts: pa.RecordBatch, order: Sequence[str], columns: Sequence[str]) -> Ints:
    """For each fact the first row that says the same at its place; few places have more than one."""
    place = np.cumsum(starts(facts, order)) - 1
    shared = np.flatnonzero(np.bincount(place)[place] > 1) if len(place) else np.zeros(0, np.int64)
    same = np.arange(facts.num_rows)
    if len(shared):
        cells = facts.select(columns).take(of_numbers(shared))
        names = [str(at) for at in range(cells.num_columns + 1)]
        rows = pa.RecordBatch.from_arrays([of_numbers(place[shared]), *cells.columns], names)
        _, first, number = np.unique(ranks_of([rows], names, PIECE_BYTES), return_index=True, return_inverse=True)
        same[shared] = shared[first[number]]
    return same
