"""The kernels by name, with their tasks and answers as JSON: what a runner carries to executors and back."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pkgutil import resolve_name
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
    NotContributedAnswer,
    NotContributedTask,
    RememberTask,
    ReplayAnswer,
    ReplayTask,
    RereadAnswer,
    RereadTask,
    ResolveTask,
    RetractedShareAnswer,
    RetractedShareTask,
    TrimTask,
    WriteAnswer,
)
from tidemark.storage import ObjectStore
from tidemark.storage.documents.codec import decode, encode


@dataclass(frozen=True)
class Kernel:
    """A function of a store and a task, as `module:name` below tidemark.arrow, and the types of both ends."""

    at: str
    task: type
    answer: type

    @property
    def function(self) -> Callable[[ObjectStore, Any], Any]:
        """The function; its module is imported only now."""
        function: Callable[[ObjectStore, Any], Any] = resolve_name(f"tidemark.arrow.kernels.{self.at}")
        return function


KERNELS: dict[str, Kernel] = {
    "ingest": Kernel("ingest:ingest_files", IngestTask, IngestAnswer),
    "reread": Kernel("reread:reread_files", RereadTask, RereadAnswer),
    "not_contributed": Kernel("contributed:not_contributed", NotContributedTask, NotContributedAnswer),
    "retracted_share": Kernel("contributed:retracted_share", RetractedShareTask, RetractedShareAnswer),
    "replay": Kernel("replay:replay_dead_letters", ReplayTask, ReplayAnswer),
    "merge": Kernel("merge:merge_range", MergeTask, WriteAnswer),
    "resolve": Kernel("resolve:resolve_range", ResolveTask, WriteAnswer),
    "difference": Kernel("difference:difference_range", DifferenceTask, WriteAnswer),
    "remember": Kernel("remember:remember_range", RememberTask, WriteAnswer),
    "trim": Kernel("trim:trim_part", TrimTask, WriteAnswer),
    "audit": Kernel("inspect:audit_part", InspectTask, AuditAnswer),
    "checksum": Kernel("inspect:checksums", ChecksumTask, ChecksumAnswer),
    "inspect": Kernel("inspect:inspect_part", InspectTask, InspectAnswer),
}
"""The kernels. Each is named by the steps that run it (jobs/steps/declared.py)."""


def kernel(name: str) -> Kernel:
    """The kernel called `name`; KeyError if there is none."""
    return KERNELS[name]


def run_encoded(store: ObjectStore, name: str, task: bytes) -> bytes:
    """Run one task given and answered as JSON. Memory that runs out is Unavailable, as a failing store is."""
    called = kernel(name)
    try:
        return encode(called.function(store, decode(task, called.task, name=f"{name} task")), called.answer)
    except MemoryError as error:
        raise out_of_memory(name, error) from error
