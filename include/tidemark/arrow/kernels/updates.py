"""The updates that unsealed rows stand for, by the task that says so: facts are resolved, full snapshots compared."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa

from tidemark.arrow.kernels.difference import differences
from tidemark.arrow.kernels.merge import Tally, merged
from tidemark.arrow.kernels.resolve import updates_from
from tidemark.plan.tasks import DifferenceTask, MergeTask, ResolveTask, UnsealedTask
from tidemark.storage.stores.store import ObjectStore

Produce = Callable[[ObjectStore, Any], Iterator[pa.RecordBatch]]

_PRODUCE: dict[type, Produce] = {
    MergeTask: lambda store, task: merged(store, task, Tally()),
    ResolveTask: lambda store, task: updates_from(store, task, Tally()),
    DifferenceTask: differences,
}


def updates_of(store: ObjectStore, task: UnsealedTask) -> Iterator[pa.RecordBatch]:
    """The updates of a task, consolidated, in the order of updates at rest; nothing is written.

    Raises Corruption if a part is not what was recorded.
    """
    return _PRODUCE[type(task)](store, task)
