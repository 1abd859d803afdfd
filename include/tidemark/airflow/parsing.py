"""Which DAG file is being parsed, and the collection files that belong to it."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from tidemark.airflow import settings

BESIDE = Path("include", "collections")
FOLDERS_UP = 4
"""How many folders above a DAG file are looked into: `dags/team/europe/orders.py`."""


def file_being_parsed() -> Path | None:
    """The DAG file that is being parsed; None where none is."""
    from airflow.sdk.definitions._internal.contextmanager import DagContext

    module = sys.modules.get(DagContext.current_autoregister_module_name or "")
    file = getattr(module, "__file__", None)
    return Path(file) if file else None


def collections_folder(folder: str | Path | None = None, *, file: Path | None = None) -> Path:
    """Where collection files are: `folder`, else TIDEMARK_COLLECTIONS, else `include/collections` beside the folder of
    the DAG `file` (the one being parsed), else that of the project (TIDEMARK_HOME).

    So a bundle of DAGs has its own: a run of an older version of it uses that version's collection files.
    """
    if folder is not None or os.environ.get("TIDEMARK_COLLECTIONS"):
        return Path(folder or settings.collections_folder())
    parsed = file or file_being_parsed()
    above = list(parsed.parents)[1 : 1 + FOLDERS_UP] if parsed is not None else []
    return next((one / BESIDE for one in above if (one / BESIDE).is_dir()), settings.collections_folder())
