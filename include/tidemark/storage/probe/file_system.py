"""What a local store needs of its file system: hard links, and fsync of folders."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tidemark.errors import InvalidUsage
from tidemark.model.guarantee import Linked, Synced
from tidemark.storage.stores.local import make_folders, sync_path, translated
from tidemark.storage.stores.store import Missing

NAMES = ("link-first", "link-second", "link")
_CANNOT_SYNC = frozenset({errno.EINVAL, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EBADF, errno.EISDIR})
_CANNOT_LINK = frozenset(
    {errno.EPERM, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EMLINK, errno.EXDEV, errno.EINVAL}
)
"""What a file system says that cannot. Other failures (no space, no permission, a bad disk) are no verdict."""


def synced(folder: Path, key: str) -> Synced:
    """Make a new folder, whose key in the store is `key`, durable."""
    with _translated(folder, key):
        made = _refused(lambda: make_folders(folder), _CANNOT_SYNC)
        return Synced(made or _refused(lambda: sync_path(folder), _CANNOT_SYNC))


def linked(folder: Path, key: str) -> Linked:
    """Link files in a new folder; those of NAMES are left in it."""
    with _translated(folder, key):
        return _linked(folder)


@contextmanager
def _translated(folder: Path, key: str) -> Iterator[None]:
    try:
        with translated(key):
            yield
    except Missing:
        raise InvalidUsage(f"{folder} cannot be created, or went at once; pass another root") from None


def _linked(folder: Path) -> Linked:
    first, second, name = (folder / each for each in NAMES)
    first.write_bytes(b"first")
    second.write_bytes(b"second")
    if refused := _refused(lambda: os.link(first, name), _CANNOT_LINK):
        return Linked(refused)
    try:
        os.link(second, name)
    except FileExistsError:
        return Linked(wrote=b"first", found=name.read_bytes() if name.exists() else None)
    return Linked(second=True)


def _refused(call: Callable[[], object], numbers: frozenset[int]) -> str:
    """What the system says if it cannot do such a call at all; nothing if it did it."""
    try:
        call()
    except OSError as error:
        if error.errno not in numbers:
            raise
        return error.strerror or str(error)
    return ""


@contextmanager
def without_new_folders(root: Path) -> Iterator[None]:
    """Where the body fails, folders that were not there before it and are empty go again."""
    # Path.exists raises an error where it may not look.
    missing = [folder for folder in (root, *root.parents) if not os.path.exists(folder)]  # noqa: PTH110
    try:
        yield
    except BaseException:
        for folder in missing:
            with suppress(OSError):
                folder.rmdir()
        raise
