"""The one way to open a store: by its address."""

from __future__ import annotations

from tidemark.errors import InvalidUsage
from tidemark.storage.stores.store import ObjectStore


def open_store(url: str) -> ObjectStore:
    """Open the store at `url`: a local path, `s3://bucket/prefix` or, for tests, `memory://name`.

    S3 takes its credentials and endpoint from the usual AWS environment (AWS_ENDPOINT_URL, AWS_ACCESS_KEY_ID, …).
    Raises InvalidUsage for an address of another kind. Nothing is created or contacted yet.
    """
    scheme, separator, _ = url.partition("://")
    if not separator or scheme == "file":
        from tidemark.storage.stores.local import LocalStore

        return LocalStore(url.removeprefix("file://"))
    if scheme == "s3":
        from tidemark.storage.stores.s3 import S3Store

        return S3Store(url)
    if scheme == "memory":
        from tidemark.storage.stores.memory import MemoryStore

        return MemoryStore.named(url)
    raise InvalidUsage(f"cannot open {url!r}: write a local path or s3://bucket/prefix")
