"""The local Airflow: `init` its home, bring it `up`, take it `down`, tell its `status`.

Runs inside the environment of tools/env.sh (`make up`, or `tools/run python tools/local_airflow.py up`).
It starts a PostgreSQL and the four components that `airflow standalone` starts, itself (tools/supervisor.py):
standalone uses another database, leaves its children running when it is terminated, and its log servers listen on every
interface of the machine.

Whatever starts from here - components, tasks, drivers, a resident Spark - carries the mark INSTANCE in its
environment, so that `down` can end all of it, and nothing else, and can say truthfully that nothing is left.
"""

from __future__ import annotations

import fcntl
import json
import os
import secrets
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from datetime import datetime
from pathlib import Path
from typing import Any

import psutil

PROJECT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(PROJECT))

from tools import supervisor  # noqa: E402 - found through the line above
from tools.postgres import PostgresFailed  # noqa: E402
from tools.supervisor import COMPONENTS, DATABASE, HOME, INSTANCE, LOGS, log_of  # noqa: E402

PORT = int(os.environ["AIRFLOW__API__PORT"])
PASSWORDS = Path(os.environ["AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_PASSWORDS_FILE"])
RUNNING = HOME / "running.json"

# A machine whose cores are busy with something else takes its time; failures are reported at once, however long it is.
HEALTHY_WITHIN_SECONDS = 900
# So long may the components and their tasks take to end, and then whatever was left, before they are killed.
GRACE_SECONDS = 40
GRACE_SECONDS_ALONE = 5
LOG_LINES = 12


class Refused(Exception):
    """The request cannot be carried out; the message says why and what to do."""


def say(message: str) -> None:
    print(message, file=sys.stderr, flush=True)


# --- init -----------------------------------------------------------------------------------------


def init() -> None:
    """Make the Airflow home: a migrated PostgreSQL database and a random password; what exists is kept."""
    if not PASSWORDS.exists():
        descriptor = os.open(PASSWORDS, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w") as file:
            json.dump({"admin": secrets.token_urlsafe(12)}, file)
    DATABASE.make()
    LOGS.mkdir(parents=True, exist_ok=True)
    with DATABASE.serving(log_of("postgres")):
        DATABASE.create_database("airflow")
        subprocess.run(["airflow", "db", "migrate"], check=True)


# --- up -------------------------------------------------------------------------------------------


def up() -> None:
    """Start the components and wait until each is healthy; already up is a success."""
    if (running := read_running()) is not None:
        if running["port"] != PORT:
            raise Refused(f"already up on port {running['port']}, asked for {PORT}: `make down` first")
        if all_healthy(since=0):
            return say(f"already up\n{where(PORT)}")
        raise Refused(f"started (process {running['pid']}) but not healthy: `make down`, then `make up`")
    if port_taken():
        raise Refused(f"port {PORT} is taken by another program: choose one, `make up PORT={PORT + 1}`")

    if not DATABASE.data.exists():
        raise Refused("the Airflow home is not made yet: make setup")
    LOGS.mkdir(parents=True, exist_ok=True)
    for name in ("supervisor", *COMPONENTS):
        log_of(name).unlink(missing_ok=True)
    supervisor.ACCOUNT.unlink(missing_ok=True)
    began = time.time()
    environment = os.environ | {INSTANCE: f"{HOME}#{secrets.token_hex(8)}", "SPT_NOENV": "1"}  # see supervisor.marked()
    process = subprocess.Popen(
        [sys.executable, __file__, "keep"],
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=log_of("supervisor").open("w"),
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    RUNNING.write_text(json.dumps({"pid": process.pid, "port": PORT, "instance": environment[INSTANCE]}))
    try:
        wait_until_healthy(process, since=began)
    except BaseException:
        down()
        raise
    say(where(PORT))


def wait_until_healthy(process: subprocess.Popen[bytes], *, since: float) -> None:
    healthy: set[str] = set()
    mourned: set[str] = set()
    while len(healthy) < len(COMPONENTS):
        waited = time.time() - since
        if process.poll() is not None:
            raise Refused(f"Airflow did not start: {why_down() or log_end('supervisor')}")
        if waited > HEALTHY_WITHIN_SECONDS:
            missing = sorted(set(COMPONENTS) - healthy)
            ends = "\n".join(log_end(name) for name in missing)
            raise Refused(f"not healthy after {waited:.0f} s: {', '.join(missing)}\n{ends}")
        for name in sorted(healthy_components(since=since) - healthy):
            healthy.add(name)
            say(f"  {name} is up ({waited:.0f} s)")
        for name, ended in ends_of_components().items():
            if ended not in mourned:
                mourned.add(ended)
                say(f"  {name} {ended}")
        time.sleep(0.5)


def all_healthy(*, since: float) -> bool:
    return healthy_components(since=since) == set(COMPONENTS)


def healthy_components(*, since: float, port: int = PORT) -> set[str]:
    """The components of the instance at `port` that answer; a heartbeat from before `since` (epoch seconds) is a former
    instance's."""
    healthy = {"postgres"} if DATABASE.is_ready() else set()
    try:
        with urllib.request.urlopen(f"{address(port)}/api/v2/monitor/health", timeout=5) as answer:
            health = json.load(answer)
    except (OSError, ValueError):
        return healthy
    healthy.add("api-server")
    for name in set(COMPONENTS) - healthy:
        key = name.replace("-", "_")
        entry = health.get(key, {})
        beat = entry.get(f"latest_{key}_heartbeat")
        if entry.get("status") == "healthy" and beat and datetime.fromisoformat(beat).timestamp() > since:
            healthy.add(name)
    return healthy


def ends_of_components() -> dict[str, str]:
    """How each component that was started again has last ended."""
    return {
        name: f"{component['last_end']}, started again ({component['restarts']} of {len(supervisor.PAUSES)} times)"
        for name, component in supervisor.read_account()["components"].items()
        if component["restarts"]
    }


def why_down() -> str:
    """Which component stayed down, with the last lines of its log; empty if none did."""
    reason = str(supervisor.read_account()["stayed_down"])
    return f"{reason}\n{log_end(reason.split()[0])}" if reason else ""


def port_taken() -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", PORT))
        except OSError:
            return True
    return False


def log_end(name: str) -> str:
    """The last lines of a component's log, below its path."""
    path = log_of(name)
    lines = path.read_text(errors="replace").splitlines()[-LOG_LINES:] if path.exists() else ["(there is none)"]
    return f"{path}:\n  " + "\n  ".join(lines)


def address(port: int) -> str:
    return f"http://127.0.0.1:{port}"


def where(port: int) -> str:
    passwords = json.loads(PASSWORDS.read_text())
    users = [user.partition(":")[0] for user in os.environ["AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_USERS"].split(",")]
    logins = "   ".join(f"login: {user}   password: {passwords[user]}" for user in users if user in passwords)
    return f"Airflow: {address(port)}   {logins}   stop: make down   logs: {LOGS}"


# --- down -----------------------------------------------------------------------------------------


def down() -> None:
    """End the instance and everything it started; not running is a success.

    Raises Refused if something is left.
    """
    try:
        running = json.loads(RUNNING.read_text())
    except FileNotFoundError:
        DATABASE.stop()  # of a set-up that was killed
        return say("Airflow is not running")
    mark = running["instance"]
    # The supervisor first: it ends the components, and they their tasks, in good order. What is left then is on
    # its own: a resident Spark, or what a killed component left behind.
    end(lambda: [process for process in marked(mark) if process.pid == running["pid"]], seconds=GRACE_SECONDS)
    end(lambda: marked(mark), seconds=GRACE_SECONDS_ALONE)
    for process in marked(mark):
        with suppress(psutil.NoSuchProcess):  # it ended by itself, which is what was wanted
            process.kill()
    if left := wait_gone(lambda: marked(mark), seconds=5):
        raise Refused("still running: " + ", ".join(f"{process.pid} {process.name()}" for process in left))
    DATABASE.stop()
    DATABASE.remove_sockets()
    RUNNING.unlink(missing_ok=True)
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
    """The live processes of the instance `mark`, but for its database (Postgres.processes)."""
    return list(supervisor.marked(INSTANCE, mark))


# --- status ---------------------------------------------------------------------------------------


def read_running() -> dict[str, Any] | None:
    """The record of the instance that is running, or None; a record whose supervisor is gone counts as none."""
    try:
        running: dict[str, Any] = json.loads(RUNNING.read_text())
    except FileNotFoundError:
        return None
    if any(process.pid == running["pid"] for process in marked(running["instance"])):
        return running
    down()  # the machine was restarted, or the supervisor killed: end what it left, forget the record
    return None


def status() -> None:
    """Say how each component of the local Airflow is, on whatever port; Refused (exit code 1) with the reason if it is
    not up, or not all of it healthy."""
    if (running := read_running()) is None:
        why = why_down()
        raise Refused(f"Airflow went down: {why}\nmake up" if why else "Airflow is not running: make up")
    healthy, ends = healthy_components(since=0, port=running["port"]), ends_of_components()
    for name in COMPONENTS:
        say(f"  {name}: {'healthy' if name in healthy else 'NOT healthy'}{'; ' + ends[name] if name in ends else ''}")
    say(where(running["port"]))
    if ill := ", ".join(name for name in COMPONENTS if name not in healthy):
        raise Refused(f"not healthy: {ill}; {LOGS} says why, `make down` and `make up` start all again")


@contextmanager
def one_at_a_time() -> Iterator[None]:
    """Let `up` and `down` of one home, asked for side by side, take turns."""
    HOME.mkdir(parents=True, exist_ok=True, mode=0o700)
    with (HOME / "turn.lock").open("w") as lock:  # not inherited by what is started
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def main() -> int:
    commands = {"init": init, "up": up, "keep": supervisor.keep, "down": down, "status": status}
    if len(sys.argv) != 2 or sys.argv[1] not in commands:
        say(f"usage: local_airflow.py {'|'.join(commands)}")
        return 2
    try:
        with one_at_a_time() if sys.argv[1] in ("init", "up", "down") else nullcontext():
            commands[sys.argv[1]]()
    except (Refused, PostgresFailed) as refusal:
        say(str(refusal))
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
