"""Correct: bring a derived collection to what its definition says of its inputs, as far as these are known.

It is planned from metadata alone (plan/correct.py), one commit after the other until nothing is new. What differs is
computed by a Computer; where no input has anything new, and where there is nothing to commit, none is asked for.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from tidemark.definition.computation import Computed
from tidemark.definition.recipe import Recipe
from tidemark.definition.ways import Way
from tidemark.errors import listed
from tidemark.jobs.derived import (
    as_written,
    computation,
    followed,
    has_changes,
    inputs_of,
    judged,
    mode_of,
    opened,
    planned,
    readable_from,
    recipe_of,
)
from tidemark.jobs.job import Job, Outcome, Proposal, Settled
from tidemark.jobs.queries.exact_values import check_values
from tidemark.jobs.steps.ingest import unsealed_batch
from tidemark.model.arrangement import Arrangement, Fence, Hold
from tidemark.model.change import Corrected, HoldDropped, HoldPlaced, Redefined
from tidemark.model.corrected import CORRECT
from tidemark.model.derived import Consumption, Mode
from tidemark.model.frontier import EMPTY
from tidemark.model.instant import format_instant
from tidemark.model.window.lateness import NOT_LATE
from tidemark.model.wording import counted
from tidemark.plan.arrivals import moves_late_rows
from tidemark.plan.consume import Usable, laggard, usable
from tidemark.plan.correct import CorrectRequest, InputState, Waits, history_lost, hold_name
from tidemark.plan.event_times import reads_event_times
from tidemark.plan.retain import check_hold
from tidemark.plan.whole_history import judges_all_history
from tidemark.storage.log.log import Head

NOTHING = Computed((), 0, 0, 0, 0)


def correct(job: Job, *, until: int | None = None, whole: bool = False, check: bool = False) -> dict[str, Any]:
    """Make the collection what its definition says of its inputs, at most complete below `until`.

    With `whole` all is computed, with `check` all is compared once it is up to date, and what anything else wrote or
    lost is put right. The result says how it was computed (`way`: by which kernel or by Spark SQL, in which
    place, and why in no cheaper one) and `why` all of it was, rows read, added and retracted, the frontier and how far
    each input is consumed; of windows how many of the rows looked at are in none, as what these
    are on is null (`unplaced`, net of those that went); where an input is to be waited for, which (`waits_for`)
    and why (`waits`), also after it committed what could be had: `unfinished` says that what it was corrected to, by
    this run or by one that was killed, is not readable yet. A run that finds nothing new, or what this process adds up
    itself, starts no JVM.

    Raises InvalidUsage for a definition that is refused or raises, or whose columns are others by now.
    """
    done: list[_Settled] = []
    while True:
        settled = _settled(job, until=until, whole=whole and not done, check=False)
        if settled.change is None:
            break
        done.append(settled)
        hold_consumed(job, settled.head.state, settled.found.inputs)
    waits, checked = settled.found.waits, False
    lags = waits or settled.found.lags
    if check and waits is None:
        settled = _settled(job, until=None, whole=False, check=True)
        checked = settled.found.request is not None
        if settled.change is not None:
            done.append(settled)
    hold_consumed(job, settled.head.state, settled.found.inputs)
    result = _result(settled.head, done, lags)
    if check:
        result |= {"checked": checked, "repaired": sum(each.change.repaired for each in done if each.change)}
    return result


@dataclass(frozen=True)
class _Found:
    """What was planned, or why nothing was: an input is waited for, or nothing is new but what another one `lags`
    behind; the inputs as they were found, and the bytes that were read."""

    inputs: tuple[InputState, ...] = ()
    request: CorrectRequest | None = None
    waits: Waits | None = None
    lags: Waits | None = None
    computed: Computed = field(default=NOTHING)


_Settled = Settled[Corrected, _Found]


def _settled(job: Job, *, until: int | None, whole: bool, check: bool) -> _Settled:
    """One commit of a correction, if one is to be made; before it, where that has to be, one of the columns that are
    kept behind its sums. After that all is computed, also by the run after one that was killed between the two."""
    while True:
        settled = job.settle(lambda head: _proposed(job, head, until=until, whole=whole, check=check))
        match settled.change:
            case None:
                return Settled(settled.head, None, settled.found, settled.fresh)
            case Corrected():
                _note_change(job, settled.change, settled.found.computed)
                return Settled(settled.head, settled.change, settled.found, settled.fresh)
            case Redefined():
                job.note(f"{settled.change.collection.name}: columns of its inputs changed, all is computed")


def _proposed(
    job: Job, head: Head, *, until: int | None, whole: bool, check: bool
) -> Proposal[Corrected | Redefined, _Found]:
    state = head.state
    derived = state.collection.derived
    inputs = opened(job, derived)
    request = planned(state, inputs, until=until, check=check, whole=whole)
    if isinstance(request, Waits):
        for name, since in request.holds:
            _place(job, state, name, since)
        return Proposal(None, _Found(inputs, waits=request))
    if request is None or (check and not request.checks):
        # What was asked for is there, where an end was: nobody is waited for then.
        consumable = [usable(source) for source in inputs] if until is None else []
        lags = laggard(state, [ready for ready in consumable if isinstance(ready, Usable)])
        return Proposal(None, _Found(inputs, lags=lags))
    recipe = recipe_of(derived, inputs)
    if (collection := followed(job, state, recipe, inputs)) != state.collection:
        check_values(job, state, collection)
        return Proposal(Redefined(collection), _Found(inputs))
    head, fence = job.fenced(head, CORRECT, request.interval)
    for span in request.inputs:
        _place(job, state, span.name, span.hold_before)
    return _computed(job, head.state, request, recipe, inputs, fence)


def _computed(
    job: Job,
    state: Arrangement,
    request: CorrectRequest,
    recipe: Recipe | None,
    inputs: tuple[InputState, ...],
    fence: Fence,
) -> Proposal[Corrected | Redefined, _Found]:
    derived, read = state.collection.derived, inputs_of(job, request, inputs)
    lost, frontiers = history_lost(state, inputs) if request.previous is None else (0, 0)
    if lost:
        job.note(
            f"{state.collection.name}: history is not there at {lost:,} of {counted(frontiers, 'frontier')}, as "
            f"retention has merged what {listed(derived.inputs)} knew then"
        )
    mode, why = (Mode.WHOLE, request.whole) if request.whole else mode_of(derived, recipe, read)
    batch = job.new_id()
    calculation = computation(state, job.store.url, recipe, mode, read, upper=request.upper)
    if request.whole or any(has_changes(job, source) for source in read):
        changed = "" if request.whole else " by what changed" if mode is not Mode.WHOLE else ""
        job.note(f"computing {state.collection.name} to {format_instant(request.upper)}{changed}")
        computed = job.computer.compute(as_written(judged(job, calculation), batch, state.recorded_below))
    else:
        computed = NOTHING
    outcome = _Found(inputs, request, computed=computed)
    if not computed.parts and not request.moves:
        return Proposal(None, outcome)
    made = None
    if computed.parts:
        made = unsealed_batch(job, batch, request.interval, computed.parts, learned_at=None)
    by_row = recipe is not None and recipe.by_row is not None
    answered = request.previous is not None and all(span.consumed is not None for span in request.inputs)
    before = request.previous.late if request.previous and answered else NOT_LATE
    change = Corrected(
        fence,
        replace(request.consumption, batch=made.id if made else None, late=before + computed.late),
        made,
        request.previous,
        mode,
        request.since if by_row else EMPTY,
        computed.rows_read,
        computed.added,
        computed.retracted,
        computed.added + computed.retracted if request.checks else 0,
        why,
        request.readable if request.readable.rungs else None,
    )
    return Proposal(change, outcome)


def _note_change(job: Job, change: Corrected, computed: Computed) -> None:
    job.note(change.words)
    if computed.way is not None:
        why = f" ({'; '.join(computed.way.why)})" if computed.way.why else ""
        job.note(f"computed {computed.way.words}{why}")
    if computed.unplaced:
        job.note(f"{counted(computed.unplaced, 'row')} in no window: what the windows are on is null")


def hold_consumed(job: Job, state: Arrangement, inputs: Sequence[InputState]) -> None:
    """Hold the inputs where they are consumed, as an attempt that was killed may not have; and let go of what is no
    input any more. Where `inputs`, as they were found, show that it is so, none is looked at again."""
    newest = state.consumed
    if newest is None:
        return
    states = {source.name: source.state for source in inputs}
    for consumed in newest.inputs:
        if consumed.input not in state.collection.derived.inputs:
            continue
        current = states.get(consumed.input)
        if current is None or _wanted(job, state, current, consumed.upper - 1) is not None:
            _place(job, state, consumed.input, consumed.upper - 1, missing_ok=True)
    recorded = {entry.input for consumption in state.consumptions for entry in consumption.inputs}
    for name in recorded - {*state.collection.derived.inputs}:
        _drop(job, state, name)


def _place(job: Job, state: Arrangement, name: str, since: int, *, missing_ok: bool = False) -> None:
    """Hold an input from `since` on, or as far as it can be read still, if it has no such hold."""

    def change_for(head: Head) -> HoldPlaced | None:
        if head.arrangement is None and missing_ok:
            return None
        wanted = _wanted(job, state, head.state, since)
        if wanted is not None:
            check_hold(head.state, wanted.since)
        return None if wanted is None else HoldPlaced(wanted)

    job.neighbour(name).commit_until_fit(change_for)


def _wanted(job: Job, state: Arrangement, source: Arrangement, since: int) -> Hold | None:
    """The hold that an input is to get; None if it has that already, and long enough. Where its event times are seen,
    or when all of its rows came, nothing is to be merged, whatever retention it is given."""
    derived, called = state.collection.derived, hold_name(state.collection.name)
    lag, at = derived.max_lag, max(readable_from(job, derived, source, since + 1), source.since)
    kept_whole = judges_all_history(derived.definition) or moves_late_rows(derived)
    if kept_whole or reads_event_times(derived, source.collection):
        at = source.since
    now = int(job.log.wall() * 1_000_000)
    hold = next((placed for placed in source.holds if placed.name == called), None)
    if hold and hold.since == at and (lag is None) == (hold.expires is None):
        fresh = hold.expires is None or (lag is not None and hold.expires > now + lag - lag // 4)
        if fresh:
            return None
    return Hold(called, at, None if lag is None else now + lag)


def _drop(job: Job, state: Arrangement, name: str) -> None:
    called = hold_name(state.collection.name)

    def change_for(head: Head) -> HoldDropped | None:
        exists = head.arrangement is not None and any(hold.name == called for hold in head.arrangement.holds)
        return HoldDropped(called) if exists else None

    job.neighbour(name).commit_until_fit(change_for)


def _result(head: Head, done: Sequence[_Settled], waits: Waits | None) -> dict[str, Any]:
    changes = [settled.change for settled in done if settled.change is not None]
    newest = head.state.consumed
    outcome = Outcome.APPLIED if changes else Outcome.WAITS if waits else Outcome.NOTHING_TO_DO
    result: dict[str, Any] = {"outcome": str(outcome), "version": head.version, "commits": len(changes)}
    if waits:
        left = head.state.consumed is not None and head.state.certified_trace_upper < head.state.consumed.upper
        result |= {"waits_for": waits.laggard, "waits": waits.reason, "unfinished": left}
    if changes:
        modes = Counter(str(change.mode) for change in changes)
        result |= {
            "mode": str(changes[-1].mode),
            "modes": dict(modes),
            "why": next((change.why for change in reversed(changes) if change.why), ""),
            "way": next(
                (_way(settled.found.computed.way) for settled in reversed(done) if settled.found.computed.way), None
            ),
            "rows_read": sum(change.rows_read for change in changes),
            "added": sum(change.rows_added for change in changes),
            "retracted": sum(change.rows_retracted for change in changes),
            "rows": sum(change.batch.rows for change in changes if change.batch),
            "bytes": sum(change.batch.bytes for change in changes if change.batch),
            "bytes_read": sum(settled.found.computed.bytes_read for settled in done),
            "batches": [change.batch.id for change in changes if change.batch],
        }
        if head.state.collection.derived.definition.windows is not None:
            result["unplaced"] = sum(settled.found.computed.unplaced for settled in done)
            result["late"] = asdict(sum((settled.found.computed.late for settled in done), NOT_LATE))
    return result | (_frontier(newest) if newest else {})


def _way(way: Way) -> dict[str, Any]:
    return {"place": str(way.place), "kernel": way.kernel, "words": way.words, "why": list(way.why)}


def _frontier(newest: Consumption) -> dict[str, Any]:
    return {
        "upper": newest.upper,
        "upper_text": format_instant(newest.upper),
        "complete_below": newest.complete_below,
        "complete_below_text": format_instant(newest.complete_below),
        "consumed": {consumed.input: consumed.upper for consumed in newest.inputs},
    }
