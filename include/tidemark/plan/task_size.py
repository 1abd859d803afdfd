"""How much a task reads at most, as far as that is known before anything is opened."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from tidemark.model.batch import Part
from tidemark.plan.tasks import (
    Contributed,
    DifferenceTask,
    IngestTask,
    InspectTask,
    MergeTask,
    NotContributedTask,
    RememberTask,
    ReplayTask,
    RereadTask,
    ResolveTask,
    RetractedShareTask,
    TrimTask,
)


@dataclass(frozen=True)
class Size:
    """Rows of parts, and bytes of files and parts. The rows of source files are unknown until they are decoded."""

    rows: int = 0
    bytes: int = 0

    def __add__(self, other: Size) -> Size:
        return Size(self.rows + other.rows, self.bytes + other.bytes)


def size_of(task: Any) -> Size | None:
    """The most that a task reads; None for a task of which that is not known."""
    match task:
        case IngestTask(files=files):
            return Size(bytes=sum(file.bytes for file in files))
        case RereadTask(files=files, contributed=contributed):
            read = sum(again.file.bytes for again in files if again.file is not None)
            return Size(bytes=read) + _of_contributed(contributed)
        case ReplayTask(sources=sources):
            return Size(bytes=sum(source.bytes for source in sources))
        case NotContributedTask(contributed=contributed):
            return _of_contributed(contributed)
        case RetractedShareTask(contributed=contributed, written=written):
            return _of_contributed((*contributed, *written))
        case MergeTask(parts=parts) | RememberTask(parts=parts):
            return _of_parts(parts)
        case TrimTask(part=part) | InspectTask(part=part):
            return _of_parts([part])
        case ResolveTask(facts=facts, trace=trace):
            new = _of_parts(facts)
            return new + _of_row_groups(trace, new.rows)
        case DifferenceTask(trace=trace, snapshots=snapshots):
            return _of_parts([*trace, *(part for rows in snapshots for part in rows.parts)])
    return None


def _of_contributed(contributed: Iterable[Contributed]) -> Size:
    return _of_parts([part for some in contributed for part in some.parts])


def _of_parts(parts: Sequence[Part]) -> Size:
    return Size(sum(part.rows for part in parts), sum(part.file.bytes for part in parts))


def _of_row_groups(parts: Sequence[Part], most: int) -> Size:
    """The largest row groups of parts: of each part at most so many are opened as there are values to look up."""
    found = Size()
    for part in parts:
        rows = sum(sorted((rows for _, rows in part.groups), reverse=True)[:most])
        found += Size(rows, part.file.bytes * rows // max(1, part.rows))
    return found
