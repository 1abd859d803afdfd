"""What a collection holds, as a dataset of Arrow: the one object by which DuckDB, polars and Arrow read it.

They give the columns and the filter that they want to `scanner`. So only those columns are read, and only chunks that
can hold a row which fits; the filter itself is applied to the rows by Arrow, always, as DuckDB does not apply it again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, NoReturn

import pyarrow as pa
import pyarrow.dataset as ds
from pyarrow.fs import LocalFileSystem

from tidemark.api.arrow_filters import implied, referenced
from tidemark.api.scan import Columns, Scan
from tidemark.errors import InvalidUsage, listed, plain_line, require
from tidemark.model.condition.tree import Condition
from tidemark.model.nearest import nearest

if TYPE_CHECKING:
    import polars
    import pyarrow.compute as pc

    from tidemark.api.rows import Rows
    from tidemark.arrow.explain import Explanation
    from tidemark.arrow.runs import Keep


NO_FILE = "a dataset of Tidemark is read by its own scanner(), to_table() and to_batches()"

OPTIONS = (
    "batch_size",
    "batch_readahead",
    "fragment_readahead",
    "fragment_scan_options",
    "use_threads",
    "cache_metadata",
    "memory_pool",
)


class CollectionDataset(ds.FileSystemDataset):  # type: ignore[misc]
    """Rows of a collection at one version, for whatever takes a dataset of Arrow.

    Made by `dataset()` of a collection that was opened. Nothing is read before it is scanned; every scan gives the rows
    of the same version, whatever is written meanwhile. Their order is not defined. It may be used by several threads,
    and be pickled: the other side opens the same version.
    """

    def __init__(self, rows: Rows, filter: pc.Expression | None = None) -> None:
        # Behind each dataset is one of C++, which knows nothing of ours. Whoever reaches for that one (a union of
        # datasets does) gets an error: its file is not there, and the file's name says what to do.
        fragment = ds.ParquetFileFormat().make_fragment(NO_FILE, LocalFileSystem())
        super().__init__([fragment], rows.schema, fragment.format)
        self.rows, self._filter = rows, filter

    @property
    def schema(self) -> pa.Schema:
        """The columns."""
        return self.rows.schema

    @property
    def collection(self) -> str:
        """The name of the collection."""
        return self.rows.pinned.name

    @property
    def version(self) -> int:
        """The version of the collection that is read."""
        return self.rows.pinned.version

    def scanner(self, columns: Columns = None, filter: pc.Expression | None = None, **options: Any) -> Scan:
        """A scan of some columns (None: all), or of expressions by their names, of the rows that fit `filter`. Options
        of Arrow's own datasets say how files are read, and change nothing here."""
        if unknown := [name for name in options if name not in OPTIONS]:
            raise InvalidUsage(f"scanner has no option {unknown[0]!r}; it takes columns, filter and {listed(OPTIONS)}")
        filter = _both(self._filter, filter)
        read, condition = self._asked(columns, filter)
        keep = None if filter is None else partial(_fitting, filter=filter)
        return Scan(partial(self.rows.in_columns, keep=keep), read, condition, columns, filter)

    def pruned(self, columns: list[str], filter: pc.Expression | None, keep: Keep) -> Iterator[pa.RecordBatch]:
        """Read at least the rows that fit `filter`, for a caller that filters again (Tidemark's own).

        A row of negative multiplicity is refused if `keep` leaves it.
        """
        read, condition = self._asked(columns, _both(self._filter, filter))
        own = self._filter

        def both(rows: pa.RecordBatch) -> pa.Table:
            return keep(rows if own is None else _fitting(rows, own))

        return Scan(partial(self.rows.in_columns, keep=both), read, condition, columns, own).to_batches()

    def to_polars(self) -> polars.LazyFrame:
        """Return the rows as a lazy frame of polars, which reads only the columns and chunks that it needs.

        Its filters leave the rows that they leave of a data frame. Those of `polars.scan_pyarrow_dataset` do not: they
        drop NaN. Raises MissingExtra without polars.
        """
        require("polars")
        from tidemark.api.lazy_polars import lazy_frame

        return lazy_frame(self.schema, self.pruned)

    def _asked(self, columns: Columns, filter: pc.Expression | None) -> tuple[pa.Schema, Condition]:
        """What is read for a scan: which columns, and of rows that fit which condition."""
        needed = self._needed(columns, filter)
        pruned_by = {name: self.schema.field(name).type for name in self.rows.pruned_by}
        names = [name for name in self.schema.names if needed is None or name in needed] or self.schema.names[:1]
        return pa.schema([self.schema.field(name) for name in names]), implied(filter, pruned_by)

    def to_table(self, **asked: Any) -> pa.Table:
        """All rows of a scan; the arguments are those of `scanner`."""
        return self.scanner(**asked).to_table()

    def to_batches(self, **asked: Any) -> Iterator[pa.RecordBatch]:
        """The rows of a scan, batch by batch; the arguments are those of `scanner`."""
        return self.scanner(**asked).to_batches()

    def head(self, num_rows: int, **asked: Any) -> pa.Table:
        """Some rows of a scan; no more is read than they need."""
        return self.scanner(**asked).head(num_rows)

    def take(self, indices: pa.Array | Sequence[int], **asked: Any) -> pa.Table:
        """The rows at some places of a scan, whose order is not defined."""
        return self.scanner(**asked).take(indices)

    def count_rows(self, filter: pc.Expression | None = None, **asked: Any) -> int:
        """How many rows a scan has."""
        return self.scanner(columns=[], filter=filter, **asked).count_rows()

    def _needed(self, columns: Columns, filter: pc.Expression | None) -> set[str] | None:
        """The columns that are read; None: all. DuckDB leaves those out of `columns` that only the filter looks at."""
        if columns is None:
            return None
        expressions = [*columns.values()] if isinstance(columns, Mapping) else []
        looked_at = [referenced(one) for one in (filter, *expressions)]
        if any(names is None for names in looked_at):
            return None
        named = [] if isinstance(columns, Mapping) else columns
        if unknown := [name for name in named if name not in self.schema.names]:
            raise InvalidUsage(f"there is no column {unknown[0]!r}{nearest(str(unknown[0]), self.schema.names)}")
        return set(named).union(*(names for names in looked_at if names is not None))

    def filter(self, expression: pc.Expression) -> CollectionDataset:
        """The same rows as far as they fit `expression`, too."""
        return CollectionDataset(self.rows, _both(self._filter, expression))

    def __reduce__(self) -> tuple[Any, ...]:
        return CollectionDataset, (self.rows, self._filter)

    def __repr__(self) -> str:
        return f"<tidemark dataset {self.rows.words}; version {self.version}; columns {', '.join(self.schema.names)}>"

    def _only_of_files(self, *_: Any, **__: Any) -> NoReturn:
        raise InvalidUsage("a dataset of Tidemark has no fragments of its own; scan it, or take to_table() first")

    get_fragments = replace_schema = join = join_asof = sort_by = _get_fragments = _only_of_files

    @property
    def partition_expression(self) -> pc.Expression:
        """Nothing is known of all rows."""
        return ds.scalar(True)


class ExplainedDataset(CollectionDataset):
    """The same without rows: each scan adds what it would open to `found`."""

    def __init__(self, rows: Rows, found: list[Explanation]) -> None:
        super().__init__(rows)
        self._found = found

    def scanner(self, columns: Columns = None, filter: pc.Expression | None = None, **options: Any) -> Scan:
        """A scan of no rows."""
        read, condition = self._asked(columns, filter)
        explanation = self.rows.explain(read.names, condition)
        where = "" if filter is None else f"; where {plain_line(str(filter), 300)}"
        self._found.append(replace(explanation, question=f"{explanation.question}{where}"))
        return Scan(lambda _, __: iter(()), read, condition, columns, filter)


def _fitting(rows: pa.RecordBatch, filter: pc.Expression) -> pa.Table:
    return pa.Table.from_batches([rows]).filter(filter)


def _both(one: pc.Expression | None, other: pc.Expression | None) -> pc.Expression | None:
    if one is None or other is None:
        return other if one is None else one
    return one & other
