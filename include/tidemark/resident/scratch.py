"""A private folder for the temporary files of one Spark, and what is left in one whose owner was killed."""

from __future__ import annotations

import fcntl
import os
import re
import secrets
import shutil
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import psutil

MARK = "_TIDEMARK_SCRATCH"
"""In the environment of every process that uses a scratch folder: the folder. Not one a run hands on (`ambient`)."""
_STARTED_WITHIN_S = 1.0
"""A process that was started has its environment long before that, on a busy machine too."""
_YOUNG_S = 3.0
"""The age up to which a process counts as being started: the time of the machine's start is known to a second only."""
_NAME = re.compile(r"[0-9a-f]{8}")
_LOOKS = 3
"""How often processes are looked for that others started as these were ended."""


@dataclass(frozen=True)
class Scratch:
    """A folder with mode 700 that its owner holds locked: one without a lock belongs to a dead owner, whatever lives
    under its process id by now."""

    path: Path
    _lock: int

    @classmethod
    def make(cls, parent: Path) -> Scratch:
        """A new one below `parent`, a private folder; what dead owners left there goes first, processes too."""
        sweep(parent)
        while True:
            path = parent / secrets.token_hex(4)
            parent.mkdir(mode=0o700, exist_ok=True)
            with suppress(FileExistsError, FileNotFoundError):
                path.mkdir(mode=0o700)
                if (lock := _locked(path)) is not None:
                    return cls(path, lock)

    def remove(self) -> None:
        """End the processes that still use it, and remove it."""
        _remove(self.path)
        os.close(self._lock)
        with suppress(OSError):
            self.path.parent.rmdir()


def sweep(parent: Path) -> None:
    """Remove every scratch folder below `parent` that nobody owns, and end the processes that were left using it."""
    with suppress(FileNotFoundError):
        for path in list(parent.iterdir()):
            if _NAME.fullmatch(path.name) and (lock := _locked(path)) is not None:
                _remove(path)
                os.close(lock)
    with suppress(OSError):
        parent.rmdir()


def _locked(path: Path) -> int | None:
    """A descriptor that holds the lock of a folder, None if another process holds it or the folder has gone."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.fstat(fd).st_ino == path.stat().st_ino:
            return fd
    except OSError:
        pass
    os.close(fd)
    return None


def _remove(path: Path) -> None:
    end_marked(path)
    shutil.rmtree(path, ignore_errors=True)


def end_marked(path: Path) -> int:
    """SIGKILL every process of this user that carries the mark of this folder; how many there were.

    A process shows no environment while it is being started, so there is another look after each that ended some, and
    while some process does not show whose it is: for `_STARTED_WITHIN_S` at most, after the last that was ended."""
    import psutil

    ended, looks, deadline = 0, _LOOKS, time.monotonic() + _STARTED_WITHIN_S
    while True:
        found, starting = [], False
        for process in psutil.process_iter():
            with suppress(psutil.Error, OSError):
                if process.pid == os.getpid():
                    continue
                environment = process.environ()
                if environment.get(MARK) == str(path):
                    process.kill()  # refuses if the number is another process's by now
                    found.append(process)
                elif not environment and _is_starting(process):
                    starting = True
        psutil.wait_procs(found, timeout=5)
        if found:
            ended, looks, deadline = ended + len(found), looks - 1, time.monotonic() + _STARTED_WITHIN_S
        if not looks or not (found or starting) or time.monotonic() > deadline:
            return ended
        time.sleep(0.01)


def _is_starting(process: psutil.Process) -> bool:
    """Whether a process without an environment is one that may be about to get one: young, and none of the kernel's."""
    return bool(process.exe()) and time.time() - process.create_time() < _YOUNG_S
