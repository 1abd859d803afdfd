"""Inputs of which nothing is ever merged: what was merged no longer says when its rows happened, nor when they came,
and some windows are computed from that.

    origin       landed: one that is computed has a `since` from its first frontier on
    retention    all; and a hold keeps it so, that another retention which is declared one day takes nothing away
"""

from __future__ import annotations

from tidemark.model.arrangement import Arrangement
from tidemark.model.instant import format_instant


def merged_away(given: Arrangement) -> str:
    """What of an input is merged, or will be, and what to do about it, as the rest of a sentence; "" where nothing is
    and nothing will be."""
    collection = given.collection
    name = collection.name
    if collection.is_derived:
        return (
            f"{name} is derived, and merged below its first frontier; take the windows over the collection that lands"
        )
    if collection.retention.policy != "all":
        return f"{name} keeps {collection.retention}, and merges what is older; write retention: all in its file"
    if given.since:
        return f"{name} is merged below {format_instant(given.since)}; create it again from its files"
    return ""
