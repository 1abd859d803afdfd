"""What is certified, sealed, allowed to be merged, and kept by holds."""

from __future__ import annotations

from dataclasses import replace

from tidemark.model import admission
from tidemark.model.arrangement import Arrangement, Certificate, FrontierCertificate
from tidemark.model.change import (
    Certified,
    CommitTimesStored,
    CompactionAllowed,
    HoldDropped,
    HoldPlaced,
    Sealed,
)
from tidemark.model.frontier import CompactionFunction
from tidemark.model.transition.outcome import AlreadyApplied, Applied, Outcome, Stale


def certified(state: Arrangement, change: Certified) -> Outcome:
    """A gate certifies batches that are alive, or the frontier. That a person accepted a batch is kept for ever."""
    if change.suite != state.collection.suite(change.gate):
        return Stale(f"the {change.gate} suite changed from {change.suite} to {state.collection.suite(change.gate)}")
    frontier_certificate = state.frontier_certificate
    if change.upper is not None and change.upper > state.certified_upper:
        frontier_certificate = FrontierCertificate(change.upper, change.suite)
    alive = state.certifiable
    added = {Certificate(batch, change.suite) for batch in change.batches if batch in alive} - set(state.certificates)
    certified_now = {certificate.batch for certificate in added}
    accepted = (*state.accepted, *(one for one in change.accepted if one.batch in certified_now))
    if not added and frontier_certificate == state.frontier_certificate:
        return AlreadyApplied()
    certificates = (*state.certificates, *sorted(added, key=lambda c: c.batch))
    return Applied(
        replace(state, certificates=certificates, frontier_certificate=frontier_certificate, accepted=accepted)
    )


def sealed(state: Arrangement, change: Sealed) -> Outcome:
    """The frontiers move on, over no batch without a certificate. Only completeness counts as a seal for retention:
    ticks do not, or three late rows would push a day out of what is kept."""
    complete = max(state.complete_below, change.complete_below)
    seal, requested_seal = max(state.seal, change.upper), max(state.requested_seal, change.requested_seal)
    moved = replace(state, complete_below=complete, seal=seal, requested_seal=requested_seal)
    if moved == state:
        return AlreadyApplied()
    for batch in state.uncertified_below(seal, complete):
        return Stale(f"batch {batch.id} came below {seal} and no gate has certified it")
    recent = state.collection.retention.recent
    if recent and complete > state.complete_below:
        moved = replace(moved, seals=(*state.seals, complete)[-recent:])
    if change.at and seal > state.seal:
        moved = replace(moved, commits=state.commits.moved(change.at, seal))
    return Applied(moved)


def compaction_allowed(state: Arrangement, change: CompactionAllowed) -> Outcome:
    """since moves on, past no hold that has not expired."""
    new, old = CompactionFunction(change.since, change.rungs), state.function
    holds = tuple(hold for hold in state.holds if hold.expires is None or hold.expires > change.now)
    if new == old and holds == state.holds:
        return AlreadyApplied()
    for broken in admission.of_since(old, new):
        return Stale(broken.message)
    for hold in holds:
        if not old.then(new.capped(hold.since)).absorbs(new):
            return Stale(f"hold {hold.name} is at {hold.since}, since would move from {old.since} to {new.since}")
    for snapshot in state.snapshots:
        if snapshot.learned_at is not None and snapshot.time <= new.since != old.since:
            return Stale(
                f"since would move to {new.since}, past the full snapshot of {snapshot.time} as {snapshot.batch}"
            )
    commits = state.commits.readable(new)
    return Applied(replace(state, since=new.since, rungs=new.rungs, holds=holds, commits=commits))


def commit_times_stored(state: Arrangement, change: CommitTimesStored) -> Outcome:
    """Lines of commit times are in an object from now on."""
    if change.run in state.commits.runs:
        return AlreadyApplied()
    commits = state.commits.stored(change.inputs, change.run)
    if commits is None:
        return Stale("the commit times were stored, or left out with history that was merged, by another job")
    return Applied(replace(state, commits=commits))


def hold_placed(state: Arrangement, change: HoldPlaced) -> Outcome:
    """A hold is at since or later."""
    if change.hold in state.holds:
        return AlreadyApplied()
    if change.hold.since < state.since:
        return Stale(f"since {state.since} has passed {change.hold.since}, where hold {change.hold.name} would be")
    others = tuple(hold for hold in state.holds if hold.name != change.hold.name)
    return Applied(replace(state, holds=(*others, change.hold)))


def hold_dropped(state: Arrangement, change: HoldDropped) -> Outcome:
    """A hold is let go."""
    kept = tuple(hold for hold in state.holds if hold.name != change.name)
    return AlreadyApplied() if kept == state.holds else Applied(replace(state, holds=kept))
