"""Every engine through one life, one after the other, each in a process and an environment of its own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

from benchmarks.measure import FIXED_COMPILERS
from benchmarks.peers.spark import ENVIRONMENTS, OURS, PEERS
from benchmarks.workload import Workload

HOME = Path(__file__).resolve().parents[3]
LASTS_SECONDS = 3600
"""At most, one life."""


def beside_spark(workload: Workload, maintained: tuple[int, ...], say: Callable[[str], None]) -> dict[str, Any]:
    """The figures of all that are installed; each life once with maintenance after so many ingests (0: never)."""
    runs: list[dict[str, Any]] = []
    for name in (*OURS, *PEERS):
        if name in PEERS and not PEERS[name].installed:
            say(f"{name} on Spark is left out, as it is not installed: make bench PEERS=1, which needs Maven for it")
            continue
        python = PEERS[name].python if name in PEERS else Path(sys.executable)
        for every in maintained:
            case = {"base": workload.base, "ingests": workload.ingests, "rows": workload.rows, "seed": workload.seed}
            say(f"{name}: {workload.ingests} x {workload.rows:,} rows into {workload.base:,}, maintained every {every}")
            runs.append({"engine": name, **lived(name, python, {**case, "every": every})})
    return {"versions": versions(), "runs": runs}


def lived(name: str, python: Path, case: dict[str, Any], module: str = "benchmarks.peers.spark") -> dict[str, Any]:
    """The figures of a life, by `python -m module NAME CASE OUT`, or `error` with what the process said last."""
    with tempfile.TemporaryDirectory(prefix="tidemark-bench-") as folder:
        out, log = Path(folder, "figures.json"), Path(folder, "log")
        with log.open("w") as said:
            process = subprocess.Popen(
                [str(python), "-m", module, name, json.dumps(case), str(out)],
                cwd=HOME,
                env=_environment(python, folder),
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=said,
                start_new_session=True,  # so that its JVM can be ended with it
            )
            try:
                process.wait(LASTS_SECONDS)
            except subprocess.TimeoutExpired:
                return {"error": f"not done after {LASTS_SECONDS} s"}
            finally:
                if process.poll() is None:
                    os.killpg(process.pid, signal.SIGKILL)
                    process.wait()
        if process.returncode or not out.exists():
            lines = [line for line in log.read_text().splitlines() if line.strip()]
            return {"error": (lines or [f"exit code {process.returncode}"])[-1][:200]}
        found: dict[str, Any] = json.loads(out.read_text())
        return found


def _environment(python: Path, folder: str) -> dict[str, str]:
    """That of the project, but for what would lead to its own Spark."""
    kept = {name: value for name, value in os.environ.items() if name not in ("SPARK_HOME", "PYSPARK_SUBMIT_ARGS")}
    return kept | {
        "PATH": f"{python.parent}:{os.environ['PATH']}",
        "PYTHONPATH": f"{HOME}:{HOME / 'include'}",
        "PYSPARK_PYTHON": str(python),
        "PYSPARK_DRIVER_PYTHON": str(python),
        "PYSPARK_SUBMIT_ARGS": "--driver-memory 2g pyspark-shell",
        "SPARK_SUBMIT_OPTS": f"{os.environ.get('SPARK_SUBMIT_OPTS', '')} -XX:-UsePerfData {FIXED_COMPILERS}".strip(),
        "TMPDIR": folder,
    }


def versions() -> dict[str, str]:
    """What ran, by name."""
    found = {"tidemark's pyspark": version("pyspark")}
    for name, peer in PEERS.items():
        if peer.installed:
            jars = ", ".join(jar.coordinates.split(":", 1)[1] for jar in peer.jars)
            found[name] = f"{jars} on {ENVIRONMENTS[peer.environment][0]}"
    return found
