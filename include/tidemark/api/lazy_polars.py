"""A dataset as a lazy frame of polars, in which polars itself filters."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import polars
import pyarrow as pa
from polars.io.plugins import register_io_source

from tidemark.arrow.runs import Keep

if TYPE_CHECKING:
    import pyarrow.compute as pc


Pruned = Callable[[list[str], "pc.Expression | None", Keep], Iterator[pa.RecordBatch]]
"""At least the rows that fit a filter, in some columns, as `CollectionDataset.pruned` reads them."""


def lazy_frame(schema: pa.Schema, pruned: Pruned) -> polars.LazyFrame:
    """Return the rows of a dataset as a lazy frame, which reads only the columns and chunks that it needs.

    `polars.scan_pyarrow_dataset` lets Arrow filter: there no comparison with NaN is true, and a null is in no list. In
    polars NaN is the greatest number, and a null is neither in a list nor outside of it. So here what polars would hand
    to Arrow only says which chunks are not needed, and polars filters what is read.
    """

    def frames(
        columns: list[str] | None, predicate: polars.Expr | None, most: int | None, _: int | None
    ) -> Iterator[polars.DataFrame]:
        selected = schema.names if columns is None else columns
        looked_at = [] if predicate is None else predicate.meta.root_names()
        names = list(dict.fromkeys([*selected, *looked_at])) or schema.names[:1]

        def fitting(rows: pa.RecordBatch) -> pa.Table:
            frame = polars.DataFrame(rows)
            return (frame if predicate is None else frame.filter(predicate)).to_arrow()

        for batch in pruned(names, _as_arrow(schema, predicate), fitting):
            frame = polars.DataFrame(batch).head(batch.num_rows if most is None else most)
            most = most if most is None else most - frame.height
            yield (frame if predicate is None else frame.filter(predicate)).select(selected or names)
            if most == 0:
                return

    return register_io_source(frames, schema=polars.DataFrame(schema.empty_table()).schema)


@dataclass
class _Heard:
    """Looks to polars like a dataset: it has no rows, and remembers the filter of its scan."""

    schema: pa.Schema
    filters: list[pc.Expression] = field(default_factory=list)

    def to_batches(self, filter: pc.Expression | None = None, **_: Any) -> Iterator[pa.RecordBatch]:
        self.filters += [] if filter is None else [filter]
        return iter(())


def _as_arrow(schema: pa.Schema, predicate: polars.Expr | None) -> pc.Expression | None:
    """What polars would hand to Arrow for a predicate; None: nothing."""
    if predicate is None:
        return None
    heard = _Heard(schema)
    polars.scan_pyarrow_dataset(heard).filter(predicate).collect()
    return heard.filters[0] if heard.filters else None
