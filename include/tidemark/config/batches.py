"""The section of a collection file that says when what has landed is ingested before its interval is over: `batches`.

The string below a field is its text in docs/reference/collection-file.md, as those of config/declaration.py are.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel

from tidemark.config.section import STRICT
from tidemark.config.values import Duration, checked, rate_section
from tidemark.errors import InvalidUsage
from tidemark.model.batching.cutting import LEAST_LENGTH, SETTLE, Batching, WatchRate, check_cost
from tidemark.model.batching.length import Adaptive, Fixed


class _Section(BaseModel):
    model_config = STRICT


class AdaptiveSection(_Section):
    """Batches of about `target` rows: the faster rows come, the sooner one is cut."""

    min: Duration = 10_000_000
    """Never sooner after the first of its files landed; a second or more, as a run costs seconds."""
    max: Duration = 300_000_000
    """Never later."""
    target: int = 100_000
    """How many rows a batch should have."""


class RateSection(_Section):
    """A batch is cut where rows begin to come faster, or more slowly (`rate_change: 0.5` for short)."""

    by: float
    """The share by which the rate changes: 0.5 is half as much again, or half as much less."""
    window: Duration = 300_000_000
    """Over how long: its second half is compared with its first."""
    cool_down: Duration = 600_000_000
    """How long after such a cut the next may come, unless the rate was steady in between."""


class BatchesSection(_Section):
    """A batch is cut as soon as any of these holds; at least one is said."""

    adaptive: AdaptiveSection | None = None
    """How long a batch is open, by how fast rows come."""
    fixed: Duration | None = None
    """Instead of `adaptive`, the same lengths always, counted by the clock: `5m` cuts at :00, :05, :10."""
    count: int | None = None
    """How many rows cut it, estimated from the bytes of those that were read last."""
    bytes: int | None = None
    """How many bytes of files cut it."""
    memory: float | None = None
    """Which share of the memory for buffers (`TIDEMARK_BUFFERS`) the rows of its files are estimated to take, decoded,
    when they cut it: `0.8`. Above 0, and at most 1."""
    watermark: bool = False
    """Whether it is cut when event time has passed the end of the interval: a file has landed whose first rows all
    happened at or after it. Once an interval."""
    rate_change: Annotated[RateSection | None, checked(rate_section)] = None
    """By which change of the rate it is cut."""
    settle: Duration = SETTLE
    """How long a file must have been left alone to be taken: a younger one may be half written, and waits for the
    next. Shorter than an interval."""

    @property
    def batching(self) -> Batching:
        """The rules. InvalidUsage for what cannot be, and for lengths shorter than a run."""
        if self.adaptive is not None and self.fixed is not None:
            raise InvalidUsage("adaptive and fixed both say how long a batch is open; write one of them")
        length: Adaptive | Fixed | None = Fixed(self.fixed) if self.fixed is not None else None
        if self.adaptive is not None:
            length = Adaptive(self.adaptive.min, self.adaptive.max, self.adaptive.target)
        said = self.rate_change
        watch = None if said is None else WatchRate(said.by, said.window, said.cool_down)
        made = Batching(length, self.count, self.bytes, watch, self.memory, self.settle, self.watermark)
        check_cost(made, LEAST_LENGTH)
        return made


SECTIONS: dict[str, type[BaseModel]] = {
    "batches": BatchesSection,
    "adaptive": AdaptiveSection,
    "rate_change": RateSection,
}
"""By the field that holds them."""
