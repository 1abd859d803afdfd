"""The rows of a published table: what is held, what changed, and whether a part is rows as it is."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from tidemark.arrow.read import CHANGE_TYPE, MULTIPLICITY, as_of_schema, held_by, told_of
from tidemark.arrow.rows.arrays import of_numbers
from tidemark.arrow.rows.columns import integers
from tidemark.arrow.rows.schema import DIFF
from tidemark.errors import Corruption, InvalidUsage
from tidemark.model.batch import Part
from tidemark.model.collection import Collection
from tidemark.plan.read import ReadRequest, read_tasks
from tidemark.plan.unsealed import PartsOf
from tidemark.storage.stores.store import Missing, ObjectStore

GONE = "_gone"
"""The column that says of a key that it has no row any more."""
MOST_TIMES = 65_536
"""Rows of one batch, where a row is held many times."""


def table_schema(collection: Collection) -> pa.Schema:
    """The columns of a published table, each with its number as its Parquet field id."""
    return as_of_schema(collection).remove(len(collection.columns)).remove_metadata()


def footer(store: ObjectStore, part: Part) -> pq.FileMetaData:
    """The footer of a part. Corruption if it is not the part's."""
    try:
        with store.open_input(part.file.key) as file:
            found = pq.read_metadata(file)
    except Missing:
        raise Corruption(f"{part.file.key} is missing") from None
    if found.num_rows != part.rows:
        raise Corruption(f"{part.file.key} has {found.num_rows} rows, recorded were {part.rows}")
    return found


def each_counts_once(found: pq.FileMetaData) -> bool:
    """Whether every row of a part has the diff 1, by the statistics of its footer."""
    at = found.schema.names.index(DIFF)
    for group in range(found.num_row_groups):
        statistics = found.row_group(group).column(at).statistics
        if statistics is None or not statistics.has_min_max or (statistics.min, statistics.max) != (1, 1):
            return False
    return True


def held_rows(
    store: ObjectStore, request: ReadRequest, parts: PartsOf, but: Sequence[Part] = ()
) -> Iterator[pa.RecordBatch]:
    """What a collection holds, but for the rows of some parts, each row as often as it is held, in bounded memory.

    Raises InvalidUsage for a row that is held fewer than zero times: no table can hold that.
    """
    collection = request.collection
    for task in read_tasks(request, parts, but=frozenset(part.file.key for part in but)):
        for rows in held_by(store, task):
            times = integers(rows, MULTIPLICITY)
            yield from _repeated(collection, rows, times)


def net_changes(store: ObjectStore, request: ReadRequest, parts: PartsOf) -> Iterator[pa.RecordBatch]:
    """What changed in all, in the columns of net changes."""
    for task in read_tasks(request, parts):
        yield from told_of(store, task, net=True)


def adds_alone(store: ObjectStore, request: ReadRequest, parts: PartsOf) -> bool:
    """Whether all that changed in the end is that rows came."""
    return all(bool(np.all(integers(rows, "diff") > 0)) for rows in net_changes(store, request, parts))


def added_rows(store: ObjectStore, request: ReadRequest, parts: PartsOf) -> Iterator[pa.RecordBatch]:
    """The rows that came, where none went."""
    for rows in net_changes(store, request, parts):
        yield from _repeated(request.collection, rows, integers(rows, "diff"))


def keyed_changes(store: ObjectStore, request: ReadRequest, parts: PartsOf) -> Iterator[pa.RecordBatch]:
    """Of each key that changed its row now, and `_gone` false; or the row it had, and `_gone` true if it has none now.
    Of a collection whose keys hold one value: an update comes as two rows, of which the new one counts."""
    schema = table_schema(request.collection).append(pa.field(GONE, pa.bool_(), nullable=False))
    for rows in net_changes(store, request, parts):
        kinds = rows.column(rows.schema.get_field_index(CHANGE_TYPE)).to_numpy(zero_copy_only=False)
        counts = kinds != "update_preimage"
        if counts.any():
            some = rows.filter(pa.array(counts))
            gone = pa.array(kinds[counts] == "delete")
            columns = [some.column(name) for name in schema.names[:-1]]
            yield pa.RecordBatch.from_arrays([*columns, gone], schema=schema)


def _repeated(collection: Collection, rows: pa.RecordBatch, times: np.ndarray) -> Iterator[pa.RecordBatch]:
    schema = table_schema(collection)
    plain = pa.RecordBatch.from_arrays([rows.column(name) for name in schema.names], schema=schema)
    if len(times) and times.min() < 0:
        at = int(times.argmin())
        key = [plain.column(name)[at].as_py() for name in schema.names[: len(collection.key)]]
        shown = "a key" if collection.masked else f"key {key}"
        raise InvalidUsage(
            f"a row of {shown} is held {int(times[at])} times, which no table can hold; retract no more than there is"
        )
    if not len(times) or times.max() <= 1:
        yield plain
        return
    ends = np.cumsum(times)
    for start in range(0, int(ends[-1]), MOST_TIMES):
        numbers = np.arange(start, min(start + MOST_TIMES, int(ends[-1])))
        yield plain.take(of_numbers(np.searchsorted(ends, numbers, side="right")))
