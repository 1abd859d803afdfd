"""What the rest of Airflow can wait for: an event whenever more of a collection is sealed and readable."""

from __future__ import annotations

from airflow.sdk import Asset

SCHEME = "tidemark://"


def asset_of(collection: str) -> Asset:
    """The asset of a collection, `tidemark://<name>`. Each of its events carries in `extra` what it adds:

    `lower` and `upper` (ISO 8601): changes learned in `[lower, upper)` are final now, and can be read. Events follow
    each other without gap or overlap: an event's lower is its predecessor's upper. `seal` is the collection's seal;
    below `complete_below` no on-time row is missing. An event that leaves that where it was reports late rows alone,
    and corrections: `corrected` says of files that were read again and learned there how many (`files`), the rows
    `retracted` and `added`, when these happened first and last (`event_times`, null if none were), and the same in
    words (`changed`). Of a derived collection it says how many runs found that something differed (`runs`), and what
    these retracted and added.
    """
    return Asset(name=collection, uri=f"{SCHEME}{collection}", group="tidemark")


def intervals_asset_of(collection: str) -> Asset:
    """The asset of a collection's intervals, `tidemark://<name>/intervals`, where its file says `partitions`.

    For each interval of that schedule that became complete and readable it has an event whose partition is the
    interval's beginning, as Airflow's own timetables write it: `2013-01-02T00:00:00`. So a DAG runs once for each
    interval (`PartitionedAssetTimetable`), or once for some together (`RollupMapper`); `window_of(context,
    schedule="@daily")` is the interval there. Late rows and corrections of an interval that was announced before are no
    event of it: the events of `asset_of` report them.
    """
    return Asset(name=f"{collection}.intervals", uri=f"{SCHEME}{collection}/intervals", group="tidemark")
