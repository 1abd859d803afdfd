"""Interrupts of who waits for a statement. Python raises KeyboardInterrupt wherever its main thread is, and what C code
called there may drop it: of a module that is imported on the way, or a look whether an object has an attribute. So they
are counted, too."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

_count = 0


def count() -> int:
    """How many interrupts were heard so far."""
    return _count


@contextmanager
def heard() -> Iterator[None]:
    """Count the interrupts of a block, which raise KeyboardInterrupt as ever. Only the main thread hears any."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, _hear)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _hear(number: int, frame: FrameType | None) -> None:
    global _count
    _count += 1
    signal.default_int_handler(number, frame)
