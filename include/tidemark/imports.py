"""Imports without the garbage collector.

What they make stays: to look through it each time that there are 700 objects more takes a tenth of a small process,
and more of one that imports much.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

STARTS_WITH = 50_000
"""So many objects more until the first look for garbage, in a process of one's own."""


def in_own_process() -> None:
    """Look for garbage less often from now on: for processes that nobody else uses."""
    gc.set_threshold(STARTS_WITH)


@contextmanager
def uncollected() -> Iterator[None]:
    """Look for no garbage within the block: for imports in a process of somebody else."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()
