"""Where a file's collection comes from, landing files or other collections, and the fields that go with only one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tidemark.config.declaration import Declaration, DerivedDeclaration, field_names
from tidemark.config.document import Loc

LANDED = frozenset(field_names((), Declaration)) - frozenset(field_names((), DerivedDeclaration))
"""Fields of collections that land alone."""
DERIVED = frozenset(field_names((), DerivedDeclaration)) - frozenset(field_names((), Declaration))
"""Fields of collections that are computed alone."""
FROM, SOURCE = "from", "source"

_INSTEAD = {
    "value": "its columns are those of its definition, and its value is all that is not its key",
    "start": "it begins with its inputs; history is the step between the frontiers of its first build",
    "end": "it ends when all its inputs have ended",
    "time": "its rows are learned when its inputs learn of theirs",
    "event_time": "its rows have the event times of its inputs' rows where each comes from one row, else none",
    "source": "it has no source; its rows are computed from its inputs",
    "timezone": "it is complete by the boundaries of its inputs, each in its zone, and its days are UTC",
    "schedule": "it has no schedule; it runs when its inputs have more",
    "grace": "it is complete as far as its inputs are",
    "late": "it has no late rows; what its inputs apply late, it follows",
    "batches": "no files of its own land; it runs when its inputs have more",
    "reprocess_for": "it follows every correction of its inputs",
    "corrected_share": "it follows every correction of its inputs",
}
"""What holds for a derived collection instead of what a field says."""
_OF_WINDOWS = ("grace", "late")
"""Fields of landed collections that windows have, too."""


def is_derived(content: Mapping[str, Any]) -> bool:
    """Whether a file means a derived collection: it has inputs, or else no source and something only those have."""
    return FROM in content or (SOURCE not in content and not DERIVED.isdisjoint(content))


def misplaced(content: Mapping[str, Any]) -> tuple[Loc, str] | None:
    """The first field that belongs to the other origin, and what to do about it; None if there is none."""
    derived = is_derived(content)
    for field in content:
        if derived and field in _OF_WINDOWS and "windows" in content:
            return (field,), f"{field}: belongs into the windows; write windows: {{{field}: ...}}"
        if derived and field in LANDED:
            return (field,), f"{field}: the collection is derived ({_why(content)}): {_INSTEAD[field]}; remove {field}"
        if not derived and field in DERIVED:
            return (field,), (
                f"{field}: belongs to derived collections, which say from: [...], and this one has a source; "
                f"remove {field}"
            )
    return None


def _why(content: Mapping[str, Any]) -> str:
    return next(f"{field}: ..." for field in (FROM, *sorted(DERIVED)) if field in content)
