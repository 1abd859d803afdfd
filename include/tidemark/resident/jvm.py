"""The JVM under the server: started by spark-submit as pyspark does it, but without a Python beside it."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from tidemark.errors import InvalidUsage
from tidemark.resident.confined import private_conf, private_environment, write_properties
from tidemark.resident.guard import request_death_signal
from tidemark.resident.server_folder import Settings


def start(settings: Settings, scratch: Path) -> subprocess.Popen[bytes]:
    """Start the JVM and return at once. It dies with this process, and ends when its standard input closes.

    Its settings are in a file only this user can read: what is in a command line, every user of the machine can.
    """
    conf = {
        "spark.master": settings.master,
        "spark.app.name": "tidemark resident",
        "spark.submit.pyFiles": settings.py_files,
        "spark.local.dir": str(scratch),
        "spark.sql.warehouse.dir": (scratch / "warehouse").as_uri(),
        **private_conf(settings.master),
        **settings.spark_conf(),
    }
    write_properties(properties_file(scratch), {key: value for key, value in conf.items() if value})
    home = spark_home()
    command = [str(home / "bin" / "spark-submit"), "--properties-file", str(properties_file(scratch))]
    env = {
        **os.environ,
        **private_environment(settings.master, scratch, os.environ),
        "SPARK_HOME": str(home),
        "PYSPARK_PYTHON": os.environ.get("PYSPARK_PYTHON") or sys.executable,
        "SPARK_CONNECT_MODE": "0",
        "_PYSPARK_DRIVER_CONN_INFO_PATH": str(connection_file(scratch)),
    }
    return subprocess.Popen(
        [*command, "--load-spark-defaults", "pyspark-shell"],
        stdin=subprocess.PIPE,
        env=env,
        cwd=scratch,
        start_new_session=True,  # so that a signal to the server's group passes it by
        preexec_fn=request_death_signal,  # this process has one thread, which lives as long as it does
    )


def connection_file(scratch: Path) -> Path:
    """Where the JVM leaves port and secret of its first gateway."""
    return scratch / "gateway"


def properties_file(scratch: Path) -> Path:
    """The JVM's settings, which it reads once, when it starts."""
    return scratch / "spark.properties"


def stop(process: subprocess.Popen[bytes], *, grace_s: float) -> None:
    """End the JVM: by closing its standard input, after the grace by force."""
    if process.stdin is not None:
        process.stdin.close()
    try:
        process.wait(grace_s)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


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
    raise InvalidUsage("no Spark found: pip install '.[spark]' (in a checkout of Tidemark), or set SPARK_HOME")
