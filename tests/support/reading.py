"""As-of and changes of a state as tables: the requests that readers make, answered in all columns."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import pyarrow as pa

from tidemark.arrow.read import answer, as_of_schema, changes_schema, held_by, told_of
from tidemark.model.arrangement import Arrangement
from tidemark.plan.read import plan_as_of, plan_changes
from tidemark.plan.tasks import ALL_KEYS, KeyRange
from tidemark.storage.stores.store import ObjectStore


def as_of(
    store: ObjectStore,
    state: Arrangement,
    *,
    time: int | None = None,
    event_time: int | None = None,
    keys: KeyRange = ALL_KEYS,
) -> pa.Table:
    """What was held as known at `time` (None: the newest), as of `event_time` (None: all that happened)."""
    batches = as_of_batches(store, state, time=time, event_time=event_time, keys=keys)
    return pa.Table.from_batches(batches, schema=as_of_schema(state.collection))


def as_of_batches(
    store: ObjectStore,
    state: Arrangement,
    *,
    time: int | None = None,
    event_time: int | None = None,
    keys: KeyRange = ALL_KEYS,
) -> Iterator[pa.RecordBatch]:
    """The same, batch by batch."""
    return answer(store, plan_as_of(state, time, event_time, keys), held_by)


def changes(
    store: ObjectStore,
    state: Arrangement,
    *,
    after: int,
    upto: int | None = None,
    net: bool = False,
    keys: KeyRange = ALL_KEYS,
) -> pa.Table:
    """What was learned with `after < time <= upto` (None: the newest)."""
    batches = changes_batches(store, state, after=after, upto=upto, net=net, keys=keys)
    return pa.Table.from_batches(batches, schema=changes_schema(state.collection, net=net))


def changes_batches(
    store: ObjectStore,
    state: Arrangement,
    *,
    after: int,
    upto: int | None = None,
    net: bool = False,
    keys: KeyRange = ALL_KEYS,
) -> Iterator[pa.RecordBatch]:
    """The same, batch by batch."""
    return answer(store, plan_changes(state, after, upto, keys), partial(told_of, net=net))
