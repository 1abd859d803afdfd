"""What a gate judges by: one small row of figures per batch (or one for the frontier), found in the data and
set beside what the state recorded. Pure; the data was read by the `inspect` kernel, one answer per part."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median
from typing import Any

from tidemark.model.arrangement import Arrangement
from tidemark.model.batch import DIGEST_MODULUS, Part, TraceBatch, UnsealedBatch
from tidemark.model.collection import Gate
from tidemark.model.instant import format_instant
from tidemark.model.interval import Interval
from tidemark.model.ledger import LedgerEntry, Status
from tidemark.plan.bounds import bounds
from tidemark.plan.compact import due
from tidemark.plan.gate import GateRequest
from tidemark.plan.tasks import InspectAnswer

HISTORY_INTERVALS = 3
"""Fewer earlier intervals than this say nothing about what is usual."""

Row = dict[str, Any]


@dataclass(frozen=True)
class Evidence:
    """The figures of one gate run: `rows` all have the same keys, `batch` first (empty for the frontier)."""

    gate: Gate
    rows: tuple[Row, ...]

    def as_dict(self) -> dict[str, Any]:
        """JSON values: each name once."""
        names = list(self.rows[0]) if self.rows else []
        return {"figures": names, "rows": [[row[name] for name in names] for row in self.rows]}

    @classmethod
    def from_dict(cls, gate: Gate, document: Mapping[str, Any]) -> Evidence:
        """What `as_dict` wrote. Raises KeyError, TypeError or ValueError for anything else."""
        names = document["figures"]
        return cls(gate, tuple(dict(zip(names, row, strict=True)) for row in document["rows"]))


@dataclass(frozen=True)
class Inspected:
    """A batch's parts as recorded, what reading each of them in full found, in the same order, and the
    columns they should have."""

    parts: tuple[Part, ...]
    answers: tuple[InspectAnswer, ...]
    columns: tuple[str, ...]


@dataclass(frozen=True)
class Corrected:
    """What a batch that corrects files retracted: `retracted` rows of the `contributed` ones that its interval had, and
    how many of them had not been there (None: of this envelope it is not known: that of signed diffs, that of full
    snapshots)."""

    contributed: int
    retracted: int
    not_contributed: int | None = None

    @property
    def share(self) -> float:
        """Which share of the rows was retracted."""
        return self.retracted / self.contributed if self.contributed else float(self.retracted > 0)


@dataclass(frozen=True)
class Defined:
    """What is known of a batch of a derived collection: how many consumptions name it, the rows that its commit says it
    added and retracted (None: no version says it any longer); how many keys of it were recomputed (None: none were),
    how many of their rows are not what the definition says, and the first of these."""

    consumptions: int
    added: int | None
    retracted: int | None
    keys: int | None = None
    differing: int | None = None
    first: str = ""


def unsealed_evidence(
    state: Arrangement,
    request: GateRequest,
    found: Mapping[str, Inspected],
    ledger: Sequence[LedgerEntry],
    corrected: Mapping[str, Corrected] | None = None,
    defined: Mapping[str, Defined] | None = None,
) -> Evidence:
    """Per ingested batch: what its parts hold against what was recorded, its late share, its rate against the usual; of
    those that are `corrected` what they retracted.

    `ledger` are recent entries; figures they cannot give are None, which no rule judges.
    """
    corrected = corrected or {}
    rows = []
    for batch in request.unsealed:
        row = _recorded_and_found(batch, found[batch.id])
        answers = found[batch.id].answers
        row |= {
            "times": _bounds(answers, "time"),
            "times_recorded": _span(batch.first_time, batch.last_time),
            "event_times": _bounds(answers, "event_time"),
            "event_times_recorded": _span(batch.first_event_time, batch.last_event_time),
            "first_time": min(answer.first_time for answer in answers),
            "floor": _unsealed_floor(state, batch),
            "late_share": _late_share(batch, ledger),
            "usual_rows": _usual_rows(batch, ledger),
        }
        row["volume"] = batch.rows / row["usual_rows"] if row["usual_rows"] else None
        row |= _retracted(state, corrected.get(batch.id))
        rows.append(row | _as_defined(answers, (defined or {}).get(batch.id)))
    return Evidence(Gate.UNSEALED, tuple(row | _shrunk(state, row["batch"]) for row in rows))


def empty_evidence(state: Arrangement, request: GateRequest) -> Evidence:
    """Per full snapshot without rows: what there was before it. Of other intervals without rows there is nothing."""
    shrunk = ({"batch": reading.id} | _shrunk(state, reading.id) for reading in request.empty)
    return Evidence(Gate.UNSEALED, tuple(row for row in shrunk if len(row) > 1))


def _shrunk(state: Arrangement, batch: str) -> Row:
    """Of what is learned of a full snapshot: its rows, and what they are compared with."""
    found = state.compared_snapshots().get(batch)
    if found is None:
        return {}
    return {
        "snapshot_rows": found.rows,
        "snapshot_rows_before": found.before,
        "snapshot_rows_least": found.least,
        "min_share": state.collection.min_share,
    }


def _retracted(state: Arrangement, corrected: Corrected | None) -> Row:
    """A share is judged by what the collection declares, or else by what is usual."""
    allowed, share = state.collection.corrected_share, corrected.share if corrected else None
    return {
        "rows_contributed": corrected.contributed if corrected else None,
        "rows_retracted": corrected.retracted if corrected else None,
        "rows_not_contributed": corrected.not_contributed if corrected else None,
        "corrected_share": share,
        "corrected_share_allowed": allowed if corrected else None,
        "corrected_share_undeclared": share if allowed is None else None,
    }


def _as_defined(answers: Sequence[InspectAnswer], defined: Defined | None) -> Row:
    if defined is None:
        return {}
    added, retracted = sum(answer.added for answer in answers), sum(answer.retracted for answer in answers)
    return {
        "consumptions": defined.consumptions,
        "rows_added": added,
        "rows_added_recorded": added if defined.added is None else defined.added,
        "rows_taken": retracted,
        "rows_taken_recorded": retracted if defined.retracted is None else defined.retracted,
        "keys_computed": defined.keys,
        "rows_differing": defined.differing,
        "first_differing": defined.first,
    }


def frontier_evidence(state: Arrangement, request: GateRequest) -> Evidence:
    """From the state alone: does the seal only advance, over no batch that no gate has seen; and is there no hole below
    what is said to be complete. Ticks take the seal beyond that, and over no hole."""
    upper = state.seal if request.upper is None else request.upper
    complete_below = state.complete_below
    hole = state.hole_below(complete_below)
    below = [batch.id for batch in state.pending if batch.first_time < upper]
    uncertified = [each.id for each in state.uncertified_below(upper, complete_below)]
    row: Row = {
        "batch": "",
        "seal": upper,
        "complete_below": complete_below,
        "floor": max(state.certified_upper, state.trace_upper),
        "hole": str(hole) if hole else None,
        "batches_below": len({*below, *uncertified}),
        "batches_uncertified": len(uncertified),
        "uncertified": uncertified[0] if uncertified else None,
    }
    return Evidence(Gate.FRONTIER, (row,))


def trace_evidence(state: Arrangement, request: GateRequest, found: Mapping[str, Inspected]) -> Evidence:
    """Per trace batch with data: the invariants of a trace batch as found in its parts, and its place in the
    trace."""
    return Evidence(Gate.TRACE, tuple(_trace_rows(state, request, found)))


def compaction_evidence(state: Arrangement, request: GateRequest, found: Mapping[str, Inspected]) -> Evidence:
    """As the trace's, and whether the compaction keeps up: merges still due, live batches against the bound that is
    promised where none is (None while one is due: debt says so)."""
    debt = bool(due(state))
    bound = None if debt else bounds(state).live_bound
    figures = {"cascades_due": int(debt), "live_batches": len(state.trace), "live_bound": bound}
    return Evidence(Gate.COMPACTION, tuple(row | figures for row in _trace_rows(state, request, found)))


def _recorded_and_found(batch: UnsealedBatch | TraceBatch, found: Inspected) -> Row:
    answers = found.answers
    altered = [
        part.file.key
        for part, answer in zip(found.parts, answers, strict=True)
        if (part.file.sha256, part.file.bytes) != (answer.sha256, answer.file.bytes)
    ]
    other = [answer for answer in answers if answer.columns != found.columns]
    loose = [f"{answer.file.key}: {answer.misbounded[0]}" for answer in answers if answer.misbounded]
    return {
        "batch": batch.id,
        "parts": len(found.parts),
        "parts_recorded": batch.part_count,
        "parts_altered": len(altered),
        "altered": altered[0] if altered else None,
        "parts_with_other_columns": len(other),
        "columns": ", ".join((other or answers)[0].columns),
        "columns_declared": ", ".join(found.columns),
        "parts_misbounded": len(loose),
        "misbounded": loose[0] if loose else None,
        "rows": sum(answer.rows for answer in answers),
        "rows_recorded": batch.rows,
        "digest": _hex(sum(answer.digest for answer in answers)),
        "digest_recorded": _hex(batch.digest),
        "null_keys": sum(answer.null_keys for answer in answers),
        "rows_out_of_order": sum(answer.unsorted for answer in answers),
    }


def _trace_rows(state: Arrangement, request: GateRequest, found: Mapping[str, Inspected]) -> Iterable[Row]:
    older: dict[str, TraceBatch | None] = {
        newer.id: older for older, newer in pairwise([None, *state.trace]) if newer is not None
    }
    for batch in request.trace:
        if not batch.rows:
            continue
        answers = found[batch.id].answers
        description, neighbour = batch.description, older[batch.id]
        yield _recorded_and_found(batch, found[batch.id]) | {
            "parts_overlapping": _overlaps(found[batch.id]),
            "values_uncancelled": sum(answer.uncancelled for answer in answers),
            "zero_diffs": sum(answer.zero_diffs for answer in answers),
            "rows_repeated": sum(answer.repeated for answer in answers),
            "description": str(description),
            "first_time": min(answer.first_time for answer in answers),
            "last_time": max(answer.last_time for answer in answers),
            "first_event_time": min(answer.first_event_time for answer in answers),
            "lower": description.lower,
            "earliest": description.first_possible,
            # The corner of a batch's law: where since has passed the upper, forwarded times reach since itself.
            "latest": description.last_possible,
            "since": description.since,
            "since_of_state": state.since,
            "upper": description.upper,
            "seal": state.seal,
            "upper_of_older": neighbour.description.upper if neighbour else 0,
            "level": batch.level,
            "level_of_older": neighbour.level if neighbour else batch.level,
        }


def _overlaps(found: Inspected) -> int:
    """Parts of one sorted run follow each other: how many start before their predecessor ends. What cancels is separate
    from the rest, in parts of several merges."""
    answers = [answer for part, answer in zip(found.parts, found.answers, strict=True) if not part.cancels]
    spans = [(answer.first_key, answer.last_key) for answer in answers if answer.first_key and answer.last_key]
    return sum(newer[0] < older[1] for older, newer in pairwise(sorted(spans)))


def _unsealed_floor(state: Arrangement, batch: UnsealedBatch) -> int:
    """A batch seen for the first time is above the trace; one gated before may be drained in part since."""
    seen = any(certificate.batch == batch.id for certificate in state.certificates)
    return 0 if seen else state.trace_upper


def _late_share(batch: UnsealedBatch, ledger: Sequence[LedgerEntry]) -> float | None:
    # What a corrected file brought late, it may have brought before.
    entries = [e for e in ledger if e.batch == batch.id and e.replay_of is None and not e.is_corrected]
    late = sum(entry.rows_late_applied + entry.rows_late_discarded for entry in entries)
    read = sum(entry.rows + entry.rows_late_discarded for entry in entries)
    return late / read if read else None


def _usual_rows(batch: UnsealedBatch, ledger: Sequence[LedgerEntry]) -> float | None:
    """What the batch's interval would hold at the median rate of other recent ones; None while they are too few, and
    for replayed dead letters and corrections, of which any number is usual. Of a file that was corrected the ledger
    says what the correction wrote, so its interval says nothing of what is usual."""
    if any(entry.batch == batch.id and (entry.replay_of is not None or entry.is_corrected) for entry in ledger):
        return None
    changed = {entry.interval for entry in ledger if entry.is_corrected}
    rows: dict[Interval, int] = {}
    for entry in ledger:
        if entry.interval in changed:
            continue
        if entry.status is Status.INGESTED and entry.interval != batch.interval and entry.replay_of is None:
            rows[entry.interval] = rows.get(entry.interval, 0) + entry.rows
    if len(rows) < HISTORY_INTERVALS:
        return None
    rates = [count / (interval.upper - interval.lower) for interval, count in rows.items()]
    return median(rates) * (batch.interval.upper - batch.interval.lower)


def _bounds(answers: Sequence[InspectAnswer], coordinate: str) -> str:
    first = min(getattr(answer, f"first_{coordinate}") for answer in answers)
    last = max(getattr(answer, f"last_{coordinate}") for answer in answers)
    return _span(first, last)


def _span(first: int, last: int) -> str:
    return f"{format_instant(first)} to {format_instant(last)}"


def _hex(digest: int) -> str:
    """Digests are unsigned 64-bit: no integer column of a frame holds them."""
    return f"{digest % DIGEST_MODULUS:016x}"
