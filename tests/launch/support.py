"""Waiting for facts, and the toy apps."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, TypeVar

import psutil

APPS = Path(__file__).parent / "apps"
T = TypeVar("T")


def eventually(what: str, fact: Callable[[], T | None], *, within: float = 30.0) -> T:
    """The first true value of `fact`; fails naming `what` if there is none in time."""
    deadline = time.monotonic() + within
    while not (value := fact()):
        assert time.monotonic() < deadline, f"not within {within} s: {what}"
        time.sleep(0.02)
    return value


def is_dead(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def started(folder: Path, *, within: float = 180.0) -> int:
    """The pid of the `linger` app once it runs."""
    eventually(f"linger starts in {folder}", (folder / "started").exists, within=within)
    pid: int = json.loads((folder / "started").read_text())["pid"]
    return pid


def never_commits(folder: Path, pid: int, *, within: float) -> None:
    """`linger` is dead in time, so that being allowed to go on it does not; what is dead stays silent."""
    eventually(f"process {pid} of linger ends", lambda: is_dead(pid), within=within)
    (folder / "go").touch()
    assert not (folder / "committed").exists()


def context(try_number: int = 1) -> Any:
    """As much of a task's context as the operator reads."""
    ti = SimpleNamespace(run_id="manual__1", task_id="toy", map_index=-1, try_number=try_number)
    return {"ti": ti}


def toy(name: str) -> str:
    return str(APPS / f"{name}.py")


def environment_of(pid: int) -> dict[str, str]:
    raw = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    return dict(os.fsdecode(pair).split("=", 1) for pair in raw if b"=" in pair)
