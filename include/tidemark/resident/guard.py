"""Die with the parent: what keeps a driver from outliving the process that was asked to end it."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from pathlib import Path

_PR_SET_PDEATHSIG = 1
_GATEWAY_PORT = "PYSPARK_GATEWAY_PORT"  # set by the JVM of a spark-submit for the driver it starts

# Resolved at import: between fork and exec nothing may be looked up or allocated that another thread might hold locked.
_prctl = ctypes.CDLL(None, use_errno=True).prctl if sys.platform == "linux" else None


def die_with_parent(parent: int | None = None) -> None:
    """Let the kernel send SIGKILL to this process when its parent ends, and end at once if it has ended already.

    A Spark driver calls it first thing and without arguments: its parent is then the JVM of spark-submit, and without
    one (a shell, a test, a child of the resident server) the call does nothing. `parent` names another parent by its
    pid. The kernel takes the *thread* that forked for the parent, so that one must live as long as its process. Does
    nothing on systems other than Linux.
    """
    if _prctl is None or (parent is None and _GATEWAY_PORT not in os.environ):
        return
    request_death_signal()
    if _gone(parent):
        os.kill(os.getpid(), signal.SIGKILL)


def request_death_signal() -> None:
    """The bare request, for use between fork and exec, where `die_with_parent` would do too much."""
    if _prctl is not None:
        _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def _gone(parent: int | None) -> bool:
    if parent is not None:
        return os.getppid() != parent
    # An orphan is handed to init or to a subreaper, neither of which is a JVM.
    try:
        return "java" not in Path(f"/proc/{os.getppid()}/comm").read_text()
    except OSError:
        return True
