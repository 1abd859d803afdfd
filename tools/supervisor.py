"""The supervisor, the process that `make up` leaves behind: it starts the components of the local Airflow, and again.

A component that ends is started again after a pause, a longer one each time; what it has left running is ended before.
One that ends too often stays down, and everything with it: half an Airflow would only seem to work. What became of each
component is in `components.json`, for `up`, `status` and the demo to say.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import psutil

from tools.postgres import Postgres, PostgresFailed

HOME = Path(os.environ["AIRFLOW_HOME"])
LOGS = HOME / "logs" / "components"
ACCOUNT = HOME / "components.json"

DATABASE = Postgres(HOME / "postgres", Path(os.environ["TIDEMARK_AIRFLOW_SOCKETS"]))
COMPONENTS = {
    "postgres": [],  # DATABASE knows its command
    "api-server": ["airflow", "api-server"],
    "scheduler": ["airflow", "scheduler", "--skip-serve-logs"],
    "dag-processor": ["airflow", "dag-processor"],
    "triggerer": ["airflow", "triggerer", "--skip-serve-logs"],
}

# In the environment of everything an instance starts, and of everything one of its components starts. A resident Spark
# carries the first only: it outlives the component whose task has started it.
INSTANCE = "TIDEMARK_AIRFLOW_INSTANCE"
COMPONENT = "LOCAL_AIRFLOW_COMPONENT"

PAUSES = (1, 2, 5, 10, 20)
"""Seconds before each new start of a component; one that ends after all of them stays down."""
FORGIVEN_AFTER_SECONDS = 600
"""So long up, a component's former ends count no more."""
COMPONENT_GRACE_SECONDS = 15
WORKER = "airflow worker"
"""How the titles of the scheduler's workers begin."""


class StayedDown(Exception):
    """A component has ended too often; the message names it."""


@dataclass
class Component:
    """One of the processes, and what became of it."""

    name: str
    process: subprocess.Popen[bytes] | None = None
    began: float = 0.0
    due: float = 0.0
    restarts: int = 0
    in_a_row: int = 0
    last_end: str = ""
    workers: frozenset[int] = frozenset()

    def start(self) -> None:
        if self.name == "postgres":
            try:
                DATABASE.prepare()
            except PostgresFailed as error:
                raise StayedDown(f"postgres cannot start: {error}") from None
            command, environment = DATABASE.command(), {k: v for k, v in os.environ.items() if k != INSTANCE}
        else:
            command, environment = COMPONENTS[self.name], os.environ | {COMPONENT: self.name}
        with log_of(self.name).open("a") as log:
            self.process = subprocess.Popen(command, env=environment, stdout=log, stderr=subprocess.STDOUT)
        self.began = time.monotonic()

    def ended(self) -> str:
        """How it ended; empty while it lives or waits for its next start."""
        if self.process is None or (code := self.process.poll()) is None:
            return ""
        return f"killed by signal {-code}" if code < 0 else f"ended with exit code {code}"

    def has_lost_a_worker(self, living: frozenset[int]) -> bool:
        """Whether a worker of the scheduler is gone, which only a signal can bring about.

        It may have had the lock of the queue that all of them read (LocalExecutor's is a multiprocessing.SimpleQueue),
        or a task it had just taken from it: then no task starts any more, or that one never does, and Airflow does not
        notice, as LocalExecutor cannot revoke what stays queued. A new scheduler takes up what the old one had queued.
        """
        return bool(self.workers - living)

    def living_workers(self) -> frozenset[int]:
        """The workers of the scheduler that live now. Where it has ended, those known: another look will say how."""
        if self.process is None or self.name != "scheduler":
            return frozenset()
        try:
            return frozenset(workers_of(self.process.pid))
        except psutil.Error:
            return self.workers

    def bury(self, how: str) -> None:
        """After its end: end what it left, and say when it is due again. Raises StayedDown if it is not."""
        self.workers = frozenset()
        if time.monotonic() - self.began > FORGIVEN_AFTER_SECONDS:
            self.in_a_row = 0
        self.process = None
        self.last_end = f"{how} at {datetime.now().astimezone():%H:%M:%S}"
        if self.in_a_row == len(PAUSES):
            raise StayedDown(f"{self.name} stays down: {self.last_end}, after {self.restarts} new starts")
        for process in marked(COMPONENT, self.name):
            with suppress(psutil.Error):  # it has ended by itself
                if process.environ().get(INSTANCE) == os.environ[INSTANCE]:
                    process.kill()
        pause = PAUSES[self.in_a_row]
        self.due = time.monotonic() + pause
        self.in_a_row += 1
        self.restarts += 1
        say(f"{self.name} {self.last_end}; start {self.in_a_row} of {len(PAUSES)} in {pause} s")


def keep() -> None:
    """Hold the components up until SIGTERM, or until one stays down: then end them all, the database last."""
    components = {name: Component(name) for name in COMPONENTS}

    def stop(number: int, frame: object) -> None:
        raise SystemExit(0)

    signal.signal(signal.SIGTERM, stop)
    try:
        while True:
            news = [look_after(component) for component in components.values()]
            if any(news):
                tell(components)
            time.sleep(0.2 if not DATABASE.is_ready() else 1)
    except StayedDown as reason:
        tell(components, stayed_down=str(reason))
        raise SystemExit(str(reason)) from None
    finally:
        end(components)


def look_after(component: Component) -> bool:
    """Start it if it is due, bury it if it has ended; True if there is something new to tell."""
    if how := component.ended():
        component.bury(how)
        return True
    workers = component.living_workers()
    if component.has_lost_a_worker(workers) and component.process is not None:
        component.process.kill()
        component.process.wait()
        component.in_a_row = 0  # it was not the scheduler that failed
        component.bury("ended with the death of one of its workers")
        return True
    if workers != component.workers:
        component.workers = workers
        return True
    if component.process is not None or time.monotonic() < component.due:
        return False
    if component.name != "postgres" and not DATABASE.is_ready():
        return False  # it would only end at once
    component.start()
    return True


def end(components: dict[str, Component]) -> None:
    living = [c.process for c in components.values() if c.process is not None and c.name != "postgres"]
    for process in living:
        process.terminate()
    for process in living:
        try:
            process.wait(COMPONENT_GRACE_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
    DATABASE.stop()


def tell(components: dict[str, Component], *, stayed_down: str = "") -> None:
    """Write down what became of the components; readers see the old account or the new, never half."""
    account = {
        "stayed_down": stayed_down,
        "components": {
            c.name: {
                "pid": c.process.pid if c.process else None,
                "workers": sorted(c.workers),
                "restarts": c.restarts,
                "last_end": c.last_end,
            }
            for c in components.values()
        },
    }
    partial = ACCOUNT.with_suffix(".partial")
    partial.write_text(json.dumps(account))
    partial.replace(ACCOUNT)


def read_account() -> dict[str, Any]:
    """What the supervisor has last written; empty before it first did."""
    try:
        account: dict[str, Any] = json.loads(ACCOUNT.read_text())
    except FileNotFoundError:
        return {"stayed_down": "", "components": {}}
    return account


def workers_of(scheduler: int) -> Iterator[int]:
    """The processes in which the scheduler of that id runs tasks."""
    for child in psutil.Process(scheduler).children():
        with suppress(psutil.Error):  # gone meanwhile
            if child.status() != psutil.STATUS_ZOMBIE and " ".join(child.cmdline()).startswith(WORKER):
                yield child.pid


def log_of(name: str) -> Path:
    return LOGS / f"{name}.log"


def say(message: str) -> None:
    print(f"{datetime.now().astimezone():%Y-%m-%d %H:%M:%S} {message}", flush=True)


def marked(variable: str, mark: str) -> Iterator[psutil.Process]:
    """The live processes that carry a mark, whatever session or parent they have by now; not this one.

    Airflow retitles its processes, which overwrites the environment that others can see; SPT_NOENV (set by `up`)
    tells it to leave that part alone.
    """
    for process in psutil.process_iter():
        with suppress(psutil.Error, OSError):  # gone meanwhile, or another user's
            if process.pid == os.getpid() or process.environ().get(variable) != mark:
                continue
            if process.status() != psutil.STATUS_ZOMBIE:
                yield process
