"""An object store on a local (or mounted) file system."""

from __future__ import annotations

import builtins
import errno
import io
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, cast

from tidemark.errors import Corruption, InvalidUsage
from tidemark.storage.stores.store import (
    AlreadyExists,
    Indeterminate,
    Missing,
    ObjectInfo,
    Unavailable,
    Unwritable,
    checked_key,
)

if TYPE_CHECKING:
    import pyarrow as pa

TEMPORARY = ".tmp-"
"""Prefix of files being written; never listed as objects."""
_FRESH = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
_KINDS = {
    stat.S_IFDIR: "a folder",
    stat.S_IFIFO: "a FIFO",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFSOCK: "a socket",
}
_UNWRITABLE = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EROFS})


class LocalStore:
    """Objects as files below one folder, durable when a write returns: file and folder are fsynced.

    Conditional create hard-links a finished temporary file to its name, which fails if the name is taken.
    """

    def __init__(self, root: str) -> None:
        self.root = Path(os.path.abspath(os.path.expanduser(root)))
        self.url = str(self.root)

    def create(self, key: str, data: bytes) -> None:
        path = self._path(key)
        with _temporary(path, key) as (handle, temporary):
            with translated(key):
                with os.fdopen(handle, "wb") as file:
                    file.write(data)
                    file.flush()
                    os.fsync(file.fileno())
                try:
                    os.link(temporary, path)
                except FileExistsError:
                    raise AlreadyExists(key) from None
            _sync_name(path, key)

    def read(self, key: str) -> bytes:
        # A load reads up to sixteen versions: a Path and a buffer for each would cost more than what they say.
        name = f"{self.url}/{checked_key(key)}"
        with translated(key), open(name, "rb", buffering=0, opener=_without_waiting) as file:
            _require_plain(os.fstat(file.fileno()), name)
            return file.read()

    def stat(self, key: str) -> ObjectInfo | None:
        try:
            with translated(key):
                status = self._path(key).stat()
        except Missing:
            return None
        return _info(key, status)

    def list(self, prefix: str) -> Iterator[ObjectInfo]:
        for key in self.keys(prefix):
            # Of many objects: plain calls, which cost a third of a Path and a context each.
            try:
                status = os.stat(f"{self.url}/{key}")
            except FileNotFoundError:
                continue  # deleted since
            except OSError:
                with translated(key):
                    raise
            yield _info(key, status)

    def keys(self, prefix: str) -> builtins.list[str]:
        folder = checked_key(prefix).rpartition("/")[0]
        with translated(prefix):
            return sorted(key for key in self._below(folder) if key.startswith(prefix))

    def _below(self, folder: str) -> Iterator[str]:
        """The keys of a folder; none if it is gone. Links to folders are not followed."""
        lead = f"{folder}/" if folder else ""
        try:
            entries = os.scandir(f"{self.url}/{folder}" if folder else self.url)
        except (FileNotFoundError, NotADirectoryError):
            return
        with entries:
            for entry in entries:
                if entry.is_dir():
                    if not entry.is_symlink():
                        yield from self._below(lead + entry.name)
                elif not entry.name.startswith(TEMPORARY):
                    yield lead + entry.name

    def folders(self, prefix: str) -> builtins.list[str]:
        try:
            with translated(prefix), os.scandir(f"{self.url}/{checked_key(prefix)}") as entries:
                return sorted(entry.name for entry in entries if entry.is_dir())
        except Missing:
            return []

    def delete(self, key: str) -> None:
        path = self._path(key)
        with suppress(Missing), translated(key):
            path.unlink()
        if path.parent != self.root:
            with suppress(OSError):
                path.parent.rmdir()  # a batch's folder, with its last object

    def unfinished(self) -> Iterator[ObjectInfo]:
        for parent, _, names in os.walk(self.root, onerror=_raised):
            for name in names:
                if name.startswith(TEMPORARY) and (info := self.stat(f"{os.path.relpath(parent, self.root)}/{name}")):
                    yield info

    def discard(self, unfinished: ObjectInfo) -> None:
        self.delete(unfinished.key)

    def open_input(self, key: str) -> pa.NativeFile:
        import pyarrow as pa

        path = self._path(key)
        with translated(key):
            _require_plain(os.stat(path), str(path))
            return pa.memory_map(str(path))

    @contextmanager
    def open_output(self, key: str) -> Iterator[BinaryIO]:
        path = self._path(key)
        with _temporary(path, key) as (handle, temporary):
            file = _Output(handle, key)
            try:
                yield cast(BinaryIO, file)
                with translated(key):
                    file.flush()
                    os.fsync(file.fileno())
            finally:
                with suppress(OSError):
                    file.close()
            with translated(key):
                os.replace(temporary, path)
            _sync_name(path, key)

    def _path(self, key: str) -> Path:
        return self.root / checked_key(key)


def _info(key: str, status: os.stat_result) -> ObjectInfo:
    return ObjectInfo(key, status.st_size, f"{status.st_mtime_ns}-{status.st_ino}", status.st_mtime)


def _without_waiting(name: str, flags: int) -> int:
    """Open a file; a FIFO at once, too, which would otherwise wait for somebody who writes."""
    return os.open(name, flags | os.O_NONBLOCK)


def _require_plain(status: os.stat_result, name: str) -> None:
    """Corruption for a FIFO, a device or a socket: a reader would wait for it, or never end."""
    if not stat.S_ISREG(status.st_mode):
        kind = _KINDS.get(stat.S_IFMT(status.st_mode), "something else")
        raise Corruption(f"{name} is {kind}, not a plain file: Tidemark did not write it; move it out of the root")


class _Output(io.BufferedWriter):
    """A file being written, whose own failures are the store's; those of whoever writes to it are not."""

    def __init__(self, handle: int, key: str) -> None:
        super().__init__(io.FileIO(handle, "wb"))
        self._key = key

    def write(self, data: Any, /) -> int:
        with translated(self._key):
            return super().write(data)


@contextmanager
def _temporary(path: Path, key: str) -> Iterator[tuple[int, str]]:
    """An open file beside `path`, which is gone afterwards unless it was renamed."""
    name = f"{path.parent}/{TEMPORARY}{os.urandom(12).hex()}"
    with translated(key):
        handle = _created(name, path.parent)
    try:
        yield handle, name
    finally:
        with suppress(OSError):
            os.unlink(name)


def _created(name: str, folder: Path) -> int:
    """A new file, open, with the mode that the umask allows; in a new folder if there is none, or if it went with its
    last object, in between."""
    for _ in range(2):
        try:
            return os.open(name, _FRESH, 0o666)
        except FileNotFoundError:
            make_folders(folder)
    return os.open(name, _FRESH, 0o666)


def make_folders(folder: Path) -> None:
    """Create missing folders, each made durable in its parent."""
    if folder.is_dir():
        return
    make_folders(folder.parent)
    with suppress(FileExistsError):
        folder.mkdir()
    sync_path(folder.parent)


def sync_path(path: Path) -> None:
    """Make a file or a folder durable: what it holds, and the names in it."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _sync_name(path: Path, key: str) -> None:
    """Make an object's name durable. If that fails it is there, and may not be after a power cut."""
    try:
        sync_path(path.parent)
    except OSError as error:
        raise Indeterminate(f"{key}: {error.strerror or error}") from error


def _raised(error: OSError) -> None:
    """What a listing makes of a folder it cannot read: an error, not an empty folder. One that is gone is empty."""
    if not isinstance(error, FileNotFoundError | NotADirectoryError):
        raise error


@contextmanager
def translated(key: str) -> Iterator[None]:
    """Errors of the operating system as errors of a store."""
    try:
        yield
    except FileNotFoundError:
        raise Missing(key) from None
    except PermissionError as error:
        raise InvalidUsage(f"no permission for {error.filename or key}: check owner and mode of the root") from None
    except NotADirectoryError as error:
        raise InvalidUsage(f"{error.filename or key} is not a folder") from None
    except OSError as error:
        failure = Unwritable if error.errno in _UNWRITABLE else Unavailable
        raise failure(f"{key}: {error.strerror or error}") from error
