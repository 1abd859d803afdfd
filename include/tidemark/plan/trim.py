"""Which unsealed batch to rewrite smaller: part of it was drained, the rest has times to come."""

from __future__ import annotations

from dataclasses import dataclass

from tidemark.model.arrangement import Arrangement
from tidemark.model.batch import Part, UnsealedBatch
from tidemark.model.frontier import EMPTY


@dataclass(frozen=True)
class TrimRequest:
    """Rewrite `batch` without its rows below `lower`. Facts that happened at `horizon` or later are remembered all the
    same; of other collections nothing is (an empty horizon)."""

    batch: UnsealedBatch
    lower: int
    horizon: int

    def keeps_all(self, part: Part) -> bool:
        """Whether every row of a part stays."""
        return part.first_time >= self.lower or part.first_event_time >= self.horizon

    def keeps_none(self, part: Part) -> bool:
        """Whether no row of a part stays, as far as its bounds tell."""
        return part.last_time < self.lower and part.last_event_time < self.horizon


def plan_trim(state: Arrangement, *, least_share: float = 0.5) -> TrimRequest | None:
    """The first batch in order of ingest of which about `least_share` can go; None if there is none.

    The share is that of the batch's span of times (event times too, where facts are remembered): how many rows fall
    into it is not known, and rewriting for less than half would write more than it frees. A batch of which nothing
    stays is left for the next drain to evict.
    """
    lower = state.trace_upper
    horizon = state.horizon if state.collection.keyed else EMPTY
    for batch in state.unsealed:
        if batch.last_time < lower and batch.last_event_time < horizon:
            continue
        share = _share(batch.first_time, batch.last_time, lower)
        if state.collection.keyed:
            share = min(share, _share(batch.first_event_time, batch.last_event_time, horizon))
        if share > 0 and share >= least_share:
            return TrimRequest(batch, lower, horizon)
    return None


def _share(first: int, last: int, bound: int) -> float:
    return min(1.0, max(0, bound - first) / (last + 1 - first))
