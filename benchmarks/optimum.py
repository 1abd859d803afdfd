"""What compaction costs at least: batches of one size, runs contiguous in time, a merge costs its output.

`optimum(n, k)` is the fewest batch sizes anyone can write to take in n batches with never more than k runs alive.
The last write of the oldest run splits the problem: m batches were in it, before it m − 1 batches lived in at most k
runs, after it n − m live in at most k − 1:

    D(n, k) = min over m of  D(m − 1, k) + w(m) + D(n − m, k − 1)

w(m) is m where the batch that arrives last is written straight into the run, and m + 1 for m > 1 where it must be
written by itself first, as Tidemark's drain and compaction do, which are separate steps.
"""

from __future__ import annotations

from functools import cache


@cache
def optimum(batches: int, runs: int, *, flushed_apart: bool = True) -> float:
    """Batch sizes written in all; infinite if there are batches and no runs."""
    if batches == 0:
        return 0
    if runs == 0:
        return float("inf")
    return min(
        optimum(last - 1, runs, flushed_apart=flushed_apart)
        + (last + 1 if flushed_apart and last > 1 else last)
        + optimum(batches - last, runs - 1, flushed_apart=flushed_apart)
        for last in range(1, batches + 1)
    )


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
