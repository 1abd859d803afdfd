"""What compaction costs at least: batches of one size, runs contiguous in time, a merge costs its output.

`optimum(n, k)` is the fewest batch sizes anyone can write to take in n batches with never more than k runs alive.
The last write of the oldest run splits the problem: m batches were in it, before it m − 1 batches lived in at most k
runs, after it n − m live in at most k − 1:

    D(n, k) = min over m of  D(m − 1, k) + w(m) + D(n − m, k − 1)

w(m) is m where the batch that arrives last is written straight into the run, and m + 1 for m > 1 where it must be
written by itself first, as Tidemark's drain and compaction do, which are separate steps.

With a `base` of b batch sizes that is there from the start, in a run of its own, the oldest run either stays as it is
or is written last with m of the batches in it:

    E(n, k) = min of  D(n, k − 1)  and over m of  E(m − 1, k) + b + w'(m) + D(n − m, k − 1),  w' being m or m + 1
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]


def optimum(batches: int, runs: int, *, base: float = 0, flushed_separately: bool = True) -> float:
    """Batch sizes written in all, the base's own not counted; infinite if there are batches and no runs."""
    if base and runs:
        return float(_with_base(batches, runs, base, flushed_separately)[batches])
    return float(_from_nothing(batches, runs, flushed_separately)[batches])


@cache
def _from_nothing(batches: int, runs: int, flushed_separately: bool) -> Floats:
    """D(0 … batches, runs)."""
    if runs == 0:
        return np.array([0.0] + [np.inf] * batches)
    younger = _from_nothing(batches, runs - 1, flushed_separately)
    merge = np.arange(1, batches + 1) + (np.arange(1, batches + 1) > 1) * float(flushed_separately)
    least = np.zeros(batches + 1)
    for n in range(1, batches + 1):
        least[n] = (least[:n] + merge[:n] + younger[n - 1 :: -1]).min()
    return least


def _with_base(batches: int, runs: int, base: float, flushed_separately: bool) -> Floats:
    """E(0 … batches, runs)."""
    younger = _from_nothing(batches, runs - 1, flushed_separately)
    merge = base + np.arange(1, batches + 1) + float(flushed_separately)
    least = np.zeros(batches + 1)
    for n in range(1, batches + 1):
        least[n] = min(younger[n], (least[:n] + merge[:n] + younger[n - 1 :: -1]).min())
    return least


def pairwise(batches: int) -> tuple[int, list[int]]:
    """What doubling writes if every merge of two neighbours is written: batch sizes in all, runs alive after each."""
    written, runs, alive = 0, [], []
    for _ in range(batches):
        runs.append(1)
        written += 1
        while len(runs) > 1 and runs[-1] == runs[-2]:
            runs[-2:] = [runs[-1] + runs[-2]]
            written += runs[-1]
        alive.append(len(runs))
    return written, alive


def curve(batches: int, runs: int, *, base: float = 0) -> list[float]:
    """The optimum after 1 … `batches`, flushes by themselves: at each of them for itself, not of one schedule."""
    least: Any = _with_base(batches, runs, base, True) if base else _from_nothing(batches, runs, True)
    return [float(found) for found in least[1:]]
