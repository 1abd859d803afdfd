"""All tests, as CI runs them: two processes side by side, one for each core.

    tools/run python tools/run_tests.py

The rings of LANE wait for nothing but the processor, the others most of the time for Airflow, Spark and the processes
they have started. Spark's ring follows those of LANE, in a process of its own: a process has one JVM with one master,
and these tests want one of their own. What LANE and Spark's ring say is in build/test-lane.log, and shown at the end.
Exit code 1 if any failed.
"""

from __future__ import annotations

import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import BinaryIO

PROJECT = Path(__file__).resolve().parent.parent
LANE = [f"tests/{ring}" for ring in ("pure", "simulation", "s3", "compat", "conformance")]
LOG = PROJECT / "build" / "test-lane.log"


def pytest(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "pytest", *arguments]


class Lane:
    """The rings of LANE and then Spark's, in a thread beside the others; they are ended with the block."""

    def __init__(self, log: BinaryIO) -> None:
        self._log, self._over = log, False
        self._running: subprocess.Popen[bytes] | None = None
        self._pool = ThreadPoolExecutor(1)
        self._code = self._pool.submit(self._run)

    def _run(self) -> int:
        return int(any([self._call(pytest(*LANE)), self._call(pytest("tests/spark"))]))

    def _call(self, command: list[str]) -> int:
        if self._over:
            return 1
        self._running = subprocess.Popen(command, cwd=PROJECT, stdout=self._log, stderr=self._log)
        return self._running.wait()

    def wait(self) -> int:
        return self._code.result()

    def __enter__(self) -> Lane:
        return self

    def __exit__(self, *_: object) -> None:
        self._over = True
        if self._running:
            self._running.terminate()
        self._pool.shutdown()


def main() -> int:
    began = time.monotonic()
    print(f"beside these tests, in {LOG.relative_to(PROJECT)}: {' '.join(LANE)} tests/spark", flush=True)
    with LOG.open("wb") as log, Lane(log) as lane:
        rest = [f"--ignore={ring}" for ring in (*LANE, "tests/spark")]
        codes = [subprocess.call(pytest("tests", *rest), cwd=PROJECT)]
        codes.append(lane.wait())
    sys.stdout.flush()
    sys.stdout.buffer.write(LOG.read_bytes())
    failed = any(codes)
    print(f"{'some tests failed' if failed else 'all tests passed'} in {(time.monotonic() - began) / 60:.0f} min")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
