"""Which reads were asked, as small objects beside the state: what `adaptive` retention goes by.

reads/<wall-clock µs, 20 digits>-<unique>.json      {"format": 4, "upto": …, "after": … or null, "newest": …}
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from uuid import uuid4

from tidemark.errors import UpgradeRequired
from tidemark.plan.read import ReadRequest
from tidemark.plan.retain import ReadAsked
from tidemark.storage.documents import document
from tidemark.storage.documents.upgrade import Kind
from tidemark.storage.stores.store import AlreadyExists, Indeterminate, Missing, ObjectStore, Unavailable

PREFIX = "reads/"
REMEMBERED = 30 * 86_400 * 1_000_000
"""Microseconds for which a read counts: what was asked in the last thirty days is likely to be asked again."""

COUNTED = 1000
"""Reads that are looked at: they are enough, and a compaction does not wait for more."""


def note(store: ObjectStore, request: ReadRequest) -> None:
    """Remember that a read was asked, if the collection's retention goes by that. A reader that may not write, or a
    store that is away, does not stop the read."""
    if request.collection.retention.policy != "adaptive":
        return
    read = ReadAsked(
        min(request.upto, request.event_upto), request.after if request.after >= 0 else None, request.newest
    )
    key = f"{PREFIX}{time.time_ns() // 1000:020d}-{uuid4().hex}.json"
    with suppress(AlreadyExists, Indeterminate, Unavailable, OSError, ValueError):
        store.create(key, document.write(read))


def asked(store: ObjectStore, now: int) -> Iterator[ReadAsked]:
    """The newest COUNTED reads asked in the last REMEMBERED before wall-clock `now`, but for those that a newer
    Tidemark noted: what it reads is no reason to stop, as nothing that is stored depends on them."""
    recent = deque((key for key in store.keys(PREFIX) if asked_at(key) >= now - REMEMBERED), COUNTED)
    for key in recent:
        with suppress(Missing, UpgradeRequired):
            read: ReadAsked = document.read(store.read(key), Kind.READ, ReadAsked, name=key)
            yield read


def asked_at(key: str) -> int:
    """When the read that an object records was asked, wall-clock microseconds; 0 for a name that is none of ours."""
    stamp = key.removeprefix(PREFIX).partition("-")[0]
    return int(stamp) if stamp.isdigit() else 0
