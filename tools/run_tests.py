"""All tests, as CI runs them: two lanes side by side, one for each core, each ring of tests in a process of its own.

    tools/run python tools/run_tests.py

The rings lie in one row. The first lane takes them from its head, where tests wait most of the time for Airflow, Spark
and the processes they have started; the second from its end, where tests wait for nothing but the processor. They
meet somewhere in the middle, so neither is done long before the other, whatever the machine. What the second lane
says is in build/test-lane.log, and shown at the end. Exit code 1 if any failed.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import BinaryIO

PROJECT = Path(__file__).resolve().parent.parent
ROW = (
    *("e2e", "deep", "dags", "launch", "environment", "demo", "cli", "quality"),
    *("s3", "conformance", "compat", "pure", "simulation", "spark"),
)
LOG = PROJECT / "build" / "test-lane.log"


def rings() -> deque[str]:
    """All folders of tests, in the order of ROW; those it does not name stand in its middle."""
    there = {path.parent.relative_to(PROJECT / "tests").parts[0] for path in PROJECT.glob("tests/*/**/test_*.py")}
    new, middle = sorted(there - {*ROW}), ROW.index("s3")
    return deque(ring for ring in (*ROW[:middle], *new, *ROW[middle:]) if ring in there)


class Lane:
    """Runs rings one after the other, each in a process of its own, until `take` has none left."""

    def __init__(self, take: Callable[[], str], output: BinaryIO | None = None) -> None:
        self._take, self._output, self._over = take, output, False
        self._running: subprocess.Popen[bytes] | None = None
        self.failed: list[str] = []
        self.minutes: dict[str, float] = {}

    def run(self) -> None:
        while not self._over:
            try:
                ring = self._take()
            except IndexError:
                return
            began = time.monotonic()
            if self._call(ring):
                self.failed.append(ring)
            self.minutes[ring] = (time.monotonic() - began) / 60

    def _call(self, ring: str) -> int:
        command = [sys.executable, "-m", "pytest", f"tests/{ring}"]
        self._running = subprocess.Popen(command, cwd=PROJECT, stdout=self._output, stderr=self._output)
        return self._running.wait()

    def stop(self) -> None:
        self._over = True
        if self._running:
            self._running.terminate()


def main() -> int:
    began, row = time.monotonic(), rings()
    print(f"rings: {' '.join(row)}; those from the end are told in {LOG.relative_to(PROJECT)}", flush=True)
    with LOG.open("wb") as log, ThreadPoolExecutor(1) as pool:
        lane, beside = Lane(row.popleft), Lane(row.pop, log)
        done = pool.submit(beside.run)
        try:
            lane.run()
            done.result()
        finally:
            lane.stop()
            beside.stop()
    sys.stdout.buffer.write(LOG.read_bytes())
    for one in (lane, beside):
        print(f"a lane's minutes: {', '.join(f'{ring} {minutes:.1f}' for ring, minutes in one.minutes.items())}")
    failed = [*lane.failed, *beside.failed]
    told = f"some tests failed, in {', '.join(failed)}," if failed else "all tests passed"
    print(f"{told} in {(time.monotonic() - began) / 60:.0f} min")
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
