"""Whether a collection holds what its definition says of some keys: this process recomputes their groups, where the row
groups that hold their rows are small enough to be read here."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from tidemark.arrow.kernels.merge import summed
from tidemark.arrow.rows.columns import integers, replaced
from tidemark.arrow.rows.plain import plain_values
from tidemark.arrow.rows.schema import DIFF, TIME, arrow_type, key_column_of
from tidemark.definition.computation import Differing
from tidemark.model.key import Key
from tidemark.spark.derive.difference import stored
from tidemark.spark.derive.here.diff import own_touched
from tidemark.spark.derive.kinds.groups import groups_of
from tidemark.spark.derive.views import Views


def differing_here(views: Views, keys: Sequence[Key], most: int) -> tuple[Differing, ...] | None:
    """The first `most` rows of some keys of D by which D as of u - 1 differs from its definition over the inputs as
    consumed; None where that is not plain, or not little."""
    computation = views.computation
    rule = None if computation.recipe is None else computation.recipe.by_key
    columns = {column.name: at for at, column in enumerate(computation.collection.key)}
    if rule is None or computation.definition.windows is not None or set(rule.key_columns) != set(columns):
        return None
    types = {column.name: arrow_type(column.type) for column in computation.collection.key}
    asked = [key_column_of([key[columns[name]] for key in keys], types[name]) for name in rule.key_columns]
    few = pa.table(asked, [f"k{at}" for at in range(len(asked))])
    try:
        own = own_touched(views, few, rule.key_columns)
        desired = None if own is None else groups_of(views, rule, few)
    except pa.ArrowException:  # values of another type, which a query converts
        return None
    if own is None or desired is None:
        return None
    own = own.filter(pa.array(integers(own, TIME) < computation.upper))
    names = [column.name for column in stored(computation.collection)]
    return tuple(_differing(names, desired.select([*names, DIFF]), own.select([*names, DIFF]))[:most])


def _differing(names: Sequence[str], desired: pa.Table, own: pa.Table) -> list[Differing]:
    """Rows that are not there as often as they are desired, which is once or not at all."""
    taken_off = replaced(own, DIFF, -integers(own, DIFF))
    batches = [batch for table in (desired, taken_off.cast(desired.schema)) for batch in table.to_batches()]
    left = [row for rows in summed(batches, names, resort=True) for row in _rows(rows, names)] if batches else []
    if not left:
        return []
    wanted = {row for row, _ in _rows(desired, names)}
    return [
        Differing(tuple(zip(names, row, strict=True)), int(row in wanted), int(row in wanted) - more)
        for row, more in left
    ]


def _rows(rows: pa.Table | pa.RecordBatch, names: Sequence[str]) -> list[tuple[tuple[str, ...], int]]:
    """Rows as text, with their multiplicities."""
    cells = [[str(cell) for cell in plain_values(rows.column(name))] for name in names]
    counts: list[int] = np.asarray(rows.column(DIFF)).tolist()
    return list(zip(zip(*cells, strict=True), counts, strict=True))
