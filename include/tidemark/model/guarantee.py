"""What Tidemark relies on of a store, and what an observation of a store says about that.

A commit creates version N+1 if it is absent. So of several creates of one key exactly one may succeed, and everybody
must see which one. An observation is what a store answered when it was asked on purpose (storage/probe/); it proves
nothing for ever, but a store that breaks a guarantee when it is asked would lose or repeat commits later.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise


class Guarantee(StrEnum):
    """What is relied on, by its name in certificates; the last two of file systems only."""

    FOLDER_SYNC = "folder sync"
    HARD_LINKS = "hard links"
    ONLY_IF_TAKEN = "refused only if taken"
    READ_AFTER_WRITE = "read after write"
    TAKEN_IS_REFUSED = "taken is refused"
    LIST_AFTER_WRITE = "list after write"
    LIST_IN_ORDER = "list in order"
    OWN_CREATE_FOUND = "own create found"
    ONE_WINNER = "one winner"
    WINNER_STAYS = "winner stays"

    @property
    def promise(self) -> str:
        """What a store has to keep, as a sentence without its end."""
        return _PROMISES[self]


FILE_SYSTEMS_ONLY = frozenset({Guarantee.FOLDER_SYNC, Guarantee.HARD_LINKS})

_PROMISES = {
    Guarantee.FOLDER_SYNC: "fsync of a folder must make the names in it durable",
    Guarantee.HARD_LINKS: "a hard link must be made at a free name, and be refused at a name that is taken",
    Guarantee.ONLY_IF_TAKEN: "a create must be refused only where the key is taken",
    Guarantee.READ_AFTER_WRITE: "an object must be readable as it was written, as soon as its create has succeeded",
    Guarantee.TAKEN_IS_REFUSED: "a create of a taken key must be refused as taken, and leave the object as it was",
    Guarantee.LIST_AFTER_WRITE: "an object must be listed as soon as its create has succeeded",
    Guarantee.LIST_IN_ORDER: "keys must be listed in ascending order",
    Guarantee.OWN_CREATE_FOUND: "a create that is repeated after its answer was lost must leave its own object, whole",
    Guarantee.ONE_WINNER: "of creates of one key at the same time exactly one must succeed",
    Guarantee.WINNER_STAYS: "of creates of one key at the same time the one that succeeded must be what the key holds",
}


class Answer(StrEnum):
    """What a create is answered with once a store has made up its mind."""

    CREATED = "a success"
    TAKEN = "a refusal, as the key is taken"
    CONFLICT = "a conflict, however often it was repeated"
    UNSUPPORTED = "that conditional creates are not supported"


@dataclass(frozen=True)
class Broken:
    """A guarantee that a store does not give, and what was seen."""

    guarantee: Guarantee
    seen: str

    def __str__(self) -> str:
        return f"{self.guarantee.promise}, but {self.seen}"


@dataclass(frozen=True)
class Synced:
    """Folders were synced; `refused` is what the file system said instead."""

    refused: str = ""

    def broken(self) -> Broken | None:
        return Broken(Guarantee.FOLDER_SYNC, f"here it fails: {self.refused}") if self.refused else None


@dataclass(frozen=True)
class Linked:
    """A file was linked to a free name, then another one to the same name; `refused` is what was said of the first,
    `second` whether the other one was linked, too."""

    refused: str = ""
    second: bool = False
    wrote: bytes = b""
    found: bytes | None = b""

    def broken(self) -> Broken | None:
        if self.refused:
            return Broken(Guarantee.HARD_LINKS, f"here a link at a free name fails: {self.refused}")
        if self.second:
            return Broken(Guarantee.HARD_LINKS, "here a second link at the same name succeeded")
        if self.found != self.wrote:
            return Broken(Guarantee.HARD_LINKS, f"here the name {_found(self.found)} after a second link was refused")
        return None


@dataclass(frozen=True)
class Created:
    """One create of a free key by nobody else, and what another connection read right after it."""

    answer: Answer
    wrote: bytes
    found: bytes | None

    def broken(self) -> Broken | None:
        if self.answer is Answer.UNSUPPORTED:
            return Broken(Guarantee.TAKEN_IS_REFUSED, f"the store answered {self.answer}")
        if self.found == self.wrote and self.answer is not Answer.CONFLICT:
            return None  # one that is refused met its own object: an earlier answer was lost
        if self.answer is Answer.CREATED:
            return Broken(Guarantee.READ_AFTER_WRITE, f"after a success the key {_found(self.found)}")
        return Broken(Guarantee.ONLY_IF_TAKEN, f"a create of a free key was answered by {self.answer}")


@dataclass(frozen=True)
class CreatedAgain:
    """A create of a key that is taken, by other content; what the key contained before and after it."""

    answer: Answer
    before: bytes
    found: bytes | None

    def broken(self) -> Broken | None:
        if self.answer is not Answer.TAKEN:
            return Broken(Guarantee.TAKEN_IS_REFUSED, f"a create of a taken key was answered by {self.answer}")
        if self.found != self.before:
            return Broken(Guarantee.TAKEN_IS_REFUSED, f"after a refused create the key {_found(self.found)}")
        return None


@dataclass(frozen=True)
class Listed:
    """Keys that were created, in whatever order, and a listing of their folder right after it; `folders` are those that
    a listing of folders gave, among which theirs must be."""

    created: tuple[str, ...]
    listed: tuple[str, ...]
    folder: str
    folders: tuple[str, ...]

    def broken(self) -> Broken | None:
        missing = len(set(self.created) - set(self.listed))
        if missing:
            return Broken(Guarantee.LIST_AFTER_WRITE, f"{missing} of {len(self.created)} objects are not listed")
        if self.folder not in self.folders:
            return Broken(Guarantee.LIST_AFTER_WRITE, "the folder of a new object is not listed")
        if any(first >= second for first, second in pairwise(self.listed)):
            return Broken(Guarantee.LIST_IN_ORDER, f"they came as {', '.join(map(_last, self.listed))}")
        return None


@dataclass(frozen=True)
class Repeated:
    """A create whose connection was cut before the answer, the answer to the same create sent again, and what the key
    holds then."""

    answer: Answer
    wrote: bytes
    found: bytes | None

    def broken(self) -> Broken | None:
        if self.answer is Answer.CONFLICT:
            return Broken(Guarantee.OWN_CREATE_FOUND, f"the second one was answered by {self.answer}")
        if self.found != self.wrote:
            return Broken(Guarantee.OWN_CREATE_FOUND, f"after {self.answer} the key {_found(self.found)}")
        return None


@dataclass(frozen=True)
class Raced:
    """Creates of one key at once: what each was answered and wrote, and what the key holds afterwards."""

    answers: tuple[Answer, ...]
    wrote: tuple[bytes, ...]
    found: bytes | None

    def broken(self) -> Broken | None:
        winners = [data for answer, data in zip(self.answers, self.wrote, strict=True) if answer is Answer.CREATED]
        if not winners and self.found in self.wrote:
            return None  # its writer did not learn of its success, and finds it as after any lost answer
        if len(winners) != 1:
            return Broken(Guarantee.ONE_WINNER, f"{len(winners)} of {len(self.answers)} succeeded")
        if self.found != winners[0]:
            other = "holds what another one wrote" if self.found in self.wrote else _found(self.found)
            return Broken(Guarantee.WINNER_STAYS, f"it {other}")
        return None


Observation = Synced | Linked | Created | CreatedAgain | Listed | Repeated | Raced


def _found(content: bytes | None) -> str:
    return "has no object" if content is None else f"holds other content, of {len(content)} bytes"


def _last(key: str) -> str:
    return key.rpartition("/")[2]
