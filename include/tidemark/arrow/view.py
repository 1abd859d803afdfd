"""Answers in some columns only, and of some rows only.

An answer in some columns is a multiset as any other: rows that are equal in what is left of them are one, with their
multiplicities added up. `rows_as_of` and `changes_of` answer so, and read only these columns. A condition may look at
columns that are not shown: then the answer is made in the columns of both, filtered, and what was looked at only is
left out, equal rows added up once more.

An example: `(1, a, x)`, `(1, a, y)`, `(2, b, x)` in the columns k and v, where w is not z, are `(1, a)` twice and
`(2, b)` once.

What it costs: rows come in order of key and value, so while the first key column is shown, equal rows are near each
other and memory is bounded as in any read. Without it all distinct rows of the answer are kept until the end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import takewhile

import pyarrow as pa

from tidemark.arrow.kernels.merge import BUFFERED_ROWS, Run, summed
from tidemark.arrow.read import (
    MULTIPLICITY,
    as_of_schema,
    changes_of,
    changes_schema,
    ordered_by,
    rounds_by,
    rows_as_of,
)
from tidemark.arrow.repeated import repeated
from tidemark.arrow.rows.schema import DIFF
from tidemark.model.collection import Collection
from tidemark.plan.tasks import ReadTask
from tidemark.storage.stores.store import ObjectStore

Keep = Callable[[pa.RecordBatch], pa.RecordBatch]
"""The rows of a batch that fit."""


@dataclass(frozen=True)
class View:
    """The columns `shown` of the collection, and the rows that `keep` leaves (None: all) once it has looked at the
    columns `looked_at`."""

    shown: tuple[str, ...]
    looked_at: tuple[str, ...] = ()
    keep: Keep | None = None

    def read(self, collection: Collection) -> list[str]:
        """The columns in which the answer is made before it is filtered, in the order they are declared in."""
        return [column.name for column in collection.columns if column.name in (*self.shown, *self.looked_at)]


def rows_in(store: ObjectStore, task: ReadTask, view: View) -> Iterator[pa.RecordBatch]:
    """What the keys of a task hold, in the columns of `as_of` as the view has them."""
    schema = as_of_schema(task.collection, view.shown)
    return _seen(rows_as_of(store, task, view.read(task.collection)), task.collection, view, schema, MULTIPLICITY)


def each_row_in(store: ObjectStore, task: ReadTask, view: View) -> Iterator[pa.RecordBatch]:
    """Read the rows of a task as the view has them, each as often as its multiplicity says.

    Raises InvalidUsage for a whole row of negative multiplicity that fits, whichever columns are shown.
    """
    columns = view.read(task.collection) if task.collection.kind.one_value else None
    rows = rows_as_of(store, task, columns)
    fitting = map(view.keep, rows) if view.keep else rows
    return (whole.select(view.shown) for whole in repeated(fitting, task.collection.unshown))


def changes_in(store: ObjectStore, task: ReadTask, view: View, *, net: bool) -> Iterator[pa.RecordBatch]:
    """What was learned of the keys of a task, in the columns of `changes` as the view has them."""
    schema = changes_schema(task.collection, net=net, columns=view.shown)
    changes = changes_of(store, task, net=net, columns=view.read(task.collection))
    return _seen(changes, task.collection, view, schema, "diff")


def _seen(
    answer: Iterable[pa.RecordBatch], collection: Collection, view: View, schema: pa.Schema, count: str
) -> Iterator[pa.RecordBatch]:
    """The rows that fit, in the columns of `schema`; `count` is the one that says how many of each there are."""
    fitting = (view.keep(rows) for rows in answer) if view.keep else answer
    shown: Iterator[pa.RecordBatch] = (rows.select(schema.names) for rows in fitting if rows.num_rows)
    if not set(view.looked_at) <= set(view.shown):
        shown = _added_up(shown, schema.names, _in_order(collection, view), count)
    for rows in shown:
        if rows.num_rows:
            yield pa.RecordBatch.from_arrays(rows.columns, schema=schema)


def _in_order(collection: Collection, view: View) -> list[str]:
    """The columns shown by which the answer is in order, before it is filtered and after."""
    pairs = zip(ordered_by(collection, view.shown), view.read(collection), strict=False)
    return [at_rest for at_rest, _ in takewhile(lambda pair: pair[0] == pair[1], pairs)]


def _added_up(
    batches: Iterable[pa.RecordBatch], names: Sequence[str], together: Sequence[str], count: str
) -> Iterator[pa.RecordBatch]:
    """Equal rows as one."""
    counted = [DIFF if name == count else name for name in names]
    columns = [name for name in names if name != count]
    run = Run(((rows.rename_columns(counted), True) for rows in batches), together, BUFFERED_ROWS)
    for round_ in rounds_by(together, [run], lambda waiting: list(summed(waiting, columns, resort=True))):
        yield from summed(round_, columns, resort=True)
