"""The small protocol every object store meets, and the errors it answers with."""

from __future__ import annotations

import builtins
from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, BinaryIO, Protocol, runtime_checkable

from tidemark.errors import InvalidUsage, Unavailable, Unwritable

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = [
    "AlreadyExists",
    "Conflict",
    "Indeterminate",
    "Missing",
    "ObjectInfo",
    "ObjectStore",
    "Remote",
    "Unavailable",
    "Unsupported",
    "Unwritable",
    "checked_key",
]


class AlreadyExists(Exception):
    """Conditional create found an object at the key. Which one may be asked; it may even be ours (a lost reply)."""


class Missing(Exception):
    """No object at the key."""


class Indeterminate(Exception):
    """The store did not say whether a write took effect (time-out, lost connection, server error)."""


class Conflict(Indeterminate):
    """Another write of the same key was under way: this one had no effect, or the other one has its object there."""


class Unsupported(InvalidUsage):
    """The store does not know a request that Tidemark cannot do without."""

    @property
    def kind(self) -> str:
        return InvalidUsage.__name__


@dataclass(frozen=True)
class ObjectInfo:
    """A listed object: key below the store's root, size in bytes, change token (differs if content may differ).

    `modified` is when it appeared, in seconds since the epoch by the store's own clock: of two objects of one store it
    says which is older, whatever the clocks of the machines that wrote them.
    """

    key: str
    bytes: int
    token: str
    modified: float = 0.0


def checked_key(key: str) -> str:
    """The key (or prefix); InvalidUsage if it would lead out of the store."""
    if key.startswith("/") or ".." in key.split("/"):
        raise InvalidUsage(f"object key {key!r} leaves the store")
    return key


class ObjectStore(Protocol):
    """Immutable objects by key below one root. Keys use `/`; no key is ever overwritten.

    Instances pickle (executors reopen them by `url`). Reads of a missing key raise Missing. Every method may raise
    Unavailable; `create` and the close of `open_output` may raise Indeterminate.
    """

    @property
    def url(self) -> str:
        """Where the store is: `open_store(url)` opens the same one again."""
        ...

    def create(self, key: str, data: bytes) -> None:
        """Create an object if there is none at `key`, durably and atomically; else raise AlreadyExists."""
        ...

    def read(self, key: str) -> bytes:
        """The whole object."""
        ...

    def stat(self, key: str) -> ObjectInfo | None:
        """Size and change token of one object, or None."""
        ...

    def list(self, prefix: str) -> Iterator[ObjectInfo]:
        """All objects whose key starts with `prefix`, ascending by key, at any depth."""
        ...

    def keys(self, prefix: str) -> builtins.list[str]:
        """The keys that `list` would give. A file system need not be asked about each object to name it."""
        ...

    def folders(self, prefix: str) -> builtins.list[str]:
        """The names of the immediate sub-folders of the folder `prefix` (it ends in `/` or is empty), ascending."""
        ...

    def delete(self, key: str) -> None:
        """Delete an object; deleting a missing one is success."""
        ...

    def unfinished(self) -> Iterator[ObjectInfo]:
        """What is being written and is no object yet, or never will be because its writer was killed."""
        ...

    def discard(self, unfinished: ObjectInfo) -> None:
        """Remove something unfinished; one that is gone is success. A writer that still works on it fails."""
        ...

    def open_input(self, key: str) -> pa.NativeFile:
        """Random access to an object, for Parquet readers."""
        ...

    def open_output(self, key: str) -> AbstractContextManager[BinaryIO]:
        """A sequential writer: on clean exit the object appears whole and durable under `key`; on error it does not.

        The key must be fresh (attempt-unique): no check against an existing object is made.
        """
        ...


@runtime_checkable
class Remote(Protocol):
    """What a store across a network can do beside: it has connections, which can be cut."""

    @property
    def address(self) -> str:
        """Where the store is, with the server that answers for it."""
        ...

    def another(self) -> ObjectStore:
        """The same store over connections of its own."""
        ...

    def create_unheard(self, key: str, data: bytes) -> None:
        """Send a create and cut the connection before the answer: it may have had its effect or not."""
        ...
