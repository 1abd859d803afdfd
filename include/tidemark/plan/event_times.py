"""Windows on event times: which inputs report them, and keep them.

An update says when it happened as long as it is not merged: event times below `since` are moved as times are, so that
rows of many days are at one instant. So windows on event times need an input of which nothing is ever merged
(plan/merged_away.py), and whose kind is additive: a row happened, and is retracted at that time. Of other kinds an
update says when a value became another, or what differed between two snapshots; and rows of groups, which are computed,
have no event times.
"""

from __future__ import annotations

from tidemark.errors import InvalidUsage
from tidemark.model.arrangement import Arrangement
from tidemark.model.collection import Collection, Envelope, Landed
from tidemark.model.derived import Derived
from tidemark.plan.merged_away import merged_away


def reads_event_times(derived: Derived, given: Collection) -> bool:
    """Whether a definition sees when rows of its input happened."""
    windows = derived.definition.windows
    return windows is not None and windows.is_on_event_time(column.name for column in given.columns)


def check_event_times(derived: Derived, given: Arrangement) -> None:
    """Raise InvalidUsage, in one line, where a definition is to see event times that its input does not report, or does
    not keep distinct for ever."""
    collection = given.collection
    if reads_event_times(derived, collection) and (why := _no_event_times(collection) or merged_away(given)):
        raise InvalidUsage(
            f"windows.on: rows are placed by when they happened, and {why}, or keep that as a column of its value, and "
            "name that"
        )


def _no_event_times(collection: Collection) -> str:
    """Why updates of an input that lands do not say when its rows happened, and what to do about it."""
    name = collection.name
    if collection.is_derived:
        return ""
    if collection.kind.facts:
        return f"an update of {name} says when a value became another; take a collection of events, envelope append"
    if not collection.kind.has_times:
        return f"{name} is made of full snapshots, which have no event times; take a collection of events"
    if collection.landed.source.envelope is Envelope.UPDATES and (moved := _retracted_elsewhere(collection.landed)):
        return f"a row of {name} is not retracted at the event time it has: {moved}"
    return ""


def _retracted_elsewhere(landed: Landed) -> str:
    """Why a negative diff does not happen when the row did, and what to do about it."""
    if landed.event_time is None:
        return "each diff happens when it is learned; declare event_time, a column that says it"
    if landed.late.policy == "next_window":
        return "a late diff happens in the next window; write late: reemit in its file"
    return ""
