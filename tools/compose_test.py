"""Run docker-compose.yaml for real: three days backfilled, a worker killed meanwhile, the figures compared.

    make compose-test

A project of its own beside any that runs: other names, another port, secrets made for it, volumes that go at the end.
Without a container engine it says so in a line, and has not failed. Takes about eight minutes, most of them to build.
"""

from __future__ import annotations

import base64
import csv
import io
import os
import re
import secrets
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from datetime import date, timedelta
from pathlib import Path

PROJECT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(PROJECT))

from demo import independent, layout  # noqa: E402 - found through the line above

HOME = PROJECT / "build" / "compose-test"
NAME = "tidemark-compose-test"
COMPOSE = ["docker", "compose", "--project-name", NAME, "--env-file", str(HOME / "env")]
OLDEST = (2, 20)
"""The first Compose that knows `depends_on: required`."""
FIRST, LAST = layout.FIRST_DAY, date(2013, 1, 2)
WITHIN_S = 900
"""A backfill of three days takes two minutes on idle cores."""
PAUSE_S = 5
"""Between two looks into a container, each of which costs a process there."""


class Wrong(Exception):
    """What is not as it must be; the message says both."""


def main() -> int:
    why = missing()
    if why:
        print(f"skipped: {why}", file=sys.stderr)
        return 0
    running = subprocess.run(
        ["docker", "compose", "--project-name", NAME, "ps", "--all", "--quiet"], capture_output=True, text=True
    )
    if running.stdout.strip():
        print(f"refused: {NAME} is there: docker compose --project-name {NAME} down --volumes", file=sys.stderr)
        return 1
    shutil.rmtree(HOME, ignore_errors=True)
    HOME.mkdir(parents=True)
    write_settings()
    try:
        compose("up", "--build", "--detach")
        backfill()
        kill_a_worker()
        wait_until_complete()
        compare()
    except (Wrong, subprocess.CalledProcessError) as error:
        print(f"failed: {error}", file=sys.stderr)
        print(compose("ps", "--all", check=False), compose("logs", "--tail", "20", check=False), file=sys.stderr)
        return 1
    finally:
        compose("down", "--volumes", "--timeout", "20", check=False)
    print("compose: as the independent calculation has it", file=sys.stderr)
    return 0


def missing() -> str:
    """Say what is missing to run containers, or nothing.

    Returns:
        A line, empty if an engine and a Compose that is new enough are there.
    """
    if not shutil.which("docker"):
        return "there is no command docker"
    engine = subprocess.run(["docker", "version"], capture_output=True, text=True)
    if engine.returncode:
        return f"no container engine answers: {engine.stderr.strip().splitlines()[-1]}"
    version = subprocess.run(["docker", "compose", "version", "--short"], capture_output=True, text=True)
    numbers = re.match(r"v?(\d+)\.(\d+)", version.stdout.strip())
    if not numbers or tuple(map(int, numbers.groups())) < OLDEST:
        return f"Docker Compose is {version.stdout.strip() or 'not there'}; 2.20 or newer is needed"
    return ""


def write_settings() -> None:
    """Fill in .env.example as a person would, for a port that is free."""
    values = {"AIRFLOW_FERNET_KEY": base64.urlsafe_b64encode(os.urandom(32)).decode()}
    lines = [
        line + values.get(line[:-1], secrets.token_urlsafe(24)) if re.fullmatch(r"[A-Z_0-9]+=", line) else line
        for line in (PROJECT / ".env.example").read_text().splitlines()
    ]
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        lines.append(f"AIRFLOW_PORT={free.getsockname()[1]}")
    (HOME / "env").touch(0o600)
    (HOME / "env").write_text("\n".join(lines) + "\n")


def backfill() -> None:
    """Lay out three days, copy them as the header of docker-compose.yaml says, and start their backfill."""
    layout.lay_out(HOME / "landing", first=FIRST, last=LAST)
    days = subprocess.run(
        ["tar", "--create", "--directory", str(HOME / "landing"), "flights"], stdout=subprocess.PIPE, check=True
    )
    compose("exec", "-T", "airflow-scheduler", "tar", "--extract", "--directory", "landing", content=days.stdout)
    scheduler("airflow", "dags", "unpause", "flights")
    scheduler("airflow", "backfill", "create", "--dag-id", "flights", "--from-date", f"{FIRST}", "--to-date", f"{LAST}")


def kill_a_worker() -> None:
    """Kill the Spark worker once it works, and start it again: an engine takes a kill for the user's wish."""
    look = ["exec", "-T", "spark-worker", "find", "/tmp/spark-work", "-name", "app-*"]
    wait(lambda: bool(compose(*look, check=False).strip()), "a Spark application on the worker")
    compose("kill", "--signal", "SIGKILL", "spark-worker")
    compose("start", "spark-worker")


def wait_until_complete() -> None:
    """Wait until all three days are complete."""
    end = f"{LAST + timedelta(days=1)}"
    complete = re.compile(rf"^complete below +{end}", re.MULTILINE)
    wait(lambda: bool(complete.search(scheduler("tidemark", "status", "flights"))), f"all days, complete below {end}")


def wait(is_so: Callable[[], bool], what: str) -> None:
    """Wait until something is so.

    Raises:
        Wrong: It was not within `WITHIN_S`.
    """
    deadline = time.monotonic() + WITHIN_S
    while not is_so():
        if time.monotonic() > deadline:
            raise Wrong(f"waited {WITHIN_S} s in vain for {what}")
        time.sleep(PAUSE_S)


def compare() -> None:
    """Compare the flights of each status with the calculation from the CSV."""
    query = "SELECT status, count(*) AS flights FROM flights GROUP BY status"
    rows = csv.DictReader(io.StringIO(scheduler("tidemark", "sql", query, "--format", "csv")))
    answered = {row["status"]: int(row["flights"]) for row in rows}
    [figures] = independent.figures(first=LAST, days=1)
    if answered != figures["at_seal"]["statuses"]:
        raise Wrong(f"flights by status are {answered}, and {figures['at_seal']['statuses']} from the CSV")


def scheduler(*command: str) -> str:
    return compose("exec", "-T", "airflow-scheduler", *command, check=command[0] == "airflow")


def compose(*command: str, check: bool = True, content: bytes | None = None) -> str:
    """Run a command of Compose in this project, with what it does shown; what it prints is returned."""
    print(f"compose {' '.join(command[:6])}", file=sys.stderr, flush=True)
    # What this folder's environment exports, as TIDEMARK_ROOT, would win over the settings.
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("TIDEMARK_", "AIRFLOW_"))}
    done = subprocess.run(
        [*COMPOSE, *command], cwd=PROJECT, env=environment, input=content, stdout=subprocess.PIPE, check=check
    )
    return done.stdout.decode()


if __name__ == "__main__":
    sys.exit(main())
