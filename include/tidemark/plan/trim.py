"""Which unsealed batches to rewrite smaller: part of them was drained, the rest has times to come."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tidemark.model.arrangement import Arrangement
from tidemark.model.batch import Part, UnsealedBatch
from tidemark.model.collection import Collection
from tidemark.plan.ahead import OPEN_ROWS, SPARE_ROWS, pays
from tidemark.plan.tasks import TrimTask


@dataclass(frozen=True)
class TrimRequest:
    """`batch` may have rows below `lower` to lose. Facts that happened at `horizon` or later are remembered all the
    same; of other collections nothing is (an empty horizon). Once it is done, what happened below `forgets` is
    forgotten."""

    batch: UnsealedBatch
    lower: int
    horizon: int
    forgets: int = 0

    @property
    def width(self) -> int:
        """About what a drain takes, for want of knowing: the interval the batch came with."""
        return self.batch.interval.upper - self.batch.interval.lower

    def keeps_all(self, part: Part) -> bool:
        """Whether every row of a part stays."""
        return part.first_time >= self.lower or part.first_event_time >= self.horizon

    def keeps_none(self, part: Part) -> bool:
        """Whether no row of a part stays, as far as its bounds show."""
        return part.last_time < self.lower and part.last_event_time < self.horizon

    def share(self, part: Part) -> float:
        """About how much of a part can go, by its span of times (event times too, where facts are remembered)."""
        if self.keeps_all(part):
            return 0.0
        share = _share(part.first_time, part.last_time, self.lower)
        return min(share, _share(part.first_event_time, part.last_event_time, self.horizon))

    def reopened(self, part: Part) -> int:
        """By how many drains more a part is opened, if it stays as it is."""
        beyond = part.last_time + 1 - self.lower if part.first_time < self.lower else 0
        if not self.keeps_all(part):
            beyond = max(beyond, part.last_event_time + 1 - self.horizon)
        return max(0, -(-beyond // self.width))


@dataclass(frozen=True)
class Trimming:
    """What becomes of a batch's parts: `dropped` ones go, `cut` ones are rewritten, in parts that are due at different
    times; the others stay as they are."""

    dropped: tuple[Part, ...]
    cut: tuple[Part, ...]


def plan_trim(state: Arrangement) -> Iterator[TrimRequest]:
    """The batches, in order of ingest, of which some rows were drained or can be forgotten, and others not; one of
    which no row stays is evicted by the next drain. Whether a batch is rewritten, its parts decide (`trimming`). Where
    rows may wait ahead, the drain puts them there, and leaves nothing to trim (undue.py)."""
    lower = state.trace_upper
    horizon = state.remembered_from
    for batch in state.unsealed:
        through = batch.last_time < lower
        if batch.first_time >= lower or (through and batch.last_event_time < horizon):
            continue
        if not through or batch.first_event_time < horizon:
            yield TrimRequest(batch, lower, horizon, state.forgets_below)


def trimming(request: TrimRequest, parts: Sequence[Part], *, least_share: float = 0.5) -> Trimming | None:
    """What to make of a batch's parts; None if it is not worth a version.

    It is worth one if about `least_share` of the rows can go; if what stays is not due for long, because no drain opens
    the batch until then; or if many drains to come would open a part for the few of its rows that are due.
    """
    dropped = tuple(part for part in parts if request.keeps_none(part))
    partly = [part for part in parts if part not in dropped]
    reaching = [part for part in partly if _is_worth_cutting(request, part)]
    cut = [part for part in partly if part in reaching or 0 < request.share(part) >= least_share]
    gone = sum(part.rows for part in dropped) + sum(part.rows * request.share(part) for part in partly)
    if reaching or 0 < gone >= least_share * request.batch.rows:
        return Trimming(dropped, tuple(cut)) if dropped or cut else None
    return Trimming(dropped, ()) if dropped and _rests(request, partly) else None


def trim_tasks(collection: Collection, request: TrimRequest, wanted: Trimming) -> list[TrimTask]:
    """One task for each part that is cut, in their order."""
    batch, facts = request.batch, collection.kind.facts_in(request.batch)
    return [
        TrimTask(collection, part, facts, request.lower, request.horizon, f"data/{batch.id}", request.width)
        for part in wanted.cut
    ]


def _is_worth_cutting(request: TrimRequest, part: Part) -> bool:
    """Whether reading a part again and again costs more than to rewrite it once."""
    drains = request.reopened(part)
    return drains * (OPEN_ROWS + part.rows) >= SPARE_ROWS + 2 * part.rows


def _rests(request: TrimRequest, parts: Sequence[Part]) -> bool:
    """Whether no drain has anything to do with the parts for long."""
    if any(part.first_time < request.lower for part in parts):
        return False
    return pays((min(part.first_time for part in parts) - request.lower) // request.width, 0)


def _share(first: int, last: int, bound: int) -> float:
    return min(1.0, max(0, bound - first) / (last + 1 - first))
