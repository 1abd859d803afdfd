"""Windows that count a late row in the first one that is open when it comes (`late: next_window`): which inputs say,
and keep, when each row came.

In which window such a row counts follows from its time, as that was at first. So what retracts it, at a time of its
own, would go to another window, and leave that with fewer rows than none; and where times are merged the window is
forgotten. These windows need an input of which nothing is merged (plan/merged_away.py), and nothing retracted:

    envelope     append: a row says that something happened
    corrections  none: without `reprocess_for` no file is read again

When a row came is judged by the input's schedule. So that is recorded with what the windows were computed from: with
another one a late row would be in another window, and all is recomputed.
"""

from __future__ import annotations

from tidemark.errors import InvalidUsage
from tidemark.model.arrangement import Arrangement
from tidemark.model.collection import Collection, Envelope
from tidemark.model.derived import Derived
from tidemark.model.window.windows import Late
from tidemark.plan.merged_away import merged_away


def moves_late_rows(derived: Derived) -> bool:
    """Whether in which window a row counts may follow from when it came."""
    windows = derived.definition.windows
    return windows is not None and windows.late is Late.NEXT_WINDOW


def check_arrivals(derived: Derived, given: Arrangement) -> None:
    """Raise InvalidUsage, in one line, where a definition counts rows by when they came, and its input may take some
    back or does not keep when they came."""
    if moves_late_rows(derived) and (why := _retracted(given.collection) or merged_away(given)):
        raise InvalidUsage(f"windows.late: next_window counts late rows by when they came, and {why}, or write discard")


def judged_by(derived: Derived, given: Collection) -> str:
    """The schedule, and its zone, by which rows of an input count in one window or another; "" where they do not."""
    if not moves_late_rows(derived) or given.is_derived:
        return ""
    zone = given.landed.timezone
    return given.landed.schedule if zone == "UTC" else f"{given.landed.schedule} {zone}"


def _retracted(collection: Collection) -> str:
    """Why rows of an input that lands may be retracted, and what to do about it."""
    name = collection.name
    if collection.is_derived:
        return ""
    if collection.landed.source.envelope is not Envelope.APPEND:
        return f"rows of {name} may be retracted, as its envelope is {collection.landed.source.envelope}; take events"
    if collection.landed.reprocess_for:
        return f"rows of {name} are retracted when a file is read again; remove reprocess_for from its file"
    return ""
