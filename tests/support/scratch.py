"""The temporary folder of a session of tests: what they and all they start put into it, and whether anything stays.

Beside it nothing of ours is to be in the system's temporary folder, and in it nothing when the session ends.
"""

from __future__ import annotations

import atexit
import multiprocessing
import os
import shutil
import tempfile
from pathlib import Path

SCRATCH = Path(tempfile.mkdtemp(prefix="tm-"))  # short: sockets are in it, whose paths have 103 bytes
AIRFLOW = SCRATCH / "airflow"
SPARK = SCRATCH / "spark"
"""Of JVMs that end with this process, and tidy up by themselves."""

JVM = "-XX:-UsePerfData -XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:ReservedCodeCacheSize=256m"
"""No counters in the system's temporary folder; and the compiler and collector that suit a JVM of a few seconds. With
Java's own choice two files of spark's ring took 62 CPU seconds in the JVM, with these 30. With this compiler Java keeps
48 MiB of compiled code, which that ring fills in ten minutes: then an eighth of its JVM's CPU went to making room."""
CLASSES = Path(__file__).resolve().parents[2] / "build" / "spark-classes.jsa"
if CLASSES.exists() and " " not in str(CLASSES):
    JVM += f" -XX:SharedArchiveFile={CLASSES} -Xlog:cds*=off"


def settle() -> None:
    """Make it the temporary folder of this process, of those it starts, and of their Sparks."""
    tempfile.tempdir = os.environ["TMPDIR"] = str(SCRATCH)
    SPARK.mkdir()
    os.environ["SPARK_LOCAL_DIRS"] = str(SPARK)
    os.environ["SPARK_SUBMIT_OPTS"] = f"-Djava.io.tmpdir={SPARK} {JVM}"
    os.environ["SPARK_LAUNCHER_OPTS"] = JVM
    atexit.register(_remove)


def _remove() -> None:
    shutil.rmtree(SCRATCH, ignore_errors=True)


def keep() -> None:
    """Leave the folder in place, for somebody to look at what a failed test has written."""
    atexit.unregister(_remove)


def leftovers() -> list[str]:
    """What tests have left: all but pytest's own folders, which hold what failed tests have written."""
    known = (AIRFLOW, SPARK, *_of_multiprocessing())
    ours = (path for path in SCRATCH.iterdir() if path not in known)
    return sorted(path.name for path in ours if not path.name.startswith("pytest-of-"))


def _of_multiprocessing() -> list[Path]:
    """The folder of this process's own fork server, which goes when the process ends."""
    made = multiprocessing.current_process()._config.get("tempdir")  # type: ignore[attr-defined]
    return [Path(made)] if made else []
