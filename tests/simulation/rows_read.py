"""What a collection holds, read row by row."""

from __future__ import annotations

from collections import Counter
from typing import Any

from tests.support.reading import as_of
from tidemark.arrow.read import changes_of, changes_schema
from tidemark.errors import InvalidUsage
from tidemark.model.arrangement import Arrangement
from tidemark.model.derived import Definition
from tidemark.plan.read import ReadRequest, plan_updates, read_tasks
from tidemark.storage.sidecars import parts_table
from tidemark.storage.stores.store import ObjectStore

Row = dict[str, Any]
Update = tuple[tuple[Any, ...], int, int]


def read_updates(store: ObjectStore, request: ReadRequest) -> Counter[Update]:
    """The updates of a request, by row and times."""
    found: Counter[Update] = Counter()
    names = [column.name for column in request.collection.columns]
    for task in read_tasks(*parts_table.opened_read(store, request)):
        for rows in changes_of(store, task, net=False):
            assert rows.schema.names == changes_schema(request.collection, net=False).names
            for row in rows.to_pylist():
                value = tuple(row[name] for name in names)
                found[value, row["_commit_version"], row["_event_time"]] += row["diff"]
    return found


def happened_rows(store: ObjectStore, state: Arrangement, time: int) -> list[Row]:
    """What SQL sees where it knows when rows happened: each row as often as it is there at its `event_time`."""
    names = [column.name for column in state.collection.columns]
    found: Counter[tuple[Any, ...]] = Counter()
    for (row, _, event_time), diff in read_updates(store, plan_updates(state, time)).items():
        found[(*row, event_time)] += diff
    if negative := [row for row, many in found.items() if many < 0]:
        raise InvalidUsage(f"collection {state.collection.name} holds {negative[0]} fewer times than never")
    there = sorted((row for row, many in found.items() for _ in range(many)), key=repr)
    return [dict(zip((*names, "event_time"), row, strict=True)) for row in there]


def rows_seen(definition: Definition, store: ObjectStore, state: Arrangement, time: int) -> list[Row]:
    """What a definition sees of an input."""
    named = "event_time" in {column.name for column in state.collection.columns}
    on_event_time = definition.windows is not None and definition.windows.on == "event_time" and not named
    return (happened_rows if on_event_time else current_rows)(store, state, time)


def current_rows(store: ObjectStore, state: Arrangement, time: int) -> list[Row]:
    """What SQL sees: each row as often as it is there."""
    rows = as_of(store, state, time=time).to_pylist()
    if negative := [row for row in rows if row["_multiplicity"] < 0]:
        raise InvalidUsage(f"collection {state.collection.name} holds {negative[0]} fewer times than never")
    return [
        {name: cell for name, cell in row.items() if name != "_multiplicity"}
        for row in rows
        for _ in range(row["_multiplicity"])
    ]
