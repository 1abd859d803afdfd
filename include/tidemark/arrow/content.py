"""The content of one source file while it is ingested: identified once, then read as often as needed."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from tidemark.errors import NotReady
from tidemark.model.ledger import SourceFile
from tidemark.storage.landing import open_source, token_of
from tidemark.storage.store import Unavailable

IN_MEMORY_BYTES = 64 * 2**20
"""Files up to this size are fetched once and kept while they are decoded; larger ones are read again and again."""
_READ_BYTES = 2**20


class BadFile(Exception):
    """A source file that cannot be taken, and why, in one line."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(path, reason)
        self.path, self.reason = path, reason

    def __str__(self) -> str:
        return f"{self.path}: {self.reason}"


@dataclass(frozen=True)
class Content:
    """What a file held when it was identified by `sha256`; `data` is None if it is too large to keep."""

    file: SourceFile
    sha256: str
    bytes: int
    data: pa.Buffer | None

    @property
    def path(self) -> str:
        return self.file.path

    def open(self) -> pa.NativeFile:
        """The content from its start. A failing storage is Unavailable, never taken for a bad file."""
        if self.data is not None:
            return pa.BufferReader(self.data)
        return pa.PythonFile(_Reading(open_source(self.path)), mode="r")

    def check_unchanged(self) -> None:
        """Raise NotReady if the file is no longer what was identified: what was read of it since may be a mixture."""
        if self.data is None and token_of(self.path) != self.file.token:
            raise NotReady(f"{self.path} changed while it was read; run the step again when it is complete")


def fetch(file: SourceFile) -> Content:
    """Identify a file. Raises BadFile if it cannot be read, NotReady if it is gone or not the one that was listed."""
    digest = hashlib.sha256()
    size, kept = 0, None
    try:
        with open_source(file.path) as source:
            if file.bytes <= IN_MEMORY_BYTES:
                kept = source.read_buffer()
                digest.update(kept)
                size = kept.size
            else:
                while block := source.read_buffer(_READ_BYTES):
                    digest.update(block)
                    size += block.size
    except FileNotFoundError:
        raise NotReady(f"{file.path} is gone since it was listed; run the step again") from None
    except OSError as error:
        if file.path.startswith("s3://"):
            raise Unavailable(f"{file.path}: {error}") from error
        raise BadFile(file.path, f"cannot be read: {error.strerror or error}") from None
    if size != file.bytes or (file.sha256 and digest.hexdigest() != file.sha256):
        raise NotReady(
            f"{file.path} changed since it was listed: was {file.bytes} bytes, is {size}; run the step again"
        )
    content = Content(file, digest.hexdigest(), size, kept)
    content.check_unchanged()
    return content


class _Reading:
    """An input as Arrow reads it, whose failures are told apart from a bad file's."""

    def __init__(self, native: pa.NativeFile) -> None:
        self._native = native

    @property
    def closed(self) -> bool:
        return bool(self._native.closed)

    def read(self, size: int | None = None) -> Any:
        return self.read_buffer(size)

    def read_buffer(self, size: int | None = None) -> Any:
        try:
            return self._native.read_buffer(size)
        except OSError as error:
            raise Unavailable(f"reading failed: {error}") from error

    def seek(self, offset: int, whence: int = 0) -> int:
        return int(self._native.seek(offset, whence))

    def tell(self) -> int:
        return int(self._native.tell())

    def size(self) -> int:
        return int(self._native.size())

    def close(self) -> None:
        self._native.close()
