"""What the columns of a Parquet file take in memory while they are read, before they are.

The footer says how many bytes they have encoded. Of texts in a dictionary, which may be few bytes and very many as
rows, the longest value is looked up. Reading texts as dictionaries bounds what they take where their values are long.
But Arrow keeps a table of all values of a column then, which takes twelve times what the column has in the file: so
where values are short they are read as they are, and where there are many columns a few at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from tidemark.arrow.rows.columns import contiguous, leaves

BATCH_ROWS = 65_536
"""Rows decoded at once, where they are narrow."""
BATCH_BYTES = 32 * 2**20
"""Bytes of decoded rows at once, where they are wide; a single row may have more."""
OPEN_BYTES = 192 * 2**20
"""Most bytes that the readers of all columns may take. Where they would take more, a few columns are read at a time."""
GROUP_BYTES = 64 * 2**20
"""Most bytes that the readers of these few take; those of a single column may take more."""
SHORT_BYTES = 16 * 2**10
"""Bytes of the longest values of a row's texts, together, that are read as they are."""
_LEAST_ROWS = 64
"""Rows asked of Parquet at once, however wide they may be: its encodings do not say how wide."""
_CHECKED = 32
"""Columns whose metadata are checked at once."""
_AS_DICTIONARY = 12
_AS_IT_IS, _MOST_AS_IT_IS = 3, 4 * 2**20
"""What a column's reader takes, measured: so many times what the column has in the file. As it is, it takes no more
than what a few pages have."""
_DICTIONARY = frozenset({"RLE_DICTIONARY", "PLAIN_DICTIONARY"})
_PLAIN = frozenset({"PLAIN", "RLE", "BIT_PACKED"})
_LENGTHS = frozenset({"DELTA_LENGTH_BYTE_ARRAY"})
_TEXT = "BYTE_ARRAY"


@dataclass(frozen=True)
class RowGroup:
    """What the footer says of the wanted columns in a row group: its rows, and of each leaf by its path the bytes,
    uncompressed but encoded; of those of texts the encodings."""

    rows: int
    sizes: Mapping[str, int]
    encodings: Mapping[str, frozenset[str]]


@dataclass(frozen=True)
class Columns:
    """Columns of a file by their paths: the leaves of each, its row groups, of texts that can be read as dictionaries
    the longest value of any, and which are dictionaries whether asked for or not."""

    leaves: Mapping[str, Sequence[str]]
    groups: Sequence[RowGroup]
    longest: Mapping[str, int]
    declared: frozenset[str] = frozenset()

    def dictionaries(self, paths: Sequence[str]) -> list[str]:
        """Which of the columns to read as dictionaries, where these are read together: those of the longest values."""
        found = [path for path in paths if path in self.longest and path in self.declared]
        room = SHORT_BYTES
        for path in sorted(self.longest.keys() & set(paths) - self.declared, key=lambda path: self.longest[path]):
            room -= self.longest[path]
            if room < 0:
                found.append(path)
        return found

    def open_bytes(self, group: RowGroup, paths: Sequence[str]) -> int:
        """What the readers of the columns take."""
        dictionaries = set(self.dictionaries(paths))
        return sum(self._column_bytes(group, path, path in dictionaries) for path in paths)

    def few_at_a_time(self, group: RowGroup) -> Iterator[list[str]]:
        """The columns in their order, as many at a time as may be read together."""
        few: list[str] = []
        size = length = 0
        for path in self.leaves:
            short = path not in self.declared and self.longest.get(path, 0) <= SHORT_BYTES
            more, longer = self._column_bytes(group, path, not short), self.longest.get(path, 0) if short else 0
            if few and (size + more > GROUP_BYTES or length + longer > SHORT_BYTES):
                yield few
                few, size, length = [], 0, 0
            few.append(path)
            size, length = size + more, length + longer
        yield few

    def rows_at_once(self, group: RowGroup, paths: Sequence[str], dictionaries: Sequence[str], read: int) -> int:
        """How many rows to ask for, of `read` bytes in all: few where these are many, or a row group is encoded such
        that little may become much."""
        wanted = [leaf for path in paths for leaf in self.leaves[path]]
        rows = BATCH_BYTES // (16 * max(1, len(wanted)))
        if read > 2 * BATCH_BYTES:
            # Eight times as careful as the average: large values may be neighbours.
            rows = min(rows, BATCH_BYTES * group.rows // max(1, self.size(group, paths)) // 8)
        short = set(paths) & self.longest.keys() - set(dictionaries)
        rows = min(rows, 2 * BATCH_BYTES // max(1, sum(self.longest[path] for path in short)))
        for leaf in wanted:
            used = group.encodings.get(leaf, frozenset())
            if leaf not in self.longest and not used <= _PLAIN | _LENGTHS:  # values may share texts
                rows = min(rows, 2 * BATCH_BYTES // max(1, group.sizes[leaf]))
        return min(BATCH_ROWS, max(_LEAST_ROWS, rows))

    def size(self, group: RowGroup, paths: Sequence[str]) -> int:
        """Bytes of the columns in a row group, uncompressed but encoded."""
        return sum(group.sizes[leaf] for path in paths for leaf in self.leaves[path])

    def _column_bytes(self, group: RowGroup, path: str, as_dictionary: bool) -> int:
        sizes = [group.sizes[leaf] for leaf in self.leaves[path]]
        if as_dictionary:
            return _AS_DICTIONARY * sum(sizes)
        return sum(min(_AS_IT_IS * size, _MOST_AS_IT_IS) for size in sizes)


def columns_of(
    footer: pq.ParquetFile, paths: Sequence[str], reopen: Callable[[Sequence[str]], pq.ParquetFile]
) -> Columns:
    """What is known of the columns at `paths`; `reopen` opens the file such that some texts come as dictionaries.

    Raises what the reader raises of a damaged file.
    """
    metadata, wanted = footer.metadata, set(paths)
    schema = [metadata.schema.column(at) for at in range(metadata.num_columns)]
    places = [at for at, column in enumerate(schema) if _path_of(column.path, wanted)]
    found: dict[str, list[str]] = {path: [] for path in paths}
    for at in places:
        found[_path_of(schema[at].path, wanted)].append(schema[at].path)
    groups = [
        _row_group(footer, number, paths, {schema[at].path: at for at in places})
        for number in range(metadata.num_row_groups)
    ]
    texts = [schema[at].path for at in places if schema[at].path in wanted and _has_dictionary(groups, schema[at])]
    declared = frozenset(field.name for field in footer.schema_arrow if pa.types.is_dictionary(field.type))
    return Columns(found, groups, _longest(reopen(texts), groups, texts) if texts else {}, declared & wanted)


def _path_of(leaf: str, paths: set[str]) -> str:
    """At which of the paths a leaf of the file is, or within which nested column that is; "" if at none."""
    if leaf in paths:
        return leaf
    steps = leaf.split(".")
    above = (".".join(steps[:count]) for count in range(1, len(steps)))
    return next((path for path in above if path in paths), "")


def _row_group(file: pq.ParquetFile, number: int, paths: Sequence[str], places: Mapping[str, int]) -> RowGroup:
    # A reader refuses wrong metadata of a column; asked for it directly, pyarrow ends the process. So it is read first.
    for at in range(0, len(paths), _CHECKED):
        some = list(paths[at : at + _CHECKED])
        next(file.iter_batches(1, row_groups=[number], columns=some, use_threads=False), None)
    group = file.metadata.row_group(number)
    columns = {leaf: group.column(at) for leaf, at in places.items()}
    return RowGroup(
        group.num_rows,
        {leaf: column.total_uncompressed_size for leaf, column in columns.items()},
        {leaf: frozenset(column.encodings) for leaf, column in columns.items() if column.physical_type == _TEXT},
    )


def _has_dictionary(groups: Sequence[RowGroup], column: pq.ColumnSchema) -> bool:
    """Whether a column of texts can be read as a dictionary, and may take more memory as it is."""
    used = frozenset[str]().union(*(group.encodings.get(column.path, frozenset()) for group in groups))
    return column.physical_type == _TEXT and bool(used & _DICTIONARY) and used <= _DICTIONARY | _PLAIN


def _longest(file: pq.ParquetFile, groups: Sequence[RowGroup], texts: Sequence[str]) -> dict[str, int]:
    """The bytes of the longest value that any row group has in its dictionary; no fewer where none can be looked up."""
    longest = dict.fromkeys(texts, 1)
    for number, group in enumerate(groups):
        some: list[str] = []
        room = GROUP_BYTES
        for path in texts:
            if longest[path] > SHORT_BYTES or group.sizes[path] <= longest[path]:
                continue  # no longer one changes anything, or is there
            room -= _AS_DICTIONARY * group.sizes[path]
            if some and room < 0:
                _look_up(file, number, group, some, longest)
                some, room = [], GROUP_BYTES - _AS_DICTIONARY * group.sizes[path]
            some.append(path)
        if some:
            _look_up(file, number, group, some, longest)
    return longest


def _look_up(file: pq.ParquetFile, number: int, group: RowGroup, paths: Sequence[str], longest: dict[str, int]) -> None:
    """Arrow gives the whole dictionary of a row group with the first of its rows."""
    first = next(file.iter_batches(1, row_groups=[number], columns=list(paths), use_threads=False), None)
    if first is None:
        return
    flat = first if set(paths) <= set(first.schema.names) else leaves(first, paths)
    for path in paths:
        column, size = contiguous(flat.column(path)), group.sizes[path]
        if pa.types.is_dictionary(column.type) and len(column.dictionary):
            size = pc.max(pc.binary_length(column.dictionary)).as_py() or 0
        longest[path] = max(longest[path], size)
