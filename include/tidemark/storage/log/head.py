"""A version and the state at it, when it was seen, and how old that may be when something is built upon it."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

from tidemark.errors import InvalidUsage
from tidemark.model.arrangement import Arrangement

COLLECTION_GRACE = 3600.0
"""Seconds between a collector's word that a version may go and its going (docs/decisions/0014)."""
STALL_LIMIT = COLLECTION_GRACE / 2
"""A writer that last saw the head this long ago must look again, before it commits and after: what it creates may have
been created, superseded and collected meanwhile."""
DATA_GRACE = 24 * 3600.0
"""Seconds between a collector's word that an object may go and its going: an attempt writes long before it commits."""
PLAN_LIMIT = DATA_GRACE / 2
"""An attempt must commit within so many seconds of having planned; what it wrote may be gone after twice that."""


def uptime() -> float:
    """Seconds that never go back, those asleep included: a writer on a machine that was suspended has stalled too."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


def boot() -> str:
    """Which start of the machine `uptime` counts from; empty where that is not known."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""


@dataclass(frozen=True)
class Head:
    """A version and the state at it.

    Version 0 has no state: the collection was never created. A later one has none where the collection was dropped.

    `seen_at` is when storage was last asked for it or for what follows it: never later than the answer.
    """

    version: int
    sha256: str
    arrangement: Arrangement | None
    seen_at: float

    @property
    def state(self) -> Arrangement:
        """The state; InvalidUsage if the collection was never created, or dropped."""
        if self.arrangement is None:
            dropped = " any more: it was dropped, `tidemark drop NAME --undo` brings it back" if self.version else ""
            raise InvalidUsage(f"there is no collection here{dropped}; create it with `tidemark init`")
        return self.arrangement


@dataclass(frozen=True)
class Committed:
    """The head that contains the change; `fresh` is False if it did so before."""

    head: Head
    fresh: bool
