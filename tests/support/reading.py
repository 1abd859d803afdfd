"""As-of and changes of a state as tables: the requests that readers make, answered in all columns.

What is `asked` are the arguments of the plan: of `plan_as_of`, or of `plan_changes`.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import pyarrow as pa

from tidemark.arrow.read import answer, as_of_schema, changes_of, changes_schema, rows_as_of
from tidemark.model.arrangement import Arrangement
from tidemark.plan.read import plan_as_of, plan_changes
from tidemark.storage.stores.store import ObjectStore


def as_of(store: ObjectStore, state: Arrangement, **asked: Any) -> pa.Table:
    """The rows as of a time."""
    return pa.Table.from_batches(as_of_batches(store, state, **asked), schema=as_of_schema(state.collection))


def as_of_batches(store: ObjectStore, state: Arrangement, **asked: Any) -> Iterator[pa.RecordBatch]:
    """The same, batch by batch."""
    return answer(store, plan_as_of(state, **asked), rows_as_of)


def changes(store: ObjectStore, state: Arrangement, *, net: bool = False, **asked: Any) -> pa.Table:
    """What was learned."""
    batches = changes_batches(store, state, net=net, **asked)
    return pa.Table.from_batches(batches, schema=changes_schema(state.collection, net=net))


def changes_batches(
    store: ObjectStore, state: Arrangement, *, net: bool = False, **asked: Any
) -> Iterator[pa.RecordBatch]:
    """The same, batch by batch."""
    return answer(store, plan_changes(state, **asked), partial(changes_of, net=net))
