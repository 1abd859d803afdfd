"""The buffer: where rows go when they come, and what a read does to them. The package's page tells the design."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Generic

from tests.oracles.correction_buffer.chain import Chain, Correction, D, consolidated, merged
from tests.oracles.correction_buffer.forwarding import Strategy, merged_by, stale_times, strategy_for
from tests.oracles.correction_buffer.sizes import DEFAULT_SIZES, Sizes
from tests.oracles.correction_buffer.totals import EMPTY_TOTALS, Totals
from tidemark.errors import InvalidUsage
from tidemark.model.correction_buffer.buckets import TIME_BITS, BucketChain
from tidemark.model.correction_buffer.stack import Stack
from tidemark.model.invariants import Invariant, broken, check

FUEL = 1_000_000
"""Chunks that a read may touch to restore the buckets."""


@dataclass(frozen=True)
class CorrectionBuffer(Generic[D]):
    """What remains to be written: a multiset of corrections, each counted at the later of its time and `since`.

    An immutable value; each operation gives the buffer after it. Make one by `CorrectionBuffer.empty()`. A frontier is
    a time or `end`, the empty one. Times below `boundary` are in `pending_low` and `emitted` (what the last read gave),
    the others in `buckets`; what came last, of any time, may still be on the `stage`, in order of arrival. `strategy`
    tells how the last read merged.
    """

    buckets: BucketChain[Stack[Chain[D]]]
    sizes: Sizes = DEFAULT_SIZES
    since: int = 0
    boundary: int = 0
    stage: tuple[Correction[D], ...] = ()
    pending_low: tuple[Chain[D], ...] = ()
    emitted: Chain[D] = field(default_factory=Chain)
    chained_rows: int = 0
    strategy: Strategy | None = None
    totals: Totals = EMPTY_TOTALS

    @classmethod
    def empty(cls, sizes: Sizes = DEFAULT_SIZES, *, time_bits: int = TIME_BITS) -> CorrectionBuffer[D]:
        """A buffer for times of so many bits."""
        return cls(BucketChain.over(Stack[Chain[D]](), time_bits=time_bits), sizes)

    @property
    def end(self) -> int:
        """The empty frontier, beyond every time."""
        return self.buckets.end

    def inserted(self, rows: Iterable[Correction[D]]) -> CorrectionBuffer[D]:
        """With more rows. Where the since is empty they are discarded.

        Raises InvalidUsage for a time outside the domain.
        """
        if self.since == self.end:
            return self
        staged = [*self.stage, *self._forwarded(rows)]
        whole = len(staged) // self.sizes.chunk_rows * self.sizes.chunk_rows
        return replace(self, stage=tuple(staged[whole:]))._routed(staged[:whole])._counted()

    def inserted_negated(self, rows: Iterable[Correction[D]]) -> CorrectionBuffer[D]:
        """With more rows, their diffs negated: so the buffer learns what was written meanwhile."""
        return self.inserted(Correction(row.time, row.data, -row.diff) for row in rows)

    def advanced(self, since: int) -> CorrectionBuffer[D]:
        """With a since that is as far or farther. Of the rows only those on the stage are moved now; at the empty
        frontier all are discarded.

        Raises Corruption (SINCE_ADVANCES) if it would move back, InvalidUsage beyond the empty frontier.
        """
        if since < self.since:
            message = f"since cannot move back from {self._shown(self.since)} to {since}"
            check([broken(Invariant.SINCE_ADVANCES, message, requested=since, current=self.since)])
        self._check_frontier(since)
        if since == self.end:
            emptied = tuple(replace(bucket, content=Stack[Chain[D]]()) for bucket in self.buckets.buckets)
            kept = replace(self, buckets=replace(self.buckets, buckets=emptied), since=since, stage=(), pending_low=())
            return replace(kept, emitted=Chain(), chained_rows=0)._counted()
        ahead = replace(self, since=since)
        return replace(ahead, stage=tuple(ahead._forwarded(self.stage)))

    def updates_before(self, upper: int) -> tuple[list[Correction[D]], CorrectionBuffer[D]]:
        """The consolidated rows below a frontier, forwarded to the since, by (time, data); no rows unless the since is
        below it. And the buffer after the read, which holds them still: every read gives them until what was written
        of them is inserted negated.

        Raises InvalidUsage beyond the empty frontier.
        """
        after = self.consolidated_before(upper)
        return (list(after.emitted) if self.since < upper else []), after

    def consolidated_before(self, upper: int) -> CorrectionBuffer[D]:
        """With all rows below a frontier in one chain, those that cancel gone: the work of a read, and its errors."""
        self._check_frontier(upper)
        if not self.since < upper:
            return self
        flushed = replace(self, stage=())._routed(self.stage)
        due, buckets = flushed.buckets.peel(upper)
        candidates = [chain for stack in due for chain in stack.chains] + [*flushed.pending_low, flushed.emitted]
        cuts = [chain.cut(upper) for chain in candidates if chain]
        chains = [before for before, _ in cuts if before]
        strategy = strategy_for(stale_times(chains, self.since))
        emitted = merged_by(strategy, chains, self.since, self.sizes.chunk_rows)
        restored, _ = buckets.restore(FUEL)
        return replace(
            flushed,
            buckets=restored,
            boundary=max(self.boundary, upper),
            pending_low=tuple(after for _, after in cuts if after),
            emitted=emitted,
            chained_rows=flushed.chained_rows - sum(chain.rows for chain in chains) + emitted.rows,
            strategy=strategy,
        )._counted()

    def consolidated_at_since(self) -> CorrectionBuffer[D]:
        """With what is at the since or below it consolidated; as it was where no time follows the since."""
        return self.consolidated_before(self.since + 1) if self.since < self.end - 1 else self

    def _routed(self, rows: Iterable[Correction[D]]) -> CorrectionBuffer[D]:
        """With rows of any order put where they belong, as one sorted chain cut by boundary and buckets."""
        low, rest = Chain.of(consolidated(rows), self.sizes.chunk_rows).cut(self.boundary)
        pending_low = (*self.pending_low, low) if low else self.pending_low
        buckets, chained = self.buckets, self.chained_rows + low.rows
        while rest:
            bucket = buckets.find(rest.first_time)
            assert bucket is not None, f"no bucket for {rest.first_time}, the boundary is {self.boundary}"
            run, rest = rest.cut(bucket.end)
            stack = bucket.content.pushed(run, self._merged, self.sizes.proportionality)
            chained += stack.rows - bucket.content.rows
            buckets = buckets.holding(bucket, stack)
        return replace(self, buckets=buckets, pending_low=pending_low, chained_rows=chained)

    def _merged(self, older: Chain[D], newer: Chain[D]) -> Chain[D]:
        return merged([older, newer], self.sizes.chunk_rows)

    def _counted(self) -> CorrectionBuffer[D]:
        """With the totals after an operation. A chain has room for the rows it holds, the stage for a chunk."""
        records = self.chained_rows + len(self.stage)
        capacity = self.chained_rows + (self.sizes.chunk_rows if self.stage else 0)
        return replace(self, totals=self.totals.after(records=records, capacity=capacity))

    def _forwarded(self, rows: Iterable[Correction[D]]) -> Iterator[Correction[D]]:
        since, end = self.since, self.end
        for row in rows:
            if not 0 <= row.time < end:
                raise InvalidUsage(f"time {row.time} is not within [0, {end}), the times this buffer is for")
            yield row if row.time >= since else Correction(since, row.data, row.diff)

    def _check_frontier(self, frontier: int) -> None:
        if frontier > self.end:
            raise InvalidUsage(f"{frontier} is beyond {self.end}, the empty frontier of this buffer")

    def _shown(self, frontier: int) -> str:
        return "the empty frontier" if frontier == self.end else str(frontier)
