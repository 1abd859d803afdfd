"""What the rest of Airflow can wait for: an event whenever more of a collection is sealed and readable."""

from __future__ import annotations

from airflow.sdk import Asset

SCHEME = "tidemark://"


def asset_of(collection: str) -> Asset:
    """The asset of a collection, `tidemark://<name>`. Each of its events carries in `extra` what it adds:

    `lower` and `upper` (ISO 8601): changes learned in `[lower, upper)` are final now, and can be read. Events follow
    each other without gap or overlap: an event's lower is its predecessor's upper. `seal` is the collection's seal;
    below `complete_below` no on-time row is missing. An event that leaves that where it was tells of late rows alone,
    and of corrections: `corrected` says of files that were read again and learned there how many (`files`), the rows
    `retracted` and `added`, when these happened first and last (`event_times`, null if none were), and the same in
    words (`changed`). Of a derived collection it says how many runs found that something differed (`runs`), and what
    these retracted and added.
    """
    return Asset(name=collection, uri=f"{SCHEME}{collection}", group="tidemark")
