"""What is known of a chunk before it is opened, counted from its rows.

Per timeline: the first and last time, how many rows are not on it, and whether the times are in order. Per timeline and
column: the same bounds over the rows that have a value in the column, which may be much narrower, and how many such
rows there are. A column without any value has no bounds: it is as if it were absent.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

from tidemark.model.chunk.chunk import Chunk


class Ends(NamedTuple):
    """The first and last time of some rows, both included."""

    first: int
    last: int


UNKNOWN = Ends(-(2**63), 2**63 - 1)
"""The bounds of a chunk of which nothing is known: it may hold any time."""


@dataclass(frozen=True, slots=True)
class TimelineMetadata:
    """A chunk on one timeline. `bounds` is None if no row is on it; `is_sorted` skips nulls, equal times are sorted."""

    bounds: Ends | None
    nulls: int
    is_sorted: bool


@dataclass(frozen=True, slots=True)
class ColumnMetadata:
    """A chunk's rows on one timeline that have a value in one column: their bounds and number."""

    bounds: Ends
    rows: int


@dataclass(frozen=True, slots=True)
class ChunkMetadata:
    """All that is known of a chunk. `columns` is by (timeline, column); a pair without rows is absent."""

    rows: int
    values: int
    timelines: Mapping[str, TimelineMetadata]
    columns: Mapping[tuple[str, str], ColumnMetadata]

    def bounds(self, timeline: str, column: str | None = None) -> Ends | None:
        """Of the rows on a timeline, or of those with a value in a column; None if there are none."""
        if column is None:
            found = self.timelines.get(timeline)
            return None if found is None else found.bounds
        values = self.columns.get((timeline, column))
        return None if values is None else values.bounds


def describe(chunk: Chunk) -> ChunkMetadata:
    """The metadata of a chunk: exact, and tight on both ends. `values` counts cells that are not null, of the columns
    that are no timelines."""
    columns = chunk.datatypes.keys() - chunk.timelines
    present = [(row, {name for name in columns if row.values.get(name) is not None}) for row in chunk.rows]
    by_column = {
        (timeline, column): [
            time for row, names in present if column in names and (time := row.time(timeline)) is not None
        ]
        for timeline in chunk.timelines
        for column in columns
    }
    return ChunkMetadata(
        len(chunk.rows),
        sum(len(names) for _, names in present),
        {name: _timeline([row.time(name) for row in chunk.rows]) for name in chunk.timelines},
        {pair: ColumnMetadata(_bounds(times), len(times)) for pair, times in by_column.items() if times},
    )


def _timeline(times: list[int | None]) -> TimelineMetadata:
    known = [time for time in times if time is not None]
    in_order = all(one <= other for one, other in pairwise(known))
    return TimelineMetadata(_bounds(known) if known else None, len(times) - len(known), in_order)


def _bounds(times: Iterable[int]) -> Ends:
    times = list(times)
    return Ends(min(times), max(times))
