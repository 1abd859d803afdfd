"""Where a resident server lives, and what makes two of them the same: its place, its settings, its fingerprint."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import stat
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

from tidemark.errors import InvalidUsage
from tidemark.resident.confined import is_local, ui_conf
from tidemark.resident.scratch import Scratch, sweep
from tidemark.resident.watch import PATIENCE_S, patience_s

PACKAGE = Path(__file__).resolve().parent.parent
"""The folder of the package `tidemark`; its parent is the source root."""
MAX_SOCKET_PATH = 107
"""Bytes of a socket's path: 108 in sockaddr_un, one of them the closing null."""

FIRST = (
    *("pyspark.sql.functions", "pyspark.sql.pandas.types", "pyarrow.parquet", "pyarrow.fs", "pandas"),
    *(
        "tidemark.spark.runner",
        "tidemark.spark.session",
        "tidemark.arrow.kernels.registry",
        "tidemark.arrow.rows.schema",
    ),
    "tidemark.jobs.warm",
)
"""What the apps import anyway."""
LATER = ("tidemark.quality.warm",)
"""What gates import and prepare."""

DEFAULT_CONF = {
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.session.timeZone": "UTC",
    # A JVM out of memory must not linger half dead; the serial collector starts with less ado and serves a small heap.
    "spark.driver.defaultJavaOptions": "-XX:+ExitOnOutOfMemoryError -XX:+UseSerialGC",
    "spark.sql.ui.retainedExecutions": "20",
    "spark.ui.retainedJobs": "50",
    "spark.ui.retainedStages": "50",
}


@dataclass(frozen=True, kw_only=True)
class Settings:
    """What a server is started with. Another master, conf or zip is another Spark; the rest may differ freely."""

    master: str = "local[2]"
    conf: Mapping[str, str] = field(default_factory=dict)
    py_files: str = ""
    """A zip for executors on other machines; a local master needs none."""
    first: tuple[str, ...] = FIRST
    """Modules imported before the first run; one that does not exist is skipped."""
    later: tuple[str, ...] = LATER
    """Modules imported beside the first runs, because they are slow; a run may wait for them (`needs`)."""
    idle_s: float = 900.0
    max_runs: int = 4
    patience_s: float = PATIENCE_S
    """A process that is silent or stopped for so long has failed: it is ended, and what it did may be run again."""

    def __post_init__(self) -> None:
        if min(self.idle_s, self.max_runs, self.patience_s) <= 0:
            raise InvalidUsage(
                "idle_s, max_runs and patience_s must be positive,"
                f" not {self.idle_s}, {self.max_runs} and {self.patience_s}"
            )

    def spark_conf(self) -> dict[str, str]:
        return {**DEFAULT_CONF, **ui_conf(self.master), **self.conf}

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Settings:
        raw = json.loads(text)
        return cls(**{**raw, "first": tuple(raw["first"]), "later": tuple(raw["later"])})

    @classmethod
    def from_environ(cls, environ: Mapping[str, str], *, master: str) -> Settings:
        """TIDEMARK_RESIDENT_CONF (a JSON object), _IDLE_S, _MAX_RUNS, _PATIENCE_S; the connection's master, and for one
        of a cluster the zip. InvalidUsage for what cannot be read, or is not there."""
        try:
            conf = json.loads(environ.get("TIDEMARK_RESIDENT_CONF") or "{}")
            idle_s = float(environ.get("TIDEMARK_RESIDENT_IDLE_S") or 900)
            max_runs = int(environ.get("TIDEMARK_RESIDENT_MAX_RUNS") or 4)
        except json.JSONDecodeError as e:  # what it holds may be secret
            raise InvalidUsage(f"TIDEMARK_RESIDENT_CONF is no JSON: {e.msg} at character {e.pos}") from None
        except ValueError as e:
            raise InvalidUsage(f"TIDEMARK_RESIDENT_IDLE_S or _MAX_RUNS cannot be read: {e}") from None
        if not isinstance(conf, dict):
            raise InvalidUsage(f"TIDEMARK_RESIDENT_CONF must be a JSON object, not {type(conf).__name__}")
        conf = {str(k): str(v) for k, v in conf.items()}
        zipped = "" if is_local(master) else str(zip_of(environ))
        patience = patience_s(environ)
        return cls(master=master, conf=conf, py_files=zipped, idle_s=idle_s, max_runs=max_runs, patience_s=patience)


def zip_of(environ: Mapping[str, str]) -> Path:
    """The package as executors get it: TIDEMARK_ZIP, else build/tidemark.zip in the project. InvalidUsage if there is
    no such file."""
    home = Path(environ.get("TIDEMARK_HOME") or PACKAGE.parents[1])
    zipped = Path(environ.get("TIDEMARK_ZIP") or home / "build" / "tidemark.zip")
    if not zipped.is_file():
        raise InvalidUsage(f"there is no {zipped}: run `make zip`, or set TIDEMARK_ZIP")
    return zipped


def fingerprint(settings: Settings) -> str:
    """Equal for two servers exactly if they would run the same code on the same Spark."""
    sha = hashlib.sha256()
    for part in (sys.executable, sys.version, settings.master, json.dumps(settings.spark_conf(), sort_keys=True)):
        sha.update(f"{part}\0".encode())
    sha.update(json.dumps([settings.first, settings.later]).encode())
    for path in sorted(PACKAGE.rglob("*.py")):
        sha.update(f"{path.relative_to(PACKAGE)}\0".encode() + hashlib.sha256(path.read_bytes()).digest())
    for zipped in filter(None, settings.py_files.split(",")):
        sha.update(hashlib.sha256(Path(zipped).read_bytes()).digest())
    return sha.hexdigest()[:16]


@dataclass(frozen=True)
class ServerFolder:
    """The socket of a server with the files beside it, in a folder only its user can enter."""

    socket: Path

    def __post_init__(self) -> None:
        if self.socket.suffix != ".sock":
            raise InvalidUsage(f"socket path {self.socket} must end in .sock: what has that name is removed")
        if len(os.fsencode(self.socket)) > MAX_SOCKET_PATH:
            raise InvalidUsage(
                f"socket path {self.socket} has {len(os.fsencode(self.socket))} bytes, {MAX_SOCKET_PATH} are possible:"
                " set TIDEMARK_RESIDENT_DIR to a shorter folder"
            )

    @classmethod
    def default(cls, environ: Mapping[str, str]) -> ServerFolder:
        """One place per user, source tree and Python, so that two clones do not push each other's server out."""
        base = environ.get("TIDEMARK_RESIDENT_DIR") or f"{tempfile.gettempdir()}/tidemark-{os.geteuid()}"
        name = hashlib.sha256(f"{PACKAGE}\0{sys.executable}".encode()).hexdigest()[:8]
        return cls(Path(base) / f"{name}.sock")

    @property
    def log(self) -> Path:
        return self.socket.with_suffix(".log")

    @property
    def scratch(self) -> Path:
        """Parent of the servers' scratch folders."""
        return self.socket.with_suffix(".spark")

    @property
    def submits(self) -> Path:
        """Parent of the scratch folders of spark-submits."""
        return self.socket.with_suffix(".submit")

    def submit_scratch(self) -> Scratch:
        """A scratch folder for one spark-submit."""
        while True:
            self.prepare()
            with contextlib.suppress(FileNotFoundError):  # another one has just tidied up after itself
                return Scratch.make(self.submits)

    def leave(self) -> None:
        """Remove the folder if nothing is in it."""
        with contextlib.suppress(OSError):
            self.socket.parent.rmdir()

    def prepare(self) -> None:
        """Make the folder, or refuse one that others could enter or have put there."""
        folder = self.socket.parent
        _make(folder)
        seen = folder.lstat()
        if not stat.S_ISDIR(seen.st_mode) or seen.st_uid != os.geteuid() or stat.S_IMODE(seen.st_mode) & 0o077:
            raise InvalidUsage(
                f"{folder} must be a folder of user {os.geteuid()} with mode 700; it belongs to user {seen.st_uid} with"
                f" mode {stat.S_IMODE(seen.st_mode):o}: remove it or set TIDEMARK_RESIDENT_DIR"
            )

    @contextlib.contextmanager
    def start_lock(self) -> Iterator[None]:
        """The lock of the client that starts a server, so that only one does."""
        fd = self._lock(".start", wait=True)
        assert fd is not None
        try:
            yield
        finally:
            self._unlock(".start", fd)

    def own(self) -> int | None:
        """Become the owner of the socket: a descriptor to `disown`, None if another server owns it."""
        return self._lock(".owner", wait=False)

    def disown(self, owner: int) -> None:
        """Leave the place to another server."""
        self.socket.unlink(missing_ok=True)
        self._unlock(".owner", owner)

    def tidy(self, *, log: bool) -> None:
        """Remove what servers have left here, the `log` too if it has nothing to say; not where there is one."""
        if not self.socket.parent.is_dir() or (starting := self._lock(".start", wait=False)) is None:
            return
        try:
            if (owner := self.own()) is not None:
                sweep(self.scratch)
                sweep(self.submits)
                if log:
                    self.log.unlink(missing_ok=True)
                    self.log.with_suffix(".log.1").unlink(missing_ok=True)
                self.disown(owner)
        finally:
            self._unlock(".start", starting)
        self.leave()

    def _lock(self, suffix: str, *, wait: bool) -> int | None:
        """A descriptor that holds the lock of this name; its file is removed by whoever lets go of it."""
        path = self.socket.with_suffix(suffix)
        while True:
            try:
                fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
            except FileNotFoundError:  # the last server has just tidied up after itself
                self.prepare()
                continue
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
                if path.exists() and os.fstat(fd).st_ino == path.stat().st_ino:
                    return fd
            except BlockingIOError:
                os.close(fd)
                return None
            except FileNotFoundError:
                pass
            os.close(fd)

    def _unlock(self, suffix: str, fd: int) -> None:
        self.socket.with_suffix(suffix).unlink(missing_ok=True)
        os.close(fd)


def _make(folder: Path) -> None:
    """Make a folder, and those above it that are missing, with mode 700 whatever the umask; leave what is there."""
    if not folder.parent.exists():
        _make(folder.parent)
    with contextlib.suppress(FileExistsError):
        folder.mkdir(mode=0o700)
