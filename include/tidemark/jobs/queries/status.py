"""Status: how far a collection is, what it owes, and the step that is due. Computed from the state alone."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Sequence, Set
from dataclasses import asdict, dataclass, replace
from typing import Any

from tidemark.jobs.queries.blocked import blocked_by
from tidemark.jobs.queries.follows import Follows
from tidemark.model.acceptance import Acceptance
from tidemark.model.arrangement import Arrangement, Certificate, Hold
from tidemark.model.batch import TraceBatch, UnsealedBatch
from tidemark.model.collection import Gate
from tidemark.model.instant import format_instant
from tidemark.model.local_time import clock
from tidemark.model.transition import merged_trace
from tidemark.plan.bounds import Bounds, bounds
from tidemark.plan.compact import CompactionRequest, plan_compaction
from tidemark.plan.day import Day
from tidemark.storage.log.log import Head

FRONTIERS = {
    "complete_below": "complete below: no on-time row is missing",
    "seal": "known up to: what was learned is final",
    "trace_upper": "moved into the trace below",
    "since": "readable from",
}
"""The frontiers and what each promises."""
_OF_DERIVED = {
    "complete_below": "complete below: no on-time row of an input is missing",
    "seal": "corrected up to: what follows from its inputs is final",
}
"""What some promise of a derived collection."""


def frontiers_of(*, derived: bool) -> dict[str, str]:
    """The frontiers and what each promises of a collection that lands, or of a derived one."""
    return {**FRONTIERS, **_OF_DERIVED} if derived else FRONTIERS


@dataclass(frozen=True)
class Shelf:
    """A count of batches with what they hold. `bytes` are those of data files."""

    batches: int
    rows: int
    bytes: int


@dataclass(frozen=True)
class Debt:
    """The compactions that are due, run to the end, and the rows they would read."""

    compactions: int
    rows: int


@dataclass(frozen=True)
class PublishedTo:
    """A table that the collection is published to, and up to where that holds it (0: nothing yet)."""

    format: str
    table: str
    seal: int

    @property
    def words(self) -> str:
        """For people."""
        known = f"known up to {format_instant(self.seal)}" if self.seal else "nothing yet"
        return f"{self.format} {self.table}: {known}"


@dataclass(frozen=True)
class Status:
    """How far a collection is. Times in microseconds.

    `unsealed` holds what no drain has moved yet; `ahead` what drains left, as its time is still to come; `remembered`
    what was moved and is kept because later facts are placed among it (keyed collections). `uncertified` names batches
    no current certificate covers. `waiting_for` is the oldest interval that keeps it from being complete. `readable`
    says which times compaction leaves readable. `next_step` is a command. Intervals that begin at
    `correctable_from` or later can be run again and corrected, which keeps `reprocess_bytes` that nothing else needs;
    both None where no file may be corrected, the bytes also where nobody counted them (queries/reprocessing.py).
    `published` are the tables that it is published to. `left_out` are rows of files that `only` did not take.
    `images_unmatched` are before-images of messages that were not what was stored, or do not fit their columns.
    `unverified_parts` were written before 0.6.0: reads do not
    notice every damage to them, until a merge replaces them.
    `accepted` are the batches that people accepted although expectations failed, oldest first.
    `derived` says that it is computed from others; `follows` how it follows these, where somebody looked at them
    (queries/follows.py).
    """

    collection: str
    version: int
    complete_below: int
    seal: int
    trace_upper: int
    since: int
    unsealed: Shelf
    ahead: Shelf
    remembered: Shelf
    quarantined: tuple[str, ...]
    uncertified: tuple[str, ...]
    levels: dict[int, Shelf]
    debt: Debt
    bounds: Bounds
    holds: tuple[Hold, ...]
    readable: str
    rows_ingested: int
    late_applied: int
    late_moved: int
    late_discarded: int
    late_replayed: int
    bytes_ingested: int
    bytes_drained: int
    bytes_compacted: int
    write_amplification: float | None
    waiting_for: Day | None
    next_step: str
    correctable_from: int | None = None
    reprocess_bytes: int | None = None
    derived: bool = False
    follows: Follows | None = None
    accepted: tuple[Acceptance, ...] = ()
    published: tuple[PublishedTo, ...] = ()
    unverified_parts: int = 0
    left_out: int = 0
    images_unmatched: int = 0

    def as_dict(self) -> dict[str, Any]:
        """JSON values; each frontier also as ISO 8601 under `<name>_text`."""
        texts = {f"{name}_text": format_instant(getattr(self, name)) for name in FRONTIERS}
        waits = self.waiting_for
        missing = {
            "waiting_for": str(waits.interval) if waits else None,
            "waiting_for_state": str(waits.state) if waits else None,
            "waiting_for_lower": waits.interval.lower if waits else None,
            "waiting_for_name": waits.name if waits else None,
            "waiting_for_words": waits.sentence if waits else None,
        }
        can = self.correctable_from
        correctable = {"correctable_from_text": None if can is None else format_instant(can)}
        levels = {"levels": [{"level": level, **asdict(shelf)} for level, shelf in self.levels.items()]}
        follows = {"follows": self.follows.as_dict() if self.follows else None}
        accepted = {"accepted": [{**asdict(one), "at_text": format_instant(one.at)} for one in self.accepted]}
        published = {"published": [{**asdict(one), "seal_text": format_instant(one.seal)} for one in self.published]}
        return {**asdict(self), **texts, **missing, **correctable, **levels, **follows, **accepted, **published}


def status(head: Head, now: int | None = None, wrong: Set[str] = frozenset()) -> Status:
    """The status at a version, which reads nothing but the state.

    Args:
        head: The version.
        now: By which time an interval is missing, in microseconds; None: by the clock.
        wrong: Batches that a gate found so (`found_wrong`).
    """
    state, totals = head.state, head.state.totals
    remembered = [*state.drained, *state.remembered]
    written = totals.bytes_drained + totals.bytes_compacted
    return Status(
        collection=state.collection.name,
        version=head.version,
        complete_below=state.complete_below,
        seal=state.seal,
        trace_upper=state.trace_upper,
        since=state.since,
        unsealed=_shelf(state.pending),
        ahead=_shelf(state.ahead),
        remembered=_shelf(remembered),
        quarantined=tuple(each.id for each in state.taken_out),
        uncertified=tuple(
            each.id for each in (*state.uncertified, *(one for one in state.trace if not state.is_certified(one)))
        ),
        levels=_levels(state),
        debt=debt(state),
        bounds=bounds(state),
        holds=state.holds,
        readable=str(state.function),
        rows_ingested=totals.rows_ingested,
        late_applied=totals.rows_late_applied,
        late_moved=totals.rows_late_moved,
        late_discarded=totals.rows_late_discarded,
        late_replayed=totals.rows_replayed,
        bytes_ingested=totals.bytes_ingested,
        bytes_drained=totals.bytes_drained,
        bytes_compacted=totals.bytes_compacted,
        write_amplification=round(written / totals.bytes_ingested, 3) if totals.bytes_ingested else None,
        waiting_for=blocked_by(state, time.time_ns() // 1000 if now is None else now, wrong),
        next_step=next_step(state),
        correctable_from=correctable_from(state),
        derived=state.collection.is_derived,
        accepted=tuple(each.in_zone(state.collection.zone) for each in state.accepted),
        published=tuple(PublishedTo(str(one.format), one.table, one.seal) for one in state.publications),
        unverified_parts=sum(batch.part_count - batch.verified_parts for batch in state.batches),
        left_out=totals.rows_left_out,
        images_unmatched=totals.images_unmatched,
    )


def correctable_from(state: Arrangement) -> int | None:
    """From when on intervals can be corrected; None if none can."""
    collection = state.collection
    return max(collection.start, state.correctable_from) if collection.correctable_for else None


def debt(state: Arrangement) -> Debt:
    """What compaction would do if every gate had passed and nothing consolidated away."""
    compactions = rows = 0
    while (request := plan_compaction(_all_certified(state))) is not None:
        compactions += 1
        read = sum(batch.rows for batch in request.inputs)
        rows += 0 if request.moves_no_data else read
        state = _as_if_compacted(state, request, f"debt-{compactions}", read)
    return Debt(compactions, rows)


def next_step(state: Arrangement) -> str:
    """The command that moves the collection on, whoever runs it, as far as its own state shows: that of a derived one
    does not say whether its inputs have more (whole_status.py)."""
    name = state.collection.name
    if state.uncertified:
        return f"tidemark gate {name} unsealed"
    if _may_be_sealed(state):
        return f"tidemark seal {name}"
    if state.seal > state.trace_upper:
        drains = state.certified_upper >= state.seal
        return f"tidemark drain {name}" if drains else f"tidemark gate {name} frontier"
    uncertified = [batch for batch in state.trace if not state.is_certified(batch)]
    if uncertified:
        merged = all(batch.level for batch in uncertified)
        return f"tidemark gate {name} {Gate.COMPACTION if merged else Gate.TRACE}"
    if debt(state).compactions:
        return f"tidemark compact {name}"
    return next_ingest(state)


def _may_be_sealed(state: Arrangement) -> bool:
    """Whether there is more to promise."""
    if state.collection.is_derived:
        consumed = state.consumed
        return consumed is not None and consumed.upper > state.seal
    landed, complete = state.collection.landed, state.complete
    reached = complete > landed.start and landed.completed_by(complete) > state.complete_below
    return reached or state.learned_below > state.seal


def next_ingest(state: Arrangement) -> str:
    """The command that reads the oldest interval that is missing, or follows the inputs of a derived collection; a
    question to ask once there is nothing left."""
    name = state.collection.name
    if state.collection.is_derived:
        ended = state.consumed is not None and state.consumed.ended
        return f"tidemark as-of {name}" if ended else f"tidemark correct {name}"
    end, complete = state.collection.landed.end, state.complete
    if end is not None and complete >= end:
        return f"tidemark as-of {name}"
    return f"tidemark ingest {name} --date {clock(complete, state.collection.zone).date()}"


def _shelf(batches: Sequence[UnsealedBatch] | Sequence[TraceBatch]) -> Shelf:
    return Shelf(len(batches), sum(batch.rows for batch in batches), sum(batch.bytes for batch in batches))


def _levels(state: Arrangement) -> dict[int, Shelf]:
    levels: dict[int, list[TraceBatch]] = defaultdict(list)
    for batch in state.trace:
        levels[batch.level].append(batch)
    return {level: _shelf(levels[level]) for level in sorted(levels, reverse=True)}


def _all_certified(state: Arrangement) -> Arrangement:
    suite = state.collection.suite(Gate.COMPACTION)
    return replace(state, certificates=tuple(Certificate(batch.id, suite) for batch in state.trace))


def _as_if_compacted(state: Arrangement, request: CompactionRequest, name: str, rows: int) -> Arrangement:
    parts = next((batch.parts for batch in request.inputs if batch.parts), None)
    merged = TraceBatch(name, request.description, request.level(rows), rows, 0, 0, parts)
    return replace(state, trace=merged_trace(state.trace, request.inputs, merged))
