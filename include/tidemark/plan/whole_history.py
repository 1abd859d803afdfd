"""Sessions that take late rows for a while only: which inputs tell what is in them.

A row joins a session that is open when it comes, however old the row is, so what a session holds follows from all that
came before, in the order in which it came. What was merged says no more when it came; so such sessions need an input of
which nothing is ever merged, from its beginning on: one that lands, with `retention: all`, and a hold keeps it so.
"""

from __future__ import annotations

from tidemark.errors import InvalidUsage
from tidemark.model.arrangement import Arrangement
from tidemark.model.derived import Definition, Derived
from tidemark.model.instant import format_instant
from tidemark.model.window.kind import Session


def judges_all_history(definition: Definition) -> bool:
    """Whether what a definition says follows from when all rows of its input came."""
    windows = definition.windows
    return windows is not None and isinstance(windows.kind, Session) and windows.counts_late_for is not None


def check_whole_history(derived: Derived, given: Arrangement) -> None:
    """Raise InvalidUsage, in one line, where a definition follows from when all rows of an input came, and that does
    not keep it."""
    if judges_all_history(derived.definition) and (why := _lacking(given)):
        raise InvalidUsage(
            f"windows.late: which rows came too late for a session follows from all that came before, and {why}, or "
            "leave late out"
        )


def _lacking(given: Arrangement) -> str:
    """What an input lacks, and what to do about it."""
    collection = given.collection
    name = collection.name
    if collection.is_derived:
        return (
            f"{name} is derived, so what it held before its first frontier is merged; take the sessions over the "
            "collection that lands"
        )
    if collection.retention.policy != "all":
        return f"{name} keeps {collection.retention}; write retention: all in the file of {name}"
    if given.since:
        return f"{name} is merged below {format_instant(given.since)}; make it anew from its files"
    return ""
