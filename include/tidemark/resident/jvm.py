"""The JVM under the server: started by spark-submit as pyspark does it, but without a Python beside it."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from tidemark.errors import InvalidUsage
from tidemark.resident.guard import request_death_signal
from tidemark.resident.place import Place, Settings


def start(settings: Settings, place: Place) -> subprocess.Popen[bytes]:
    """Start the JVM and return at once. It dies with this process, and ends when its standard input closes."""
    scratch = place.scratch / str(os.getpid())
    _sweep(place.scratch)
    scratch.mkdir(parents=True)
    conf = {
        "spark.master": settings.master,
        "spark.app.name": "tidemark resident",
        "spark.submit.pyFiles": settings.py_files,
        "spark.local.dir": str(scratch),
        "spark.sql.warehouse.dir": (scratch / "warehouse").as_uri(),
        **settings.spark_conf(),
    }
    home = spark_home()
    command = [str(home / "bin" / "spark-submit")]
    command += [arg for key, value in conf.items() if value for arg in ("--conf", f"{key}={value}")]
    env = {
        **os.environ,
        "SPARK_HOME": str(home),
        "PYSPARK_PYTHON": os.environ.get("PYSPARK_PYTHON") or sys.executable,
        "SPARK_CONNECT_MODE": "0",
        "_PYSPARK_DRIVER_CONN_INFO_PATH": str(connection_file(place)),
    }
    return subprocess.Popen(
        [*command, "pyspark-shell"],
        stdin=subprocess.PIPE,
        env=env,
        cwd=scratch,
        start_new_session=True,  # so that killing its group also ends the Python workers
        preexec_fn=request_death_signal,  # this process has one thread, which lives as long as it does
    )


def connection_file(place: Place) -> Path:
    """Where the JVM leaves port and secret of its first gateway."""
    return place.scratch / str(os.getpid()) / "gateway"


def stop(process: subprocess.Popen[bytes], place: Place, *, grace_s: float) -> None:
    """End the JVM: by closing its standard input, after the grace by force. Its scratch folder goes too."""
    if process.stdin is not None:
        process.stdin.close()
    try:
        process.wait(grace_s)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    shutil.rmtree(place.scratch / str(os.getpid()), ignore_errors=True)


@contextlib.contextmanager
def gateway_environment(port: int, secret: str) -> Iterator[None]:
    """How pyspark learns of a JVM that is there already; for the length of the connecting only."""
    os.environ |= {"PYSPARK_GATEWAY_PORT": str(port), "PYSPARK_GATEWAY_SECRET": secret}
    try:
        yield
    finally:
        del os.environ["PYSPARK_GATEWAY_PORT"], os.environ["PYSPARK_GATEWAY_SECRET"]


def spark_home() -> Path:
    """SPARK_HOME, or the pip-installed pyspark (found without importing it)."""
    if home := os.environ.get("SPARK_HOME"):
        return Path(home)
    spec = importlib.util.find_spec("pyspark")
    for folder in (spec.submodule_search_locations or []) if spec else []:
        if (Path(folder) / "jars").is_dir():
            return Path(folder)
    raise InvalidUsage("no Spark found: pip install pyspark, or set SPARK_HOME")


def _sweep(scratch: Path) -> None:
    """Remove what servers left that were killed."""
    for folder in _folders(scratch):
        if not Path(f"/proc/{folder.name}").exists():
            shutil.rmtree(folder, ignore_errors=True)


def _folders(scratch: Path) -> Iterator[Path]:
    return (f for f in scratch.iterdir() if f.name.isdigit()) if scratch.is_dir() else iter(())
