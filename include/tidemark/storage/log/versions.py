"""The version objects of a collection: how they are named, found and read.

They are made in order and collected in order, so those that belong to the history are one run without a gap that ends
at the newest. The oldest of them from which a state can be folded is the low-water mark (docs/decisions/0014). A
version below it is a stray: a writer that was frozen for longer than the grace created a number that had been
collected. Nobody may be misled by one, so whatever is read below the newest is believed only if the next version names
its hash.
"""

from __future__ import annotations

import hashlib
import re
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeVar

from tidemark.errors import Corruption, TidemarkError
from tidemark.model.change import Dropped
from tidemark.storage.documents import document
from tidemark.storage.documents.codec import VersionRecord, without_checksum
from tidemark.storage.documents.upgrade import Kind
from tidemark.storage.read_many import read_many
from tidemark.storage.stores.store import Missing, ObjectInfo, ObjectStore, Unavailable

T = TypeVar("T")
_KEY = re.compile(r"versions/\d{8}/\d{12}\.json")
"""The key of a version. What has another name in the folder was put there by others, as `.DS_Store` is."""

CHECKPOINT_EVERY = 16
"""A checkpoint costs a state, a load folds at most this many changes: few reads on S3, few bytes a commit."""
FOLDER_SIZE = 100
"""Versions in a folder. A load lists the folders and the newest one: so neither list is long before the ten-thousandth
version, and a list is one request up to the hundred-thousandth (what a collector removed is in no list)."""


@dataclass(frozen=True)
class Version:
    """A version as read: its record, and the hash by which its successor names it."""

    record: VersionRecord
    sha256: str

    @property
    def number(self) -> int:
        return self.record.version


@dataclass(frozen=True)
class Versions:
    """The versions in a store that is rooted at the collection. `pause` waits between tries of a read."""

    store: ObjectStore
    pause: Callable[[float], None] = time.sleep

    def newest(self) -> int:
        """The number of the newest version; 0 if there is none. Lists two short folders."""
        for folder in reversed(retried(lambda: self.store.folders("versions/"), self.pause)):
            if keys := self._keys(f"{folder}/"):
                return number_of(keys[-1])
        return 0

    def numbers(self) -> list[int]:
        """The numbers of all version objects, ascending, of strays too."""
        return [number_of(key) for key in self._keys()]

    def _keys(self, folder: str = "") -> list[str]:
        return [
            key for key in retried(lambda: self.store.keys(f"versions/{folder}"), self.pause) if _KEY.fullmatch(key)
        ]

    def listed(self) -> list[ObjectInfo]:
        """All version objects, ascending by number, strays too."""
        infos = retried(lambda: list(self.store.list("versions/")), self.pause)
        return [info for info in infos if _KEY.fullmatch(info.key)]

    def read(self, version: int) -> Version | None:
        """One version, or None if it is not there. Corruption if it is not what its name says, UpgradeRequired if it is
        a newer Tidemark's."""
        try:
            data = self._data(version)
        except Missing:
            return None
        return Version(_decoded(data, version), hashlib.sha256(data).hexdigest())

    def exist(self) -> bool:
        """Whether they are those of a collection.

        There are some, and the newest did not drop it. One that cannot be read does not say so: whoever loads it says
        why.
        """
        newest = self.newest()
        try:
            version = self.read(newest) if newest else None
        except TidemarkError:
            return True
        return newest > 0 and not (version is not None and isinstance(version.record.change, Dropped))

    def holds(self, version: int, sha256: str) -> bool:
        """Whether a version is there and is the one of that hash; before the first one there is nothing."""
        if not version:
            return True
        try:
            return hashlib.sha256(self._data(version)).hexdigest() == sha256
        except Missing:
            return False

    def present(self, version: int) -> Version:
        """One version that must be there; Missing if it is not."""
        found = self.read(version)
        if found is None:
            raise Missing(f"version {version}")
        return found

    def between(self, first: int, last: int) -> Iterator[Version]:
        """The versions from first to last, each checked to follow the one before. Missing where one is not there."""
        before: Version | None = None
        for version in read_many(self.present, range(first, last + 1)):
            if before is not None:
                check_follows(version, before.sha256, before.number)
            yield version
            before = version

    def oldest(self, upto: int) -> int:
        """The low-water mark: the oldest version from which a state can be folded, `upto` at the latest; 0 without any.

        The first that starts a history (version 1, or one with a checkpoint) of the run that ends at the newest.
        """
        numbers = self.numbers()
        first = numbers[-1] if numbers else 0
        for number in reversed(numbers):
            first = number if number == first - 1 else first
        while first < upto:
            start = first if first == 1 else -(-first // CHECKPOINT_EVERY) * CHECKPOINT_EVERY
            if start >= upto or self._is_followed(start):
                return min(start, upto)
            first = start + 1
        return min(first, upto)

    def highest_missing(self, down_to: int) -> int | None:
        """The greatest number from `down_to` up to the newest that has no version; None if there is no gap."""
        numbers = set(self.numbers())
        return next((n for n in range(max(numbers, default=0), down_to - 1, -1) if n not in numbers), None)

    def _data(self, version: int) -> bytes:
        return retried(lambda: self.store.read(key_of(version)), self.pause)

    def _is_followed(self, version: int) -> bool:
        one, following = self.read(version), self.read(version + 1)
        return one is not None and following is not None and following.record.previous == one.sha256


def key_of(version: int) -> str:
    """The key of a version."""
    return f"versions/{version // FOLDER_SIZE:08d}/{version:012d}.json"


def number_of(key: str) -> int:
    """The number of the version of that key."""
    return int(key.rpartition("/")[2].removesuffix(".json"))


def check_follows(version: Version, sha256: str, before: int) -> None:
    """Corruption unless `version` names the hash of the one before it."""
    if version.record.previous != sha256:
        raise Corruption(
            f"version {version.number} follows {version.record.previous[:12]}, but {before} is {sha256[:12]}"
        )


def _decoded(data: bytes, version: int) -> VersionRecord:
    key = key_of(version)
    record: VersionRecord = document.read(without_checksum(data, key), Kind.VERSION, VersionRecord, name=key)
    if record.version != version:
        raise Corruption(f"{key} holds version {record.version}")
    return record


def retried(read: Callable[[], T], pause: Callable[[float], None], attempts: int = 6) -> T:
    """A read, again after a refusal, with growing pauses: reads change nothing."""
    for attempt in range(attempts - 1):
        try:
            return read()
        except Unavailable:
            pause(0.05 * 2**attempt)
    return read()
