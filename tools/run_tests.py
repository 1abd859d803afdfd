"""All tests, as CI runs them: two processes side by side, one for each core, and then Spark's.

    tools/run python tools/run_tests.py

The rings of LANE wait for nothing but the processor, the others most of the time for Airflow, Spark and the processes
they have started. What the first process says is in build/test-lane.log, and shown at the end. Spark's ring comes last,
by itself: a process has one JVM with one master, and these tests want one of their own. Exit code 1 if any failed.
"""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

PROJECT = Path(__file__).resolve().parent.parent
LANE = [f"tests/{ring}" for ring in ("pure", "simulation", "s3", "compat", "conformance")]
LOG = PROJECT / "build" / "test-lane.log"


def pytest(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "pytest", *arguments]


def main() -> int:
    began = time.monotonic()
    print(f"beside these tests, in {LOG.relative_to(PROJECT)}: {' '.join(LANE)}", flush=True)
    with LOG.open("wb") as log, subprocess.Popen(pytest(*LANE), cwd=PROJECT, stdout=log, stderr=log) as lane:
        try:
            rest = [f"--ignore={ring}" for ring in (*LANE, "tests/spark")]
            codes = [subprocess.call(pytest("tests", *rest), cwd=PROJECT)]
            codes.append(subprocess.call(pytest("tests/spark"), cwd=PROJECT))
            codes.append(lane.wait())
        finally:
            lane.terminate()
    sys.stdout.flush()
    sys.stdout.buffer.write(LOG.read_bytes())
    failed = any(codes)
    print(f"{'some tests failed' if failed else 'all tests passed'} in {(time.monotonic() - began) / 60:.0f} min")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
