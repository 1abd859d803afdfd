"""Reading an S3 object at random, every range whole or not at all.

Arrow's own S3 file system trusts an answer about its length: of a body that ends early, and says so, it hands out the
rest from memory never written. Parquet without page checksums cannot detect that.
"""

from __future__ import annotations

from collections.abc import Callable

Fetch = Callable[[int, int], bytes]
"""The bytes from an offset up to another one: all of them, or an error."""


class S3Input:
    """A file of `size` bytes as `pyarrow.PythonFile` wants it; one request to each read."""

    def __init__(self, fetch: Fetch, size: int) -> None:
        self._fetch, self._size, self._at = fetch, size, 0
        self.closed = False

    def read(self, size: int | None = None) -> bytes:
        """The next bytes, up to the end of the object."""
        left = max(0, self._size - self._at)
        wanted = left if size is None or size < 0 else min(size, left)
        data = self._fetch(self._at, self._at + wanted) if wanted else b""
        self._at += len(data)
        return data

    def seek(self, offset: int, whence: int = 0) -> int:
        """Go to an offset from the start (0), from here (1) or from the end (2)."""
        self._at = offset + (0, self._at, self._size)[whence]
        return self._at

    def tell(self) -> int:
        """Where the next read starts."""
        return self._at

    def close(self) -> None:
        """Nothing is kept between reads."""
        self.closed = True
