"""The pure transition `apply(state, change)`: the only way a state becomes another.

Every transition is total, a no-op the second time, and indifferent to the stale.
"""

from __future__ import annotations

from tidemark.model.arrangement import Arrangement
from tidemark.model.change import (
    REPLAY,
    AheadMerged,
    Attempted,
    Certified,
    Change,
    CommitTimesStored,
    Compacted,
    CompactionAllowed,
    Corrected,
    Created,
    Drained,
    Dropped,
    HoldDropped,
    HoldPlaced,
    Ingested,
    LedgerMerged,
    Published,
    Publishing,
    Quarantined,
    Redefined,
    Refused,
    Released,
    Remembered,
    Restored,
    Sealed,
    Trimmed,
    Unpublished,
)
from tidemark.model.full_snapshot import Effect
from tidemark.model.transition.ahead import ahead_merged
from tidemark.model.transition.declarations import created, dropped, redefined, restored
from tidemark.model.transition.derived import corrected
from tidemark.model.transition.fences import attempted
from tidemark.model.transition.fences import overtaken as overtaken
from tidemark.model.transition.frontiers import (
    certified,
    commit_times_stored,
    compaction_allowed,
    hold_dropped,
    hold_placed,
    sealed,
)
from tidemark.model.transition.outcome import AlreadyApplied as AlreadyApplied
from tidemark.model.transition.outcome import Applied as Applied
from tidemark.model.transition.outcome import FencedOff as FencedOff
from tidemark.model.transition.outcome import Outcome as Outcome
from tidemark.model.transition.outcome import Overtaken as Overtaken
from tidemark.model.transition.outcome import Stale as Stale
from tidemark.model.transition.published import published, publishing, unpublished
from tidemark.model.transition.trace import compacted, drained
from tidemark.model.transition.trace import merged_trace as merged_trace
from tidemark.model.transition.unsealed import (
    ingested,
    ledger_merged,
    quarantined,
    refused,
    released,
    remembered,
    trimmed,
)


def apply(state: Arrangement | None, change: Change) -> Outcome:
    """What `change` makes of `state` (None before the collection was created)."""
    if isinstance(change, Created):
        return created(state, change)
    if isinstance(change, Dropped):
        return dropped(state, change)
    if isinstance(change, Restored):
        return restored(state, change)
    if state is None:
        return Stale("there is no collection: it was never created, or was dropped meanwhile")
    match change:
        case Redefined():
            return redefined(state, change)
        case Attempted():
            return attempted(state, change)
        case Ingested():
            return ingested(state, change)
        case Corrected():
            return corrected(state, change)
        case Refused():
            return refused(state, change)
        case Certified():
            return certified(state, change)
        case Sealed():
            return sealed(state, change)
        case Drained():
            return drained(state, change)
        case Compacted():
            return compacted(state, change)
        case LedgerMerged():
            return ledger_merged(state, change)
        case CommitTimesStored():
            return commit_times_stored(state, change)
        case Quarantined():
            return quarantined(state, change)
        case Released():
            return released(state, change)
        case CompactionAllowed():
            return compaction_allowed(state, change)
        case HoldPlaced():
            return hold_placed(state, change)
        case HoldDropped():
            return hold_dropped(state, change)
        case Trimmed():
            return trimmed(state, change)
        case Remembered():
            return remembered(state, change)
        case AheadMerged():
            return ahead_merged(state, change)
        case Publishing():
            return publishing(state, change)
        case Published():
            return published(state, change)
        case Unpublished():
            return unpublished(state, change)


def conflict(mine: Change, theirs: Change) -> Overtaken | None:
    """Why `mine`, planned before `theirs` was committed, must be planned again; None if the two commute.

    What a state cannot show is checked here: source files taken meanwhile by another ingest, rows read by a drain and
    then quarantined, and another declaration than the one a result was made under.
    """
    if isinstance(mine, Ingested | Released | Refused) and isinstance(theirs, Ingested | Released | Refused):
        shared = set(mine.sources) & set(theirs.sources)
        if shared:
            return Overtaken(f"{len(shared)} of the source files were ingested by another run meanwhile")
    for one, other in ((mine, theirs), (theirs, mine)):
        if isinstance(one, Ingested) and one.corrected and _brings_letters(other):
            return Overtaken("another run corrected files, replayed dead letters or put a batch back meanwhile")
        if isinstance(one, Quarantined) and _counts_again(other):
            return Overtaken("another run took a batch out, or put one back or replayed dead letters, meanwhile")
        if _of_a_snapshot(one) and (isinstance(other, Released) or _same_snapshot(one, other)):
            return Overtaken("another run took the interval's files, or put a batch back, meanwhile")
    if isinstance(theirs, Dropped) and not isinstance(mine, Created | Restored | Dropped):
        # One that was created since has nothing of what was planned.
        return Overtaken(f"collection {theirs.collection} was dropped meanwhile")
    if isinstance(mine, Dropped) and isinstance(theirs, Created | Restored | HoldPlaced | Publishing):
        return Overtaken(f"collection {mine.collection} is used by somebody since")
    if isinstance(mine, Drained) and isinstance(theirs, Quarantined):
        return Overtaken(f"batch {theirs.batch} was quarantined meanwhile")
    if isinstance(mine, Ingested | Corrected | Drained | Compacted | AheadMerged) and isinstance(theirs, Redefined):
        return Overtaken(f"collection {theirs.collection.name} was redefined meanwhile")
    if isinstance(mine, Redefined) and isinstance(theirs, Redefined | Ingested | Corrected):
        # A column's number is not given twice; and what was ingested may not fit a column that gets wider.
        return Overtaken(f"collection {mine.collection.name} was redefined, ingested into or corrected meanwhile")
    return None


def _brings_letters(change: Change) -> bool:
    """Whether dead letters may count after a change that did not before."""
    return isinstance(change, Released) or (isinstance(change, Ingested) and change.fence.step == REPLAY)


def _counts_again(change: Change) -> bool:
    """Whether a change rests on files that other batches hold: dead letters count only as long as the file they came in
    does, and it is not taken out while they do; a correction is the difference to what others hold."""
    return _brings_letters(change) or (isinstance(change, Ingested) and change.corrected > 0)


def _of_a_snapshot(change: Change) -> bool:
    """Whether a change corrects or withdraws a full snapshot, which is all files of its interval together."""
    return (
        isinstance(change, Ingested) and change.snapshot is not None and change.snapshot.effect is not Effect.ANNOUNCED
    )


def _same_snapshot(one: Change, other: Change) -> bool:
    times = [change.snapshot.time for change in (one, other) if isinstance(change, Ingested) and change.snapshot]
    return len(times) == 2 and times[0] == times[1]
