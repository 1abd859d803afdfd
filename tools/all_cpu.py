"""Run a command so that its CPU time is that of everything it starts: `python -m tools.all_cpu COMMAND…`.

Linux adds a process's CPU time to its parent's when the parent waits for it. A JVM whose launcher has ended, or a
server that went into the background, has no such parent. Here all of them become children of this process
(prctl(2), PR_SET_CHILD_SUBREAPER), which waits for them, so that whoever waits for this process learns the sum
(`os.wait4`, ru_utime and ru_stime).
"""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import time

PR_SET_CHILD_SUBREAPER = 36
LEFT_FOR_S = 10.0
"""How long processes that outlive the command may take to end; what they use later is not counted."""


def main(command: list[str]) -> int:
    """The command's exit code, once all that it started has ended."""
    if ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0):
        print(f"all_cpu: {os.strerror(ctypes.get_errno())}; orphans are not counted", file=sys.stderr)
    process = subprocess.Popen(command)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the command as well, which decides
    signal.signal(signal.SIGTERM, lambda *_: os.kill(process.pid, signal.SIGTERM))
    code, deadline = None, float("inf")
    while time.monotonic() < deadline:
        try:
            pid, status = os.waitpid(-1, 0 if code is None else os.WNOHANG)
        except ChildProcessError:
            break
        if pid == process.pid:
            code = process.returncode = os.waitstatus_to_exitcode(status)
            deadline = time.monotonic() + LEFT_FOR_S
        elif pid == 0:
            time.sleep(0.05)
    assert code is not None
    return code if code >= 0 else 128 - code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
