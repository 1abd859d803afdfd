"""What `make test` has no time for, in parts of at most 20 minutes; which of them are stale, and running them.

    make test-deep PARTS=1                # the parts, with their minutes and whether they are stale
    make test-deep PART=spark-windows     # one
    make test-deep NEXT=1                 # the stalest, at low priority
    make test-deep STALE=20               # stale ones that have passed before, shortest first, within so many minutes
    make test-deep                        # all (hours)

tests/deep/parts.toml lists the parts. `tests` of a part run in no other place. `searches` are files that `make test`
runs too, with a smaller budget (tests/support/budget.py). What is marked `measured` is a part per ring.

Of a part that passes tests/deep/passed/PART keeps the date, the minutes and a hash of what it depends on: its list, and
the files that touch the rings of its tests (tools/changed_rings.py). A part is stale while that hash is another one.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import time
from argparse import ArgumentParser
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from pathlib import Path

from tools import run_tests
from tools.changed_rings import touched
from tools.run_tests import PARTS, REPORTS, measuring

PROJECT = Path(__file__).resolve().parent.parent
PASSED = PROJECT / "tests" / "deep" / "passed"
LONGEST_MINUTES = 20
TESTS_FAILED = 1
"""pytest's exit code; others say that it could not run them."""
MEASURED = "measured-"


@dataclass(frozen=True)
class Passed:
    """When a part passed last, how long it took, and the hash of what it depended on."""

    date: str
    minutes: float
    files: str

    @classmethod
    def of(cls, part: str) -> Passed | None:
        """What is recorded of a part; None if it has never passed."""
        try:
            record = json.loads((PASSED / part).read_text())
        except FileNotFoundError:
            return None
        return cls(record["date"], record["minutes"], record["files"])


@dataclass(frozen=True)
class PartState:
    """A part, what is recorded of it, and the hash of what it depends on now."""

    part: str
    passed: Passed | None
    files: str

    @property
    def stale(self) -> bool:
        """Whether it has not passed with the files as they are."""
        return self.passed is None or self.passed.files != self.files

    def __str__(self) -> str:
        when = f"passed {self.passed.date} in {self.passed.minutes:.1f} min" if self.passed else "has never passed"
        return f"{self.part:28} {when}{', stale' if self.stale else ''}"


def names() -> list[str]:
    """All parts."""
    return [*PARTS, *(f"{MEASURED}{ring}" for ring in run_tests.rings() if measuring(ring))]


def selected(part: str) -> list[str]:
    """The files and tests that a part runs."""
    if part.startswith(MEASURED):
        return measuring(part.removeprefix(MEASURED))
    return [*PARTS[part].get("tests", []), *PARTS[part].get("searches", [])]


def rings_of(part: str) -> set[str]:
    """The rings that a part's tests belong to."""
    return {test.split("/")[1] for test in selected(part)}


@cache
def versioned() -> dict[str, str]:
    """A hash of each file that is under version control or may come under it; records of parts are none of them."""
    words = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(words, cwd=PROJECT, capture_output=True, text=True, check=True)
    paths = (path for path in set(listed.stdout.split("\0")) if path and not path.startswith("tests/deep/passed/"))
    return {
        path: hashlib.sha256((PROJECT / path).read_bytes()).hexdigest() for path in paths if (PROJECT / path).is_file()
    }


def files_hash(part: str) -> str:
    """The hash of what a part runs, and of all files that touch the rings of it."""
    wanted, whole = rings_of(part), hashlib.sha256("\0".join(selected(part)).encode())
    for path, content in sorted(versioned().items()):
        by_path = touched(path)
        if by_path is None or wanted & set(by_path):
            whole.update(f"{path}\0{content}\n".encode())
    return whole.hexdigest()[:16]


def states() -> list[PartState]:
    """All parts, those that passed longest ago first."""
    parts = [PartState(part, Passed.of(part), files_hash(part)) for part in names()]
    return sorted(parts, key=lambda part: (part.passed.date if part.passed else "", part.part))


def fitting(parts: Iterable[PartState], minutes: float) -> list[PartState]:
    """The stale ones that have passed before, shortest first, as many as fit into so many minutes."""
    stale = [(part.passed.minutes, part.part, part) for part in parts if part.passed and part.stale]
    chosen: list[PartState] = []
    for taken, _, part in sorted(stale):
        minutes -= taken
        if minutes < 0:
            break
        chosen.append(part)
    return chosen


def command(part: str) -> list[str]:
    """What runs the tests of a part."""
    marker = "measured" if part.startswith(MEASURED) else "not measured"
    return ["python", "-m", "pytest", *selected(part), "-m", marker, f"--timeout={LONGEST_MINUTES * 60}"]


def environment() -> dict[str, str]:
    """The one in which tests search deep."""
    return {**os.environ, "TIDEMARK_TEST_DEPTH": "deep"}


def run(part: PartState) -> bool:
    """Run a part, and record that it passed; whether it did."""
    print(part, flush=True)
    REPORTS.mkdir(parents=True, exist_ok=True)
    began = time.monotonic()
    words = [*command(part.part), f"--junitxml={REPORTS / f'{part.part}.xml'}"]
    if subprocess.run(words, cwd=PROJECT, env=environment()).returncode != 0:
        return False
    minutes = round((time.monotonic() - began) / 60, 1)
    versioned.cache_clear()
    if files_hash(part.part) != part.files:
        print(f"{part.part} passed, but files it depends on changed meanwhile: not recorded", flush=True)
        return True
    PASSED.mkdir(parents=True, exist_ok=True)
    record = {"date": f"{datetime.now(UTC):%Y-%m-%d %H:%M}", "minutes": minutes, "files": part.files}
    (PASSED / part.part).write_text(json.dumps(record) + "\n")
    return True


def fails_at(commit: str, part: str) -> bool:
    """Whether tests of a part fail at a commit, too: in a work tree of its own, with this one's packages."""
    tree = PROJECT / "build" / "base"
    git = ("git", "-C", str(PROJECT), "worktree")
    subprocess.run([*git, "add", "--force", "--detach", str(tree), commit], check=True)
    try:
        (tree / ".venv").symlink_to(PROJECT / ".venv")
        (tree / "build").mkdir()
        words = [str(tree / "tools" / "run"), *command(part)]
        return subprocess.run(words, cwd=tree, env=environment()).returncode == TESTS_FAILED
    finally:
        subprocess.run([*git, "remove", "--force", str(tree)], check=True)


def run_all(parts: Sequence[PartState], base: str | None) -> int:
    """Run some parts one after the other; the exit code, which is 1 if one failed that passes at `base`."""
    failed = [part.part for part in parts if not run(part)]
    older = [part for part in failed if base and fails_at(base, part)]
    for part in failed:
        print(f"{part} failed{f', at {base} as well' if part in older else ''}", flush=True)
    return int(len(failed) > len(older))


def run_stale(minutes: float, base: str | None) -> int:
    """Run the stale parts that fit into so many minutes, and say which stay stale; the exit code."""
    stale = [part for part in states() if part.stale]
    if base:
        touched_rings = set(run_tests.touched(base))
        stale = [part for part in stale if rings_of(part.part) & touched_rings]
    code = run_all(fitting(stale, minutes), base)
    left = [part.part for part in states() if part.stale]
    print(f"deep parts that are stale: {', '.join(left) or 'none'}", flush=True)
    return code


def main() -> int:
    options = ArgumentParser(description="Run the deep parts of the tests.")
    what = options.add_mutually_exclusive_group()
    what.add_argument("--list", choices=("1", "json"), help="the parts, or their names as JSON")
    what.add_argument("--part", choices=names(), metavar="PART", help="one of them")
    what.add_argument("--next", action="store_true", help="the one that passed longest ago and is stale")
    what.add_argument("--stale", type=float, metavar="MINUTES", help="stale ones that fit into so many minutes")
    options.add_argument("--base", metavar="COMMIT", help="only what changed since can make a stale part fail")
    words = options.parse_args()
    if words.list == "json":
        print(json.dumps(names()))
        return 0
    if words.stale is not None:
        return run_stale(words.stale, words.base or None)
    parts = states()
    if words.list:
        print(*parts, sep="\n")
        return 0
    if words.part:
        parts = [part for part in parts if part.part == words.part]
    elif words.next:
        os.nice(19)
        parts = [part for part in parts if part.stale][:1]
        if not parts:
            print("no deep part is stale")
    return run_all(parts, words.base or None)


if __name__ == "__main__":
    sys.exit(main())
