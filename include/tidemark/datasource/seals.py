"""Which seals a collection had, from the versions of its log; and at which of them a stream is.

A seal makes final what was learned up to a time. A stream takes one interval between two seals after another. An
*offset* says how far it is:

    upto         what was learned up to this time, microseconds, has been read; -1: nothing yet
    version      the version that made that final, or a later one: there the batch that ends here is read
    incarnation  which collection of that name it is
    after        the `upto` of the offset before it: where the batch that ends here begins

An example, of a collection that is sealed to 20 by version 5 and to 30 by version 9:

    beginning  {upto: -1, version: 2, after: -1}
    batch 0    {upto: 19, version: 5, after: -1}    changes after the beginning up to 19, read in version 5
    batch 1    {upto: 29, version: 9, after: 19}    changes after 19 up to 29, read in version 9

So a batch that is repeated is read in the version in which it was read before, and has the same rows; its columns are
always those of today, as in every read. Where that version was collected it is read in the oldest that is kept: the
changes are the same, as a seal is final; only event times below `since` are those that `since` has forwarded by then.
If versions between two batches were collected, a batch ends at the first seal that is still known, and may span
several.

What it costs: each version is read once in the life of a stream, none while nothing new is sealed but the newest and
the one behind it. A stream that starts at a time looks for it by halving: some 16 small objects for each halving.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from tidemark.api.pinned import Pinned, pinned
from tidemark.api.within import oldest_sealed
from tidemark.errors import InvalidUsage
from tidemark.model.arrangement import Arrangement
from tidemark.model.change import Sealed
from tidemark.model.instant import format_instant
from tidemark.storage.log.log import Head

BEGINNING = -1
"""Before all that was ever learned."""


@dataclass(frozen=True)
class Offset:
    """How far a stream is."""

    upto: int
    version: int
    incarnation: str
    after: int

    def as_json(self) -> dict[str, Any]:
        """What Spark keeps in the checkpoint."""
        return asdict(self)


def offset_of(json: Mapping[str, Any]) -> Offset:
    """The offset that a checkpoint holds. InvalidUsage if it is none of ours."""
    try:
        return Offset(int(json["upto"]), int(json["version"]), str(json["incarnation"]), int(json["after"]))
    except (KeyError, TypeError, ValueError):
        raise InvalidUsage(
            f"tidemark: {json!r} in the checkpoint is no offset of a collection; start with a new one"
        ) from None


class Seals:
    """The seals of one collection. It remembers the newest version that it saw, and goes on from there."""

    def __init__(self, root: str, name: str) -> None:
        self._root, self._name = root, name
        self._log = pinned(root, name).log

    def newest(self) -> Head:
        """The newest version."""
        return self._log.load()

    def start(self, time: int | None) -> Offset:
        """The offset of who has read what was learned up to a time, -1 for nothing; None: up to the newest seal.

        Raises InvalidUsage for a time that is not readable, and for the beginning where it is none any more."""
        head = self.newest()
        state = head.state
        if time is None or time >= state.seal - 1:
            if time is not None and state.seal:
                self._check_time(state, time)
            upto = state.seal - 1 if time is None else time
            return Offset(upto, head.version, state.incarnation, upto)
        oldest = max(1, self._log.oldest_version())
        beyond = oldest_sealed(self._log, time + 2, head.version)
        if beyond == oldest:
            self._check_time(self._log.load(oldest).state, time)
        return Offset(time, 0 if beyond == oldest else beyond - 1, state.incarnation, time)

    def next(self, start: Offset, most: int | None, upto_version: int | None = None) -> Offset:
        """The offset `most` seals (None: all there are) after `start`, as far as there are so many up to a version
        (None: the newest); `start` itself where there is none.

        Raises InvalidUsage where the offset belongs to another collection of that name, or what follows it was
        merged."""
        head = self.newest()
        self._check_same(start, head.state)
        last = head.version if upto_version is None else min(head.version, upto_version)
        if head.state.seal - 1 <= start.upto:
            return start
        found = start.upto, start.version
        for count, (version, seal) in enumerate(self._after(start, last), start=1):
            found = seal - 1, version
            if count == most:
                break
        if found[0] == start.upto:
            return start
        reached = Offset(*found, start.incarnation, start.upto)
        self.at(reached)
        return reached

    def at(self, end: Offset) -> Pinned:
        """The collection in the version in which the batch that ends at an offset is read, in the columns of today, as
        every read has them.

        Raises InvalidUsage where what the batch holds cannot be read any more, and says what to do."""
        try:
            found = pinned(self._root, self._name, end.version)
        except InvalidUsage:
            found = pinned(self._root, self._name, max(end.version, self._log.oldest_version()))
        self._check_same(end, found.state)
        self._check_kept(end, found.state)
        today = replace(found.state, collection=self.newest().state.collection)
        return replace(found, head=replace(found.head, arrangement=today))

    def _after(self, start: Offset, last: int) -> Iterator[tuple[int, int]]:
        """The versions after an offset that sealed more, up to `last`, each with its seal."""
        seal, number = start.upto + 1, start.version + 1
        while number <= last:
            version = self._log.versions.read(number)
            if version is None:  # collected: what is known of it is in the oldest that is kept
                number = max(number, self._log.oldest_version())
                change_seal = self._log.load(number).state.seal
            else:
                change = version.record.change
                change_seal = change.upper if isinstance(change, Sealed) else 0
            if change_seal > seal:
                seal = change_seal
                yield number, seal
            number += 1

    def _check_time(self, state: Arrangement, time: int) -> None:
        if max(time, 0) < state.since and state.seal:
            shown = "the beginning" if time == BEGINNING else format_instant(time)
            raise InvalidUsage(
                f"tidemark: {shown} is before since {format_instant(state.since)} of {self._name}: what was learned "
                "until then is merged; read it as of that time, and start the stream there"
            )
        if time >= state.seal:
            raise InvalidUsage(
                f"tidemark: {format_instant(time)} is not sealed yet in {self._name}; the newest readable is "
                f"{format_instant(state.seal - 1)}: start there, or at `newest`"
            )

    def _check_same(self, offset: Offset, state: Arrangement) -> None:
        if offset.incarnation != state.incarnation:
            raise InvalidUsage(
                f"tidemark: the checkpoint belongs to a collection {self._name} that was removed; another was "
                "created under this name: start with a new checkpoint and an empty sink"
            )

    def _check_kept(self, end: Offset, state: Arrangement) -> None:
        """Of changes the exact ones are there from `since` on; from the beginning while that has not moved."""
        if end.after >= state.since or (end.after == BEGINNING and state.since == 0):
            return
        shown = "the beginning" if end.after == BEGINNING else format_instant(end.after)
        since = format_instant(state.since)
        raise InvalidUsage(
            f"tidemark: the stream is at {shown}, and since of {self._name} has moved on to {since}: what was learned "
            f"between is merged; read the collection as of {since} into the sink, start there with a new checkpoint, "
            "and give the stream a hold"
        )
