"""How much a read looks at: known from metadata, before any row is read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tidemark.model.batch import Part
from tidemark.plan.kinds import plan_of
from tidemark.plan.ranges import groups_among
from tidemark.plan.read import ReadRequest, at_rest
from tidemark.plan.tasks import ALL_KEYS, KeyRange
from tidemark.plan.unsealed import PartsOf


def size_of(request: ReadRequest, parts: PartsOf, ranges: Sequence[KeyRange] = ()) -> tuple[int, int]:
    """The rows of a read, and about how many bytes they are at rest: of the row groups that can hold keys of some
    ranges (none: all), and of unsealed rows that are no updates yet. Those that need not be resolved are at rest."""
    rows, size = 0, 0
    if plan_of(request.collection.kind).resolves:
        rows = sum(batch.rows for batch in request.unsealed.batches)
    for some in at_rest(request, parts):
        for part in some.parts:
            for _, more, its_bytes in row_groups(part, ranges):
                rows, size = rows + more, size + its_bytes
    return rows, size


def row_groups(part: Part, ranges: Sequence[KeyRange]) -> Iterator[tuple[int, int, int]]:
    """The row groups of a part that can hold keys of some ranges (none: all): number, rows and about how many bytes."""
    for at in groups_among(part, ranges or (ALL_KEYS,)):
        rows = part.groups[at][1]
        yield at, rows, part.file.bytes * rows // part.rows
