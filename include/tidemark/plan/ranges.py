"""Cutting a merge of sorted parts into key ranges that can be merged separately, and skipping parts that cannot
matter."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import pairwise

from tidemark.model.batch import Part
from tidemark.model.chunk.law import meets_keys
from tidemark.model.key import BEHIND_NULL, NULL, Bound, BoundScalar, Key, KeyScalar
from tidemark.plan.tasks import KeyRange

TASK_ROWS = 1_000_000
"""Rows a task merges, about: seconds of work, far above a task's fixed cost, far below an executor's memory."""
TARGET_BYTES = 128 * 2**20
"""Bytes of parts that a range covers, if its rows are so wide that they reach this before the target of rows."""


def split_keys(parts: Sequence[Part], *, target_rows: int, target_bytes: int = TARGET_BYTES) -> list[KeyRange]:
    """Consecutive key ranges covering all keys, each of about `target_rows` rows or `target_bytes` bytes of the parts'
    files, whichever is less, by the parts' sparse indexes. All have like sizes, one and a half of the target at most,
    but for the last, which may be smaller: to cut at the target would leave one with what is over, however little.

    A key is never split over two ranges, so one with more rows than the target makes a range of its own, larger.
    """
    # What a group weighs is its share of the target, of rows or of bytes, as a whole number of which `full` make one.
    full = target_rows * target_bytes
    groups = [
        (key, max(rows * target_bytes, rows * part.file.bytes // part.rows * target_rows))
        for part in parts
        for key, rows in part.groups
    ]
    whole = sum(weight for _, weight in groups)
    count = max(1, (2 * whole + full) // (2 * full))
    cuts: list[Key] = []
    filled = 0
    for first_key, weight in sorted(groups, key=lambda group: group[0]):
        if filled * count >= whole and (not cuts or first_key > cuts[-1]):
            cuts.append(first_key)
            filled = 0
        filled += weight
    return [KeyRange(lower, upper) for lower, upper in zip([None, *cuts], [*cuts, None], strict=True)]


def even_target(rows: int, *, least: int, tasks: int) -> int:
    """How many rows each of about `tasks` tasks should have, so that all have as many: fewer tasks where these would be
    of less than about `least` rows, more where they would be of more than TASK_ROWS.

    Ranges that are bundled are cut at the size given: at `least`, a task would be left with what is over, here of
    12,000 rows.

        >>> even_target(1_060_576, least=524_288, tasks=4)
        530288
    """
    count = max(1, min(tasks, round(rows / least)), -(-rows // TASK_ROWS))
    return max(1, -(-rows // count))


def split_within(
    keys: KeyRange, parts: Sequence[Part], *, target_rows: int, leading: int | None = None
) -> list[KeyRange]:
    """Consecutive key ranges that cover `keys`, as `split_keys` cuts the parts; with `leading` none of them cut between
    keys that are equal in so many of their first columns."""
    cuts = [cut.lower for cut in split_keys(parts, target_rows=target_rows) if cut.lower is not None]
    cuts = sorted({cut[:leading] for cut in cuts})
    inside = [
        cut for cut in cuts if (keys.lower is None or cut > keys.lower) and (keys.upper is None or cut < keys.upper)
    ]
    return [KeyRange(lower, upper) for lower, upper in zip([keys.lower, *inside], [*inside, keys.upper], strict=True)]


def most_alike(parts: Iterable[Part], leading: int) -> int:
    """About how many rows are equal in the `leading` columns of their keys, at most: row groups that begin with the
    same have few others."""
    rows: Counter[Key] = Counter()
    for part in parts:
        for first_key, count in part.groups:
            rows[first_key[:leading]] += count
    return max(rows.values(), default=0)


def within(parts: Iterable[Part], keys: KeyRange) -> tuple[Part, ...]:
    """The parts that can hold keys of a range."""
    return tuple(part for part in parts if meets_keys(part, keys))


def groups_within(part: Part, keys: KeyRange) -> range:
    """The row groups of a part that can hold keys of the range."""
    found = groups_among(part, [keys])
    return range(found[0], found[-1] + 1) if found else range(0)


def groups_among(part: Part, ranges: Iterable[KeyRange]) -> list[int]:
    """The row groups of a part that can hold keys of some ranges, which are ascending and disjoint."""
    firsts = [first_key for first_key, _ in part.groups]
    found: list[int] = []
    for keys in ranges:
        # A key equal to a group's first key may already end the group before it, hence that one too.
        low = 0 if keys.lower is None else max(0, bisect_left(firsts, keys.lower) - 1)
        high = len(firsts) if keys.upper is None else bisect_left(firsts, keys.upper)
        found.extend(range(max(low, found[-1] + 1 if found else 0), high))
    return found


def bundled(
    ranges: Sequence[KeyRange], parts: Sequence[Part], *, target_rows: int, leading: int | None = None
) -> list[tuple[KeyRange, ...]]:
    """The ranges, which are ascending and disjoint, in bundles of about `target_rows` rows in the row groups that can
    hold their keys; one that has more by itself is cut, as `split_within` does."""
    bundles: list[tuple[KeyRange, ...]] = []
    bundle, rows = list[KeyRange](), 0
    for keys in ranges:
        near = within(parts, keys)
        count = sum(part.groups[at][1] for part in near for at in groups_within(part, keys))
        if bundle and rows + count > target_rows:
            bundles.append(tuple(bundle))
            bundle, rows = [], 0
        if count > target_rows:
            bundles += [(some,) for some in split_within(keys, near, target_rows=target_rows, leading=leading)]
            continue
        bundle.append(keys)
        rows += count
    return [*bundles, tuple(bundle)] if bundle else bundles


def ranges_of_groups(opened: Iterable[tuple[Part, Sequence[int]]]) -> list[KeyRange]:
    """The ranges, ascending and disjoint, of keys that some row groups of parts can hold. A key equal to the first of
    the next group may be in this one too."""
    found = []
    for part, groups in opened:
        for at in groups:
            last = part.groups[at + 1][0] if at + 1 < len(part.groups) else part.last_key
            found.append(KeyRange(part.groups[at][0], behind(last)))
    united: list[KeyRange] = []
    for keys in sorted(found, key=lambda keys: keys.lower or ()):
        before = united[-1] if united else None
        if before is None or (before.upper is not None and before.upper < (keys.lower or ())):
            united.append(keys)
        elif before.upper is not None and (keys.upper is None or keys.upper > before.upper):
            united[-1] = KeyRange(before.lower, keys.upper)
    return united


def behind(prefix: Key) -> Bound | None:
    """The first key behind all that begin with `prefix`; None if there is none, or nobody can say."""
    if not prefix or (isinstance(prefix[-1], int) and prefix[-1] >= 2**63 - 1):
        return None
    return (*prefix[:-1], successor(prefix[-1]))


def successor(value: KeyScalar) -> BoundScalar:
    """The next place in the order of keys; there is no value between."""
    if value is NULL:
        return BEHIND_NULL
    return value + "\0" if isinstance(value, str) else int(value) + 1


def ranges_of(prefixes: Iterable[Key], groups: Sequence[Key], most: int) -> list[KeyRange]:
    """At most `most` ranges, ascending and disjoint, that hold all keys which begin with one of some prefixes, and few
    others: `groups` are the first keys of the row groups there are, sorted, and those between two ranges are spared."""
    return ranges_between([(prefix, prefix) for prefix in sorted(set(prefixes))], groups, most)


def ranges_between(spans: Sequence[tuple[Key, Key]], groups: Sequence[Key], most: int) -> list[KeyRange]:
    """The same of all keys from those that begin with one prefix to those that begin with another one: spans of
    prefixes, which are ascending and disjoint.

    Spans between which there is no row group are in one range, since nothing would be spared.
    """
    if not spans:
        return []
    places, low = list[tuple[int, int]](), 0
    for first, last in spans:  # of many the next is mostly where the one before was
        low = low if low == len(groups) or first <= groups[low] else bisect_left(groups, first, low)
        end = behind(last) or last
        places.append((low, low if low == len(groups) or end < groups[low] else bisect_right(groups, end, low)))
    spared = [later[0] - 1 - earlier[1] for earlier, later in pairwise(places)]
    sparing = sorted((at for at, count in enumerate(spared) if count > 0), key=lambda at: spared[at], reverse=True)
    cuts = sorted(sparing[: most - 1])
    begins, ends = [0, *(at + 1 for at in cuts)], [*cuts, len(spans) - 1]
    return [KeyRange(spans[begin][0], behind(spans[end][1])) for begin, end in zip(begins, ends, strict=True)]
