"""Which changes do not commute although the state alone would let both pass."""

from __future__ import annotations

import pytest

from support.world import collection, interval
from tidemark.model.arrangement import Arrangement, Fence, Hold, LedgerRun
from tidemark.model.batch import Description, ObjectRef, TraceBatch
from tidemark.model.change import (
    REPLAY,
    Attempted,
    Change,
    Compacted,
    Created,
    Drained,
    Dropped,
    HoldPlaced,
    Ingested,
    LedgerMerged,
    Quarantined,
    Redefined,
    Released,
    Restored,
    Sealed,
)
from tidemark.model.full_snapshot import Effect, FullSnapshot
from tidemark.model.transition import Overtaken, conflict

FENCE = Fence("step", interval(0), "t")
RUN = LedgerRun(ObjectRef("ledger/1.json", 1, "0"), 1, "a", "a")
DRAINED = Drained(FENCE, TraceBatch("x", Description(0, 10), 0, 0, 0, 0))
COMPACTED = Compacted(FENCE, ("x",), TraceBatch("y", Description(0, 10), 0, 0, 0, 0))
REDEFINED = Redefined(collection())
DROPPED, RESTORED = Dropped("tides"), Restored(1, Arrangement(collection()))
HOLD_PLACED = HoldPlaced(Hold("report", 0))


REPLAYED = Ingested(Fence(REPLAY, interval(0), "t"), None, RUN, (7,))


CORRECTED = Ingested(FENCE, None, RUN, (9,), corrected=1)


WITHDRAWN = Ingested(
    FENCE,
    None,
    RUN,
    (9,),
    corrected=1,
    snapshot=FullSnapshot("w", interval(0), 0, effect=Effect.WITHDRAWN, learned_at=40),
)


def of_snapshot(day: int, effect: Effect, source: int) -> Ingested:
    return Ingested(FENCE, None, RUN, (source,), snapshot=FullSnapshot("s", interval(day), 1, effect=effect))


def ingested(*sources: int) -> Ingested:
    return Ingested(FENCE, None, RUN, sources)


@pytest.mark.parametrize(
    ("mine", "theirs"),
    [
        (ingested(1, 2), ingested(2, 3)),
        (ingested(1), Released("b", RUN, (1,))),
        (Released("b", RUN, (1,)), ingested(1)),
        # Dead letters count only as long as the file they came in does.
        (REPLAYED, Quarantined("b", RUN)),
        (Quarantined("b", RUN), REPLAYED),
        (Released("replayed", RUN, (7,)), Quarantined("b", RUN)),
        (Quarantined("b", RUN), Released("replayed", RUN, (7,))),
        (REPLAYED, REPLAYED),
        # A correction is the difference to what a file contributed, by whatever batch.
        (CORRECTED, Quarantined("b", RUN)),
        (Quarantined("b", RUN), CORRECTED),
        (CORRECTED, REPLAYED),
        (REPLAYED, CORRECTED),
        (CORRECTED, CORRECTED),
        (CORRECTED, Released("b", RUN, (9,))),
        # What is put back may be a replay of its letters.
        (CORRECTED, Released("replayed", RUN, (7,))),
        (Released("replayed", RUN, (7,)), CORRECTED),
        (REPLAYED, Released("replayed", RUN, (7,))),
        # A full snapshot is all files of its interval: one that another run took or put back is withdrawn, too.
        (WITHDRAWN, of_snapshot(0, Effect.CORRECTED, 10)),
        (of_snapshot(0, Effect.CORRECTED, 10), WITHDRAWN),
        (WITHDRAWN, Released("b", RUN, (10,))),
        (of_snapshot(0, Effect.CORRECTED, 10), of_snapshot(0, Effect.ANNOUNCED, 11)),
        # Its rows may be among those the drain has read.
        (DRAINED, Quarantined("b", RUN)),
        # What it touched may be certified no longer; its rows may be judged otherwise now.
        (DRAINED, REDEFINED),
        # Of one that was dropped nothing planned before goes on, also where another one has its name by now.
        (DRAINED, DROPPED),
        (REDEFINED, DROPPED),
        (HOLD_PLACED, DROPPED),
        # Who began to use it since must be asked.
        (DROPPED, HOLD_PLACED),
        (DROPPED, Created(collection())),
        (DROPPED, RESTORED),
        (COMPACTED, REDEFINED),
        (ingested(1), REDEFINED),
        # A column's number is given once; and what came may not fit a column that gets wider.
        (REDEFINED, REDEFINED),
        (REDEFINED, ingested(1)),
    ],
)
def test_planned_again(mine: Change, theirs: Change):
    assert isinstance(conflict(mine, theirs), Overtaken)


@pytest.mark.parametrize(
    ("mine", "theirs"),
    [
        (WITHDRAWN, of_snapshot(1, Effect.CORRECTED, 10)),
        (of_snapshot(0, Effect.ANNOUNCED, 10), Released("b", RUN, (11,))),
        (ingested(1), ingested(2)),
        (ingested(1), Quarantined("b", RUN)),
        (DROPPED, ingested(1)),
        (RESTORED, DROPPED),
        (Quarantined("a", RUN), Quarantined("b", RUN)),
        (Released("a", RUN, (1,)), Released("b", RUN, (2,))),
        (REPLAYED, ingested(1)),
        (CORRECTED, ingested(1)),
        (CORRECTED, DRAINED),
        (CORRECTED, COMPACTED),
        (REPLAYED, DRAINED),
        (ingested(1), COMPACTED),
        (DRAINED, ingested(1)),
        (DRAINED, COMPACTED),
        (COMPACTED, DRAINED),
        (COMPACTED, Quarantined("b", RUN)),
        (Attempted(FENCE), REDEFINED),
        (REDEFINED, COMPACTED),
        (Sealed(1, 1, 1), ingested(1)),
        (LedgerMerged(("a",), RUN), ingested(1)),
    ],
)
def test_commute(mine: Change, theirs: Change):
    assert conflict(mine, theirs) is None
