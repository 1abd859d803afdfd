"""The local Airflow: `init` its home, bring it `up`, take it `down`, tell its `status`.

Runs inside the environment of tools/env.sh (`make up`, or `tools/run python tools/local_airflow.py up`).
It starts the four components that `airflow standalone` starts, itself, for two reasons: standalone leaves
its children running when it is terminated, and its log servers listen on every interface of the machine.

Whatever starts from here - components, tasks, drivers, a resident Spark - carries the mark INSTANCE in its
environment, so that `down` can end all of it, and nothing else, and can say truthfully that nothing is left.
"""

from __future__ import annotations

import json
import os
import secrets
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any

import psutil

HOME = Path(os.environ["AIRFLOW_HOME"])
ADDRESS = os.environ["AIRFLOW__API__BASE_URL"]
PORT = int(os.environ["AIRFLOW__API__PORT"])
PASSWORDS = Path(os.environ["AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_PASSWORDS_FILE"])
RUNNING = HOME / "running.json"
LOGS = HOME / "logs" / "components"

COMPONENTS = {
    "api-server": ["airflow", "api-server"],
    "scheduler": ["airflow", "scheduler", "--skip-serve-logs"],
    "dag-processor": ["airflow", "dag-processor"],
    "triggerer": ["airflow", "triggerer", "--skip-serve-logs"],
}
INSTANCE = "TIDEMARK_AIRFLOW_INSTANCE"

HEALTHY_WITHIN_SECONDS = 300
# So long may the components and their tasks take to end, and then whatever was left, before they are killed.
GRACE_SECONDS = 20
GRACE_SECONDS_ALONE = 5


class Refused(Exception):
    """The request cannot be carried out; the message says why and what to do."""


def say(message: str) -> None:
    print(message, file=sys.stderr, flush=True)


# --- init -----------------------------------------------------------------------------------------


def init() -> None:
    """Make the Airflow home: a migrated SQLite database and a random password; what exists is kept."""
    HOME.mkdir(parents=True, exist_ok=True, mode=0o700)
    if not PASSWORDS.exists():
        descriptor = os.open(PASSWORDS, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w") as file:
            json.dump({"admin": secrets.token_urlsafe(12)}, file)
    subprocess.run(["airflow", "db", "migrate"], check=True)


# --- up -------------------------------------------------------------------------------------------


def up() -> None:
    """Start the components and wait until each is healthy; already up is a success."""
    if (running := read_running()) is not None:
        if running["port"] != PORT:
            raise Refused(f"already up on port {running['port']}, asked for {PORT}: `make down` first")
        if all_healthy(since=0):
            return say(f"already up\n{where()}")
        raise Refused(f"started (process {running['pid']}) but not healthy: `make down`, then `make up`")
    if port_taken():
        raise Refused(f"port {PORT} is taken by another program: choose one, `make up PORT={PORT + 1}`")

    LOGS.mkdir(parents=True, exist_ok=True)
    began = time.time()
    environment = os.environ | {INSTANCE: f"{HOME}#{secrets.token_hex(8)}", "SPT_NOENV": "1"}  # see marked()
    keeper = subprocess.Popen(
        [sys.executable, __file__, "keep"],
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=(LOGS / "keeper.log").open("w"),
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    RUNNING.write_text(json.dumps({"pid": keeper.pid, "port": PORT, "instance": environment[INSTANCE]}))
    try:
        wait_until_healthy(keeper, since=began)
    except BaseException:
        down()
        raise
    say(where())


def keep() -> None:
    """Hold the components together (the process `up` leaves behind): if one ends, or on SIGTERM, all end."""
    children: dict[str, subprocess.Popen[bytes]] = {}

    def stop(number: int, frame: object) -> None:
        raise SystemExit(0)

    signal.signal(signal.SIGTERM, stop)
    try:
        for name, command in COMPONENTS.items():
            with (LOGS / f"{name}.log").open("w") as log:
                children[name] = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT)
        while True:
            for name, child in children.items():
                if (code := child.poll()) is not None:
                    raise SystemExit(f"{name} ended with exit code {code}")
            time.sleep(1)
    finally:
        for child in children.values():
            child.terminate()
        for child in children.values():
            child.wait()


def wait_until_healthy(keeper: subprocess.Popen[bytes], *, since: float) -> None:
    healthy: set[str] = set()
    while len(healthy) < len(COMPONENTS):
        waited = time.time() - since
        if keeper.poll() is not None:
            raise Refused(f"Airflow did not start\n{log_ends()}")
        if waited > HEALTHY_WITHIN_SECONDS:
            missing = ", ".join(sorted(set(COMPONENTS) - healthy))
            raise Refused(f"not healthy after {waited:.0f} s: {missing}\n{log_ends()}")
        for name in sorted(healthy_components(since=since) - healthy):
            healthy.add(name)
            say(f"  {name} is up ({waited:.0f} s)")
        time.sleep(1)


def all_healthy(*, since: float) -> bool:
    return healthy_components(since=since) == set(COMPONENTS)


def healthy_components(*, since: float) -> set[str]:
    """The components that answer; a heartbeat from before `since` (epoch seconds) is a former instance's."""
    try:
        with urllib.request.urlopen(f"{ADDRESS}/api/v2/monitor/health", timeout=5) as answer:
            health = json.load(answer)
    except (OSError, ValueError):
        return set()
    healthy = {"api-server"}
    for name in set(COMPONENTS) - healthy:
        key = name.replace("-", "_")
        told = health.get(key, {})
        beat = told.get(f"latest_{key}_heartbeat")
        if told.get("status") == "healthy" and beat and datetime.fromisoformat(beat).timestamp() > since:
            healthy.add(name)
    return healthy


def port_taken() -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", PORT))
        except OSError:
            return True
    return False


def log_ends() -> str:
    """The last lines of every component's log, keeper first."""
    files = [LOGS / "keeper.log", *(LOGS / f"{name}.log" for name in COMPONENTS)]
    ends = [(path, path.read_text(errors="replace").splitlines()[-8:]) for path in files if path.exists()]
    return "\n".join(f"{path}:\n  " + "\n  ".join(lines) for path, lines in ends if lines)


def where() -> str:
    password = json.loads(PASSWORDS.read_text())["admin"]
    return f"Airflow: {ADDRESS}   login: admin   password: {password}   stop: make down   logs: {LOGS}"


# --- down -----------------------------------------------------------------------------------------


def down() -> None:
    """End the instance and everything it started; not running is a success.

    Raises Refused if something is left.
    """
    try:
        running = json.loads(RUNNING.read_text())
    except FileNotFoundError:
        return say("Airflow is not running")
    mark = running["instance"]
    # The keeper first: it ends the components, and they their tasks, in good order. What is left then is on
    # its own: a resident Spark, or what a killed component left behind.
    end(lambda: [process for process in marked(mark) if process.pid == running["pid"]], seconds=GRACE_SECONDS)
    end(lambda: marked(mark), seconds=GRACE_SECONDS_ALONE)
    for process in marked(mark):
        with suppress(psutil.NoSuchProcess):  # it ended by itself, which is what was wanted
            process.kill()
    if left := wait_gone(lambda: marked(mark), seconds=5):
        raise Refused("still running: " + ", ".join(f"{process.pid} {process.name()}" for process in left))
    RUNNING.unlink()
    say("Airflow is down; nothing it started is left")


def end(living: Callable[[], list[psutil.Process]], *, seconds: float) -> None:
    """Ask the processes of `living()` to end, and wait until there are none or `seconds` have passed."""
    for process in living():
        with suppress(psutil.NoSuchProcess):
            process.terminate()
    wait_gone(living, seconds=seconds)


def wait_gone(living: Callable[[], list[psutil.Process]], *, seconds: float) -> list[psutil.Process]:
    """Wait until `living()` is empty; what it holds after `seconds` is returned."""
    deadline = time.monotonic() + seconds
    while (left := living()) and time.monotonic() < deadline:
        time.sleep(0.2)
    return left


def marked(mark: str) -> list[psutil.Process]:
    """The live processes of the instance `mark`, whatever session or parent they have by now.

    Airflow retitles its processes, which overwrites the environment that others can see; SPT_NOENV (set by
    `up`) tells it to leave that part alone.
    """
    found = []
    for process in psutil.process_iter():
        try:
            if process.environ().get(INSTANCE) == mark and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
        except (psutil.Error, OSError):
            continue  # gone meanwhile, or another user's
    return [process for process in found if process.pid != os.getpid()]


# --- status ---------------------------------------------------------------------------------------


def read_running() -> dict[str, Any] | None:
    """The record of the instance that is running, or None; a record whose keeper is gone counts as none."""
    try:
        running: dict[str, Any] = json.loads(RUNNING.read_text())
    except FileNotFoundError:
        return None
    if any(process.pid == running["pid"] for process in marked(running["instance"])):
        return running
    down()  # the machine was restarted, or the keeper killed: end what it left, forget the record
    return None


def status() -> None:
    """Say whether the local Airflow is up; Refused (exit code 1) if it is not."""
    if read_running() is None:
        raise Refused("Airflow is not running: make up")
    for name in COMPONENTS:
        say(f"  {name}: {'healthy' if name in healthy_components(since=0) else 'NOT healthy'}")
    say(where())


def main() -> int:
    commands = {"init": init, "up": up, "keep": keep, "down": down, "status": status}
    if len(sys.argv) != 2 or sys.argv[1] not in commands:
        say(f"usage: local_airflow.py {'|'.join(commands)}")
        return 2
    try:
        commands[sys.argv[1]]()
    except Refused as refusal:
        say(str(refusal))
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
