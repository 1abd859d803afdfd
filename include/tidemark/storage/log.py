"""The state log: version N+1 is created if absent, and that is the only mutation there is.

A version object records one change; every CHECKPOINT_EVERY-th holds the whole state beside it, so a reader folds a few
small objects whatever the age of the collection. Versions lie in folders of a hundred, so that finding the newest one
lists two short folders.
"""

from __future__ import annotations

import hashlib
import random
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import TypeVar

from tidemark.errors import CommitUnknown, Contention, Corruption, Fenced, InvalidUsage
from tidemark.model.arrangement import Arrangement
from tidemark.model.change import Change
from tidemark.model.transition import AlreadyApplied, Applied, FencedOff, Stale, apply, conflict
from tidemark.storage.codec import FORMAT, VersionRecord, decode, encode
from tidemark.storage.store import AlreadyExists, Indeterminate, Missing, ObjectStore, Unavailable

T = TypeVar("T")

CHECKPOINT_EVERY = 16
"""A checkpoint costs a state, a load folds at most this many changes: few reads on S3, few bytes a commit."""
FOLDER_SIZE = 100
"""Versions in a folder. A load lists the folders and the newest one: so neither list is long before the ten-thousandth
version, and a list is one request up to the hundred-thousandth (what a collector removed is in no list)."""
ATTEMPTS = 100
"""Lost races before a commit gives up. 16 writers at once lose about 16 in a row at worst; this leaves room."""
COLLECTION_GRACE = 3600.0
"""Seconds a version outlives its last use before a collector may remove it (docs/decisions/0006)."""
STALL_LIMIT = COLLECTION_GRACE / 2
"""A writer that last saw the head this long ago must look anew before it commits: what it would create may have been
created, superseded and collected meanwhile."""


def uptime() -> float:
    """Seconds that never go back, those asleep included: a writer on a machine that was suspended has stalled too."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


@dataclass(frozen=True)
class Head:
    """A version and the state at it. Version 0 has no state: the collection was never created.

    `seen_at` is when storage was last asked for it or for what follows it: never later than the answer.
    """

    version: int
    sha256: str
    arrangement: Arrangement | None
    seen_at: float

    @property
    def state(self) -> Arrangement:
        """The state; InvalidUsage if the collection was never created."""
        if self.arrangement is None:
            raise InvalidUsage("there is no collection here; create it with `tidemark init`")
        return self.arrangement


@dataclass(frozen=True)
class Committed:
    """The head that holds the change; `fresh` is False if it held it before."""

    head: Head
    fresh: bool


@dataclass
class StateLog:
    """The versions of one collection in `store`, which is rooted at the collection.

    `new_id` names changes, `writer` is recorded for people; `wall` and `monotonic` are seconds; all come from outside,
    so that a test can choose them.
    """

    store: ObjectStore
    new_id: Callable[[], str]
    writer: str = ""
    wall: Callable[[], float] = time.time
    monotonic: Callable[[], float] = uptime
    pause: Callable[[float], None] = time.sleep
    _dice: random.Random = field(default_factory=random.Random)

    def load(self, version: int | None = None) -> Head:
        """The newest state, or the one at `version`. InvalidUsage if that version is not there."""
        looked = self.monotonic()
        newest = self.newest_version()
        if version is not None and not 0 < version <= newest:
            raise InvalidUsage(f"there is no version {version}; the newest is {newest}")
        wanted = newest if version is None else version
        head = Head(0, "", None, looked)
        if wanted >= CHECKPOINT_EVERY:
            data, record = self._present(wanted // CHECKPOINT_EVERY * CHECKPOINT_EVERY, wanted)
            head = Head(record.version, hashlib.sha256(data).hexdigest(), record.checkpoint, looked)
        return self._folded_to(head, wanted)

    def replay(self) -> Head:
        """The newest state folded from the first version on, trusting no checkpoint.

        Raises Corruption where a version does not follow its predecessor, or a checkpoint is not the fold of the
        changes before it.
        """
        looked = self.monotonic()
        return self._folded_to(Head(0, "", None, looked), self.newest_version())

    def newest_version(self) -> int:
        """The number of the newest version; 0 if there is none."""
        for folder in reversed(_retried(lambda: self.store.folders("versions/"), self.pause)):
            if listed := self._listed(folder):
                return listed[-1]
        return 0

    def commit(self, base: Head, change: Change) -> Committed | Stale:
        """Record `change`, planned against `base`, as the next version.

        Loses races gracefully: folds what others committed, and tries again while the change still fits. Safe to call
        again with the same change after any error. Raises Fenced if a newer attempt has taken over, Contention if too
        many races were lost, CommitUnknown if the store never said whether the version was created.
        """
        identity = self.new_id()
        head, unknown = base, False
        for attempt in range(ATTEMPTS):
            try:
                head, newest = self._looked_anew(head)
                for data, record, seen_at in self._after(head, newest):
                    head = _folded(head, record, data, seen_at)
                    if record.id == identity:
                        return Committed(head, True)
                    if reason := conflict(change, record.change):
                        return Stale(reason)
                outcome = apply(head.arrangement, change)
                if isinstance(outcome, AlreadyApplied):
                    return Committed(head, False)
                if isinstance(outcome, FencedOff):
                    raise Fenced(outcome.reason)
                if isinstance(outcome, Stale):
                    return outcome
                return Committed(self._create(head, change, identity, outcome), True)
            except (AlreadyExists, Unavailable):
                pass
            except Indeterminate:
                unknown = True
            self.pause(self._dice.uniform(0, min(1.0, 0.002 * 2 ** min(attempt, 9))))
        if unknown:
            raise CommitUnknown(
                f"the store did not say whether version {head.version + 1} was created; run the step again"
            )
        raise Contention(f"lost {ATTEMPTS} races for version {head.version + 1}; run the step again")

    def history(self, upto: int | None = None) -> Iterator[VersionRecord]:
        """The versions' records, newest first, down to the oldest retained."""
        version = self.newest_version() if upto is None else upto
        while version and (data := self._read(version)):
            yield _decoded(data, version)
            version -= 1

    def _listed(self, folder: str) -> list[int]:
        """The version numbers in one folder, ascending."""
        infos = _retried(lambda: list(self.store.list(f"versions/{folder}/")), self.pause)
        return [int(info.key.rpartition("/")[2].removesuffix(".json")) for info in infos]

    def _create(self, head: Head, change: Change, identity: str, outcome: Applied) -> Head:
        if self.monotonic() - head.seen_at > STALL_LIMIT:
            raise Contention(
                f"stalled for more than {STALL_LIMIT:.0f} s after version {head.version}; run the step again"
            )
        version = head.version + 1
        checkpoint = outcome.state if version % CHECKPOINT_EVERY == 0 else None
        now = int(self.wall() * 1_000_000)
        record = VersionRecord(FORMAT, version, head.sha256, identity, now, self.writer, change, checkpoint)
        data, seen_at = encode(record), self.monotonic()
        self.store.create(_key(version), data)
        return Head(version, hashlib.sha256(data).hexdigest(), outcome.state, seen_at)

    def _looked_anew(self, head: Head) -> tuple[Head, int]:
        """The head and a version known to exist. After a stall a missing next version proves nothing, as it may have
        been created and collected meanwhile: so the newest is looked up, and the head is known anew if it is that."""
        looked = self.monotonic()
        if looked - head.seen_at <= STALL_LIMIT:
            return head, head.version
        newest = self.newest_version()
        if newest < head.version:
            raise Corruption(f"the newest version is {newest}, but {head.version} was seen before")
        return replace(head, seen_at=looked), newest

    def _after(self, head: Head, newest: int) -> Iterator[tuple[bytes, VersionRecord, float]]:
        """Versions newer than `head`, at least up to `newest`, each with when it was asked for."""
        version, asked = head.version + 1, self.monotonic()
        while (data := self._read(version)) is not None:
            yield data, _decoded(data, version), asked
            version, asked = version + 1, self.monotonic()
        if version <= newest:
            raise Contention(f"version {version} was collected during a stall; run the step again")

    def _folded_to(self, head: Head, wanted: int) -> Head:
        for version in range(head.version + 1, wanted + 1):
            data, record = self._present(version, wanted)
            head = _folded(head, record, data, head.seen_at)
        return head

    def _present(self, version: int, below: int) -> tuple[bytes, VersionRecord]:
        data = self._read(version)
        if data is None:
            raise Corruption(f"version {version} is missing below {below}")
        return data, _decoded(data, version)

    def _read(self, version: int) -> bytes | None:
        try:
            return _retried(lambda: self.store.read(_key(version)), self.pause)
        except Missing:
            return None


def _folded(head: Head, record: VersionRecord, data: bytes, seen_at: float) -> Head:
    if record.previous != head.sha256:
        raise Corruption(
            f"version {record.version} follows {record.previous[:12]}, but {head.version} is {head.sha256[:12]}"
        )
    outcome = apply(head.arrangement, record.change)
    state = outcome.state if isinstance(outcome, Applied) else head.arrangement
    if not isinstance(outcome, Applied | AlreadyApplied):
        raise Corruption(f"version {record.version} does not apply: {outcome.reason}")
    if record.checkpoint is not None and record.checkpoint != state:
        raise Corruption(f"the checkpoint of version {record.version} is not the fold of its changes")
    return Head(record.version, hashlib.sha256(data).hexdigest(), state, seen_at)


def _key(version: int) -> str:
    return f"versions/{version // FOLDER_SIZE:08d}/{version:012d}.json"


def _decoded(data: bytes, version: int) -> VersionRecord:
    record: VersionRecord = decode(data, VersionRecord, name=_key(version))
    if record.format > FORMAT:
        raise InvalidUsage(
            f"version {version} has format {record.format}, this code reads up to {FORMAT}; upgrade Tidemark"
        )
    if record.version != version:
        raise Corruption(f"{_key(version)} holds version {record.version}")
    return record


def _retried(read: Callable[[], T], pause: Callable[[float], None], attempts: int = 6) -> T:
    """A read, again after a refusal, with growing pauses: reads change nothing."""
    for attempt in range(attempts - 1):
        try:
            return read()
        except Unavailable:
            pause(0.05 * 2**attempt)
    return read()
