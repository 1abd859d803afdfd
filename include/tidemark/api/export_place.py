"""Where an export goes: what it may replace there, and how it appears whole.

A folder is replaced only if an export made it: the file `_tidemark_export` in it, which readers of Hive's folders pass
over, lists what the export wrote, and nothing else may be in the folder. All is written in a folder beside the place,
which is locked: two exports to one place do not meet, and what a killed one left is removed by the next one.

    out/v=1/rows.parquet              listed
    out/_tidemark_export              {"format":1,"id":…,"versions":{"tides":17},"files":["v=1/rows.parquet"]}
    .tidemark-export-<16 digits>/     the digits follow from the name `out`
      _tidemark_export                locked for as long as its process lives
      new                             what is written, and then what was replaced
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import json
import os
import re
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from uuid import uuid4

from tidemark.errors import Contention, InvalidUsage, Unwritable
from tidemark.storage.stores.local import sync_path

MARKER = "_tidemark_export"
FORMAT = 1
_UNFINISHED = re.compile(rf"{MARKER}|(new|old)(/[^/]+=[^/]*(/rows\.\w+)?|/{MARKER})?")
"""What is in the folder beside a place."""
_NO_REPLACE, _EXCHANGE = 1, 2
"""Flags of renameat2."""


def place_of(path: str | os.PathLike[str]) -> Path:
    """Return the path as a place for an export.

    Raises:
        InvalidUsage: It is no path of this machine, or has no name of its own, as `/` and `..`.
    """
    if "://" in str(path):
        raise InvalidUsage(f"{path}: an export goes to a folder of this machine; copy it from there")
    try:
        place = Path(path).expanduser()
        if b"\0" in os.fsencode(place):
            raise ValueError("it has a null byte")
    except (RuntimeError, ValueError) as error:
        raise InvalidUsage(f"{str(path)!r} is no path: {error}") from None
    if place.name in ("", ".."):
        raise InvalidUsage(f"{path} has no name of its own; name a file or a folder in it")
    return place


def mark(folder: Path, versions: Mapping[str, int], files: Sequence[str]) -> None:
    """Make a folder an export that wrote these files, of collections at these versions."""
    said = {"format": FORMAT, "id": str(uuid4()), "versions": dict(versions), "files": list(files)}
    (folder / MARKER).write_text(json.dumps(said) + "\n", encoding="utf-8")
    sync_path(folder / MARKER)


@contextmanager
def in_its_place(place: Path, *, folder: bool, replace: bool) -> Iterator[Path]:
    """Yield a path beside the place; what is there at the end is moved to the place.

    Raises:
        InvalidUsage: Something else is at the place, or no export made it, or it may not be replaced.
        Contention: Another export to the place is running.
    """
    beside = place.with_name(f".tidemark-export-{sha256(os.fsencode(place.name)).hexdigest()[:16]}")
    new, old = beside / "new", beside / "old"
    _replaceable(place, folder=folder, replace=replace)
    lock = _locked(beside, place)
    try:
        _clear(beside, place)
        yield new
        replaced = _replaceable(place, folder=folder, replace=replace)
        if replaced:
            if not _renamed(new, place, _EXCHANGE):
                place.rename(old)
                new.rename(place)
        elif folder or replace or not _renamed(new, place, _NO_REPLACE):
            new.replace(place)  # a folder takes the place of an empty one only
        sync_path(place.parent)
        before = new if new.exists() else old
        try:
            _remove(before / name for name in replaced)
        except OSError as error:
            raise Unwritable(
                f"{place} is exported, but what was there before stays in {before}: {error.strerror or error}"
            ) from None
    finally:
        try:
            _clear(beside, place)
            _remove([beside / MARKER, beside])
        finally:
            os.close(lock)


def _replaceable(place: Path, *, folder: bool, replace: bool) -> list[str]:
    """What is to be removed of a folder in favour of an export, deepest first; nothing of a file or an empty folder."""
    if not place.parent.is_dir():
        raise InvalidUsage(f"{place}: there is no folder {place.parent}")
    try:
        mode = place.lstat().st_mode
    except FileNotFoundError:
        return []
    if stat.S_ISLNK(mode):
        raise InvalidUsage(f"{place} is a link to {place.readlink()}; name that, or another place")
    if not (stat.S_ISDIR(mode) if folder else stat.S_ISREG(mode)):
        kind = "a folder" if stat.S_ISDIR(mode) else "a file" if stat.S_ISREG(mode) else "no plain file"
        raise InvalidUsage(f"{place} is {kind}; name another place")
    if not folder:
        if not replace:
            raise InvalidUsage(f"{place} is there; say replace, or name another file")
        return []
    home = os.path.expanduser("~")  # noqa: PTH111 - no error where nobody knows it
    used = (Path(home).resolve(), Path.cwd().resolve())
    if any(each.is_relative_to(place.resolve()) for each in used):
        raise InvalidUsage(f"{place} is your home folder, the folder you are in, or above one; name another folder")
    if not any(place.iterdir()):
        return []
    if not replace:
        raise InvalidUsage(f"{place} is there and not empty; say replace, or name another folder")
    wrote = _wrote(place)
    return _entries(place, place, wrote.__contains__)


def _wrote(place: Path) -> set[str]:
    """All that an export wrote into a folder, by its marker."""
    try:
        with os.fdopen(os.open(place / MARKER, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), encoding="utf-8") as file:
            said = json.loads(file.read())
        files = [str(name) for name in said["files"]] if said["format"] == FORMAT else None
    except (OSError, ValueError, LookupError, TypeError):
        files = None
    if files is None:
        raise InvalidUsage(
            f"{place} is not replaced, as it has no {MARKER} by which an export is known; remove the "
            "folder yourself if it may go, or name another one"
        )
    return {MARKER, *files, *(name.rpartition("/")[0] for name in files)}


def _entries(folder: Path, place: Path, is_ours: Callable[[str], object]) -> list[str]:
    """The names of all below a folder, deepest first. InvalidUsage for one that is not ours."""
    entries = []
    for parent, folders, files in os.walk(folder, onerror=_raised):
        for name in sorted((*folders, *files)):
            path = Path(parent, name)
            entry = path.relative_to(folder).as_posix()
            if path.is_symlink() or not is_ours(entry):
                raise InvalidUsage(
                    f"no export to {place} while {path} is there, which no export wrote; move it elsewhere"
                )
            entries.append(entry)
    return entries[::-1]


def _raised(error: OSError) -> None:
    raise error


def _locked(beside: Path, place: Path) -> int:
    """Make the folder beside a place, or take over that of a killed export; return the descriptor that locks it."""
    while True:
        with suppress(FileExistsError):
            beside.mkdir(mode=0o700)
        with suppress(FileNotFoundError):  # another export has just removed it
            seen = beside.lstat()
            if not stat.S_ISDIR(seen.st_mode) or seen.st_uid != os.geteuid():
                raise InvalidUsage(f"no export to {place} while {beside} is there, which is somebody else's; remove it")
            lock = os.open(beside / MARKER, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if os.fstat(lock).st_ino == (beside / MARKER).stat().st_ino:
                    return lock
            except BlockingIOError:
                os.close(lock)
                raise Contention(f"another export to {place} is running; run this one when it has ended") from None
            except BaseException:
                os.close(lock)
                raise
            os.close(lock)


def _clear(beside: Path, place: Path) -> None:
    """Remove what an export left beside its place; a folder that it was about to replace goes back where it was."""
    old = beside / "old"
    if old.exists() and not os.path.lexists(place):
        old.rename(place)
    _remove(beside / name for name in _entries(beside, place, _UNFINISHED.fullmatch) if name != MARKER)


def _remove(paths: Iterator[Path] | list[Path]) -> None:
    """Remove files, and folders that are empty."""
    for path in paths:
        if path.is_dir() and not path.is_symlink():
            path.rmdir()
        else:
            path.unlink()


def _renamed(one: Path, other: Path, flag: int) -> bool:
    """Rename by renameat2 of Linux, to a free name or exchanging both; False where the system has no such call."""
    libc = ctypes.CDLL(None, use_errno=True)
    here = -100  # AT_FDCWD
    if not hasattr(libc, "renameat2"):
        return False
    if libc.renameat2(here, os.fsencode(one), here, os.fsencode(other), flag) == 0:
        return True
    if (number := ctypes.get_errno()) in (errno.ENOSYS, errno.EINVAL):
        return False
    raise OSError(number, os.strerror(number), str(other))
