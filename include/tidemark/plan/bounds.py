"""What compaction promises, in figures: batches alive, rows written, and what is still to be done."""

from __future__ import annotations

from dataclasses import dataclass
from math import comb

from tidemark.model.arrangement import Arrangement
from tidemark.plan.compact import SETTLED_ROWS, SETTLED_SHARE, budget


@dataclass(frozen=True)
class Bounds:
    """Figures of a state beside what they may be. Amplification is in rows: written by drains and compactions, per row
    drained; `least` is the least that any schedule must write that keeps no more batches alive, if all are equal and no
    row vanishes (None: nothing was drained).

    `live_bound` and `written_bound` are None with `compact_ahead` off: then batches wait for since, without bound.
    """

    live_batches: int
    live_bound: int | None
    written: float | None
    written_bound: int | None
    least: float | None


def bounds(state: Arrangement) -> Bounds:
    """The bounds as they are promised right after a compaction; each drain since then may add one batch alive.

    Rows written: each drained row is written by the drain, then once for each level its batch rose. A merge that does
    not rise writes no more than vanished in it or before it; so 2 + the highest level, which is O(log n) for n drains.
    A keyed collection also writes what separates history: at most 2 * SETTLED_SHARE rows for each one drained, and what
    was separated is merged again each time it has doubled.
    """
    totals, trace = state.totals, state.trace
    top = max((batch.level for batch in trace), default=0)
    ahead = state.collection.compact_ahead
    written = totals.rows_drained + totals.rows_compacted
    bound = budget(state.collection.live_batches, top)
    alive = max(len(trace), bound)
    return Bounds(
        live_batches=len(trace),
        live_bound=bound if ahead else None,
        written=round(written / totals.rows_drained, 3) if totals.rows_drained else None,
        written_bound=2 + top + _for_settling(state) if ahead else None,
        least=round(fewest_writes(totals.drains, alive) / totals.drains, 3) if totals.drains else None,
    )


def _for_settling(state: Arrangement) -> int:
    oldest = state.trace[0].rows if state.trace and state.collection.kind.facts else 0
    return 2 * SETTLED_SHARE + (oldest // SETTLED_ROWS).bit_length() if oldest >= SETTLED_ROWS else 0


def fewest_writes(batches: int, runs: int) -> int:
    """The least that must be written, in batches of one size, to take in `batches` with never more than `runs` alive.

    At most C(runs − 1 + w, w) batches can be written exactly w times, so the cheapest way fills w = 1, 2, … in turn
    (the closed form of the dynamic program over the last write of the oldest run; Bentley–Saxe, Mehlhorn).
    """
    written, w = 0, 0
    while batches > 0:
        w += 1
        some = min(batches, comb(runs - 1 + w, w))
        written += w * some
        batches -= some
    return written
