"""What a collection file may say of full snapshots: little, as their rows are all true at the end of their interval."""

from __future__ import annotations

from typing import Any

from tidemark.config.declaration import Declaration
from tidemark.config.document import Loc

SNAPSHOT = "snapshot"


def with_time(content: dict[str, Any]) -> dict[str, Any]:
    """The content of a file, with the time a collection of full snapshots has without saying so."""
    source = content.get("source")
    of_snapshots = isinstance(source, dict) and source.get("envelope") == SNAPSHOT
    return {**content, "time": "arrival"} if of_snapshots and "time" not in content else content


def problem(declared: Declaration) -> tuple[Loc, str] | None:
    """Where a declaration of full snapshots says what they cannot have, and why; None if nowhere, and for other
    envelopes."""
    if declared.source.envelope != SNAPSHOT:
        return None
    why = "a full snapshot is true at the last instant of its interval; remove it"
    for name, found in (("time", declared.time), ("event_time", declared.event_time)):
        if found is not None:
            return (name,), f"{name}: {why}"
    if "late" in declared.model_fields_set:
        return ("late",), "late: no row of a full snapshot is late; remove it"
    if declared.source.bad_files != "stop":
        return ("source", "bad_files"), "bad_files: a full snapshot that lacks a file would delete its rows; remove it"
    return None
