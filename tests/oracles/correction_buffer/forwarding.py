"""Merging chains of which rows are below the since: their times count as the since.

That breaks the order within a chain. With the since at 2 these two chains, sorted by (time, data),

    c@1 b@2 a@3        b@1 a@2 c@2

are `c@2 b@2 a@3` and `b@2 a@2 c@2`: merged as they stand, b would not meet -b. But rows of *one* time stay sorted by
data when all of them are moved. So each chain is cut into one *run* per time below the since, and the rest:

    >>> one = Chain.of([Correction(1, "c", +1), Correction(2, "b", -1), Correction(3, "a", -1)])
    >>> two = Chain.of([Correction(1, "b", +1), Correction(2, "a", +1), Correction(2, "c", -1)])
    >>> for chain in (one, two):
    ...     for run in runs(chain, 2):
    ...         print(*(f"{row.diff:+}{row.data}@{row.time}" for row in run))
    +1c@2
    -1b@2 -1a@3
    +1b@2
    +1a@2 -1c@2
    >>> strategy = strategy_for(stale_times([one, two], 2))
    >>> strategy
    <Strategy.RUN_MERGE: 'run merge'>
    >>> [f"{row.diff:+}{row.data}@{row.time}" for row in merged_by(strategy, [one, two], 2)]
    ['+1a@2', '-1a@3']

What is done goes by the number of *stale times*, the distinct ones below the since, counted chain by chain, since each
makes a run: none, and chains are merged as they are; up to 31, and their runs are merged; more, and that many runs cost
more than to forward all rows and sort them. Each way gives the same rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import StrEnum
from itertools import islice

from tests.oracles.correction_buffer.chain import CHUNK_ROWS, Chain, Correction, D, consolidated, merged

MOST_STALE_TIMES = 32
"""From this number on rows are sorted from scratch; nobody counts further."""


class Strategy(StrEnum):
    """How chains were merged."""

    PLAIN_MERGE = "plain merge"
    RUN_MERGE = "run merge"
    MATERIALIZE = "materialize"


def strategy_for(stale: int) -> Strategy:
    """The way to merge chains that have so many stale times."""
    if stale == 0:
        return Strategy.PLAIN_MERGE
    return Strategy.RUN_MERGE if stale < MOST_STALE_TIMES else Strategy.MATERIALIZE


def stale_times(chains: Iterable[Chain[D]], since: int) -> int:
    """How many distinct times below the since the chains have, counted by chain; MOST_STALE_TIMES at most."""
    return sum(1 for _ in islice((time for chain in chains for time in chain.times_below(since)), MOST_STALE_TIMES))


def merged_by(strategy: Strategy, chains: Sequence[Chain[D]], since: int, chunk_rows: int = CHUNK_ROWS) -> Chain[D]:
    """One chain of the rows of several, forwarded to the since. A plain merge is for chains without stale times."""
    if strategy is Strategy.PLAIN_MERGE:
        return merged(chains, chunk_rows)
    if strategy is Strategy.RUN_MERGE:
        return merged([run for chain in chains for run in runs(chain, since)], chunk_rows)
    rows = (Correction(max(row.time, since), row.data, row.diff) for chain in chains for row in chain)
    return Chain.of(consolidated(rows), chunk_rows)


def runs(chain: Chain[D], since: int) -> list[Chain[D]]:
    """A chain forwarded to the since, as chains that are sorted: one for each stale time, and the rest."""
    found, rest = [], chain
    while rest and rest.first_time < since:
        run, rest = rest.cut(rest.first_time + 1)
        found.append(run.moved_to(since))
    return [*found, rest] if rest else found
