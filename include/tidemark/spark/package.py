"""The package for executors: they run the code of the driver they work for, whatever is installed where they are."""

from __future__ import annotations

import shutil
import tempfile
import zipfile
from pathlib import Path
from typing import Any

from tidemark.resident.confined import is_local
from tidemark.resident.server_folder import PACKAGE

_LISTS = ("spark.submit.pyFiles", "spark.yarn.dist.pyFiles")
_shipped: set[str] = set()


def ship(spark: Any) -> None:
    """Let executors of this session on other machines, and a server of Spark Connect, import this process's package,
    once for the session.

    Nothing to do where all of Spark runs here, or where the package was given to spark-submit (`--py-files`).
    """
    context = getattr(spark, "_sc", None)
    if context is None:
        _ship_to_server(spark)
        return
    if is_local(context.master) or context.applicationId in _shipped:
        return
    if PACKAGE.is_dir() and not _given(context):
        context.addPyFile(_zipped(context._temp_dir))
    _shipped.add(context.applicationId)


def _ship_to_server(spark: Any) -> None:
    session = str(spark.session_id)
    if session in _shipped:
        return
    if PACKAGE.is_dir():
        with tempfile.TemporaryDirectory(prefix="tidemark-") as folder:
            spark.addArtifacts(_zipped(folder), pyfile=True)
    _shipped.add(session)


def _zipped(folder: str) -> str:
    return shutil.make_archive(str(Path(folder) / "tidemark"), "zip", PACKAGE.parent, PACKAGE.name)


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
