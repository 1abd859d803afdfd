"""The kernels by name, with their tasks and answers as JSON: what a runner carries to executors and back."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tidemark.errors import out_of_memory
from tidemark.plan.tasks import (
    AuditAnswer,
    ChecksumAnswer,
    ChecksumTask,
    DifferenceTask,
    IngestAnswer,
    IngestTask,
    InspectAnswer,
    InspectTask,
    MergeTask,
    ReplayAnswer,
    ReplayTask,
    ResolveTask,
    TrimTask,
    WriteAnswer,
)
from tidemark.storage import ObjectStore
from tidemark.storage.codec import decode, encode


@dataclass(frozen=True)
class Kernel:
    """A function of a store and a task, and the types of both ends."""

    function: Callable[[ObjectStore, Any], Any]
    task: type
    answer: type


def kernel(name: str) -> Kernel:
    """The kernel called `name`; its module is imported only then."""
    if name == "ingest":
        from tidemark.arrow.ingest import ingest_files

        return Kernel(ingest_files, IngestTask, IngestAnswer)
    if name == "replay":
        from tidemark.arrow.replay import replay_dead_letters

        return Kernel(replay_dead_letters, ReplayTask, ReplayAnswer)
    if name == "merge":
        from tidemark.arrow.merge import merge_range

        return Kernel(merge_range, MergeTask, WriteAnswer)
    if name == "resolve":
        from tidemark.arrow.resolve import resolve_range

        return Kernel(resolve_range, ResolveTask, WriteAnswer)
    if name == "difference":
        from tidemark.arrow.difference import difference_range

        return Kernel(difference_range, DifferenceTask, WriteAnswer)
    if name == "trim":
        from tidemark.arrow.trim import trim_part

        return Kernel(trim_part, TrimTask, WriteAnswer)
    if name == "audit":
        from tidemark.arrow.inspect import audit_part

        return Kernel(audit_part, InspectTask, AuditAnswer)
    if name == "checksum":
        from tidemark.arrow.inspect import checksums

        return Kernel(checksums, ChecksumTask, ChecksumAnswer)
    if name == "inspect":
        from tidemark.arrow.inspect import inspect_part

        return Kernel(inspect_part, InspectTask, InspectAnswer)
    raise KeyError(name)


def run_encoded(store: ObjectStore, name: str, task: bytes) -> bytes:
    """Run one task given and answered as JSON. Memory that runs out is Unavailable, as a failing store is."""
    called = kernel(name)
    try:
        return encode(called.function(store, decode(task, called.task, name=f"{name} task")), called.answer)
    except MemoryError as error:
        raise out_of_memory(name, error) from error
