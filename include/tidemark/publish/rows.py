"""The rows of a published table: the current rows, what changed, and the footers of parts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from tidemark.arrow.decode.far_times import first_far
from tidemark.arrow.parts.bounds import bounds_in_footer
from tidemark.arrow.parts.reader import OpenedPart
from tidemark.arrow.read import CHANGE_TYPE, MULTIPLICITY, as_of_schema, changes_of, rows_as_of
from tidemark.arrow.repeated import each_time
from tidemark.arrow.rows.columns import Ints, integers
from tidemark.errors import InvalidUsage
from tidemark.model.batch import Part
from tidemark.model.collection import Collection
from tidemark.model.publication import TableFormat
from tidemark.plan.read import ReadRequest, read_tasks
from tidemark.plan.unsealed import PartsOf
from tidemark.publish.table import Rows
from tidemark.storage.stores.store import ObjectStore

GONE = "_gone"
"""The column that says of a key that it has no row any more."""


def table_schema(collection: Collection) -> pa.Schema:
    """The columns of a published table, each with its number as its Parquet field id."""
    return as_of_schema(collection).remove(len(collection.columns)).remove_metadata()


def footer(store: ObjectStore, part: Part) -> pq.FileMetaData:
    """The footer of a part. Corruption if it is not the part's."""
    with OpenedPart(store, part) as file:
        return file.metadata


def current_rows(
    store: ObjectStore, request: ReadRequest, parts: PartsOf, but: Sequence[Part] = ()
) -> Iterator[pa.RecordBatch]:
    """The rows of a collection, but for those of some parts, each as often as its multiplicity says, in bounded memory.

    Raises InvalidUsage for a row of negative multiplicity: no table can hold that.
    """
    collection = request.collection
    for task in read_tasks(request, parts, but=frozenset(part.file.key for part in but)):
        for rows in rows_as_of(store, task):
            times = integers(rows, MULTIPLICITY)
            yield from _repeated(collection, rows, times)


def net_changes(store: ObjectStore, request: ReadRequest, parts: PartsOf) -> Iterator[pa.RecordBatch]:
    """What changed in all, in the columns of net changes."""
    for task in read_tasks(request, parts):
        yield from changes_of(store, task, net=True)


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


def within_years(collection: Collection, format: TableFormat, rows: Rows) -> Iterator[pa.RecordBatch]:
    """Rows that are copied. Raises InvalidUsage for a time that no table of a format has."""
    names = [column.name for column in collection.columns if format.is_within_years(column.type)]
    for batch in rows():
        for name in names:
            if far := first_far(batch.column(name)):
                raise _not_published(collection, format, name, far[0])
        yield batch


def check_footer(collection: Collection, format: TableFormat, part: Part, footer: pq.FileMetaData) -> None:
    """Raise InvalidUsage where a part that is named has a time that no table of a format has."""
    stored, fields = footer.schema.to_arrow_schema(), table_schema(collection)
    for column in collection.columns:
        if format.is_within_years(column.type):
            field = fields.field(column.name)
            bounds = bounds_in_footer(footer, stored, part, field) or ()
            whole = pa.int32() if pa.types.is_date32(field.type) else pa.int64()
            if far := first_far(pa.array(bounds, whole).cast(field.type)):
                raise _not_published(collection, format, column.name, far[0])


def _not_published(collection: Collection, format: TableFormat, column: str, problem: str) -> InvalidUsage:
    return InvalidUsage(
        f"column {column} of collection {collection.name} {problem}, which no table of {format} has; publish one that "
        "is derived from it and leaves such times out"
    )


def _repeated(collection: Collection, rows: pa.RecordBatch, times: Ints) -> Iterator[pa.RecordBatch]:
    schema = table_schema(collection)
    plain = pa.RecordBatch.from_arrays([rows.column(name) for name in schema.names], schema=schema)
    return each_time(plain, times, collection.unshown)
