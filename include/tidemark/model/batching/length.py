"""How long a batch stays open: fixed, or adapted to how fast rows come."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from tidemark.errors import InvalidUsage
from tidemark.model.batching.rate import SECOND
from tidemark.model.instant import format_duration


@dataclass(frozen=True)
class Fixed:
    """Batches of what arrives in `[n * interval, (n + 1) * interval)`, in microseconds of the clock."""

    interval: int
    kind: Literal["fixed"] = "fixed"

    def __post_init__(self) -> None:
        if self.interval < 1:
            raise InvalidUsage(f"fixed is {format_duration(self.interval)}; it must be above 0")

    def due(self, opened: int, rate: float | None) -> int:
        """When a batch that was opened then has been open long enough."""
        return (opened // self.interval + 1) * self.interval

    def __str__(self) -> str:
        return f"every {format_duration(self.interval)}"


@dataclass(frozen=True)
class Adaptive:
    """Batches of about `target` rows, open from `minimum` to `maximum` microseconds: as long as it takes `target` rows
    to come at the rate of now, and the longest where no rate is known."""

    minimum: int
    maximum: int
    target: int
    kind: Literal["adaptive"] = "adaptive"

    def __post_init__(self) -> None:
        if self.minimum < 1:
            raise InvalidUsage(f"min is {format_duration(self.minimum)}; it must be above 0")
        if self.minimum > self.maximum:
            raise InvalidUsage(
                f"min {format_duration(self.minimum)} is longer than max {format_duration(self.maximum)}; "
                "write a shorter min, or a longer max"
            )
        if self.target < 1:
            raise InvalidUsage(f"target is {self.target} rows; it must be 1 or more")

    def length(self, rate: float | None) -> int:
        """How long a batch stays open at a rate in rows a second. The quotient is kept within the bounds as a float: it
        may be larger than any duration."""
        if rate is None or not rate > 0:
            return self.maximum
        return round(min(max(self.target / rate * SECOND, float(self.minimum)), float(self.maximum)))

    def due(self, opened: int, rate: float | None) -> int:
        """When a batch that was opened then has been open long enough."""
        return opened + self.length(rate)

    def __str__(self) -> str:
        bounds = f"{format_duration(self.minimum)} to {format_duration(self.maximum)}"
        return f"every {bounds}, about {self.target:,} rows"


Length = Fixed | Adaptive
