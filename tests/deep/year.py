"""A year of flights in windows, brought on by processes that are killed; then every window is compared with the
calculation straight from the CSV.

    tools/run python -m tests.deep.year --seed 1 --kills 40            # an hour or two
    tools/run python -m tests.deep.year --days 21 --kills 6 --windows delays_by_hour
    tools/run python -m tests.deep.year --run-days 28 --kills 15    # half an hour

Flights are brought on by a week at a time (`tidemark advance flights --to …`; other lengths by `--run-days`), in which
the arrivals of each day's last night are late; the demo's collections of windows after every few of these. Each process
may be killed at any moment with all that it started, and is then run again. An end that is not a success, and a window
that is not as calculated, now or as known when an earlier run had ended, is an error.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from pathlib import Path

from demo import independent, independent_windows, layout

PROJECT = Path(__file__).resolve().parents[2]
WINDOWED = {
    "delays_by_hour": independent_windows.delays_by_hour,
    "busy_half_hours": independent_windows.busy_half_hours,
    "aircraft_days": independent_windows.aircraft_days,
}
RUN_DAYS, RUNS_A_FOLLOW = 7, 4
KILLED_AT_MOST = 0.7
"""The share of processes that are killed, however many kills are asked for."""
YEAR_DAYS = (layout.LAST_DAY - layout.FIRST_DAY).days + 1
END_WITHIN_S = 3600.0
AS_OF_EARLIER = 3


class Wrong(AssertionError):
    """The campaign has found something."""


@dataclass
class Year:
    """The collections below a folder, and what became of the processes that brought them on."""

    folder: Path
    chance: random.Random
    names: Sequence[str]
    days: int
    run_days: int
    kills_left: int
    ends: Counter[tuple[str, str]] = field(default_factory=Counter)
    """Collection, how a process ended: how often."""
    typical_s: dict[str, float] = field(default_factory=dict)
    frontiers: list[tuple[int, date]] = field(default_factory=list)
    """When collections of windows had followed: the time that was known then, and the day flights were read up to."""
    windows: int = 0

    def __post_init__(self) -> None:
        runs = -(-self.days // self.run_days)
        processes = runs + -(-runs // RUNS_A_FOLLOW) * len(self.names)
        self.killed_share = min(KILLED_AT_MOST, self.kills_left / processes)

    def environment(self) -> dict[str, str]:
        places = {"ROOT": self.folder / "root", "LANDING": self.folder / "landing", "DOCS": self.folder / "docs"}
        path = os.pathsep.join([str(PROJECT / "include"), str(PROJECT)])
        settings = {f"TIDEMARK_{name}": str(place) for name, place in places.items()}
        kept = {name: value for name, value in os.environ.items() if name != "SPARK_HOME"}
        return kept | settings | {"PYTHONPATH": path, "PYSPARK_PYTHON": sys.executable}

    def declare(self) -> None:
        """Flights as the demo has them; its windows without the frontiers that the first build makes for each day."""
        for name in ("flights", *self.names):
            text = (PROJECT / "include" / "collections" / f"{name}.yaml").read_text()
            file = self.folder / f"{name}.yaml"
            file.write_text("".join(line for line in text.splitlines(True) if not line.startswith("history:")))
            self.run_whole(name, "init", str(file))

    def run_whole(self, name: str, *words: str) -> None:
        """Run a command, killed as often as it happens, to its success."""
        while True:
            killed, status = self.run(name, words)
            self.ends[name, "killed" if killed else "done" if status == 0 else "failed"] += 1
            if status == 0:
                return
            if not killed:
                raise Wrong(f"tidemark {' '.join(words)} ended with {status}: see {self.folder / 'log'}")

    def run(self, name: str, words: Sequence[str]) -> tuple[bool, int]:
        """Run a command once: whether it was killed, and its status."""
        aimed = self.kills_left > 0 and words[0] == "advance" and self.chance.random() < self.killed_share
        began = time.monotonic()
        with (self.folder / "log").open("ab") as log:
            command = [sys.executable, "-c", "from tidemark.cli import app; app()", *words]
            process = subprocess.Popen(
                command, stdout=log, stderr=log, env=self.environment(), start_new_session=True, cwd=self.folder
            )
            try:
                wait = self.chance.random() * self.typical_s.get(name, 20.0) if aimed else END_WITHIN_S
                status = process.wait(wait)
            except subprocess.TimeoutExpired:
                if not aimed:
                    raise Wrong(f"tidemark {' '.join(words)} did not end in {END_WITHIN_S:.0f} s") from None
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
                self.kills_left -= 1
                print(f"  {name}: killed after {wait:.1f} s", flush=True)
                return True, -signal.SIGKILL
            finally:
                if process.poll() is None:
                    os.killpg(process.pid, signal.SIGKILL)
                    process.wait()
        if words[0] == "advance":
            self.typical_s[name] = time.monotonic() - began
        return False, status

    def go(self) -> None:
        """Bring flights on, and the windows after them."""
        upto, runs = layout.FIRST_DAY, 0
        end = layout.FIRST_DAY + timedelta(days=self.days)
        while upto < end:
            upto, runs = min(upto + timedelta(days=self.run_days), end), runs + 1
            self.run_whole("flights", "advance", "flights", "--to", upto.isoformat())
            if runs % RUNS_A_FOLLOW and upto < end:
                continue
            print(f"flights to {upto}", flush=True)
            for name in self.names:
                self.run_whole(name, "advance", name)
            self.frontiers.append((micros(independent.start_of(upto)) - 1, upto))

    def compare(self) -> None:
        """Every window, as known now and at the end of some earlier runs."""
        rows = (row for flight in independent.flights() for row in independent.reports(flight))
        newest, earlier = self.frontiers[-1], self.frontiers[:-1]
        known = independent.ingest(rows, last=newest[1] - timedelta(days=1))
        for at, upto in [*self.chance.sample(earlier, min(AS_OF_EARLIER, len(earlier))), newest]:
            current = independent.as_of(known, time=independent.start_of(upto) - independent.INSTANT)
            for name in self.names:
                self.compare_one(name, at, WINDOWED[name](current, independent.start_of(upto)))

    def compare_one(self, name: str, at: int, right: independent_windows.Rows) -> None:
        import tidemark

        found: independent_windows.Rows = Counter()
        for batch in tidemark.open(str(self.folder / "root"), name).as_of(at):
            for row in batch.to_pylist():
                multiplicity = row.pop("_multiplicity")
                found[tuple(row.values())] += multiplicity
        more, less = found - right, right - found
        if more or less:
            shown = f"too much {list(more.items())[:5]}, missing {list(less.items())[:5]}"
            raise Wrong(f"{name} at {at}: {more.total()} rows too much, {less.total()} missing: {shown}")
        self.windows += right.total()
        print(f"  {name} as known at {at}: {right.total():,} windows as calculated", flush=True)

    def report(self) -> str:
        ends = ", ".join(f"{name} {end} {count}" for (name, end), count in sorted(self.ends.items()))
        return f"{self.windows:,} windows were right; {ends}"


def micros(moment: datetime) -> int:
    return (moment - independent.EPOCH) // independent.INSTANT


def run(seed: int, *, days: int, kills: int, run_days: int = RUN_DAYS, names: Sequence[str] = tuple(WINDOWED)) -> Year:
    """Bring so many days on, `run_days` at a time, with so many kills. Raises Wrong; the folder then stays."""
    folder = Path(tempfile.mkdtemp(prefix="tm-"))
    year = Year(folder, random.Random(seed), names, days, run_days, kills)
    try:
        layout.lay_out(folder / "landing", last=layout.FIRST_DAY + timedelta(days=days - 1))
        year.declare()
        year.go()
        year.compare()
    except BaseException:
        print(f"seed {seed}, see {folder}\n{year.report()}", flush=True)
        raise
    shutil.rmtree(folder)
    return year


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--days", type=int, default=YEAR_DAYS)
    parser.add_argument("--run-days", type=int, default=RUN_DAYS)
    parser.add_argument("--kills", type=int, default=40)
    parser.add_argument("--windows", nargs="+", choices=sorted(WINDOWED), default=list(WINDOWED))
    args = parser.parse_args()
    print(run(args.seed, days=args.days, kills=args.kills, run_days=args.run_days, names=args.windows).report())
    return 0


if __name__ == "__main__":
    sys.exit(main())
