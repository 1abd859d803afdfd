"""What a state knows of full snapshots in its trace, and what it refuses that would lose it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from support.relanded import relanded
from support.world import collection, interval
from tidemark.errors import Corruption
from tidemark.model.arrangement import Arrangement, Fence, LedgerRun
from tidemark.model.batch import Description, ObjectRef, TraceBatch
from tidemark.model.change import Change, CompactionAllowed, Drained, Ingested, Quarantined, Redefined, Released
from tidemark.model.collection import Envelope
from tidemark.model.full_snapshot import Effect, FullSnapshot
from tidemark.model.times import Times
from tidemark.model.transition import Applied, Stale, apply

pytestmark = pytest.mark.pure

RUN = LedgerRun(ObjectRef("ledger/1.json", 1, "0"), 1, "a", "a")


def batch(lower: int, upper: int) -> TraceBatch:
    return TraceBatch(f"{lower}", Description(lower, upper), 0, 0, 0, 0)


def state(reach: int = 20, *, drained: int = 40) -> Arrangement:
    """Four days are complete, of which those before `drained` are in the trace."""
    of = relanded(collection(Envelope.SNAPSHOT), reprocess_for=reach)
    announced = Times.of(at for at in (9, 19, 29, 39) if at < drained and at >= 40 - reach)
    return Arrangement(of, complete_below=40, seal=40, trace=(batch(0, drained),), told=announced)


def learned(day: int, effect: Effect, name: str = "w", at: int | None = 40) -> FullSnapshot:
    return FullSnapshot(name, interval(day), 0, effect=effect, learned_at=at)


def ingested(snapshot: FullSnapshot) -> Ingested:
    return Ingested(Fence("ingest", snapshot.interval, snapshot.batch, True), None, RUN, (1,), snapshot=snapshot)


def done(current: Arrangement, *changes: Change) -> Arrangement:
    for change in changes:
        outcome = apply(current, change)
        assert isinstance(outcome, Applied), outcome
        current = outcome.state
    return current


def drain(current: Arrangement, upper: int) -> Arrangement:
    current = replace(current, seal=upper)
    change = Drained(Fence("drain", interval(0), "t", True), batch(current.trace_upper, upper))
    return done(current, change)


def test_a_drain_moves_what_was_announced_and_withdrawn_and_forgets_what_cannot_be_corrected() -> None:
    withdrawn = done(state(), ingested(learned(3, Effect.WITHDRAWN)))
    assert (withdrawn.is_announced(39), list(withdrawn.told)) == (False, [29, 39])
    assert list(drain(withdrawn, 41).told) == [29]
    again = done(withdrawn, ingested(learned(3, Effect.ANNOUNCED, "again")))
    assert (again.is_announced(39), list(drain(again, 41).told)) == (True, [29, 39])
    later = replace(again, complete_below=50, seal=50)
    assert list(drain(later, 50).told) == [39]


def test_what_waits_keeps_the_times_after_it_though_reprocess_for_is_lowered() -> None:
    """The next one ends what is corrected: were its time forgotten, the correction would hold for ever."""
    waiting = done(state(drained=30), ingested(learned(2, Effect.WITHDRAWN)))
    lowered = done(waiting, Redefined(relanded(waiting.collection, reprocess_for=0)))
    once = drain(lowered, 40)
    assert [snapshot.time for snapshot in once.snapshots] == [29]
    assert list(once.told) == [29]
    assert list(drain(once, 41).told) == []


def test_since_does_not_pass_what_waits() -> None:
    waiting = done(state(), ingested(learned(2, Effect.WITHDRAWN)))
    outcome = apply(waiting, CompactionAllowed(29))
    assert isinstance(outcome, Stale)
    assert outcome.reason == "since would move to 29, past the full snapshot of 29 as w"
    assert isinstance(apply(waiting, CompactionAllowed(28)), Applied)


@pytest.mark.parametrize(
    ("snapshot", "reason"),
    [
        (learned(1, Effect.ANNOUNCED), "begins before 20, and cannot be corrected any more"),
        (learned(2, Effect.ANNOUNCED), "full snapshot of 29 was read already"),
        (learned(1, Effect.CORRECTED), "the full snapshot of 19 was taken out or withdrawn meanwhile"),
        (learned(2, Effect.WITHDRAWN, at=39), "the seal 40 has passed the full snapshot of 39"),
        (learned(2, Effect.WITHDRAWN, at=None), "the seal 40 has passed the full snapshot of 29"),
    ],
)
def test_what_is_learned_of_a_full_snapshot_must_still_be_so(snapshot: FullSnapshot, reason: str) -> None:
    outcome = apply(state(), ingested(snapshot))
    assert isinstance(outcome, Stale)
    assert reason in outcome.reason


def test_nothing_is_learned_any_more_of_what_was_merged() -> None:
    merged = replace(state(), since=29)
    outcome = apply(merged, ingested(learned(2, Effect.WITHDRAWN)))
    assert isinstance(outcome, Stale)
    assert "history below 29 was merged" in outcome.reason


def test_the_youngest_goes_first_and_what_is_put_back_is_the_youngest() -> None:
    restated = done(state(), ingested(learned(2, Effect.WITHDRAWN)), ingested(learned(2, Effect.ANNOUNCED, "again")))
    outcome = apply(restated, Quarantined("w", RUN))
    assert isinstance(outcome, Stale)
    assert outcome.reason == "the full snapshot of 29 was told as batch again; quarantine that batch first"
    out = done(restated, Quarantined("again", RUN), Quarantined("w", RUN))
    assert out.is_announced(29)
    assert isinstance(apply(out, Released("again", RUN)), Stale)
    assert not done(out, Released("w", RUN)).is_announced(29)
    assert done(out, Released("w", RUN), Released("again", RUN)).is_announced(29)


def test_a_full_snapshot_is_announced_once_and_before_it_is_corrected() -> None:
    with pytest.raises(Corruption, match="full snapshot w of 29 is announced, and was applied before"):
        replace(state(), snapshots=(learned(2, Effect.ANNOUNCED),))
    with pytest.raises(Corruption, match="full snapshot w of 19 is withdrawn, and was never applied"):
        replace(state(), snapshots=(learned(1, Effect.WITHDRAWN),))
