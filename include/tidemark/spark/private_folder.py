"""A folder for the temporary files of a Spark that this process starts: they hold rows, for nobody else to read."""

from __future__ import annotations

import atexit
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from py4j.protocol import Py4JError
from pyspark import SparkContext

from tidemark.resident.confined import private_environment

_OPTIONS = "SPARK_SUBMIT_OPTS"
ENDS_WITHIN_S = 10.0
"""How long a JVM may take to end before its folder is removed all the same."""


@contextmanager
def private_folder() -> Iterator[None]:
    """A JVM started in the block has a folder of mode 700, whatever the umask, that goes with this process.

    In the system's temporary folder Spark writes what it shuffles as the umask has it, mostly for everybody to read.
    Does nothing if the JVM runs already, or whoever started it has chosen its folder, as spark-submit's launcher has.
    """
    before = os.environ.get(_OPTIONS)
    if SparkContext._gateway or "PYSPARK_GATEWAY_PORT" in os.environ or "-Djava.io.tmpdir" in (before or ""):
        yield
        return
    folder = Path(tempfile.mkdtemp(prefix="tidemark-spark-"))
    atexit.register(_remove, folder, os.getpid())
    os.environ[_OPTIONS] = private_environment("local", folder, os.environ)[_OPTIONS]
    try:
        yield
    finally:
        os.environ.pop(_OPTIONS)
        if before is not None:
            os.environ[_OPTIONS] = before


def _remove(folder: Path, owner: int) -> None:
    if os.getpid() != owner:
        return
    gateway, context = SparkContext._gateway, SparkContext._active_spark_context
    with suppress(Py4JError, OSError, subprocess.TimeoutExpired):
        if context is not None:
            context.stop()
        if gateway is not None:
            gateway.shutdown()
            gateway.proc.stdin.close()
            gateway.proc.wait(ENDS_WITHIN_S)
    shutil.rmtree(folder, ignore_errors=True)
