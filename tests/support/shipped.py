"""The DAG files and collections that ship, by name: people add their own to these folders, which no test is about."""

from __future__ import annotations

import shutil
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[2]
DAGS = ("tidemark_collection_errors", "tidemark_collections", "tidemark_maintenance")
COLLECTIONS = (
    "aircraft_days",
    "busy_half_hours",
    "carriers",
    "delays_by_carrier",
    "delays_by_hour",
    "flights",
    "named_flights",
)


def collection_files() -> list[Path]:
    """The files of the collections that ship."""
    return [PROJECT / "include" / "collections" / f"{name}.yaml" for name in COLLECTIONS]


def copy_dags(folder: Path) -> Path:
    """Copy the DAG files that ship into `dags` of a folder; returns that."""
    dags = folder / "dags"
    dags.mkdir(parents=True)
    for name in DAGS:
        shutil.copy(PROJECT / "dags" / f"{name}.py", dags)
    return dags


def copy_project(folder: Path) -> Path:
    """Copy DAG files and collections into a folder, as a bundle of DAGs has them; returns its folder of DAG files."""
    collections = folder / "include" / "collections"
    collections.mkdir(parents=True)
    for file in collection_files():
        shutil.copy(file, collections)
    return copy_dags(folder)
