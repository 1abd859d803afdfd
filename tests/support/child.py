"""Code run in a Python process of its own, for what is measured of a whole process."""

from __future__ import annotations

import os
import subprocess
import sys


def run_python(code: str, *arguments: str) -> str:
    """What the code prints. Arrow has the memory of the system's allocator, which keeps the least of what is free."""
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "ARROW_DEFAULT_MEMORY_POOL": "system"}
    command = [sys.executable, "-c", code, *arguments]
    ended = subprocess.run(command, capture_output=True, text=True, env=env, timeout=300, check=False)
    assert ended.returncode == 0, ended.stderr[-2000:]
    return ended.stdout
