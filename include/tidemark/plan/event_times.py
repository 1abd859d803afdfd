"""Windows on event times: which inputs tell them, and keep them.

An update says when it happened as long as it is not merged: event times below `since` are moved as times are, so that
rows of many days stand at one instant. So windows on event times need an input of which nothing is ever merged:

    kind         additive: a row happened, and is taken back at that time. Of other kinds an update says when a value
                 became another, or what differed between two snapshots
    origin       landed: one that is computed has a `since` from its first frontier on, and rows of groups have no
                 event times
    retention    all; and a hold keeps it so, that another retention which is declared one day takes nothing away
"""

from __future__ import annotations

from tidemark.errors import InvalidUsage
from tidemark.model.arrangement import Arrangement
from tidemark.model.collection import Collection, Envelope, Landed
from tidemark.model.derived import Derived
from tidemark.model.instant import format_instant


def reads_event_times(derived: Derived, given: Collection) -> bool:
    """Whether a definition sees when rows of its input happened."""
    windows = derived.definition.windows
    return windows is not None and windows.is_on_event_time(column.name for column in given.columns)


def check_event_times(derived: Derived, given: Arrangement) -> None:
    """Raise InvalidUsage, in one line, where a definition is to see event times that its input does not tell or keep
    apart for ever."""
    collection = given.collection
    if reads_event_times(derived, collection) and (why := _lacking(given)):
        raise InvalidUsage(f"windows.on: {why}, or keep when its rows happened as a column of its value, and name that")


def _lacking(given: Arrangement) -> str:
    """What an input lacks, and what to do about it."""
    collection = given.collection
    name = collection.name
    if collection.is_derived:
        return (
            f"{name} is derived, and event times below its first frontier are merged; take the windows over the "
            "collection that lands"
        )
    if collection.kind.facts:
        return f"an update of {name} says when a value became another; take a collection of events, envelope append"
    if not collection.kind.tells_times:
        return f"{name} is made of full snapshots, which tell no event times; take a collection of events"
    if collection.landed.source.envelope is Envelope.UPDATES and (moved := _taken_back_elsewhere(collection.landed)):
        return f"a row of {name} is not taken back at the event time it has: {moved}"
    if collection.retention.policy != "all":
        return (
            f"{name} keeps {collection.retention}, and event times that are older are merged; write retention: all in "
            f"the file of {name}"
        )
    if given.since:
        return f"event times of {name} below {format_instant(given.since)} are merged; make it anew from its files"
    return ""


def _taken_back_elsewhere(landed: Landed) -> str:
    """Why a negative diff does not happen when the row did, and what to do about it."""
    if landed.event_time is None:
        return "each diff happens when it is learned; declare event_time, a column that says it"
    if landed.late.policy == "next_window":
        return "a late diff happens in the next window; write late: reemit in its file"
    return ""
