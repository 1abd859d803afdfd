"""Rings of tests, as CI runs them: three lanes side by side on two cores, each ring in a process of its own.

    tools/run python -m tools.run_tests                   # make test
    tools/run python -m tools.run_tests --changed main    # make test-changed: rings that a change since main touches
    tools/run python -m tools.run_tests --measured        # make test-measured: what measures, and nothing else

The rings are in one row. The first lane takes them from its head, where tests wait most of the time for Airflow, Spark
and the processes they have started; the others from its end, where tests wait for nothing but the processor. They
meet in the middle, where the short ones are, so that none is done long before the others, whatever the machine. What
the others say is in build/test-lane-2.log and build/test-lane-3.log, and shown at the end.

What measures (`measured`: memory, seconds, races of processes) comes after the others, alone, ring by ring. At the end
are the slowest tests of all rings. Exit code 1 if any failed.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from argparse import ArgumentParser
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from tools.changed_rings import chosen
from tools.slowest_tests import slowest

PROJECT = Path(__file__).resolve().parent.parent
ROW = (
    *("e2e", "deep", "dags", "launch", "environment", "s3", "demo", "cli", "quality"),
    *("conformance", "compat", "pure", "simulation", "spark"),
)
MIDDLE = "conformance"
LOGS = (PROJECT / "build" / "test-lane-2.log", PROJECT / "build" / "test-lane-3.log")
REPORTS = PROJECT / "build" / "test-reports"
SLOWEST = 20
NOTHING_CHOSEN = 5
"""pytest's exit code where no test is left."""


@dataclass(frozen=True)
class Ran:
    """What became of a ring, or of what it measures."""

    name: str
    failed: bool
    minutes: float
    cpu_minutes: float


def rings() -> list[str]:
    """All folders of tests, in the order of ROW; those it does not name stand in its middle."""
    there = {path.parent.relative_to(PROJECT / "tests").parts[0] for path in PROJECT.glob("tests/*/**/test_*.py")}
    new, middle = sorted(there - {*ROW}), ROW.index(MIDDLE)
    return [ring for ring in (*ROW[:middle], *new, *ROW[middle:]) if ring in there]


def measuring(ring: str) -> list[str]:
    """The files of a ring in which something measures."""
    files = sorted((PROJECT / "tests" / ring).rglob("test_*.py"))
    return [str(path.relative_to(PROJECT)) for path in files if "pytest.mark.measured" in path.read_text()]


@dataclass
class Lane:
    """Runs tests ring after ring, each in a process of its own."""

    output: BinaryIO | None = None
    ran: list[Ran] = field(default_factory=list)
    _over: bool = False
    _running: subprocess.Popen[bytes] | None = None

    def take(self, ring: Callable[[], str]) -> None:
        """Run rings, without what measures, until there is none left."""
        while not self._over:
            try:
                name = ring()
            except IndexError:
                return
            self.run(name, [f"tests/{name}", "-m", "not measured"])

    def run(self, name: str, words: Sequence[str]) -> None:
        """Run some tests."""
        began = time.monotonic()
        report = f"--junitxml={REPORTS / name}.xml"
        command = [sys.executable, "-m", "pytest", *words, report]
        self._running = subprocess.Popen(command, cwd=PROJECT, stdout=self.output, stderr=self.output)
        _, status, used = os.wait4(self._running.pid, 0)
        code = self._running.returncode = os.waitstatus_to_exitcode(status)
        minutes = (time.monotonic() - began) / 60
        self.ran.append(Ran(name, code not in (0, NOTHING_CHOSEN), minutes, (used.ru_utime + used.ru_stime) / 60))

    def stop(self) -> None:
        """End what runs, and take no more."""
        self._over = True
        if self._running and self._running.returncode is None:
            os.kill(self._running.pid, signal.SIGTERM)  # Popen.terminate would wait for it, as another thread does


def side_by_side(row: Sequence[str]) -> list[Lane]:
    """Three lanes that have run a row of rings."""
    left = deque(row)
    with ExitStack() as stack:
        first, *others = lanes = [Lane(), *(Lane(stack.enter_context(log.open("wb"))) for log in LOGS)]
        pool = stack.enter_context(ThreadPoolExecutor(len(others)))
        done = [pool.submit(lane.take, left.pop) for lane in others]
        try:
            first.take(left.popleft)
            for one in done:
                one.result()
        finally:
            for lane in lanes:
                lane.stop()
    for log in LOGS:
        sys.stdout.buffer.write(log.read_bytes())
    return lanes


def alone(row: Sequence[str]) -> Lane:
    """A lane that has run what measures in a row of rings, while nothing else ran."""
    lane = Lane()
    for ring in row:
        if files := measuring(ring):
            print(f"what measures in {ring}:", flush=True)
            lane.run(f"{ring}-measured", [*files, "-m", "measured"])
    return lane


def changed_since(base: str) -> list[str]:
    """The files that differ from where `base` and this branch parted; those that are in no commit yet, too."""

    def git(*words: str) -> str:
        return subprocess.run(["git", *words], cwd=PROJECT, capture_output=True, text=True, check=True).stdout

    parted = git("merge-base", base, "HEAD").strip()
    differ = git("diff", "--name-only", "--no-renames", "-z", parted)
    return [path for path in (differ + git("ls-files", "--others", "--exclude-standard", "-z")).split("\0") if path]


def touched(base: str) -> list[str]:
    """The rings that what changed since a commit can touch; says which, and why."""
    row = rings()
    try:
        found = chosen(changed_since(base), row)
    except subprocess.CalledProcessError as error:
        sys.exit(f"git cannot compare with {base} ({error.stderr.strip()}): say another commit, BASE=…")
    for ring, why in found.items():
        print(f"{ring}: {why[0]}{f' and {len(why) - 1} more' if len(why) > 1 else ''}")
    print(f"no ring can notice this: {' '.join(ring for ring in row if ring not in found) or 'none'}")
    return list(found)


def summary(lanes: Sequence[Lane], began: float) -> int:
    """Say what took how long, and what failed; the exit code."""
    for lane in lanes:
        minutes = [f"{one.name} {one.minutes:.1f} ({one.cpu_minutes:.1f})" for one in lane.ran]
        print(f"a lane's minutes (of the processor): {', '.join(minutes)}")
    print(f"the slowest {SLOWEST} tests, in seconds:")
    for seconds, test in slowest(sorted(REPORTS.glob("*.xml")), SLOWEST):
        print(f"{seconds:8.1f}  {test}")
    failed = [one.name for lane in lanes for one in lane.ran if one.failed]
    verdict = f"some tests failed, in {', '.join(failed)}," if failed else "all tests passed"
    print(f"{verdict} in {(time.monotonic() - began) / 60:.0f} min")
    return int(bool(failed))


def main() -> int:
    asked = ArgumentParser(description="Run rings of tests.")
    asked.add_argument("--changed", metavar="COMMIT", help="those that a change since a commit can touch")
    asked.add_argument("--measured", action="store_true", help="what measures, alone")
    given = asked.parse_args()
    began = time.monotonic()
    row = touched(given.changed) if given.changed else rings()
    shutil.rmtree(REPORTS, ignore_errors=True)
    REPORTS.mkdir(parents=True)
    lanes = []
    if not given.measured:
        print(f"rings: {' '.join(row)}; those from the end are in build/test-lane-*.log", flush=True)
        lanes = side_by_side(row)
    return summary([*lanes, alone(row)], began)


if __name__ == "__main__":
    sys.exit(main())
