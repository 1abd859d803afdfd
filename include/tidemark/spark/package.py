"""The package for executors: they run the code of the driver they work for, whatever is installed where they are."""

from __future__ import annotations

import shutil
import zipfile
from pathlib import Path
from typing import Any

from tidemark.resident.confined import is_local
from tidemark.resident.server_folder import PACKAGE

_LISTS = ("spark.submit.pyFiles", "spark.yarn.dist.pyFiles")
_shipped: set[str] = set()


def ship(spark: Any) -> None:
    """Let executors of this session on other machines import this process's package, once for the session.

    Nothing to do where all of Spark runs here, or where the package was given to spark-submit (`--py-files`). A session
    of Spark Connect is its server's: there the package must be installed.
    """
    context = getattr(spark, "_sc", None)
    if context is None or is_local(context.master) or context.applicationId in _shipped:
        return
    if PACKAGE.is_dir() and not _given(context):
        zipped = shutil.make_archive(str(Path(context._temp_dir) / "tidemark"), "zip", PACKAGE.parent, PACKAGE.name)
        context.addPyFile(zipped)
    _shipped.add(context.applicationId)


def _given(context: Any) -> bool:
    """Whether the package is among the files that the session was started with."""
    conf = context.getConf()
    files = [Path(name.removeprefix("file:")) for key in _LISTS for name in conf.get(key, "").split(",") if name]
    return any(_carries(file) for file in files)


def _carries(file: Path) -> bool:
    if not zipfile.is_zipfile(file):
        return False
    with zipfile.ZipFile(file) as archive:
        return f"{PACKAGE.name}/__init__.py" in archive.namelist()
