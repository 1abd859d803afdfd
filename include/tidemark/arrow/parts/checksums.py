"""Checksums of a part's bytes, verified as they are read.

A part's file has, in front of Parquet's footer, the CRC-32 of the file up to each boundary of a column chunk:

    PAR1 │ chunk │ chunk │ … │ page indexes │ checksums │ footer, its length, PAR1
                                            └── tail: its size and CRC-32 are in the part's record

A reader continues the CRC-32 of one boundary over the bytes that it read, and must get that of the next. So one pass
verifies pages with their headers, however many chunks come in one read. Parquet's own checksums are written, too, for
readers of others. They leave the headers of pages out: 9 of 8,104 bits there changed rows, and the pages passed.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from tidemark.arrow.parts.hashing import HashingSink
from tidemark.errors import Corruption
from tidemark.model.batch import Part, Tail

try:  # 50 GB/s, where zlib has 4: a fifth of the CPU of a scan otherwise (benchmarks/verified.py)
    from zlib_ng.zlib_ng import crc32
except ImportError:  # the image of an executor may be of an older release
    from zlib import crc32

BOUNDARY = np.dtype([("offset", "<u8"), ("crc32", "<u4")])
"""An item of the checksums: an offset, and the CRC-32 of the file's bytes below it."""
_LENGTH_AND_MAGIC = 8
"""Bytes behind Parquet's footer: its length, in four of them, and PAR1."""


class PartSink(HashingSink):
    """The sink of a part: adds the checksums of its chunks in front of the footer.

    Parquet writes the footer last, and chunks are known by then only. So the caller announces the end of the rows by
    `begin_tail`; what is written from then on reaches the output in `finish`.
    """

    def __init__(self, inner: BinaryIO) -> None:
        super().__init__(inner)
        self._crc32 = 0
        self._crc32_at = {0: 0}
        self._offset = 0
        self._end: list[bytes] | None = None

    def write(self, data: Any) -> int:
        self._offset += len(data)
        self._crc32 = crc32(data, self._crc32)
        self._crc32_at[self._offset] = self._crc32
        if self._end is None:
            return super().write(data)
        self._end.append(bytes(data))
        return len(data)

    def tell(self) -> int:
        """The offset for Parquet, which counts what waits for `finish`, too."""
        return self._offset

    def begin_tail(self) -> None:
        """Keep what is written from now on until `finish`."""
        self._end = []

    def finish(self, metadata: pq.FileMetaData) -> Tail:
        """Write what waited, with the checksums of the chunks that `metadata` names.

        Returns: What the part's record says of its tail.
        """
        end = b"".join(self._end or ())
        footer = _footer_bytes(end)
        offsets = sorted({offset for span in _chunks(metadata) for offset in span})
        checksums = np.array([(offset, self._crc32_at[offset]) for offset in offsets], BOUNDARY).tobytes()
        tail = checksums + end[-footer:]
        super().write(end[:-footer] + tail)
        self.flush()
        return Tail(len(tail), crc32(tail))


class Checksums:
    """The checksums of a part's chunks, and its footer, from its tail."""

    def __init__(self, part: Part, tail: pa.Buffer) -> None:
        """Decode a tail. Raises Corruption if it is not the one recorded."""
        self._key, recorded = part.file.key, part.tail
        if recorded is None or tail.size != recorded.bytes or crc32(tail) != recorded.crc32:
            raise Corruption(
                f"{self._key} has a footer (its last {tail.size} bytes) with the CRC-32 {crc32(tail):08x}, "
                f"recorded were {recorded}"
            )
        footer = _footer_bytes(tail[-_LENGTH_AND_MAGIC:].to_pybytes())
        self._boundaries = np.frombuffer(tail[: tail.size - footer], BOUNDARY).copy()
        self.metadata: pq.FileMetaData = pq.read_metadata(pa.BufferReader(tail[tail.size - footer :]))

    @property
    def nbytes(self) -> int:
        """Bytes that the checksums take in memory."""
        return int(self._boundaries.nbytes)

    def verify(self, offset: int, data: pa.Buffer) -> None:
        """Check what was read of the file at an offset.

        Raises:
            Corruption: The bytes are not those that were written, or are not whole column chunks.
        """
        first, last = np.searchsorted(self._boundaries["offset"], [offset, offset + data.size])
        if not self._is_boundary(first, offset) or not self._is_boundary(last, offset + data.size):
            raise Corruption(
                f"{self._key} was read from byte {offset} to {offset + data.size}, where no column chunk begins or ends"
            )
        if crc32(data, self._crc32(first)) != self._crc32(last):
            chunk = next(self._damaged(first, last, offset, data))
            raise Corruption(f"{self._key} is damaged in {chunk}: the bytes have another CRC-32 than recorded")

    def _is_boundary(self, at: int, offset: int) -> bool:
        return at < len(self._boundaries) and int(self._boundaries["offset"][at]) == offset

    def _crc32(self, at: int) -> int:
        return int(self._boundaries["crc32"][at])

    def _damaged(self, first: int, last: int, offset: int, data: pa.Buffer) -> Iterator[str]:
        """Which chunks among the bytes differ."""
        names = {start: name for (start, _), name in zip(_chunks(self.metadata), self._names(), strict=True)}
        for at in range(first, last):
            start, end = (int(self._boundaries["offset"][each]) for each in (at, at + 1))
            if crc32(data[start - offset : end - offset], self._crc32(at)) != self._crc32(at + 1):
                yield f"{names.get(start, 'bytes between chunks')} (bytes {start} to {end})"

    def _names(self) -> Iterator[str]:
        for group in range(self.metadata.num_row_groups):
            for at in range(self.metadata.num_columns):
                yield f"row group {group}, column {self.metadata.row_group(group).column(at).path_in_schema}"


def _footer_bytes(end: bytes) -> int:
    """The bytes of Parquet's footer, with its length and magic, by the end of a file."""
    return int.from_bytes(end[-_LENGTH_AND_MAGIC:-4], "little") + _LENGTH_AND_MAGIC


def _chunks(metadata: pq.FileMetaData) -> Iterator[tuple[int, int]]:
    """Where each column chunk begins and ends."""
    for group in range(metadata.num_row_groups):
        row_group = metadata.row_group(group)
        for at in range(metadata.num_columns):
            column = row_group.column(at)
            start = column.dictionary_page_offset if column.has_dictionary_page else column.data_page_offset
            yield start, start + column.total_compressed_size
