"""A row, a chunk of rows, and how two chunks are joined."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from tidemark.errors import InvalidUsage
from tidemark.model.update import Row as Key
from tidemark.model.update import Scalar, ordered


@dataclass(frozen=True, slots=True)
class Row:
    """A signed row: values by column, timelines among them; a column that is absent is null."""

    values: Mapping[str, Scalar]
    diff: int = 1

    def time(self, timeline: str) -> int | None:
        """Its time on a timeline; None if it is not on it."""
        time = self.values.get(timeline)
        assert time is None or isinstance(time, int), f"{timeline} is {time!r}, which is no time"
        return time

    def cells(self, columns: Sequence[str]) -> Key:
        """Its values in the order of the columns."""
        return tuple(self.values.get(name) for name in columns)


@dataclass(frozen=True, slots=True)
class Chunk:
    """Rows of one key in the order in which they are stored, their set of timelines, the datatypes of their columns."""

    key: Key
    timelines: frozenset[str]
    rows: tuple[Row, ...]
    datatypes: Mapping[str, str] = field(default_factory=dict)

    def in_order(self, columns: Sequence[str]) -> Chunk:
        """The same rows, sorted by columns, nulls first; rows that are equal in these keep their order."""
        return replace(self, rows=tuple(sorted(self.rows, key=lambda row: ordered(row.cells(columns)))))


def joined(first: Chunk, second: Chunk) -> Chunk:
    """The rows of one chunk after those of another. A column that one of them lacks is null in its rows.

    Raises InvalidUsage for two keys, two sets of timelines, or two datatypes of one column.
    """
    if first.key != second.key:
        raise InvalidUsage(f"chunks of two keys cannot be joined: {first.key} and {second.key}")
    if first.timelines != second.timelines:
        one, other = (", ".join(sorted(chunk.timelines)) or "none" for chunk in (first, second))
        raise InvalidUsage(f"chunks of two timeline sets cannot be joined: {one} and {other}")
    for column, datatype in first.datatypes.items():
        if (other := second.datatypes.get(column, datatype)) != datatype:
            raise InvalidUsage(f"chunks of two datatypes cannot be joined: {column} is {datatype} and {other}")
    return replace(first, rows=first.rows + second.rows, datatypes={**first.datatypes, **second.datatypes})
