"""The chain rule: which sorted chains to merge, so that there are few of them and none is rewritten often.

Chains go from old to new. Whenever one is added, the newest is merged with its neighbour as long as it is larger
than the neighbour's `proportionality`-th part. So each chain is at most the `proportionality`-th part of the one before
it: of n rows there are at most log n (to the base of the proportionality) chains, and a row is merged once more only
after its chain has grown by a fixed share, O(log n) times in all.

Sizes are rows, not chunks or files: counted in chunks, everything below a chunk would look equally large, and the rule
would merge small chains with each single row that comes.

Thirteen rows that come one by one, with a proportionality of 3:

    >>> chains, seen = [], []
    >>> for row in range(13):
    ...     chains.append(1)
    ...     while len(chains) > 1 and is_too_large(chains[-1], chains[-2], 3.0):
    ...         newest = chains.pop()
    ...         chains[-1] += newest
    ...     seen.append(tuple(chains))
    >>> seen[:7]
    [(1,), (2,), (3,), (3, 1), (5,), (5, 1), (7,)]
    >>> seen[7:]
    [(7, 1), (7, 2), (10,), (10, 1), (10, 2), (10, 3)]
    >>> all(holds(sizes, 3.0) for sizes in seen)
    True
    >>> holds((8, 3, 1), 3.0)                                 # 3 * 3 is more than 8
    False
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise


def is_too_large(newer: int, older: int, proportionality: float) -> bool:
    """Whether a chain of `newer` rows is to be merged with its older neighbour of `older` rows."""
    return newer * proportionality > older


def holds(sizes: Sequence[int], proportionality: float) -> bool:
    """Whether chains of so many rows, oldest first, may stay as they are."""
    return not any(is_too_large(newer, older, proportionality) for older, newer in pairwise(sizes))
