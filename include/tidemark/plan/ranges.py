"""Cutting a merge of sorted parts into key ranges that can be merged apart, and skipping parts that cannot matter."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tidemark.model.batch import Part
from tidemark.model.update import Row
from tidemark.plan.tasks import KeyRange

TASK_ROWS = 1_000_000
"""Rows a task merges: seconds of work, far above a task's fixed cost, far below an executor's memory."""
TARGET_BYTES = 128 * 2**20
"""Bytes of parts that a range stands for, if its rows are so wide that they reach this before the target of rows."""


def split_keys(parts: Sequence[Part], *, target_rows: int, target_bytes: int = TARGET_BYTES) -> list[KeyRange]:
    """Consecutive key ranges covering all keys, each of about `target_rows` rows or `target_bytes` bytes of the parts'
    files, whichever is less, by the parts' sparse indexes.

    A key is never split over two ranges, so one with more rows than the target makes a range of its own.
    """
    groups = [(key, rows, rows * part.file.bytes // part.rows) for part in parts for key, rows in part.groups]
    cuts: list[Row] = []
    held = size = 0
    for first_key, rows, nbytes in sorted(groups, key=lambda group: group[0]):
        if (held >= target_rows or size >= target_bytes) and (not cuts or first_key > cuts[-1]):
            cuts.append(first_key)
            held = size = 0
        held += rows
        size += nbytes
    return [KeyRange(lower, upper) for lower, upper in zip([None, *cuts], [*cuts, None], strict=True)]


def split_within(keys: KeyRange, parts: Sequence[Part], *, target_rows: int) -> list[KeyRange]:
    """Consecutive key ranges that cover `keys`, as `split_keys` cuts the parts."""
    cuts = [cut.lower for cut in split_keys(parts, target_rows=target_rows) if cut.lower is not None]
    inside = [
        cut for cut in cuts if (keys.lower is None or cut > keys.lower) and (keys.upper is None or cut < keys.upper)
    ]
    return [KeyRange(lower, upper) for lower, upper in zip([keys.lower, *inside], [*inside, keys.upper], strict=True)]


def within(parts: Iterable[Part], keys: KeyRange) -> tuple[Part, ...]:
    """The parts that can hold keys of a range."""
    return tuple(part for part in parts if overlaps(part, keys))


def overlaps(part: Part, keys: KeyRange) -> bool:
    """Whether a part can hold a key of the range."""
    return (keys.upper is None or part.first_key < keys.upper) and (keys.lower is None or part.last_key >= keys.lower)


def groups_within(part: Part, keys: KeyRange) -> range:
    """The row groups of a part that can hold keys of the range."""
    firsts = [first_key for first_key, _ in part.groups]
    # A key equal to a group's first key may already end the group before it, hence "strictly before lower".
    low = 0 if keys.lower is None else max(0, sum(first < keys.lower for first in firsts) - 1)
    high = len(firsts) if keys.upper is None else sum(first < keys.upper for first in firsts)
    return range(low, max(low, high))
