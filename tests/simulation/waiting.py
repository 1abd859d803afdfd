"""Work that is done and waits to be committed, so that others commit in between."""

from __future__ import annotations

from tidemark.model.change import REPLAY, AheadMerged, Change, Compacted, Drained, Ingested, Remembered, Trimmed
from tidemark.model.transition import Stale
from tidemark.storage.log.log import Committed, Head, StateLog


class Waiting(Exception):
    """A change that is ready to be committed, and is not."""

    def __init__(self, head: Head, change: Change) -> None:
        self.head, self.change, self.day = head, change, 0


class HoldingLog(StateLog):
    """Stops where the result of an execution would be committed."""

    holds: tuple[type[Change], ...] = (Ingested, Drained, Compacted, Trimmed, Remembered, AheadMerged)

    def commit(self, base: Head, change: Change) -> Committed | Stale:
        if isinstance(change, self.holds):
            raise Waiting(base, change)
        return super().commit(base, change)


def is_replay(change: Change) -> bool:
    return isinstance(change, Ingested) and change.fence.step == REPLAY
