"""The state log: version N+1 is created if absent, and that is the only mutation there is.

A version object records one change; every CHECKPOINT_EVERY-th holds the whole state beside it, so a reader folds a few
small objects whatever the age of the collection. Versions are in folders of a hundred, so that finding the newest one
lists two short folders.
"""

from __future__ import annotations

import hashlib
import random
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

from tidemark.errors import CommitUnknown, Contention, Corruption, Fenced, InvalidUsage
from tidemark.model.change import Change, committed_at
from tidemark.model.transition import AlreadyApplied, Applied, FencedOff, Stale, apply, conflict, overtaken
from tidemark.storage.documents import document
from tidemark.storage.documents.codec import VersionRecord, with_checksum
from tidemark.storage.log import plans
from tidemark.storage.log.head import COLLECTION_GRACE as COLLECTION_GRACE
from tidemark.storage.log.head import PLAN_LIMIT, STALL_LIMIT, boot, uptime
from tidemark.storage.log.head import Committed as Committed
from tidemark.storage.log.head import Head as Head
from tidemark.storage.log.versions import CHECKPOINT_EVERY as CHECKPOINT_EVERY
from tidemark.storage.log.versions import FOLDER_SIZE as FOLDER_SIZE
from tidemark.storage.log.versions import Version, Versions, check_follows, key_of
from tidemark.storage.log.written import Written
from tidemark.storage.stores.store import AlreadyExists, Indeterminate, Missing, ObjectStore, Unavailable, Unwritable

ATTEMPTS = 100
"""Lost races before a commit gives up. 16 writers at once lose about 16 in a row at worst; this leaves room."""
LOOKS = 3
"""Times a load starts over because what it was reading was collected meanwhile."""


@dataclass
class StateLog:
    """The versions of one collection in `store`, which is rooted at the collection.

    `new_id` names changes, `writer` is recorded for people; `wall` and `monotonic` are seconds, the latter since what
    `boot` names; all come from outside, so that a test can choose them.

    It remembers the newest head it came to, and goes on from there as long as that version is what it was: what was
    folded is not folded again. So a job's second load reads one version and looks for one more.
    """

    store: ObjectStore
    new_id: Callable[[], str]
    writer: str = ""
    wall: Callable[[], float] = time.time
    monotonic: Callable[[], float] = uptime
    boot: Callable[[], str] = boot
    pause: Callable[[float], None] = time.sleep
    _dice: random.Random = field(default_factory=random.Random)
    _known: Head | None = field(default=None, init=False, repr=False, compare=False)

    @property
    def versions(self) -> Versions:
        return Versions(self.store, self.pause)

    def load(self, version: int | None = None) -> Head:
        """The newest state, or the one at `version`. InvalidUsage if that version is not there, or no longer."""
        if version is not None:
            return self._loaded(version)
        if head := self._followed():
            return self._remembered(head)
        for _ in range(LOOKS):
            looked, newest = self.monotonic(), self.newest_version()
            try:
                return self._remembered(self._at(newest, looked))
            except Missing as missing:
                if self.newest_version() == newest:
                    raise Corruption(f"{missing} is missing below {newest}") from None
        raise Contention(f"the newest version was collected {LOOKS} times while it was read; run the step again")

    def replay(self) -> Head:
        """The newest state folded from the oldest retained version on, trusting no checkpoint but that one's.

        Raises Corruption where a version does not follow its predecessor or is missing without having been planned to
        go, or a checkpoint is not the fold of the changes before it.
        """
        looked, newest = self.monotonic(), self.newest_version()
        missing = self.versions.highest_missing(down_to=self._collected_below())
        if missing is not None:
            raise Corruption(f"version {missing} is missing below {newest}")
        oldest = self.oldest_version()
        return self._folded_to(self._start(oldest, looked) if oldest > 1 else Head(0, "", None, looked), newest)

    def oldest_version(self) -> int:
        """The oldest version that can be loaded; 0 if there is none."""
        return self.versions.oldest(upto=self._collected_below())

    def _collected_below(self) -> int:
        """No version from here on was ever planned to go."""
        return max(1, plans.versions_below(self.store, self.pause))

    def newest_version(self) -> int:
        """The number of the newest version; 0 if there is none."""
        return self.versions.newest()

    def exists(self) -> bool:
        """Whether there is a collection: it was created, and not dropped since. Reads one version."""
        return self.versions.exist()

    def commit(self, base: Head, change: Change) -> Committed | Stale:
        """Record `change`, planned against `base`, as the next version.

        Where others commit first, their changes are folded and this one is tried again as long as it fits. Objects that
        no state has named before must be there, or the answer is Lost. Safe to call again with the same change
        after any error. Raises Fenced if a newer attempt has taken over, Contention if too many races were lost,
        UpgradeRequired if a newer Tidemark has committed meanwhile, Unavailable if the store is full, read-only or kept
        refusing, CommitUnknown if it never said whether the version was created.
        """
        identity = self.new_id()
        written = Written(self.store, change, base.arrangement, PLAN_LIMIT, self.pause)
        head, unknown, failure = base, False, None
        for attempt in range(ATTEMPTS):
            try:
                looked = self._caught_up(head, written, identity)
                if isinstance(looked, Stale | Committed):
                    return looked
                head = looked
                now = int(self.wall() * 1_000_000)
                outcome = apply(head.arrangement, committed_at(change, now))
                if isinstance(outcome, AlreadyApplied):
                    return Committed(head, False)
                self._check_present(head)
                if isinstance(outcome, FencedOff):
                    raise Fenced(outcome.reason)
                if isinstance(outcome, Stale):
                    return outcome
                self._check_fresh(base, head)
                if reason := written.lost():
                    return Lost(f"{reason}; write it again")
                return Committed(self._remembered(self._create(head, change, identity, outcome, now)), True)
            except _Collected as collected:
                raise (CommitUnknown if unknown else Contention)(f"{collected}; run the step again") from None
            except Unwritable as full:
                raise self._failed(full, head.version + 1, unknown) from None
            except AlreadyExists:
                failure = None
            except Unavailable as refused:
                failure = refused
            except Indeterminate:
                unknown = True
            self.pause(self._dice.uniform(0, min(1.0, 0.002 * 2 ** min(attempt, 9))))
        if unknown:
            raise CommitUnknown(
                f"the store did not say whether version {head.version + 1} was created; run the step again"
            )
        if failure is not None:
            raise self._failed(failure, head.version + 1, unknown)
        raise Contention(f"lost {ATTEMPTS} races for version {head.version + 1}; run the step again")

    @staticmethod
    def _failed(failure: Unavailable, version: int, unknown: bool) -> Unavailable | CommitUnknown:
        if unknown:
            return CommitUnknown(
                f"the store did not say whether version {version} was created, and then failed: {failure}; "
                "mend it and run the step again"
            )
        return type(failure)(f"version {version} was not created: {failure}")

    def _caught_up(self, head: Head, written: Written, identity: str) -> Head | Stale | Committed:
        """The head after what others committed; Committed if the change is among it, Stale if it no longer fits."""
        head, newest = self._looked_again(head)
        mine = False
        for version, seen_at in self._after(head, newest):
            head = _folded(head, version, seen_at)
            mine = mine or version.record.id == identity
            written.follows(version.record.change)
            if not mine and (newer := overtaken(written.change, version.record.change)):
                raise Fenced(newer.reason)
            if not mine and (stale := conflict(written.change, version.record.change)):
                return stale
        return Committed(head, True) if mine else head

    def history(self, upto: int | None = None) -> Iterator[VersionRecord]:
        """The versions' records, newest first, down to the oldest retained."""
        version, named = self.newest_version() if upto is None else upto, None
        while version and (found := self.versions.read(version)):
            if named is not None and found.sha256 != named:
                return  # a stray
            yield found.record
            version, named = version - 1, found.record.previous

    def _loaded(self, version: int) -> Head:
        """The state at one version, which must be of the history and retained."""
        looked, newest = self.monotonic(), self.newest_version()
        if not 0 < version <= newest:
            raise InvalidUsage(f"there is no version {version}; the newest is {newest}")
        try:
            head = self._at(version, looked)
            if version < newest:
                check_follows(self.versions.present(version + 1), head.sha256, version)
            return head
        except (Missing, Corruption) as error:
            oldest = self.oldest_version()
            if version < oldest:
                raise InvalidUsage(f"version {version} was collected; the oldest retained is {oldest}") from None
            if isinstance(error, Missing):
                raise Corruption(f"{error} is missing below {newest}") from None
            raise

    def _check_present(self, head: Head) -> None:
        """Contention if the version that is built upon is gone, as where somebody removed the collection's folder: its
        successor alone would be half a collection."""
        if not self.versions.holds(head.version, head.sha256):
            raise Contention(
                f"version {head.version} is not there any more: was the collection's folder removed? Run the step again"
            )

    def _check_fresh(self, base: Head, head: Head) -> None:
        """Contention if this process stalled since it last looked, or its plan is so old that what it wrote may be
        gone."""
        if self.monotonic() - base.seen_at > PLAN_LIMIT:
            raise Contention(
                f"planned more than {PLAN_LIMIT / 3600:.0f} h ago, at version {base.version}: what was written since "
                "may have been collected; run the step again"
            )
        if self.monotonic() - head.seen_at > STALL_LIMIT:
            raise Contention(
                f"stalled for more than {STALL_LIMIT:.0f} s after version {head.version}; run the step again"
            )

    def _create(self, head: Head, change: Change, identity: str, outcome: Applied, now: int) -> Head:
        version = head.version + 1
        checkpoint = outcome.state if version % CHECKPOINT_EVERY == 0 else None
        change = committed_at(change, now)
        record = VersionRecord(version, head.sha256, identity, now, self.writer, change, checkpoint)
        data, seen_at = with_checksum(document.write(record)), self.monotonic()
        self.store.create(key_of(version), data)
        created = Head(version, hashlib.sha256(data).hexdigest(), outcome.state, seen_at)
        if self.monotonic() - head.seen_at > STALL_LIMIT:
            self._check_not_stray(created)
        return created

    def _check_not_stray(self, created: Head) -> None:
        """After a stall around a create: whether the version belongs to the history, which went on from another of its
        number if that was created, superseded and collected meanwhile.

        Contention if it is a stray, CommitUnknown if it is gone, and so its successor: by then nobody can know.
        """
        newest = self.newest_version()
        following = self.versions.read(created.version + 1)
        if newest == created.version or (following and following.record.previous == created.sha256):
            return
        stalled = f"version {created.version} was created after a stall, when the newest was {newest}"
        # Versions go oldest first: were this one of the history, it would have gone before its successor.
        if following is None and self.versions.read(created.version) is None:
            raise CommitUnknown(f"{stalled}, and was collected since; run the step again")
        raise Contention(f"{stalled}, and is none of its predecessors; run the step again")

    def _looked_again(self, head: Head) -> tuple[Head, int]:
        """The head and a version known to exist. After a stall a missing next version proves nothing, as it may have
        been created and collected meanwhile: so the newest is looked up, and the head is known again if it is that."""
        looked = self.monotonic()
        if looked - head.seen_at <= STALL_LIMIT:
            return head, head.version
        newest = self.newest_version()
        if newest < head.version:
            raise Corruption(f"the newest version is {newest}, but {head.version} was seen before")
        return replace(head, seen_at=looked), newest

    def _after(self, head: Head, newest: int) -> Iterator[tuple[Version, float]]:
        """Versions newer than `head`, at least up to `newest`, each with when it was asked for."""
        number, asked = head.version + 1, self.monotonic()
        while (version := self.versions.read(number)) is not None:
            yield version, asked
            number, asked = number + 1, self.monotonic()
        if number <= newest:
            raise _Collected(f"version {number} was collected during a stall")

    def _followed(self) -> Head | None:
        """The newest state, by what came after the head that is known; None if that says nothing: none is known, it was
        seen so long ago that what came next may have been collected since, or it is not there any more, as where a
        collection was removed and made again."""
        looked, known = self.monotonic(), self._known
        if known is None or looked - known.seen_at > STALL_LIMIT:
            return None
        if not self.versions.holds(known.version, known.sha256):
            return None
        head = replace(known, seen_at=looked)
        for version, seen_at in self._after(head, head.version):
            head = _folded(head, version, seen_at)
        return head if self.monotonic() - looked <= STALL_LIMIT else None

    def _remembered(self, head: Head) -> Head:
        self._known = head
        return head

    def _at(self, wanted: int, looked: float) -> Head:
        """The state at a version, from the checkpoint before it. Missing where an object is not there."""
        start = wanted // CHECKPOINT_EVERY * CHECKPOINT_EVERY
        return self._folded_to(self._start(start, looked) if start else Head(0, "", None, looked), wanted)

    def _start(self, version: int, looked: float) -> Head:
        """The state a checkpoint holds. Missing if it is not there."""
        found = self.versions.present(version)
        return Head(version, found.sha256, found.record.checkpoint, looked)

    def _folded_to(self, head: Head, wanted: int) -> Head:
        for number in range(head.version + 1, wanted + 1):
            head = _folded(head, self.versions.present(number), head.seen_at)
        return head


@dataclass(frozen=True)
class Lost(Stale):
    """What an attempt wrote is not there any more, or will not be; plan and execute again."""


class _Collected(Exception):
    """What was to be folded next is there no longer."""


def _folded(head: Head, version: Version, seen_at: float) -> Head:
    record = version.record
    check_follows(version, head.sha256, head.version)
    outcome = apply(head.arrangement, record.change)
    state = outcome.state if isinstance(outcome, Applied) else head.arrangement
    if not isinstance(outcome, Applied | AlreadyApplied):
        raise Corruption(f"version {record.version} does not apply: {outcome.reason}")
    if record.checkpoint is not None and record.checkpoint != state:
        raise Corruption(f"the checkpoint of version {record.version} is not the fold of its changes")
    return Head(record.version, version.sha256, state, seen_at)
