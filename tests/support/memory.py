"""What a process has taken of the machine's memory at its peak."""

from __future__ import annotations

import re
import resource
import sys
from pathlib import Path


def peak_bytes() -> int:
    """The most memory this process has taken so far, in bytes.

    On Linux not by `getrusage`: that remembers what the process took before it became this program, which of a child is
    as much as its parent took, and hides whatever takes less.
    """
    if sys.platform == "linux":
        found = re.search(r"VmHWM:\s*(\d+) kB", Path("/proc/self/status").read_text())
        assert found
        return int(found[1]) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
