"""Rings of tests, as CI runs them: three lanes side by side on two cores, each ring in a process of its own.

    tools/run python -m tools.run_tests                   # make test
    tools/run python -m tools.run_tests spark             # make test-spark: one ring
    tools/run python -m tools.run_tests --changed main    # make test-changed: rings that a change since main touches

The rings are in one row. The first lane takes them from its head, where tests wait most of the time for Airflow, Spark
and the processes they have started; the others from its end, where tests wait for nothing but the processor. They
meet in the middle, where the short ones are, so that none is done long before the others, whatever the machine. What
the others say is in build/test-lane-2.log and build/test-lane-3.log, and shown at the end.

What tests/deep/parts.toml lists is left out, and what measures (`measured`: memory, seconds, races of processes): they
are parts of `make test-deep` (tools/deep_parts.py). At the end are the CPU minutes of each ring beside its budget, and
the slowest tests of all rings. Exit code 1 if any failed; a ring far above its budget is a warning, as no test fails
by the clock.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
import tomllib
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
BUDGETS = {
    **{"e2e": 3.5, "dags": 4.5, "launch": 2.5, "environment": 1.5, "s3": 1.5, "demo": 1.0, "cli": 2.0},
    **{"quality": 1.5, "conformance": 1.5, "compat": 1.0, "pure": 5.0, "simulation": 4.5, "spark": 6.0},
}
"""CPU minutes that the tests of each ring may take with all that they start, in the order in which rings run."""
TOTAL_BUDGET = 36.0
WARN_AT = 1.5
MIDDLE = "conformance"
DEEP = "deep"
"""A folder of tests that are parts of `make test-deep`, all of them."""
LOGS = (PROJECT / "build" / "test-lane-2.log", PROJECT / "build" / "test-lane-3.log")
REPORTS = PROJECT / "build" / "test-reports"
PARTS: dict[str, dict[str, list[str]]] = tomllib.loads((PROJECT / "tests" / "deep" / "parts.toml").read_text())
ALL_CPU = Path(__file__).with_name("all_cpu.py")
SLOWEST, DEAREST = 20, 5
NOTHING_CHOSEN = 5
"""pytest's exit code where no test is left."""


@dataclass(frozen=True)
class Ran:
    """What became of a ring."""

    name: str
    failed: bool
    minutes: float
    cpu_minutes: float


def rings() -> list[str]:
    """All folders of tests, in the order of BUDGETS; those it does not name stand in its middle."""
    folders = {path.parent.relative_to(PROJECT / "tests").parts[0] for path in PROJECT.glob("tests/*/**/test_*.py")}
    row = [*BUDGETS]
    new, middle = sorted(folders - {*row}), row.index(MIDDLE)
    return [ring for ring in (*row[:middle], *new, *row[middle:]) if ring in folders]


def measuring(ring: str) -> list[str]:
    """The files of a ring in which something measures."""
    files = sorted((PROJECT / "tests" / ring).rglob("test_*.py"))
    return [str(path.relative_to(PROJECT)) for path in files if "pytest.mark.measured" in path.read_text()]


def selection(ring: str) -> list[str]:
    """What pytest runs of a ring in `make test`."""
    elsewhere = [test for part in PARTS.values() for test in part.get("tests", [])]
    left_out = [f"--deselect={test}" for test in elsewhere if test.startswith(f"tests/{ring}/")]
    return [f"tests/{ring}", "-m", "not measured", *left_out]


@dataclass
class Lane:
    """Runs tests ring after ring, each in a process of its own."""

    output: BinaryIO | None = None
    ran: list[Ran] = field(default_factory=list)
    _over: bool = False
    _running: subprocess.Popen[bytes] | None = None

    def take(self, ring: Callable[[], str]) -> None:
        """Run rings, without searches and what measures, until there is none left."""
        while not self._over:
            try:
                name = ring()
            except IndexError:
                return
            self.run(name)

    def run(self, name: str) -> None:
        """Run a ring."""
        began = time.monotonic()
        pytest = [sys.executable, "-m", "pytest", *selection(name), f"--junitxml={REPORTS / name}.xml"]
        command = [sys.executable, str(ALL_CPU), *pytest]
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
            for lane_done in done:
                lane_done.result()
        finally:
            for lane in lanes:
                lane.stop()
    for log in LOGS:
        sys.stdout.buffer.write(log.read_bytes())
    return lanes


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
        why = chosen(changed_since(base), row)
    except subprocess.CalledProcessError as error:
        sys.exit(f"git cannot compare with {base} ({error.stderr.strip()}): say another commit, BASE=…")
    for ring, paths in why.items():
        print(f"{ring}: {paths[0]}{f' and {len(paths) - 1} more' if len(paths) > 1 else ''}")
    print(f"no ring can notice this: {' '.join(ring for ring in row if ring not in why) or 'none'}")
    return list(why)


def over_budget(ran: Ran) -> list[str]:
    """A warning that names the dearest tests of a ring that has used far more than its budget, else nothing."""
    budget = BUDGETS.get(ran.name, 0.0)
    if ran.cpu_minutes <= WARN_AT * budget:
        return []
    dearest = slowest([REPORTS / f"{ran.name}.xml"], DEAREST)
    return [
        f"warning: {ran.name} used {ran.cpu_minutes:.1f} CPU minutes, its budget is {budget:.1f}; its dearest tests:",
        *(f"{seconds:8.1f}  {test}" for seconds, test in dearest),
    ]


def summary(lanes: Sequence[Lane], began: float) -> int:
    """Say what took how long, and what failed; the exit code."""
    print(f"the slowest {SLOWEST} tests, in seconds:")
    for seconds, test in slowest(sorted(REPORTS.glob("*.xml")), SLOWEST):
        print(f"{seconds:8.1f}  {test}")
    print(f"{'ring':12} {'lane':>4} {'minutes':>8} {'CPU minutes':>12} {'budget':>7}")
    everything = [(number, ran) for number, lane in enumerate(lanes, start=1) for ran in lane.ran]
    for number, ran in everything:
        print(f"{ran.name:12} {number:4} {ran.minutes:8.1f} {ran.cpu_minutes:12.1f} {BUDGETS.get(ran.name, 0.0):7.1f}")
    total = sum(ran.cpu_minutes for _, ran in everything)
    print(f"{'all':12} {'':4} {(time.monotonic() - began) / 60:8.1f} {total:12.1f} {TOTAL_BUDGET:7.1f}")
    for line in (line for _, ran in everything for line in over_budget(ran)):
        print(line)
    failed = [ran.name for _, ran in everything if ran.failed]
    verdict = f"some tests failed, in {', '.join(failed)}," if failed else "all tests passed"
    print(f"{verdict} in {(time.monotonic() - began) / 60:.0f} min")
    return int(bool(failed))


def main() -> int:
    options = ArgumentParser(description="Run rings of tests.")
    options.add_argument("rings", nargs="*", metavar="RING", help="these; all if none is named")
    options.add_argument("--changed", metavar="COMMIT", help="those that a change since a commit can touch")
    words = options.parse_args()
    if unknown := sorted({*words.rings} - {*rings()}):
        options.error(f"no ring is called {unknown[0]}; there are {' '.join(rings())}")
    began = time.monotonic()
    row = touched(words.changed) if words.changed else words.rings or rings()
    shutil.rmtree(REPORTS, ignore_errors=True)
    REPORTS.mkdir(parents=True)
    row = [ring for ring in row if ring != DEEP]
    print(f"rings: {' '.join(row)}; those from the end are in build/test-lane-*.log", flush=True)
    if len(row) == 1:
        lane = Lane()
        lane.run(row[0])
        return summary([lane], began)
    return summary(side_by_side(row), began)


if __name__ == "__main__":
    sys.exit(main())
