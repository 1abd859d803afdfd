"""Kills and stops at random moments, over both launchers and children of tasks; then answers are the oracle's.

    tools/run python -m tests.deep.campaign --seed 1 --resident 150 --submit 30 --child 100

Day after day of two small collections is moved by tasks as Airflow runs them: a process per try that executes the
operator, and another try where Airflow would make one. While a try runs, some process is hit: killed, terminated,
stopped for good, or stopped for a moment. A try that neither ends nor fails in time, a failure that Airflow would not
retry, a wrong answer, and whatever is left at the end is an error. It prints what was hit and how the tries ended.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

from tests.deep.oracle import APPEND, UPSERT, Landed, counted
from tests.deep.victims import MARK, Hit, hit, marked

PROJECT = Path(__file__).resolve().parents[2]
TASKS = ("ingest", "unsealed", "seal", "frontier", "drain", "trace", "compact", "compaction")
STEPS = frozenset({"ingest", "seal", "drain", "compact"})
PATIENCE_S = 10.0
END_WITHIN_S = 400.0
"""A try ends within this, whatever was done to whom: a hello (30 s), patience, a cold start on a busy machine."""
GONE_WITHIN_S = 60.0
TRIES = 12
RETRIED, FAILED = 75, 1


class Wrong(AssertionError):
    """The campaign has found something."""


class Try:
    """A child of ours that executes a task once."""

    def __init__(self, life: Callable[[], NoReturn]) -> None:
        self.pid = os.fork()
        self.status: int | None = None
        if self.pid == 0:
            life()

    def ended(self, within_s: float = 0.0) -> bool:
        """Whether it ends within so long; its `status` is known then."""
        deadline = time.monotonic() + within_s
        while self.status is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.status = os.waitstatus_to_exitcode(status)
            elif time.monotonic() > deadline:
                return False
            else:
                time.sleep(0.01)
        return True


@dataclass
class Campaign:
    """Two collections below a folder, and what was done to the processes that moved them."""

    folder: Path
    chance: random.Random
    collections: list[Landed] = field(default_factory=list)
    table: Counter[tuple[str, str, str, str]] = field(default_factory=Counter)
    """Launcher, role, action, how the try ended: how often."""
    typical_s: dict[tuple[str, str], float] = field(default_factory=dict)
    hits = tries = reads = 0

    def __post_init__(self) -> None:
        self.collections = [Landed(text, random.Random(self.chance.random())) for text in (APPEND, UPSERT)]
        for landed in self.collections:
            (self.folder / f"{landed.name}.yaml").write_text(landed.text)

    def day(self, launcher: str, wanted: int) -> None:
        """One more day of one of the collections; up to `requested_seal` hits."""
        landed = self.chance.choice(self.collections)
        date = landed.land(self.folder / "landing")
        until = self.hits + wanted
        for task in TASKS:
            self.task(landed, task, date, launcher, until)
        compare(landed, self.folder / "root", self.chance)
        self.reads += 3

    def task(self, landed: Landed, task: str, date: str, launcher: str, until: int) -> None:
        """A task to its success, with the tries Airflow would make."""
        for number in range(1, TRIES + 1):
            aimed = self.hits < until and self.chance.random() < (0.95 if number == 1 else 0.5)
            done, end = self.attempt(landed, task, date, launcher, number, aimed=aimed)
            if done is not None:
                self.hits += 1
                self.table[launcher, done.role, done.action, end] += 1
                print(f"{self.hits:4} {launcher:9} {task:10} {done.action:9} {done.role:18} {end}", flush=True)
            elif end != "done":
                self.table[launcher, "-", "nothing", end] += 1
                print(f"     {launcher:9} {task:10} nothing            {end}", flush=True)
            if end == "done":
                return
        raise Wrong(f"{task} of {landed.name} {date} had no success in {TRIES} tries: see {self.folder / 'log'}")

    def attempt(
        self, landed: Landed, task: str, date: str, launcher: str, number: int, *, aimed: bool
    ) -> tuple[Hit | None, str]:
        """One try, hit if `aimed`: what was hit, and how the try ended."""
        self.tries += 1
        began = time.monotonic()
        one = Try(lambda: _live(self.folder, landed, task, date, launcher, number))
        done = None
        if aimed:
            one.ended(self.chance.random() * self.typical_s.get((launcher, task), 3.0))
            done = hit(self.chance, str(self.folder), None if one.ended() else one.pid)
        if not one.ended(END_WITHIN_S):
            shown = "\n".join(f"  {p.pid} {p.status()} {' '.join(p.cmdline())[:100]}" for p in marked(str(self.folder)))
            os.kill(one.pid, signal.SIGKILL)
            raise Wrong(f"{task} by {launcher} did not end in {END_WITHIN_S:.0f} s after {done}:\n{shown}")
        if one.status == FAILED:
            raise Wrong(f"{task} by {launcher} needs a person after {done}: see {self.folder / 'log'}")
        if done is None and one.status == 0:
            self.typical_s[launcher, task] = time.monotonic() - began
        return done, "done" if one.status == 0 else "retried"

    def finish(self) -> None:
        """Stop the server, and find nothing of it."""
        from tidemark.resident.client import Resident
        from tidemark.resident.server_folder import Settings

        for landed in self.collections:
            if landed.days:
                compare(landed, self.folder / "root", self.chance)
                self.reads += 3
        Resident(Settings.from_environ(os.environ, master="local[2]")).stop(now=True)
        # A server whose JVM was hit last takes no client any more, and may be about to end.
        deadline = time.monotonic() + GONE_WITHIN_S
        while (left := marked(str(self.folder))) and time.monotonic() < deadline:
            time.sleep(0.1)
        if left:
            shown = [f"{p.pid} {p.status()} {' '.join(p.cmdline())[:120]}" for p in left]
            raise Wrong("processes are left:\n  " + "\n  ".join(shown))
        files = list((self.folder / "r").rglob("*")) if (self.folder / "r").exists() else []
        if [f for f in files if f.suffix not in (".log", ".1")]:
            raise Wrong(f"files are left: {files}")
        # A writer that is killed between two calls leaves what it was writing: that is the collector's to remove.
        for landed in self.collections:
            if landed.days:
                collected(self.folder / "root", landed.name)
                compare(landed, self.folder / "root", self.chance)
        if parts := [str(p) for p in (self.folder / "root").rglob(".tmp-*")]:
            raise Wrong(f"the collector left half-written files: {parts}")

    def report(self) -> str:
        lines = [f"{self.hits} hits in {self.tries} tries; {self.reads} reads were right"]
        for (launcher, role, action, end), count in sorted(self.table.items()):
            lines.append(f"  {launcher:9} {role:20} {action:10} {end:8} {count:4}")
        return "\n".join(lines)


def compare(landed: Landed, root: Path, chance: random.Random) -> None:
    """Every answer there is: now, at some earlier time, and all changes."""
    from tests.support.reading import as_of, changes
    from tidemark.jobs.job import collection_store, fresh_id
    from tidemark.storage.log.log import StateLog

    store = collection_store(str(root), landed.name)
    state = StateLog(store, fresh_id).load().state
    earlier = chance.choice(landed.rows)[3]
    for what, table, right in (
        ("now", as_of(store, state), landed.as_of(landed.rows[-1][3])),
        (f"at {earlier}", as_of(store, state, time=earlier), landed.as_of(earlier)),
    ):
        if (found := counted(table, "id", "amount", count="_multiplicity")) != right:
            raise Wrong(f"{landed.name} {what}: {_difference(found, right)}")
    found = counted(changes(store, state, after=-1), "id", "amount", "_commit_version", count="diff")
    if found != landed.changes():
        raise Wrong(f"changes of {landed.name}: {_difference(found, landed.changes())}")


def collected(root: Path, name: str) -> None:
    """Remove from a collection what nothing names, without a grace: nobody else is at work any more."""
    from tidemark.jobs.job import Job, Runner, collection_store, fresh_id
    from tidemark.jobs.steps.collect import AT_ONCE, collect
    from tidemark.storage.log.log import StateLog

    def no_runner() -> Runner:
        raise AssertionError("a collector reads no data")

    store = collection_store(str(root), name)
    collect(Job(store, StateLog(store, fresh_id), no_runner, "end"), keep=0, graces=AT_ONCE)


def _live(folder: Path, landed: Landed, task: str, date: str, launcher: str, number: int) -> NoReturn:
    """The life of a task process: as Airflow's, it ends the app on SIGTERM, and its exit says whether to try again."""
    code = RETRIED
    try:
        os.setsid()
        log = os.open(folder / "log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        os.dup2(log, 1)
        os.dup2(log, 2)
        code = _execute(folder, landed, task, date, launcher, number)
    except BaseException as error:
        print(f"{task}: {error!r}"[:2000], flush=True)
    finally:
        os._exit(code)


def _execute(folder: Path, landed: Landed, task: str, date: str, launcher: str, number: int) -> int:
    from airflow.sdk.exceptions import AirflowFailException

    from tests.launch.support import context
    from tidemark.airflow.app_operator import AppOperator

    app = task if task in STEPS else "gate"
    words = ["--root", str(folder / "root"), "--collection", landed.name]
    words += ["--lower", date, "--upper", _next(date), *(["--gate", task] if app == "gate" else [])]
    if task == "ingest":
        words += ["--landing", str(folder / "landing"), "--file", str(folder / f"{landed.name}.yaml")]
    how = {"spark": "auto"} if launcher == "child" else {"spark": "always", "launcher": launcher}
    operator = AppOperator(task_id=task, app=app, app_args=words, **how)
    signal.signal(signal.SIGTERM, lambda *_: operator.on_kill())
    try:
        print(f"{task} {date} {launcher}: {operator.execute(context(number))}", flush=True)
    except AirflowFailException as error:
        print(f"{task}: will not be retried: {error}", flush=True)
        return FAILED
    return 0


def _next(date: str) -> str:
    from datetime import date as day
    from datetime import timedelta

    return (day.fromisoformat(date) + timedelta(days=1)).isoformat()


def _difference(found: Counter[Any], right: Counter[Any]) -> str:
    more, less = Counter(found), Counter(right)
    more.subtract(right)
    less.subtract(found)
    return f"too much {[i for i in more.items() if i[1] > 0][:5]}, missing {[i for i in less.items() if i[1] > 0][:5]}"


@contextlib.contextmanager
def environment(folder: Path) -> Iterator[None]:
    """That of a worker, with everything below `folder`."""
    from tools.build_zip import build

    build(target=folder / "tidemark.zip")
    before = dict(os.environ)
    os.environ |= {
        "AIRFLOW_HOME": str(folder / "airflow"),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW_CONN_SPARK_DEFAULT": '{"conn_type": "spark", "host": "local[2]"}',
        "TIDEMARK_HOME": str(PROJECT),
        "TIDEMARK_DOCS": str(folder / "docs"),
        "TIDEMARK_ZIP": str(folder / "tidemark.zip"),
        "TIDEMARK_RESIDENT_DIR": str(folder / "r"),
        "TIDEMARK_RESIDENT_PATIENCE_S": str(PATIENCE_S),
        MARK: str(folder),
        "PYSPARK_PYTHON": sys.executable,
        "PYTHONPATH": str(PROJECT / "include"),
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
    }
    os.environ.pop("SPARK_HOME", None)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def run(seed: int, *, resident: int, submit: int, child: int) -> Campaign:
    """So many hits of each launcher, and of children of tasks. Raises Wrong; the folder then stays, and is named."""
    folder = Path(tempfile.mkdtemp(prefix="tm-"))
    campaign = Campaign(folder, random.Random(seed))
    with environment(folder):
        try:
            from tidemark.airflow import app_operator  # imported once, as Airflow's workers do before they fork

            assert app_operator.AppOperator
            for launcher, wanted in (("child", child), ("resident", resident), ("submit", submit)):
                end = campaign.hits + wanted
                while campaign.hits < end:
                    campaign.day(launcher, end - campaign.hits)
            campaign.finish()
        except BaseException:
            print(f"seed {seed}, see {folder}\n{campaign.report()}", flush=True)
            raise
    shutil.rmtree(folder)
    return campaign


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--resident", type=int, default=150, help="hits of tasks on the resident Spark")
    parser.add_argument("--submit", type=int, default=50, help="hits of tasks with a spark-submit each")
    parser.add_argument("--child", type=int, default=100, help="hits of tasks that do small work")
    args = parser.parse_args()
    print(run(args.seed, resident=args.resident, submit=args.submit, child=args.child).report())
    return 0


if __name__ == "__main__":
    sys.exit(main())
