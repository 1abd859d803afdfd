"""Whether the versions are one history: each names its predecessor's hash and applies; checkpoints are their fold."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

from tidemark.errors import Corruption, TidemarkError, plain_line
from tidemark.model.arrangement import Arrangement
from tidemark.model.transition import Applied, FencedOff, Stale, apply
from tidemark.storage.log.log import StateLog
from tidemark.storage.log.versions import CHECKPOINT_EVERY, Version, key_of

READERS = 16
WINDOW = 256
"""Versions read ahead: some megabytes."""


@dataclass(frozen=True)
class Finding:
    """One broken promise: the rule, what was expected and found, and the batch and the object at fault, as far as they
    are known."""

    rule: str
    detail: str
    batch: str = ""
    object: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "detail", plain_line(self.detail))

    @property
    def subject(self) -> str:
        """Batch and object in one text, for people."""
        return ", ".join(filter(None, (f"batch {self.batch}" if self.batch else "", self.object))) or "state"


def verify_history(log: StateLog, progress: Callable[[str, int, int], None] = lambda *_: None) -> Iterator[Finding]:
    """Fold every retained version from the oldest, trusting no checkpoint but that one's, and go on behind what is
    broken: a version at fault does not hide another."""
    newest = log.newest_version()
    try:
        oldest = log.oldest_version()
    except Corruption as error:
        yield Finding(error.rule or "history", str(error))
        return
    fold = _Fold(newest)
    for number, version in _read(log, oldest, newest):
        yield from fold.add(number, version)
        progress("reading versions", number - oldest + 1, newest - oldest + 1)
    yield from fold.end(decided=False)


def _read(log: StateLog, first: int, last: int) -> Iterator[tuple[int, Version | Corruption | None]]:
    """The versions in order, several read at once; None for one that is not there."""

    def read(number: int) -> Version | Corruption | None:
        try:
            return log.versions.read(number)
        except Corruption as error:
            return error

    with ThreadPoolExecutor(READERS) as pool:
        for start in range(max(1, first), last + 1, WINDOW):
            numbers = range(start, min(start + WINDOW, last + 1))
            yield from zip(numbers, pool.map(read, numbers), strict=True)


class _Fold:
    """The history so far: the state, if it is known, and whether the last version names what came before it."""

    def __init__(self, newest: int) -> None:
        self._newest = newest
        self._state: Arrangement | None = None
        self._known, self._begun = True, False
        self._before: Version | None = None
        self._doubt: Finding | None = None

    def add(self, number: int, version: Version | Corruption | None) -> Iterator[Finding]:
        """Take the next version; what it shows to be wrong with itself or the one before."""
        if isinstance(version, Version):
            yield from self._chained(version)
            yield from self._folded(version)
            self._before = version
            return
        yield from self.end(decided=False)
        detail = f"version {number} is missing below {self._newest}" if version is None else str(version)
        yield Finding("history", detail, object=key_of(number))
        self._known, self._before = False, None

    def end(self, *, decided: bool) -> Iterator[Finding]:
        """What was in doubt: where no later version names the hash of the younger of two, either may be altered."""
        if self._doubt is not None:
            either = "" if decided else "; one of the two was altered"
            yield replace(self._doubt, detail=self._doubt.detail + either)
        self._doubt = None

    def _chained(self, version: Version) -> Iterator[Finding]:
        """A version that names another hash than that of the one before says that the one before was altered. If the
        next one does not name its hash either, it was altered itself."""
        before, named = self._before, version.record.previous
        if before is None:
            return
        if named == before.sha256:
            yield from self.end(decided=True)
            return
        detail = f"version {version.number} follows {named[:12]}, but {before.number} is {before.sha256[:12]}"
        self._known = False
        if self._doubt is None:
            self._doubt = Finding("history", detail, object=key_of(before.number))
        else:
            yield Finding("history", f"{self._doubt.detail}; {detail}", object=key_of(before.number))
            self._doubt = None

    def _folded(self, version: Version) -> Iterator[Finding]:
        """The state after a version; where it is not known, the next checkpoint gives it."""
        key, checkpoint = key_of(version.number), version.record.checkpoint
        if self._known and (self._begun or version.number == 1):
            try:
                outcome = apply(self._state, version.record.change)
            except TidemarkError as error:
                yield Finding(getattr(error, "rule", "") or "history", str(error), object=key)
                self._known = False
            else:
                if isinstance(outcome, Stale | FencedOff):
                    yield Finding("history", f"version {version.number} does not apply: {outcome.reason}", object=key)
                    self._known = False
                elif isinstance(outcome, Applied):
                    self._state, self._begun = outcome.state, True
            if self._known and checkpoint is not None and checkpoint != self._state:
                detail = f"the checkpoint of version {version.number} is not the fold of its changes"
                yield Finding("history", detail, object=key)
        if version.number % CHECKPOINT_EVERY == 0:
            self._state, self._known, self._begun = checkpoint, True, True
