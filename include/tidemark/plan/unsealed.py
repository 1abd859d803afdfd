"""Which batches must be opened to learn by which updates unsealed rows change the collection: the same for a drain,
which writes them, and for a read beyond the trace, which answers with them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from tidemark.model.batch import Part, TraceBatch, UnsealedBatch
from tidemark.model.full_snapshot import FullSnapshot
from tidemark.model.times import Times

PartsOf = Mapping[str, tuple[Part, ...]]
"""The parts of batches that were opened, by the batch's id; in a batch's own order."""


@dataclass(frozen=True)
class UnsealedRequest:
    """The unsealed rows with times in `[lower, upper)`.

    `batches` hold them; none means that there are none. Where rows are facts, `remembered` are the batches whose facts
    the new ones are placed among (they include `batches`), `horizon` is not above any of those facts, strictly below
    all new ones where that is needed (`below_all`), and `trace` says what was stored before. Where they are full
    snapshots, `snapshots` is what is learned of those in the interval, a full snapshot without rows has no batch,
    `announced` are the times of those in the trace, and `trace` is there where they are compared with it.
    """

    lower: int
    upper: int
    batches: tuple[UnsealedBatch, ...] = ()
    remembered: tuple[UnsealedBatch, ...] = ()
    trace: tuple[TraceBatch, ...] = ()
    horizon: int = 0
    below_all: bool = False
    snapshots: tuple[FullSnapshot, ...] = ()
    announced: Times = field(default_factory=Times)

    @property
    def is_empty(self) -> bool:
        """Whether nothing was said in the interval."""
        return not self.batches and not self.snapshots

    @property
    def others(self) -> tuple[UnsealedBatch | TraceBatch, ...]:
        """The batches to open beside `batches`, by what those turned out to hold."""
        return (*(batch for batch in self.remembered if batch not in self.batches), *self.trace)

    def new(self, parts: PartsOf) -> list[Part]:
        """The parts that can hold rows of the interval."""
        stored = (part for batch in self.batches for part in parts[batch.id])
        return [part for part in stored if part.first_time < self.upper and part.last_time >= self.lower]

    def among(self, parts: PartsOf) -> UnsealedRequest:
        """The request with the batches that facts of the new parts are placed among, and the horizon that leaves it at
        these: no new fact happened below it.

        The state's horizon is for all facts that are not drained. One that is learned in a hundred years holds it back;
        what is asked for today need not be placed among all facts since. The law is the same at any horizon that no new
        fact is below, and above which all facts are remembered (docs/decisions/0008). Facts that are retracted are to
        be above it, as what they hid may have been moved up to it (0041). Of the horizons at which the same batches are
        opened the lowest is the best: the less of the trace is below it.
        """
        earliest = (part.first_event_time - (self.below_all or part.retractions > 0) for part in self.new(parts))
        needed = max(self.horizon, min(earliest, default=self.horizon))
        near = [batch for batch in self.remembered if batch in self.batches or batch.last_event_time >= needed]
        older = (batch.last_event_time + 1 for batch in self.remembered if batch not in near)
        return replace(self, horizon=max((self.horizon, *older)), remembered=tuple(near))
