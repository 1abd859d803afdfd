"""An output that counts and hashes what is written to it.

Parquet writes a header, a page, a header: some forty pieces for each row group. They go on together.
"""

from __future__ import annotations

import hashlib
from typing import Any, BinaryIO

TOGETHER = 2**18
"""Bytes that are hashed and passed on at once, or more."""


class HashingSink:
    """Passes bytes on to an output, counting and hashing them on the way. The last of them go on by `flush`."""

    closed = False

    def __init__(self, inner: BinaryIO) -> None:
        self._inner = inner
        self.bytes = 0
        self.sha256 = hashlib.sha256()
        self._waiting = bytearray()

    def write(self, data: Any) -> int:
        self._waiting += data
        self.bytes += len(data)
        if len(self._waiting) >= TOGETHER:
            self.flush()
        return len(data)

    def tell(self) -> int:
        return self.bytes

    def flush(self) -> None:
        """Pass on what waits. The output is durable when it is closed."""
        self.sha256.update(self._waiting)
        self._inner.write(self._waiting)
        self._waiting = bytearray()
