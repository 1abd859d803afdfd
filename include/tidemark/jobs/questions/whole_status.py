"""A status with all that takes more than its own state: what corrections cost, and how a collection follows others."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from tidemark.jobs.questions.follows import follows_of
from tidemark.jobs.questions.reprocessing import reprocess_bytes
from tidemark.jobs.questions.status import Status, status
from tidemark.storage.log.log import Head, StateLog
from tidemark.storage.stores.store import ObjectStore


def whole_status(store: ObjectStore, log: StateLog, head: Head, newest: Callable[[str], Head | None]) -> Status:
    """The status at `head`, with nothing left out; `newest` gives the heads of other collections of its root."""
    costs = reprocess_bytes(store, head.state)
    return replace(status(head), reprocess_bytes=costs, follows=follows_of(head, log, newest))
