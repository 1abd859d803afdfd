"""Where tasks find a collection."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tidemark.airflow import settings
from tidemark.model.collection import Collection

if TYPE_CHECKING:
    from tidemark.jobs.job import Job


@dataclass(frozen=True)
class Location:
    """Where the tasks find a collection: its declaration, the file it came from (None: declared in Python), its store.

    `root` and `landing` default to TIDEMARK_ROOT and TIDEMARK_LANDING. `own_dag`: its file says that a DAG file of
    the user's makes its DAG.
    """

    collection: Collection
    file: str | None = None
    root: str | None = None
    landing: str | None = None
    own_dag: bool = False

    @property
    def name(self) -> str:
        return self.collection.name

    @property
    def store_root(self) -> str:
        return self.root or settings.root()

    def job(self) -> Job:
        """A job on the collection that reads the state only."""
        from tidemark.jobs.app import open_job

        return open_job(self.store_root, self.name, no_data)

    def declare(self) -> None:
        """Create the collection as declared, or bring a changed declaration into its state."""
        from tidemark.jobs.steps.init import declare_collection

        declare_collection(self.job(), self.collection)


def location_of(
    collection: str | Path | Collection | Location, *, root: str | None = None, landing: str | None = None
) -> Location:
    """A collection's place, from its file or its declaration; a location is its own. InvalidUsage for a wrong file."""
    if isinstance(collection, Location):
        return collection
    if isinstance(collection, Collection):
        return Location(collection, None, root, landing)
    from tidemark.config.collection_file import parse

    file = parse(collection)
    own = file.declaration.dag == "own"
    return Location(file.collection(), str(Path(collection).resolve()), root, landing, own)


def no_data() -> Any:
    """The runner of a job that only reads the state."""
    raise AssertionError("this job reads no data")
