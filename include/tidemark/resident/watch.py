"""Distinguishing a process that takes long from one that has been stopped or hangs."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from tidemark.errors import InvalidUsage

PATIENCE_S = 120.0
"""Seconds for which a process may be stopped before it counts as dead."""
_LONGEST_STEP_S = 2.0


def patience_s(environ: Mapping[str, str]) -> float:
    """Seconds: TIDEMARK_RESIDENT_PATIENCE_S, else PATIENCE_S. InvalidUsage for what is no positive number."""
    text = environ.get("TIDEMARK_RESIDENT_PATIENCE_S") or str(PATIENCE_S)
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not 0 < seconds < math.inf:
        raise InvalidUsage(f"TIDEMARK_RESIDENT_PATIENCE_S is {text!r}; write seconds above 0, such as 120")
    return seconds


class OwnTime:
    """Seconds this process has been able to run.

    When the machine sleeps, or all of a container is frozen, everybody falls silent at once: that accuses nobody. So
    what passed between two looks counts for two seconds at most, and whoever asks looks every second.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._last = clock()
        self._passed = 0.0

    def __call__(self) -> float:
        now = self._clock()
        self._passed += min(now - self._last, _LONGEST_STEP_S)
        self._last = now
        return self._passed


class Stopped:
    """Notices processes that are stopped (SIGSTOP, not by a debugger) for longer than a patience, in seconds."""

    def __init__(self, patience_s: float) -> None:
        self._patience_s = patience_s
        self._since: dict[tuple[int, str], float] = {}

    def look(self, pids: Iterable[int], now: float) -> set[int]:
        """Those of `pids` found stopped at every look for so long."""
        stopped = {(pid, born) for pid in pids for state, born in [_state(pid)] if state == "T"}
        self._since = {process: self._since.get(process, now) for process in stopped}
        return {pid for (pid, _), since in self._since.items() if now - since >= self._patience_s}


def _state(pid: int) -> tuple[str, str]:
    """A process's state and when it was born, which together with its number is its identity."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return "", ""
    return fields[0], fields[19]
