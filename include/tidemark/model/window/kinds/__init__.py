"""The kinds of windows: how instants of one key fall into windows. Each is declared in a file of its own here.

kind        windows of a row at t                                      bounds
tumbling    the one of `size` that holds t                             [start, end)
hopping     those of `size`, one every `advance`, that hold t          [start, end)
cumulate    of the row's `size` those from its start that end after t  [start, end), an end every `step`
calendar    the day, week, month, quarter or year of `zone`            [start, end)
sliding     one for each set of rows that fits in `size` (KIP-450)     [start, start + size], both ends belong to it
session     rows of which each follows another within `gap`            [first, last + gap), at most max_length

The first four are aligned: their windows are the same whatever rows there are. Of the others the rows decide.
"""

from __future__ import annotations

from typing import get_args

from tidemark.model.window.kinds.calendar import Calendar
from tidemark.model.window.kinds.cumulate import Cumulate
from tidemark.model.window.kinds.hopping import Hopping
from tidemark.model.window.kinds.kind import AlignedKind, Kind, Window
from tidemark.model.window.kinds.session import Session
from tidemark.model.window.kinds.sliding import Sliding
from tidemark.model.window.kinds.tumbling import Tumbling

__all__ = [
    "KINDS",
    "AlignedKind",
    "Calendar",
    "Cumulate",
    "Hopping",
    "Kind",
    "Session",
    "Sliding",
    "Tumbling",
    "Window",
    "WindowKind",
]

WindowKind = Tumbling | Hopping | Cumulate | Calendar | Sliding | Session
"""All kinds, in the order in which people read of them."""
KINDS: tuple[type[Kind], ...] = get_args(WindowKind)
