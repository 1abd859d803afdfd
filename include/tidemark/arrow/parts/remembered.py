"""What a process remembers of parts: their footers, and columns of their row groups as these were decoded.

A column is remembered as the file has it, not as it is wanted today, by the hash of the part, the row group and the
name in the file. It is copied, so that it keeps nothing in memory but itself.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import cached_property, partial

import pyarrow as pa
import pyarrow.parquet as pq

from tidemark.arrow.parts import footer
from tidemark.arrow.parts.checksums import Checksums
from tidemark.arrow.rows.columns import contiguous
from tidemark.model.batch import Part
from tidemark.model.chunk.footer import TimelineChunks
from tidemark.storage.cache import CachedStore, cache_of
from tidemark.storage.stores.store import ObjectStore

FOOTER_TIMES = 10
"""A decoded footer takes so many times the bytes that it has in the file, with what its entry says."""

Decode = Callable[[Sequence[int], list[str]], pa.Table]
"""Columns of row groups, by their names in the file, read from it."""


class Footer:
    """The footer of a part: Parquet's metadata, with statistics, and what our entry in it says; and the checksums of
    its chunks, None of a part that has none."""

    def __init__(self, part: Part, metadata: pq.FileMetaData, checksums: Checksums | None) -> None:
        self._key = part.file.key
        self.metadata = metadata
        self.checksums = checksums
        self.schema: pa.Schema = metadata.schema.to_arrow_schema()
        self.rows = [self.metadata.row_group(group).num_rows for group in range(self.metadata.num_row_groups)]
        """Of each row group."""

    @cached_property
    def timelines(self) -> Mapping[int, TimelineChunks]:
        """What our entry says of the row groups beyond statistics, by the id of each timeline; of a part that was
        written before format 3, or had no timelines, nothing."""
        return footer.decoded(self.metadata.metadata, len(self.rows), self._key)

    def size(self) -> int:
        """The bytes that it takes."""
        checksums = self.checksums.nbytes if self.checksums else 0
        return int(self.metadata.serialized_size) * FOOTER_TIMES + checksums


class RememberedColumns:
    """The columns of one part. With `encoded` texts are in the dictionaries of the file."""

    def __init__(self, cache: CachedStore, part: Part, *, encoded: bool) -> None:
        self._cache, self._part = cache, part
        self._lead = ("column", part.file.sha256, encoded)

    @classmethod
    def of(cls, store: ObjectStore, part: Part, *, encoded: bool) -> RememberedColumns | None:
        """None if the store has no cache."""
        cache = cache_of(store)
        return None if cache is None else cls(cache, part, encoded=encoded)

    def columns(self, groups: Sequence[int], names: list[str], decode: Decode) -> pa.Table:
        """Columns of row groups, of which `decode` reads what is not remembered. What is remembered has a chunk for
        each row group."""
        found = {(group, name): self._cache.find(self._name(group, name)) for group in groups for name in names}
        if all(column is None for column in found.values()):
            return self._kept(groups, decode(groups, names))
        for group in groups:
            if missing := [name for name in names if found[group, name] is None]:
                rows = self._kept([group], decode([group], missing))
                found |= {(group, name): contiguous(rows.column(name)) for name in missing}
        columns = [pa.chunked_array([found[group, name] for group in groups]) for name in names]
        return pa.Table.from_arrays(columns, names)

    def _kept(self, groups: Sequence[int], rows: pa.Table) -> pa.Table:
        """The rows of some row groups, which are remembered as far as there is room."""
        start = 0
        for group in groups:
            some = rows.slice(start, self._part.groups[group][1])
            start += some.num_rows
            for name, column in zip(some.column_names, some.columns, strict=True):
                self._cache.keep(self._name(group, name), column.nbytes, partial(_copied, column))
        return rows

    def _name(self, group: int, name: str) -> Hashable:
        return (*self._lead, group, name)


def _copied(column: pa.ChunkedArray) -> pa.Array:
    """The values in memory of their own. Chunks may have a dictionary each, which are united."""
    return pa.concat_arrays(column.unify_dictionaries().chunks)
