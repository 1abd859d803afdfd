"""What the footer of a part says of its chunks (row groups) beyond Parquet's statistics, by the ids of columns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Present:
    """Where on a timeline the rows of a chunk are that have a value in some column: the first and the last, None where
    none of them is on the timeline; and how many rows have one."""

    first: int | None
    last: int | None
    rows: int

    def __str__(self) -> str:
        return f"{self.first} to {self.last} in {self.rows} rows"


@dataclass(frozen=True)
class TimelineChunks:
    """What is said of one timeline. `ascends` has for each chunk whether its rows ascend by the timeline, none of them
    null there. `present` has, of the value columns that have nulls, what is present in each chunk: None for a chunk in
    which the column has no null, as that is then the chunk's own bounds."""

    id: int
    ascends: tuple[bool, ...]
    present: Mapping[int, tuple[Present | None, ...]] = field(default_factory=dict)
