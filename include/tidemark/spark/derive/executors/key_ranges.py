"""Computing by ranges of an input's key: where what belongs together leads that key, executors read rows by it, and so
need no shuffle, nor a JVM that hands rows on.

All of an input, for a collection that holds nothing; else what rows become is compared with the stored rows, task by
task, as the collection's key begins as the input's does: all of it, or where changes are to be learned those of the
leading columns' values that these touch."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import takewhile

import pyarrow as pa

from tidemark.arrow.kernels.projected import projected
from tidemark.arrow.read import MULTIPLICITY, rows_as_of
from tidemark.arrow.rows.cuts import wholes
from tidemark.arrow.rows.schema import key_at_rest
from tidemark.definition.computation import Computation, Written
from tidemark.errors import InvalidUsage
from tidemark.model.derived import Mode
from tidemark.plan.tasks import KeyRange, ReadTask
from tidemark.spark.derive.executors.own_ranges import OwnRanges
from tidemark.spark.derive.footers import holds_nothing
from tidemark.spark.derive.here.rows import placed_rows, repeated
from tidemark.spark.derive.kind import Ranged
from tidemark.spark.derive.parts import Batches, written_in_order
from tidemark.spark.derive.touched import MOST_BYTES, NOTHING, different, named, ranges_holding
from tidemark.spark.derive.views import Views
from tidemark.storage import open_store
from tidemark.storage.documents.codec import decode, encode

AT_ONCE = 2**17
"""Rows that windows are made of at once, or as many as belong together."""


def leading(computation: Computation, name: str, input_names: Mapping[str, str]) -> list[str]:
    """The columns that lead the key of an input and, as `input_names` says of the collection's columns, its own key in
    the same order: so rows that are read by them come in the order of what is made of them. None where either is laid
    out by time."""
    ours = [input_names.get(name) for name in key_at_rest(computation.collection)]
    theirs = key_at_rest(computation.input(name).state.collection)
    return [name for name, _ in takewhile(lambda pair: pair[0] == pair[1], zip(theirs, ours, strict=False))]


def written_by_ranges(views: Views, ranged: Ranged) -> list[Written] | None:
    """What executors wrote of the updates that are made of an input's rows, each as often as it is there: of AT_ONCE
    rows at a time, or fewer wide ones, and of all that are together. None where the key of the input does not say what
    is together, or rows are not worth a task. Raises InvalidUsage where something does not fit."""
    name, together, on = ranged.input, ranged.together, ranged.on
    if not together:
        key = ", ".join(key_at_rest(views.computation.input(name).state.collection))
        views.declines(f"{name} is in order of {key}, and rows of a window are in many ranges of that")
        return None
    there = views.range_reads(name, len(together), _touched(views, name, together))
    if there is None:
        return None
    url, columns, rule, encoded = there.url, there.columns, there.projection, [encode(task) for task in there.tasks]
    stored = None
    if not holds_nothing(views.computation):
        stored = OwnRanges.of(views, [task.ranges or (task.keys,) for task in there.tasks])
    names, make = [*dict.fromkeys([*together, *([on] if on else []), *ranged.used]), MULTIPLICITY], ranged.made
    at_once, room = max(1, AT_ONCE // ranged.windows), MOST_BYTES // ranged.windows

    def made(rows: Iterable[pa.RecordBatch]) -> Batches:
        counting = (projected(one, rule).select(names) for one in rows)
        for some in wholes(counting, together, rows=at_once, room=room):
            there = _there(some, on)
            if there.num_rows:
                yield from make(there)

    def kernel(batches: Batches) -> Batches:
        store = open_store(url)
        for batch in batches:
            for at in batch.column(0).to_pylist():
                found = made(rows_as_of(store, decode(encoded[at], ReadTask, name="read task"), columns))
                yield from found if stored is None else stored.diff(at, found)

    numbers = views.spark.range(0, len(encoded), 1, len(encoded))
    return written_in_order(numbers.toDF("task"), views.computation, kernel)


def _touched(views: Views, name: str, together: Sequence[str]) -> Sequence[KeyRange]:
    """The ranges of keys of an input that begin with what changed in the columns `together`, where changes are to be
    learned and these are little, and no other input has any; none: all keys."""
    others = (one.name for one in views.computation.inputs if one.name != name)
    if views.computation.mode is not Mode.BY_KEY or any(map(views.rows_changed, others)):
        return ()
    changed = views.rows_changed_here(name)
    if changed is None:
        return ()
    few: pa.Table | None = None
    for rows in changed:
        some = pa.Table.from_batches([rows.select(list(together))]).rename_columns(list(named(together).values()))
        few = different(few, some)
    if few is None:
        return (NOTHING,)
    return ranges_holding(few, views, name, views.computation.input(name).state.collection, named(together))


def _there(rows: pa.RecordBatch, on: str | None) -> pa.Table:
    """InvalidUsage where rows amount to more than MOST_BYTES, or one has a negative multiplicity."""
    found = repeated(rows.filter(pa.array(placed_rows(rows, on))), most_bytes=MOST_BYTES)
    if found is None:
        raise InvalidUsage("rows are too many, or one is there fewer times than none")
    return pa.Table.from_batches([found])
