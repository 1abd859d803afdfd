"""A local store whose files only their owner may read: for what shows data to people and may be lost in a power cut."""

from __future__ import annotations

import os
import tempfile
from contextlib import suppress
from pathlib import Path

from tidemark.storage.stores.address import open_store
from tidemark.storage.stores.local import TEMPORARY, LocalStore, translated
from tidemark.storage.stores.store import AlreadyExists, ObjectStore


class PrivateStore(LocalStore):
    """Files of mode 0600 in folders of mode 0700. They appear whole or not at all, and are not fsynced."""

    def create(self, key: str, data: bytes) -> None:
        path = self._path(key)
        with translated(key):
            _make_folders(path.parent)
            handle, name = tempfile.mkstemp(prefix=TEMPORARY, dir=path.parent)  # 0600, whatever the umask
            try:
                with os.fdopen(handle, "wb") as file:
                    file.write(data)
                try:
                    os.link(name, path)
                except FileExistsError:
                    raise AlreadyExists(key) from None
            finally:
                with suppress(OSError):
                    Path(name).unlink()


def open_private(url: str) -> ObjectStore:
    """The store at `url` as tidemark.storage.open_store opens it; a local one as PrivateStore."""
    store = open_store(url)
    return PrivateStore(store.url) if isinstance(store, LocalStore) else store


def _make_folders(folder: Path) -> None:
    if folder.is_dir():
        return
    _make_folders(folder.parent)
    with suppress(FileExistsError):
        folder.mkdir(mode=0o700)
