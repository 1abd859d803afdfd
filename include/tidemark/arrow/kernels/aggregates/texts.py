"""Texts of ranges of rows, joined."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidemark.arrow.rows.columns import Ints, contiguous, valid, values


@dataclass(frozen=True)
class Texts:
    """A column of texts: all that are not null with commas between them, and where each begins."""

    column: pa.Array

    @cached_property
    def _texts(self) -> pa.Array:
        return self.column.drop_null().cast(pa.large_binary())

    @cached_property
    def _before(self) -> Ints:
        """How many texts there are before each row."""
        known = valid(self.column)
        return np.arange(len(self.column) + 1) if known is None else _running(known)

    @cached_property
    def _begins(self) -> Ints:
        return _running(values(contiguous(pc.binary_length(self._texts))) + 1)

    @cached_property
    def _joined(self) -> memoryview:
        return memoryview(b",".join(self._texts.to_pylist()))

    def bytes_of(self, lo: Ints, hi: Ints) -> Ints:
        """What the texts of ranges take in memory."""
        return self._begins[self._before[hi]] - self._begins[self._before[lo]]

    def of(self, lo: Ints, hi: Ints) -> pa.Array:
        """The texts of ranges; null where there is none."""
        first, last = self._before[lo], self._before[hi]
        begins, ends, has_any = self._begins[first].tolist(), (self._begins[last] - 1).tolist(), (last > first).tolist()
        joined = self._joined
        texts = [bytes(joined[a:b]) if any_ else None for a, b, any_ in zip(begins, ends, has_any, strict=True)]
        return pa.array(texts, pa.binary()).cast(self.column.type)


def _running(lengths: np.typing.NDArray[np.generic]) -> Ints:
    running = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=running[1:])
    return running
