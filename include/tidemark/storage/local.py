"""An object store on a local (or mounted) file system."""

from __future__ import annotations

import builtins
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, cast

from tidemark.errors import InvalidUsage
from tidemark.storage.store import AlreadyExists, Missing, ObjectInfo, Unavailable

if TYPE_CHECKING:
    import pyarrow as pa

TEMPORARY = ".tmp-"
"""Prefix of files being written; never listed as objects."""


class LocalStore:
    """Objects as files below one folder, durable when a write returns: file and folder are fsynced.

    Conditional create hard-links a finished temporary file to its name, which fails if the name is taken.
    """

    def __init__(self, root: str) -> None:
        self.root = Path(os.path.abspath(os.path.expanduser(root)))
        self.url = str(self.root)

    def create(self, key: str, data: bytes) -> None:
        path = self._path(key)
        with _translated(key):
            _make_folders(path.parent)
            temporary = _temporary(path.parent)
            try:
                with os.fdopen(temporary[0], "wb") as file:
                    file.write(data)
                    file.flush()
                    os.fsync(file.fileno())
                try:
                    os.link(temporary[1], path)
                except FileExistsError:
                    raise AlreadyExists(key) from None
                _sync_folder(path.parent)
            finally:
                with suppress(FileNotFoundError):
                    os.unlink(temporary[1])

    def read(self, key: str) -> bytes:
        with _translated(key):
            return self._path(key).read_bytes()

    def stat(self, key: str) -> ObjectInfo | None:
        try:
            with _translated(key):
                status = self._path(key).stat()
        except Missing:
            return None
        return ObjectInfo(key, status.st_size, f"{status.st_mtime_ns}-{status.st_ino}")

    def list(self, prefix: str) -> Iterator[ObjectInfo]:
        folder = self.root / prefix.rpartition("/")[0]
        keys: builtins.list[str] = []
        for parent, _, names in os.walk(folder):
            relative = Path(parent).relative_to(self.root).as_posix()
            lead = "" if relative == "." else relative + "/"
            keys += [lead + name for name in names if not name.startswith(TEMPORARY)]
        for key in sorted(key for key in keys if key.startswith(prefix)):
            if info := self.stat(key):
                yield info

    def folders(self, prefix: str) -> builtins.list[str]:
        try:
            with _translated(prefix), os.scandir(self.root / prefix) as entries:
                return sorted(entry.name for entry in entries if entry.is_dir())
        except Missing:
            return []

    def delete(self, key: str) -> None:
        with suppress(Missing), _translated(key):
            self._path(key).unlink()

    def open_input(self, key: str) -> pa.NativeFile:
        import pyarrow as pa

        with _translated(key):
            return pa.memory_map(str(self._path(key)))

    @contextmanager
    def open_output(self, key: str) -> Iterator[BinaryIO]:
        path = self._path(key)
        with _translated(key):
            _make_folders(path.parent)
            temporary = _temporary(path.parent)
            try:
                with os.fdopen(temporary[0], "wb") as file:
                    yield cast(BinaryIO, file)
                    file.flush()
                    os.fsync(file.fileno())
                os.replace(temporary[1], path)
                _sync_folder(path.parent)
            finally:
                with suppress(FileNotFoundError):
                    os.unlink(temporary[1])

    def _path(self, key: str) -> Path:
        if key.startswith("/") or ".." in key.split("/"):
            raise InvalidUsage(f"object key {key!r} leaves the store")
        return self.root / key


def _temporary(folder: Path) -> tuple[int, str]:
    handle, name = tempfile.mkstemp(prefix=TEMPORARY, dir=folder)
    os.chmod(name, 0o644)
    return handle, name


def _make_folders(folder: Path) -> None:
    """Create missing folders, each made durable in its parent."""
    if folder.is_dir():
        return
    _make_folders(folder.parent)
    with suppress(FileExistsError):
        folder.mkdir()
    _sync_folder(folder.parent)


def _sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@contextmanager
def _translated(key: str) -> Iterator[None]:
    """Errors of the operating system as errors of a store. Nothing local is indeterminate: a failed link is absent."""
    try:
        yield
    except FileNotFoundError:
        raise Missing(key) from None
    except PermissionError as error:
        raise InvalidUsage(f"no permission for {error.filename or key}: check owner and mode of the root") from None
    except NotADirectoryError as error:
        raise InvalidUsage(f"{error.filename or key} is not a folder") from None
    except OSError as error:
        raise Unavailable(f"{key}: {error.strerror or error}") from error
