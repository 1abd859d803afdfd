"""The processes of one campaign by their role, and what is done to one of them."""

from __future__ import annotations

import contextlib
import random
import re
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass

import psutil

MARK = "TIDEMARK_CAMPAIGN"
"""In the environment of all that a campaign starts; one of the names that reach a resident server and its children."""
ACTIONS = {"kill": 10, "terminate": 4, "stop": 4, "pause": 3}
"""What is done, and how often: SIGKILL, SIGTERM, SIGSTOP for good, SIGSTOP and SIGCONT a moment later."""


@dataclass(frozen=True)
class Hit:
    role: str
    action: str
    pid: int


def marked(mark: str) -> list[psutil.Process]:
    """All living processes of the campaign."""
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if process.environ().get(MARK) == mark and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
    return found


def roles(mark: str, task: int | None) -> dict[str, list[psutil.Process]]:
    """The campaign's processes by what they are to the launchers; `task` is the process that waits for the app."""
    found: dict[str, list[psutil.Process]] = {}
    for process in marked(mark):
        with contextlib.suppress(psutil.Error):
            found.setdefault(_role(process), []).append(process)
    if task is not None:
        with contextlib.suppress(psutil.Error):
            found["task"] = [psutil.Process(task)]
            # A fork has the environment that its parent began with, so it has no mark.
            if forks := [child for child in psutil.Process(task).children() if child.name() != "java"]:
                found["child of the task"] = forks
    return found


def _role(process: psutil.Process) -> str:
    words = " ".join(process.cmdline())
    parent = process.parent()
    above = " ".join(parent.cmdline()) if parent else ""
    if "tidemark.resident.server" in words:
        return "server"
    if "tidemark.resident.fork_server" in words:
        return _fork(process, parent, above)
    if "pyspark.daemon" in words:
        return "worker" if "pyspark.daemon" in above else "worker daemon"
    if process.name() == "java":
        return "jvm of the server" if "tidemark.resident.server" in above else "jvm of a submit"
    if title := re.search(r"(?:^|/)(airflow [a-z-]+(?: [a-z]+)?)", words):  # a command or a process title
        return title[1]
    if "spark_apps" in words and "python" in process.name():
        return "driver of a submit"
    if "local_airflow.py" in words or "supervisor.py" in words:
        return "python tools/local_airflow.py"
    return process.name()


def _fork(process: psutil.Process, parent: psutil.Process | None, above: str) -> str:
    if parent is None or "tidemark.resident.server" in above:
        return "fork_server"
    oldest = sorted(parent.children(), key=lambda p: p.create_time())
    grandparent = parent.parent()
    if grandparent and "tidemark.resident.fork_server" in " ".join(grandparent.cmdline()):
        return "run"
    return ("context_owner", "second fork server", "run")[min(oldest.index(process), 2)]


def hit(
    chance: random.Random,
    mark: str,
    task: int | None,
    *,
    spare: frozenset[str] = frozenset(),
    stop_for_good: Callable[[str], bool] = lambda role: role != "task",
) -> Hit | None:
    """Do something to one of the processes, every role being as likely; None if there is none.

    Only roles for which somebody notices are stopped for good: nobody is notified of a task process that is stopped.
    """
    found = roles(mark, task)
    candidates = sorted(set(found) - spare)
    if not candidates:
        return None
    role = chance.choice(candidates)
    action = chance.choices(list(ACTIONS), list(ACTIONS.values()))[0]
    if action == "stop" and not stop_for_good(role):
        action = "pause"
    process = chance.choice(found[role])
    with contextlib.suppress(psutil.Error):
        if action == "kill":
            process.kill()
        elif action == "terminate":
            process.terminate()
        else:
            process.suspend()
        if action == "pause":
            time.sleep(chance.uniform(0.2, 3))
            process.send_signal(signal.SIGCONT)
        return Hit(role, action, process.pid)
    return None
