"""Where tasks find a collection."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tidemark.airflow import settings
from tidemark.config.airflow import AirflowSection
from tidemark.errors import InvalidUsage
from tidemark.model.collection import Collection, Origin
from tidemark.model.derived import Derived

if TYPE_CHECKING:
    from tidemark.config.derived_file import DerivedFile
    from tidemark.jobs.job import Job
    from tidemark.model.arrangement import Arrangement


@dataclass(frozen=True)
class Location:
    """Where the tasks find a collection: its declaration, the file it came from (None: declared in Python), its store.

    A derived collection is `declared` by its file alone: what its columns are is known once it was computed. `root` and
    `landing` default to TIDEMARK_ROOT and TIDEMARK_LANDING. `own_dag`: its file says that a DAG file of the user's
    makes its DAG. `airflow`: how that file says Airflow runs it.
    """

    declared: Collection | DerivedFile
    file: str | None = None
    root: str | None = None
    landing: str | None = None
    own_dag: bool = False
    airflow: AirflowSection = field(default_factory=AirflowSection)

    @property
    def name(self) -> str:
        return self.declared.name

    @property
    def origin(self) -> Origin:
        """Where its rows come from."""
        return self.declared.origin

    @property
    def derived(self) -> Derived | None:
        """How it is derived from its inputs; None if it lands."""
        return self.origin if isinstance(self.origin, Derived) else None

    @property
    def collection(self) -> Collection:
        """The declaration with its columns. InvalidUsage for a derived collection that only its file declares."""
        if isinstance(self.declared, Collection):
            return self.declared
        raise InvalidUsage(f"{self.name} is derived: what its columns are is known once it was computed")

    @property
    def publishes(self) -> bool:
        """Whether its file declares tables that it is published to."""
        said = (
            self.declared.publish if isinstance(self.declared, Collection) else self.declared.declaration.destinations
        )
        return bool(said)

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
    from tidemark.config.collection_file import CollectionFile, parse

    file = parse(collection)
    declared = file.collection() if isinstance(file, CollectionFile) else file
    return Location(declared, str(Path(collection).resolve()), root, landing, file.own_dag, file.airflow)


def no_data() -> Any:
    """The runner of a job that only reads the state."""
    raise AssertionError("this job reads no data")


def state_of(root: str, collection: str) -> Arrangement | None:
    """The newest state of a collection; None if it was never created, or dropped."""
    from tidemark.jobs.app import open_job

    return open_job(root, collection, no_data).log.load().arrangement
