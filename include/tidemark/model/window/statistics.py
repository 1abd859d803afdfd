"""What is known of a window besides its row, of what the input has in it: the columns, by name."""

from __future__ import annotations

ROWS, KEYS, NET, BYTES = "_rows", "_distinct_keys", "_net_diff", "_bytes"
MEAN_BYTES = "_mean_bytes"
FIRST, LAST, FIRST_ARRIVAL, LAST_ARRIVAL = "_first_event", "_last_event", "_first_arrival", "_last_arrival"
ROWS_LATE_FOR_ALL, ROWS_LATE_FOR_SOME, UPDATES_LATE = (
    "_rows_late_for_all",
    "_rows_late_for_some",
    "_window_updates_late",
)
"""Of the rows that came too late for a window: those that were late for all their windows; those that another one took;
and all of them, as often as they are there."""
LATE = (ROWS_LATE_FOR_ALL, ROWS_LATE_FOR_SOME, UPDATES_LATE)
STATISTICS = (ROWS, KEYS, NET, BYTES, MEAN_BYTES, FIRST, LAST, FIRST_ARRIVAL, LAST_ARRIVAL, *LATE)
"""The columns of statistics, in their order."""
