"""Work that the server does for one request at a time, beside the threads that serve all other pages.

Airflow's API server has some forty threads for all its routes. What computes for a second, or waits for its turn to,
must not occupy one: here one thread works, a few requests wait in the event loop, and the others are refused at once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from anyio import CapacityLimiter, to_thread

T = TypeVar("T")


class Busy(Exception):
    """As many requests wait as may."""


class OneAtATime:
    """Runs one piece of work at a time; `waiting` others may wait for their turn. Used by one event loop."""

    def __init__(self, waiting: int) -> None:
        self._most = 1 + waiting
        self._inside = 0
        self._thread = CapacityLimiter(1)

    async def run(self, work: Callable[[], T]) -> T:
        """What `work` returns or raises, from a thread that is none of those that other routes use. Raises Busy at once
        if too many wait."""
        if self._inside >= self._most:
            raise Busy
        self._inside += 1
        try:
            return await to_thread.run_sync(work, limiter=self._thread)
        finally:
            self._inside -= 1
