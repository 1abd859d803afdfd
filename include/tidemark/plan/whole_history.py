"""Sessions that take late rows only for a while: which inputs say what is in them.

A row joins a session that is open when it comes, however old the row is, so what a session holds follows from all that
came before, in the order in which it came. So such sessions need an input of which nothing is ever merged, from its
beginning on (plan/merged_away.py).
"""

from __future__ import annotations

from tidemark.errors import InvalidUsage
from tidemark.model.arrangement import Arrangement
from tidemark.model.derived import Definition, Derived
from tidemark.model.window.kinds import Session
from tidemark.plan.merged_away import merged_away


def judges_all_history(definition: Definition) -> bool:
    """Whether what a definition says follows from when all rows of its input came."""
    windows = definition.windows
    return windows is not None and isinstance(windows.kind, Session) and windows.counts_late_for is not None


def check_whole_history(derived: Derived, given: Arrangement) -> None:
    """Raise InvalidUsage, in one line, where a definition follows from when all rows of an input came, and that does
    not keep it."""
    if judges_all_history(derived.definition) and (why := merged_away(given)):
        raise InvalidUsage(
            f"windows.late: which rows came too late for a session follows from all that came before, and {why}, or "
            "leave late out"
        )
