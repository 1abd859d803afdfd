"""How many rows arrive a second, computed when it is asked for: it falls while nothing arrives. And whether it has
changed.

What is kept is one count for each fixed slot of time in which something arrived, at most SLOTS of them, however many
rows arrive. A slot is `(start, end]`, so that the slots of a window that ends with one are exactly `(now - window,
now]`; otherwise the window is accurate to a slot.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from tidemark.errors import InvalidUsage
from tidemark.model.batching.reason import Direction
from tidemark.model.instant import format_duration

SLOTS = 1000
"""Slots of a window: a rate is exact to a thousandth of what came in."""
SECOND = 1_000_000


@dataclass(frozen=True)
class RateChange:
    """By how much the rate of the window's second half differs from that of its first, as a share of that."""

    ratio: float
    direction: Direction


@dataclass(frozen=True)
class RateMonitor:
    """What arrived within a `window` of time, and since when anything did. Durations and times in microseconds.

    No rate is given before the `floor` has passed since the first arrival, nor within its slot: one row says nothing of
    how fast rows come. A clock that steps back by more than a window restarts the monitor.
    """

    window: int = 10 * SECOND
    floor: int = SECOND
    first_seen: int | None = None
    slots: tuple[tuple[int, int], ...] = ()

    def __post_init__(self) -> None:
        if self.window < SLOTS:
            raise InvalidUsage(f"the window of a rate is {format_duration(self.window)}; it must be 1ms or more")
        if not 1 <= self.floor <= self.window:
            raise InvalidUsage(
                f"the floor of a rate is {format_duration(self.floor)}; it must be above 0 and at most the window, "
                f"{format_duration(self.window)}"
            )

    def arrived(self, at: int, rows: int) -> RateMonitor:
        """With `rows` that arrived then; within a window they may come in any order."""
        slot = self._slot(at)
        newest = self.slots[-1][0] if self.slots else slot
        if self.first_seen is None or slot <= newest - SLOTS:
            return replace(self, first_seen=at, slots=((slot, rows),))
        counts = self.slots
        if slot == newest:
            counts = (*counts[:-1], (slot, counts[-1][1] + rows))
        elif slot > newest:
            counts = (*(each for each in counts if each[0] > slot - SLOTS), (slot, rows))
        else:
            before = dict(counts)
            counts = tuple(sorted({**before, slot: before.get(slot, 0) + rows}.items()))
        return replace(self, first_seen=min(self.first_seen, at), slots=counts)

    def rate(self, now: int) -> float | None:
        """Rows a second over the window that ends `now`, or since the first arrival; None if that is not known."""
        since = self._observed(now)
        if since is None or since < self.floor or self._slot(now) == self._slot(now - since):
            return None
        return self._rows(now, SLOTS, 0) * SECOND / max(self.floor, min(since, self.window))

    def change(self, now: int, least: float | None = 1) -> RateChange | None:
        """How the half of the window that ends `now` compares with the half before; None before a whole window has
        passed. Where nothing came before, it is compared with the `least` that can come, and is not given where nobody
        knows how much that is (None)."""
        since = self._observed(now)
        if since is None or since < self.window:
            return None
        recent, older = self._rows(now, SLOTS // 2, 0), self._rows(now, SLOTS, SLOTS // 2)
        if least is None and not older:
            return None
        direction = Direction.UP if recent >= older else Direction.DOWN
        return RateChange(abs(recent - older) / max(older, least or 0), direction)

    def _observed(self, now: int) -> int | None:
        return None if self.first_seen is None or now < self.first_seen else now - self.first_seen

    def _rows(self, now: int, first: int, last: int) -> int:
        """Of the slots from the `first` to the `last` before now, counted back."""
        at = self._slot(now)
        return sum(count for number, count in self.slots if at - first < number <= at - last)

    def _slot(self, time: int) -> int:
        """The number of the slot that holds a time: slots are as long, their ends are included. Exact, however long a
        window is."""
        return -(-time * SLOTS // self.window)


@dataclass(frozen=True)
class RateAlarm:
    """Whether a change of rate cuts a batch: by `threshold` or more, once. Then it is disarmed until the change is back
    under half of that, or `cool_down` has passed."""

    threshold: float
    cool_down: int
    disarmed_at: int | None = None

    def __post_init__(self) -> None:
        if not 0 < self.threshold < math.inf:
            raise InvalidUsage(f"rate_change is {self.threshold:g}; it must be above 0, as 0.5 for half as much again")
        if self.cool_down < 1:
            raise InvalidUsage(f"the cool_down of rate_change is {format_duration(self.cool_down)}; it must be above 0")

    def observed(self, change: RateChange | None, now: int) -> RateAlarm:
        """Armed again where that is due. A clock that steps back restarts the cool-down."""
        if self.disarmed_at is None:
            return self
        calm = change is not None and change.ratio < self.threshold / 2
        if calm or now - self.disarmed_at >= self.cool_down:
            return replace(self, disarmed_at=None)
        return replace(self, disarmed_at=min(self.disarmed_at, now))

    def holds(self, change: RateChange | None) -> bool:
        """Whether it is armed, and the change is large enough."""
        return self.disarmed_at is None and change is not None and change.ratio >= self.threshold

    def fired(self, now: int) -> RateAlarm:
        """After it cut a batch."""
        return replace(self, disarmed_at=now)
