"""Answers as rows of plain values, exactly: what JSON, CSV and tables for people are made of."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import pyarrow as pa

from tidemark.arrow.rows.plain import Plain, plain_rows


@dataclass
class Rows:
    """The rows of an answer as plain values, at most `limit` (0: all), as the answer comes. Once iterated to the end,
    `count` says how many there are in all."""

    batches: Iterable[pa.RecordBatch]
    limit: int = 0
    count: int = 0

    def __iter__(self) -> Iterator[Plain]:
        for batch in self.batches:
            wanted = max(0, self.limit - self.count) if self.limit else batch.num_rows
            self.count += batch.num_rows
            yield from plain_rows(batch.slice(0, wanted))
