"""Where figures were measured: cores, memory, versions, commit. A figure without them says nothing."""

from __future__ import annotations

import hashlib
import os
import platform
import re
import subprocess
from importlib.metadata import version
from pathlib import Path
from typing import Any

import psutil

HOME = Path(__file__).resolve().parent.parent
PACKAGES = ("apache-airflow", "pyspark", "pyarrow", "numpy", "great-expectations")


def machine() -> dict[str, Any]:
    """The machine and the versions, as a JSON object."""
    return {
        "cpu": _cpu_name(),
        "cores": len(os.sched_getaffinity(0)),
        "memory_bytes": psutil.virtual_memory().total,
        "system": f"{platform.system()} {platform.release()}",
        "load_before": [round(load, 2) for load in os.getloadavg()],
        "python": platform.python_version(),
        "java": _java(),
        "packages": {name: version(name) for name in PACKAGES},
    }


def commit() -> str:
    """The commit measured; `+` if files that git knows differ from it."""
    short = _git("rev-parse", "--short=10", "HEAD")
    changed = _git("status", "--porcelain", "--untracked-files=no", "--", "include", "spark_apps", "dags", "benchmarks")
    changed = "\n".join(line for line in changed.splitlines() if "benchmarks/R" not in line)
    return short + ("+" if changed else "") if short else "unknown"


def sources() -> str:
    """A fingerprint of what is measured. If it is another one at the end, the figures are of no one commit, and the
    resident Spark was started again in between."""
    sha = hashlib.sha256()
    for folder in ("include", "spark_apps", "benchmarks"):
        for path in sorted((HOME / folder).rglob("*.py")):
            sha.update(f"{path}\0".encode() + path.read_bytes())
    return sha.hexdigest()


def _git(*arguments: str) -> str:
    done = subprocess.run(["git", *arguments], cwd=HOME, capture_output=True, text=True, check=False)
    return done.stdout.rstrip()


def _cpu_name() -> str:
    found = re.search(r"^model name\s*: (.+)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    return found[1] if found else platform.processor()


def _java() -> str:
    done = subprocess.run(["java", "-version"], capture_output=True, text=True, check=False)
    return done.stderr.splitlines()[0] if done.stderr else "none"
