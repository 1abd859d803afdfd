"""Reading a whole Parquet file, not less of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa
import pyarrow.parquet as pq


def whole(file: pq.ParquetFile, rows_at_once: int, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
    """All rows of a file, batch by batch.

    A flipped bit in a page's header can make the reader end early and say nothing: ArrowInvalid at the end unless there
    were as many rows as the footer says.
    """
    count = 0
    wanted = None if columns is None else list(columns)
    for batch in file.iter_batches(rows_at_once, columns=wanted, use_threads=False):
        count += batch.num_rows
        yield batch
    if count != file.metadata.num_rows:
        raise pa.ArrowInvalid(f"{count} rows where its footer says {file.metadata.num_rows}")
