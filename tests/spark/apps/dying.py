"""Corrects a collection of windows by executors, and dies during it.

python dying.py WHO ROOT COLLECTION MARKS

When the first task has its parts in the store and nobody knows of them, it kills WHO it depends on: its own `worker`,
the `jvm` or the `driver`. What executors run is defined here, in `__main__`, so that it travels by value.
"""

import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pyarrow as pa

from tidemark.jobs import app
from tidemark.spark.derive import parts, place
from tidemark.spark.derive.executors import key_ranges

Kernel = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]
FEW = 40
"""Rows that are looked at at once, so that a task has many such pieces."""
PATIENCE_S = 60


def _dying(who: str, marks: str, driver: int, genuine: Callable[..., Kernel]) -> Callable[..., Kernel]:
    """Writers as they are, of which the first that has something to tell hits one of the processes it depends on."""

    def writer(*arguments: Any) -> Kernel:
        write = genuine(*arguments)

        def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            answers = list(write(batches))
            if answers and _first(Path(marks) / who):
                _hit(who, driver)
            yield from answers

        return run

    return writer


def _first(mark: Path) -> bool:
    """Whether nobody was here before."""
    try:
        mark.touch(exist_ok=False)
    except FileExistsError:
        return False
    return True


def _hit(who: str, driver: int) -> None:
    daemon = psutil.Process().parent()
    jvm = daemon and daemon.parent()
    assert jvm is not None
    os.kill({"worker": os.getpid(), "jvm": jvm.pid, "driver": driver}[who], signal.SIGKILL)
    time.sleep(PATIENCE_S)  # whoever is left is to end this process


def main(argv: list[str]) -> int:
    who, root, collection, marks = argv
    place.PLACES = (place.key_ranges, place.shuffle)  # nothing is little, nor is anything left to the queries
    place.by_queries = None  # type: ignore[assignment]
    key_ranges.AT_ONCE = FEW
    parts._writer = _dying(who, marks, os.getpid(), parts._writer)  # type: ignore[assignment]
    return app.main("correct", ["--root", root, "--collection", collection, "--lower", "0", "--upper", "1"])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
