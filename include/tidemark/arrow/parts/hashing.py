"""An output that counts and hashes what is written to it."""

from __future__ import annotations

import hashlib
from typing import Any, BinaryIO


class HashingSink:
    """Passes bytes on to an output, counting and hashing them on the way."""

    closed = False

    def __init__(self, inner: BinaryIO) -> None:
        self._inner = inner
        self.bytes = 0
        self.sha256 = hashlib.sha256()

    def write(self, data: Any) -> int:
        self.sha256.update(data)
        self.bytes += len(data)
        self._inner.write(data)
        return len(data)

    def tell(self) -> int:
        return self.bytes

    def flush(self) -> None:
        """Nothing: the output is durable when it is closed."""
