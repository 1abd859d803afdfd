"""Full snapshots, and the law that turns them into updates.

A source of full snapshots says *what there is*: the files of one interval together are its whole content at the last
instant of that interval, a multiset of (key, value) rows. What changed lies between two full snapshots: with `n_i` the
multiplicity of a row in the full snapshot of time `t_i`, and `n_0` what the collection holds of it before the first of
them, the updates are

    (t_i, n_i - n_{i-1})    where the two differ,

learned and happened at `t_i`. An unchanged full snapshot says nothing, an empty one that the source is empty. Where no
full snapshot came, nothing was said: the next one says what changed since the last.

The difference telescopes, so nothing has to be paired up: a row of full snapshot i counts +1 at t_i and -1 at t_{i+1},
what was held counts negatively at t_1, and consolidation does the rest. An example: `a` is held; the source says `a`
and `b` at 9, and `b` alone at 19.

    >>> a, b = (("a",), ()), (("b",), ())
    >>> for update in differences([(*a, 1)], [(9, [a, b]), (19, [b])]):
    ...     print(f"{update.diff:+} {update.key[0]} at {update.time}")
    -1 a at 19
    +1 b at 9

A full snapshot that is corrected at the seal S, from n to n', was wrong until the next one said otherwise, and the
collection learns so at S:

    (t_i, n' - n) and (t_j, n - n')     learned at S, or at t_j where that is later; t_j: the next full snapshot

so that what was told from t_j on stays as it was told. Without a next one the correction stays in force, and what the
next one changes is counted from there. A full snapshot that is withdrawn is corrected to what was said before it, one
that comes afterwards from what was said before it. Of full snapshots at 9, 19 and 29 with 1, 1 and no x, the second is
corrected to none:

    >>> for u in correction([(("x",), (), -1)], time=19, following=29, seal=30):
    ...     print(*u.key, u.time, u.event_time, f"{u.diff:+d}")
    x 30 19 -1
    x 30 29 +1
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tidemark.model.interval import Interval
from tidemark.model.update import Row, Update, consolidate


@dataclass(frozen=True)
class FullSnapshot:
    """What an interval's files said the source holds, from its ingest to its drain.

    `batch` is the id of the ingest, by which commands and the ledger know it; there is an unsealed batch of that id if
    it has rows. While it is `quarantined` it does not count.
    """

    batch: str
    interval: Interval
    rows: int
    quarantined: bool = False

    @property
    def time(self) -> int:
        """When the full snapshot was true, and learned: the last instant of its interval."""
        return self.interval.upper - 1


Counted = tuple[Row, Row, int]
"""A row (key, value) and how often."""


def correction(differing: Iterable[Counted], *, time: int, following: int | None, seal: int) -> list[Update]:
    """The updates by which the full snapshot of `time` is corrected at `seal`: `differing` is by how much each row is
    there more or less often than was said, `following` the time of the next full snapshot that was said, if any."""
    found: list[Update] = []
    for key, value, count in differing:
        found.append(Update(key, value, max(seal, time), time, count))
        if following is not None:
            found.append(Update(key, value, max(seal, following), following, -count))
    return consolidate(found)


def differences(held: Iterable[Counted], snapshots: Sequence[tuple[int, Iterable[tuple[Row, Row]]]]) -> list[Update]:
    """The consolidated updates by which full snapshots change what is held.

    `held` are rows (key, value, multiplicity), which are added up; `snapshots` are the time and the rows of each, in
    order of time.
    """
    if not snapshots:
        return []
    times = [time for time, _ in snapshots]
    found = [Update(key, value, times[0], times[0], -count) for key, value, count in held]
    for (time, rows), following in zip(snapshots, [*times[1:], None], strict=True):
        for key, value in rows:
            found.append(Update(key, value, time, time, +1))
            if following is not None:
                found.append(Update(key, value, following, following, -1))
    return consolidate(found)
