"""The questions a store is asked: each is a few requests and becomes an observation (model/guarantee.py).

Every object has its key below one folder that no other probe shares. A request that fails for another reason than the
store's promises (no permission, no answer) is no observation: its error is raised as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from threading import Barrier

from tidemark.errors import InvalidUsage, Unavailable, Unwritable
from tidemark.model.guarantee import Answer, Created, CreatedAgain, Listed, Observation, Raced, Repeated
from tidemark.storage.log.versions import retried
from tidemark.storage.stores.store import (
    AlreadyExists,
    Conflict,
    Indeterminate,
    Missing,
    ObjectStore,
    Remote,
    Unsupported,
)

WRITERS = 8
"""Creates of one key at once."""
RACES = 4
"""Keys that are raced for."""
BODY = 64 * 1024
"""Bytes of what racing writers send: a store that looks first and writes then takes a while for that."""
LISTED = "a"
"""A folder in the folder of the probe. Its name comes first, so that it is empty before the one above it is."""
TRIES = 6
"""Times a create is sent while its answer says neither success nor refusal."""
TOGETHER = 60.0
"""Seconds after which writers that wait for each other give up."""


@dataclass
class Questions:
    """Asks `store` below `folder`, a key that ends in `/`. `keys` are those that may have an object by now: a create of
    them was sent, and not refused for want of permission."""

    store: ObjectStore
    folder: str
    pause: Callable[[float], None]
    keys: set[str] = field(default_factory=set)

    def ask(self) -> Iterator[Observation]:
        """All observations, one after the other: what later ones rest on comes first."""
        self._other = self.store.another() if isinstance(self.store, Remote) else self.store
        first = self._key("b")
        yield self._created(first)
        yield self._created_again(first)
        yield self._listed([first, self._key("c"), self._key(f"{LISTED}/1"), self._key("b-2")])
        yield self._repeated(self._key("cut"))
        for number in range(RACES):
            yield self._raced(self._key(f"race-{number}"))

    def _created(self, key: str) -> Created:
        data = self._content("first")
        self._read(key)  # a store that remembers what it did not find must forget that
        answer = self._create(key, data)
        return Created(answer, data, self._read(key))

    def _created_again(self, key: str) -> CreatedAgain:
        answer = self._create(key, self._content("second"))
        return CreatedAgain(answer, self._content("first"), self._read(key))

    def _listed(self, keys: list[str]) -> Listed:
        for key in keys[1:]:
            self._create(key, self._content("listed"))
        listed = retried(lambda: self._other.keys(self.folder), self.pause)
        folders = retried(lambda: self._other.folders(self.folder), self.pause)
        return Listed(tuple(keys), tuple(listed), LISTED, tuple(folders))

    def _repeated(self, key: str) -> Repeated:
        data = self._content("cut")
        self.keys.add(key)
        if isinstance(self.store, Remote):
            self.store.create_unheard(key, data)
        else:
            with suppress(AlreadyExists, Indeterminate, Unavailable):
                self.store.create(key, data)
        answer = self._create(key, data)
        return Repeated(answer, data, self._read(key))

    def _raced(self, key: str) -> Raced:
        wrote = [self._content(f"writer {number}").ljust(BODY) for number in range(WRITERS)]
        start = Barrier(WRITERS, timeout=TOGETHER)

        def race(data: bytes) -> Answer:
            start.wait()
            return self._create(key, data)

        with ThreadPoolExecutor(WRITERS) as pool:
            answers = tuple(pool.map(race, wrote))
        return Raced(answers, tuple(wrote), self._read(key))

    def _key(self, name: str) -> str:
        return f"{self.folder}{name}"

    def _content(self, name: str) -> bytes:
        """Content that no other request of this probe or another has."""
        return f"Tidemark asks this store what it promises; this object may be removed. {self.folder}{name}".encode()

    def _create(self, key: str, data: bytes) -> Answer:
        """The answer to a create, which is sent again while its answer says neither success nor refusal."""
        last: Exception = Unavailable(key)
        known = key in self.keys
        for attempt in range(TRIES):
            try:
                self.keys.add(key)
                self.store.create(key, data)
                return Answer.CREATED
            except AlreadyExists:
                return Answer.TAKEN
            except Unsupported:
                return Answer.UNSUPPORTED
            except (InvalidUsage, Unwritable):
                if not known and not attempt:
                    self.keys.discard(key)
                raise
            except (Indeterminate, Unavailable) as error:
                last = error
            self.pause(0.02 * 2**attempt)
        if isinstance(last, Conflict):
            return Answer.CONFLICT
        raise Unavailable(f"the store did not answer {TRIES} creates of {key}: {last}; run it again when it does")

    def _read(self, key: str) -> bytes | None:
        """What another connection reads; None if it finds no object."""
        try:
            return retried(lambda: self._other.read(key), self.pause)
        except Missing:
            return None
