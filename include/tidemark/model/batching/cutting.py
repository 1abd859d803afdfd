"""The rules by which a collection's arrivals are cut into batches, and the cut that follows from them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from tidemark.errors import InvalidUsage
from tidemark.model.batching.length import Adaptive, Fixed, Length
from tidemark.model.batching.rate import SECOND, SLOTS, RateAlarm, RateMonitor
from tidemark.model.batching.reason import Cut, Direction, Reason
from tidemark.model.instant import format_duration

LEAST_LENGTH = 1_000_000
"""A run alone takes seconds: batches that may be cut sooner would only queue."""
SETTLE = 10_000_000
"""How long a file must have been left alone before it is taken, where a collection says nothing else."""


@dataclass(frozen=True)
class WatchRate:
    """Cut where the rate of a `window` changes by the share `threshold`; once, until `cool_down` (microseconds)."""

    threshold: float
    window: int = 300_000_000
    cool_down: int = 600_000_000

    def __post_init__(self) -> None:
        RateAlarm(self.threshold, self.cool_down)
        RateMonitor(self.window, min(self.window, SECOND))


@dataclass(frozen=True)
class Batching:
    """When a batch is cut: as soon as any of what is declared holds. `count` and `bytes` are what it holds then, at
    least; `memory` the share of the memory used; `watermark`: event time has passed the end of its interval. A batch
    that holds nothing is never cut.

    Files that changed within `settle` microseconds are left for the next: they may be half written.
    """

    length: Length | None = None
    count: int | None = None
    bytes: int | None = None
    rate_change: WatchRate | None = None
    memory: float | None = None
    settle: int = SETTLE
    watermark: bool = False

    def __post_init__(self) -> None:
        for name in ("count", "bytes"):
            if (most := getattr(self, name)) is not None and most < 1:
                raise InvalidUsage(f"{name} is {most}; it must be 1 or more")
        if self.memory is not None and not 0 < self.memory <= 1:
            raise InvalidUsage(
                f"memory is {self.memory:g}; it is a share of the available memory, above 0 and at most 1"
            )
        if self.settle < 0:
            raise InvalidUsage(f"settle is {self.settle} µs; it must be 0 or more")
        rules = (self.length, self.count, self.bytes, self.rate_change, self.memory)
        if rules == (None,) * len(rules) and not self.watermark:
            raise InvalidUsage(
                "nothing says when a batch is cut; "
                "write adaptive, fixed, count, bytes, memory, watermark or rate_change"
            )

    def __str__(self) -> str:
        rules = [
            str(self.length or ""),
            f"{self.count:,} rows" if self.count else "",
            f"{self.bytes:,} bytes" if self.bytes else "",
            f"{self.memory:.0%} of the memory for buffers" if self.memory else "",
            "event times past the end of the interval" if self.watermark else "",
            f"a rate that changes by {self.rate_change.threshold:.0%}" if self.rate_change else "",
        ]
        return ", or ".join(filter(None, rules))

    @property
    def least_length(self) -> int | None:
        """How soon it may cut a batch by its length, at the soonest; None if it has none."""
        match self.length:
            case Fixed(interval=interval):
                return interval
            case Adaptive(minimum=minimum):
                return minimum
            case None:
                return None


@dataclass(frozen=True)
class Open:
    """A batch that is open: since when (microseconds), with how many rows and bytes. Neither is known to be
    more than is stated."""

    opened: int
    rows: int = 0
    bytes: int = 0


@dataclass(frozen=True)
class Seen:
    """What is seen beside a batch: how much of the memory is used (a share), whether event time has passed its end,
    nothing more belongs to it, or somebody asks for it."""

    memory: float = 0.0
    watermark: bool = False
    end_of_input: bool = False
    explicit: bool = False


NOTHING = Seen()


@dataclass(frozen=True)
class Cutter:
    """Rules, and what they go by that outlives a batch: the rate, and whether a change of it would cut one.

    `monitor` counts what arrives, be that rows or bytes, and `rows_each` says how many rows one of it stands for: None
    while nobody knows. A rate of rows is not known then, but whether the rate changes is.
    """

    batching: Batching
    monitor: RateMonitor
    alarm: RateAlarm | None = None
    rows_each: float | None = 1

    @classmethod
    def of(cls, batching: Batching) -> Cutter:
        """Where nothing was seen yet. The rate is that of the window in which it is watched, or of the longest batch;
        none is given before the shortest could be cut."""
        watch, length = batching.rate_change, batching.length
        adaptive = length if isinstance(length, Adaptive) else None
        window = max(SLOTS, watch.window if watch else adaptive.maximum if adaptive else 10 * SECOND)
        floor = min(window, adaptive.minimum if adaptive else SECOND)
        alarm = RateAlarm(watch.threshold, watch.cool_down) if watch else None
        return cls(batching, RateMonitor(window, floor), alarm)

    def arrived(self, at: int, many: int) -> Cutter:
        """With what arrived then."""
        return replace(self, monitor=self.monitor.arrived(at, many))

    def cut(self, batch: Open | None, now: int, seen: Seen = NOTHING) -> tuple[Cutter, Cut | None]:
        """Whether a batch is cut `now`, and why; and the cutter after it. Asked again and again, also while nothing
        arrives; a batch that holds nothing (None) is not cut."""
        change = self.monitor.change(now, 1 / self.rows_each if self.rows_each else None)
        alarm = self.alarm and self.alarm.observed(change, now)
        after = replace(self, alarm=alarm)
        if batch is None or not (batch.rows or batch.bytes):
            return after, None
        rate, rules = self._rate(now), self.batching
        applies = {
            Reason.END_OF_INPUT: seen.end_of_input,
            Reason.MEMORY: rules.memory is not None and seen.memory >= rules.memory,
            Reason.BYTES: rules.bytes is not None and batch.bytes >= rules.bytes,
            Reason.COUNT: rules.count is not None and batch.rows >= rules.count,
            Reason.WATERMARK: rules.watermark and seen.watermark,
            Reason.RATE_CHANGE: alarm is not None and alarm.holds(change),
            Reason.TIME: rules.length is not None and now >= rules.length.due(batch.opened, rate),
            Reason.EXPLICIT: seen.explicit,
        }
        direction: Direction | None = change.direction if change and applies[Reason.RATE_CHANGE] else None
        reasons = [reason for reason, holds in applies.items() if holds]
        cut = Cut.of(reasons, rate=rate, direction=direction, opened=batch.opened, at=now)
        if direction and alarm:
            after = replace(after, alarm=alarm.fired(now))
        return after, cut

    def _rate(self, now: int) -> float | None:
        """In rows a second."""
        many = self.monitor.rate(now)
        return None if many is None or self.rows_each is None else many * self.rows_each


def check_cost(batching: Batching, least: int) -> None:
    """Raise InvalidUsage where the time between two cuts may be less than `least` microseconds, the cost of a run."""
    soonest = batching.least_length
    if soonest is not None and soonest < least:
        what = "fixed" if isinstance(batching.length, Fixed) else "min"
        raise InvalidUsage(
            f"{what} is {format_duration(soonest)}, and a run alone takes seconds; "
            f"write {format_duration(least)} or more"
        )


def check_parts(batching: Batching, shortest: int, longest: Callable[[], int], schedule: str) -> None:
    """Raise InvalidUsage where files must wait as long as the `longest` interval of a schedule or longer: a batch is a
    part of an interval, so none would be cut. That is asked for only where they wait as long as one of `shortest`."""
    lengths = {"settle": batching.settle}
    if (soonest := batching.least_length) is not None:
        lengths["fixed" if isinstance(batching.length, Fixed) else "min"] = soonest
    for what, length in lengths.items():
        if length >= shortest and length >= (most := longest()):
            raise InvalidUsage(
                f"{what} is {format_duration(length)}, and no interval of schedule {schedule} is longer than "
                f"{format_duration(most)}: it would be over before any of its files is taken; write less"
            )
