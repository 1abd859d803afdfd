"""The landing: where delta files arrive, on a file system or on S3. Read here; `land` alone writes, for appenders.

A *pattern* is a path template rendered for an interval: a path with wildcards (`*`, `?`, `[…]`, and `**` for any number
of folders). Its *folder* is what is before the first component with a wildcard, or before the file name. Names that
start with `_` or `.` are markers and files still being written, as Spark and Hive have it: a wildcard passes them by.
"""

from __future__ import annotations

import errno
import hashlib
import os
import re
import stat
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from functools import lru_cache
from itertools import islice
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from tidemark.errors import CommitUnknown, InvalidUsage, NotReady, Unavailable
from tidemark.model.ledger import SourceFile
from tidemark.storage.stores.local import LocalStore
from tidemark.storage.stores.store import AlreadyExists, Indeterminate, Missing

if TYPE_CHECKING:
    import pyarrow as pa

    from tidemark.storage.stores.s3 import S3Store

_WILD = re.compile(r"[*?[]")
_ESCAPED = re.compile(r"\[([*?[])\]")
_READ_BYTES = 2**20
_PACKED = re.compile(r"\.(gz|bz2|xz|zst|zip|snappy|lz4)$")
NOTED_AFTER_S = 2.0
NOTED_EVERY_S = 10.0
"""Seconds of a listing before its first line of progress, and between two."""
LOOKED_AT = 1000
"""Names of files beside those that match a pattern that are kept, and files of one folder there that are looked at."""
OTHERS_NAMED = 6
"""Names of other files that are kept."""
MATCHES = "*"
"""The readiness of an interval whose folder says nothing: it has landed when a file matches."""


class Beside:
    """The files that a listing passes over and that its pattern was perhaps meant to match.

    These are called as the pattern's last part is, but for the case of letters and for what the name ends with: another
    suffix, another compression. In a folder that is an interval's alone so are those in its subfolders; where intervals
    share one, the names say whose files are whose. Hidden files and the marker are not meant.

    Attributes:
        names: Their paths below the pattern's folder, LOOKED_AT at most.
        others: Those of a few other files there.
    """

    def __init__(self, pattern: str, ready: str, *, own_folder: bool) -> None:
        self._folder, components = _split(pattern)
        self._depth, self._ready, self._own_folder = len(components), ready, own_folder
        last = _PACKED.sub("", components[-1].lower())
        self._stem = last.rpartition(".")[0] or last
        self._is_recursive = "**" in components
        self.names: set[str] = set()
        self.others: list[str] = []

    def see(self, path: str) -> None:
        """Keep a file that is meant, or those in a folder."""
        if _is_s3(path) or not _is_folder(path):
            self._keep(path)
        elif self._own_folder:
            walked = (os.path.join(at, name) for at, _, names in os.walk(path) for name in sorted(names))
            for inside in islice(walked, LOOKED_AT):
                self._keep(inside)

    def _keep(self, path: str) -> None:
        parts = path.removeprefix(f"{self._folder}/").split("/")
        end = parts[-1].lower()
        alike = fnmatchcase(end, self._stem) or fnmatchcase(end, f"{self._stem}.*")
        deep = len(parts) > self._depth and not self._own_folder
        hidden = any(part[0] in "._" for part in parts)
        if deep or hidden or parts[-1] == self._ready:
            return
        if alike and len(self.names) < LOOKED_AT:
            self.names.add("/".join(parts))
        elif len(self.others) < OTHERS_NAMED:
            self.others.append("/".join(parts))

    def without(self, files: Iterable[SourceFile]) -> list[str]:
        """The names, ascending, but for those of files that match after all, as folders of `**` are seen twice."""
        taken = {file.path.removeprefix(f"{self._folder}/") for file in files} if self._is_recursive else set()
        return sorted(self.names - taken)


def list_sources(
    pattern: str,
    *,
    within: str | None = None,
    note: Callable[[str], None] | None = None,
    beside: Beside | None = None,
) -> list[SourceFile]:
    """The files that match a pattern, by path; none if its folder does not exist. A long listing is noted as it goes.

    `beside` sees what is there and does not match.

    `within` is the folder none may be outside of, links followed; it must exist on a file system (default: the
    pattern's folder, which may be missing). Raises InvalidUsage for a root that is missing, a link out of it, and a
    folder or broken link where a file should be; Unavailable where something cannot be looked at now, which is never
    taken for absent. Names that are not UTF-8 come as Python has them (`is_text` says whether).
    """
    folder, components = _split(pattern)
    if _is_s3(pattern):
        files = _list_s3(folder, components, beside)
    else:
        check_root(within)
        walked = _walk(folder, components, os.path.realpath(within or folder), beside)
        files = (_described(path) for path in walked)
    by_path = {file.path: file for file in _noted(files, folder, note)}
    return sorted(by_path.values(), key=lambda file: file.path)


def _noted(files: Iterable[SourceFile], folder: str, note: Callable[[str], None] | None) -> Iterator[SourceFile]:
    """The files; a listing of many takes seconds, on S3 minutes, so `note` gets a line from time to time."""
    due = time.monotonic() + NOTED_AFTER_S
    for count, file in enumerate(files, 1):
        yield file
        if note and time.monotonic() >= due:
            note(f"listing {folder}: {count:,} files so far")
            due = time.monotonic() + NOTED_EVERY_S


def list_named(
    pattern: str,
    root: str,
    *,
    within: str | None = None,
    note: Callable[[str], None] | None = None,
    beside: Beside | None = None,
) -> list[SourceFile]:
    """As `list_sources`, each file with its name below the landing `root`, which is who it is."""
    return [_named(file, root) for file in list_sources(pattern, within=within, note=note, beside=beside)]


def _named(file: SourceFile, root: str) -> SourceFile:
    name = below(file.path, root) or ""
    return replace(file, name=as_text(name or file.path) if not is_text(file.path) else name)


def is_ready(pattern: str, ready: str, *, within: str | None = None) -> bool:
    """Whether an interval has landed: `always`; MATCHES, a file matches; `exists`, the pattern's folder is there (on
    S3: any object below it); else `ready` names a marker file that is in the folder. Raises as `list_sources`."""
    folder, components = _split(pattern)
    if ready == MATCHES:
        if _is_s3(pattern):
            return next(_list_s3(folder, components), None) is not None
        check_root(within)
        return next(_walk(folder, components, os.path.realpath(within or folder)), None) is not None
    if _is_s3(pattern):
        if ready == "always":
            return True
        bucket, key = _bucket_and_key(folder)
        if ready == "exists":
            return next(iter(_s3(bucket).list(f"{key}/" if key else "")), None) is not None
        return _s3(bucket).stat(f"{key}/{ready}".lstrip("/")) is not None
    check_root(within)
    if ready == "always":
        return True
    if ready == "exists":
        return _is_folder(folder)
    marker = _status(os.path.join(folder, ready))
    return marker is not None and stat.S_ISREG(marker.st_mode)


def awaited(pattern: str, ready: str) -> str:
    """What is not there of an interval that is not ready, as a sentence's end."""
    folder, _ = _split(pattern)
    if ready == MATCHES:
        return f"nothing matches {pattern}" if has_wildcard(pattern) else f"{pattern} is not there"
    if ready != "exists":
        return f"{folder}/{ready} is not there"
    if _is_s3(pattern):
        return f"there is nothing below {folder}/"
    return f"{folder} is not a folder" if _status(folder) else f"the folder {folder} is not there"


def is_remote(path: str) -> bool:
    """Whether each access to a path crosses a network, and takes its time."""
    return _is_s3(path)


def is_text(path: str) -> bool:
    """Whether a path is text: a file system takes any bytes for a name, and those that are not UTF-8 are none."""
    try:
        path.encode()
    except UnicodeEncodeError:
        return False
    return True


def as_text(path: str) -> str:
    """A path for people and for the ledger: bytes that are not UTF-8 as their escapes, `\\xff`."""
    return path if is_text(path) else os.fsencode(path).decode("utf-8", "backslashreplace")


def unreadable(path: str, error: OSError) -> Unavailable:
    """What a failing read means: nothing about the file, which permissions and mounts do not touch."""
    said = os.strerror(error.errno) if error.errno else str(error)
    return Unavailable(f"{as_text(path)} cannot be read: {said}; run the step again when it can")


def below(path: str, root: str) -> str | None:
    """The path below a root, or None if it is not there; by their names alone, links are not followed."""
    if not _is_s3(root):
        path, root = os.path.abspath(path), os.path.abspath(root)
    lead = root.rstrip("/") + "/"
    return path.removeprefix(lead) if path.startswith(lead) else None


def sha256_of(path: str) -> str:
    """The SHA-256 of a file's content, in hex. Raises NotReady if it is gone, Unavailable if it cannot be read now."""
    digest = hashlib.sha256()
    try:
        with open_source(path) as source:
            while block := source.read_buffer(_READ_BYTES):
                digest.update(block)
    except FileNotFoundError:
        raise NotReady(f"{path} is gone since it was listed; run the step again") from None
    except OSError as error:
        raise unreadable(path, error) from error
    return digest.hexdigest()


def open_source(path: str) -> pa.NativeFile:
    """Random access to a source file. Raises FileNotFoundError or another OSError if it cannot be opened."""
    if _is_s3(path):
        bucket, key = _bucket_and_key(path)
        try:
            return _s3(bucket).open_input(key)
        except Missing:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path) from None
    import pyarrow as pa

    return pa.OSFile(os.fsencode(path), "rb")


def token_of(path: str) -> str | None:
    """The file's change token as `list_sources` would give it now; None if the file is gone."""
    if _is_s3(path):
        bucket, key = _bucket_and_key(path)
        info = _s3(bucket).stat(key)
        return info.token if info else None
    status = _status(path)
    return None if status is None else _token(status)


def folder_of(pattern: str) -> str:
    """The folder of a pattern."""
    return _split(pattern)[0]


def names_begin(pattern: str, root: str) -> str:
    """What the names below the landing `root` of all files that a pattern matches begin with."""
    folder, components = _split(pattern)
    lead = f"{folder}/{_WILD.split(components[0])[0]}"
    return (below(f"{lead}.", root) or f"{lead}.")[:-1]


def has_wildcard(pattern: str) -> bool:
    """Whether more than one file may match a pattern."""
    return _WILD.search(_ESCAPED.sub("", pattern)) is not None


def place_for(pattern: str, stem: str) -> tuple[str, str]:
    """The folder and the name of a new file that the pattern matches, `stem` in place of the `*` of its name.

    Raises InvalidUsage for a pattern that leaves more open than that.
    """
    folder, components = _split(pattern)
    plain = [component for component in components[:-1] if component != "**"]
    last = components[-1]
    name = _ESCAPED.sub(r"\1", last.replace("*", stem, 1).replace("*", ""))
    others = _WILD.search(_ESCAPED.sub("", last).replace("*", ""))
    if plain or others or "*" not in last or not _fits(name, last) or name[0] in "._":
        raise InvalidUsage(
            f"path {pattern} does not say where a new file goes: it must name its folders, and its last part must hold "
            "a * that any text may replace, as in {{ landing }}/flights/{{ ds }}/*.parquet"
        )
    return folder, name


def names_below(pattern: str) -> list[str]:
    """The paths of all files below the pattern's folder, match or not, without looking at any."""
    folder, _ = _split(pattern)
    if not _is_s3(pattern):
        return LocalStore(folder).keys("")
    bucket, key = _bucket_and_key(folder)
    return _s3(bucket).keys(f"{key}/" if key else "")


def land(folder: str, name: str, data: bytes) -> None:
    """Put a whole file into a folder, durably, under a name that is not taken; a listing sees all of it or nothing.

    On a file system it is written aside as `.tmp-…`, which no pattern matches, and linked to its name; on S3 it is one
    conditional put. Returns also where it is there already with these bytes: an earlier try had succeeded. Raises
    InvalidUsage for a name that is taken by other bytes, Unavailable where it cannot be had now, CommitUnknown where it
    may be there: try again under the same name.
    """
    path = f"{folder}/{name}"
    bucket, key = _bucket_and_key(path) if _is_s3(path) else ("", name)
    store = _s3(bucket) if bucket else LocalStore(folder)
    try:
        store.create(key, data)
    except AlreadyExists:
        if store.read(key) != data:
            raise InvalidUsage(f"{path} is there already, with other bytes; is its producer running twice?") from None
    except Indeterminate as error:
        raise CommitUnknown(f"{path} may have landed, or not: {error}; try again") from error


def _split(pattern: str) -> tuple[str, list[str]]:
    """The pattern's folder and the components below it."""
    scheme, separator, rest = pattern.partition("://") if _is_s3(pattern) else ("", "", os.path.expanduser(pattern))
    if ".." in rest.split("/"):
        raise InvalidUsage(f"{pattern}: a path with .. may leave the landing; write it without")
    components = (rest if separator else os.path.abspath(rest)).split("/")
    wild = [at for at, component in enumerate(components) if _WILD.search(_ESCAPED.sub("", component))]
    first = min([*wild, len(components) - 1])
    folder = "/".join(_ESCAPED.sub(r"\1", component) for component in components[:first])
    return f"{scheme}{separator}{folder}" or "/", components[first:]


def _fits(name: str, component: str) -> bool:
    if name[0] in "._" and component[0] != name[0]:
        return False
    return fnmatchcase(name, component)


def check_root(root: str | None) -> None:
    """Raise InvalidUsage for a landing on a file system that is no folder or is not there; None is not looked at."""
    if root is not None and not _is_folder(root):
        what = "is not a folder" if _status(root) else "does not exist"
        raise InvalidUsage(f"landing {root} {what}; check the landing and the collection's source.path")


def _walk(folder: str, components: Sequence[str], root: str, beside: Beside | None = None) -> Iterator[str]:
    """Files below a folder that match, each checked to be below `root`, links followed; `beside` sees what does not."""
    if _status(folder, follow=False) is None:
        return
    real = _inside(folder, root)
    head, tail = components[0], components[1:]
    try:
        with os.scandir(folder) as entries:
            found = sorted((entry.name, entry.is_symlink()) for entry in entries)
    except NotADirectoryError as error:
        raise InvalidUsage(f"landing folder {folder} cannot be read: {error.strerror}") from None
    except FileNotFoundError:
        raise NotReady(f"landing folder {folder} is gone since it was listed; run the step again") from None
    except OSError as error:
        raise unreadable(folder, error) from error
    if head == "**" and tail:
        yield from _walk(folder, tail, root, beside)
    for name, is_link in found:
        path = os.path.join(folder, name)
        if not _fits(name, head):
            _see(beside, path)
            continue
        if tail or head == "**":
            if _is_folder(path):
                if f"{real}/".startswith(os.path.realpath(path) + "/"):
                    raise InvalidUsage(f"{path} is a link to a folder above it; remove it from the landing")
                yield from _walk(path, components if head == "**" else tail, root, beside)
                continue
            if tail:
                if head != "**":
                    _see(beside, path)
                continue
        # What is no link is where its folder is.
        if is_link:
            _inside(path, root)
        yield path


def _see(beside: Beside | None, path: str) -> None:
    if beside is not None:
        beside.see(path)


def _inside(path: str, root: str) -> str:
    real = os.path.realpath(path)
    if os.path.commonpath([real, root]) != root:
        raise InvalidUsage(f"{path} leads to {real}, outside the landing {root}; copy the file instead of linking it")
    return real


def _described(path: str) -> SourceFile:
    status = _status(path)
    if status is None:
        raise InvalidUsage(f"{path} matches but cannot be read: there is no such file; is it a broken link?")
    if not stat.S_ISREG(status.st_mode):
        raise InvalidUsage(f"{path} matches and is not a file; for files inside folders write the pattern with /*")
    # A file that is moved here, or copied with its times, is no older here than that.
    return SourceFile(path, status.st_size, _token(status), landed_at=status.st_ctime_ns // 1000)


def _is_folder(path: str) -> bool:
    status = _status(path)
    return status is not None and stat.S_ISDIR(status.st_mode)


def _status(path: str, *, follow: bool = True) -> os.stat_result | None:
    """What is at a path; None if nothing is, or a link that leads nowhere. What cannot be looked at is Unavailable."""
    try:
        return os.stat(path, follow_symlinks=follow)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        if error.errno == errno.ELOOP:
            return None
        raise unreadable(path, error) from error


def _token(status: os.stat_result) -> str:
    return f"{status.st_mtime_ns}-{status.st_ino}"


def _is_s3(path: str) -> bool:
    return path.startswith("s3://")


def _bucket_and_key(path: str) -> tuple[str, str]:
    bucket, _, key = path.removeprefix("s3://").partition("/")
    return bucket, key


def _list_s3(folder: str, components: Sequence[str], beside: Beside | None = None) -> Iterator[SourceFile]:
    bucket, key = _bucket_and_key(folder)
    lead = f"{key}/" if key else ""
    for info in _s3(bucket).list(lead):
        names = PurePosixPath(info.key.removeprefix(lead)).parts
        if info.key.endswith("/"):
            continue
        if not _matches(names, components):
            if names:
                _see(beside, f"s3://{bucket}/{info.key}")
        else:
            landed_at = int(info.modified * 1_000_000)
            yield SourceFile(f"s3://{bucket}/{info.key}", info.bytes, info.token, landed_at=landed_at)


def _matches(names: Sequence[str], components: Sequence[str]) -> bool:
    """Whether the names of a path, one after the other, fit the components of a pattern."""
    if not names or not components:
        return not names and not components
    if components[0] == "**":
        rest = components[1:]
        visible = _fits(names[0], "**")
        return (
            (visible and len(names) == 1 and not rest)
            or (visible and _matches(names[1:], components))
            or _matches(names, rest)
        )
    return _fits(names[0], components[0]) and _matches(names[1:], components[1:])


def _s3(bucket: str) -> S3Store:
    if not bucket:
        raise InvalidUsage("an S3 path is s3://bucket/key")
    environment = tuple(
        os.environ.get(name) for name in ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ACCESS_KEY_ID")
    )
    return _s3_of(bucket, environment)


@lru_cache(maxsize=8)
def _s3_of(bucket: str, _environment: tuple[str | None, ...]) -> S3Store:
    """One client per bucket and account: making one takes longer than a small read."""
    from tidemark.storage.stores.s3 import S3Store

    return S3Store(f"s3://{bucket}")
