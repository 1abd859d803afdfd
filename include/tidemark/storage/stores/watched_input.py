"""An input as Arrow reads it, whose failures are distinguished from what Arrow makes of the bytes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa


class WatchedInput:
    """An open input as `pyarrow.PythonFile` wants it. A read that fails raises what `failure` makes of its OSError: in
    Arrow's hands it would look like damage. `seen` gets how many bytes each read gave."""

    def __init__(
        self,
        native: pa.NativeFile,
        failure: Callable[[OSError], Exception],
        seen: Callable[[int, pa.Buffer], None] = lambda _offset, _data: None,
    ) -> None:
        self._native, self._failure, self._seen = native, failure, seen

    @property
    def closed(self) -> bool:
        """Whether the input is closed."""
        return bool(self._native.closed)

    def read(self, size: int | None = None) -> Any:
        """The next bytes, all if `size` is None."""
        return self.read_buffer(size)

    def read_buffer(self, size: int | None = None) -> Any:
        """The next bytes as Arrow has them, without a copy."""
        try:
            offset = self.tell()
            data = self._native.read_buffer(size)
        except OSError as error:
            raise self._failure(error) from error
        self._seen(offset, data)
        return data

    def seek(self, offset: int, whence: int = 0) -> int:
        """Go to an offset from the start (0), from here (1) or from the end (2)."""
        return int(self._native.seek(offset, whence))

    def tell(self) -> int:
        """Where the next read starts."""
        return int(self._native.tell())

    def size(self) -> int:
        """The bytes of the whole input."""
        return int(self._native.size())

    def close(self) -> None:
        """Close the input."""
        self._native.close()
