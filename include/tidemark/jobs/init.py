"""Init: create a collection from its file, or bring a changed declaration into its state."""

from __future__ import annotations

from typing import Any

from tidemark.config.collection_file import load
from tidemark.errors import InvalidUsage
from tidemark.jobs.job import Job
from tidemark.model.change import Change, Created, Redefined
from tidemark.model.collection import Collection
from tidemark.storage.log import Head


def declare(job: Job, file: str) -> dict[str, Any]:
    """Create the collection a file declares, or redefine it where the file changed; a no-op where it did not.

    Raises InvalidUsage for a wrong file, and for a change in what data at rest depends on (key, value, types, start,
    time columns, envelope).
    """
    return declare_collection(job, load(file))


def declare_collection(job: Job, collection: Collection) -> dict[str, Any]:
    """As `declare`, from a declaration at hand."""

    def change_for(head: Head) -> Change | None:
        if head.arrangement is None:
            return Created(collection)
        return None if head.state.collection == collection else Redefined(collection)

    head, change, fresh = job.commit_until_fit(change_for)
    outcome = "nothing to do" if change is None or not fresh else change.kind
    if head.state.collection != collection:
        raise InvalidUsage(f"collection {collection.name} was declared otherwise by another run meanwhile; run again")
    return {"outcome": outcome, "version": head.version, "collection": collection.name}
