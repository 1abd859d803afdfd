"""Accepting batches whose owner's expectations failed: only those named, and only what is a judgement about data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from time import time_ns

from tidemark.errors import InvalidUsage, listed, shortened
from tidemark.model.acceptance import (
    MOST_FAILURES,
    MOST_NAME,
    Acceptance,
    AcceptedFailure,
    checked_reason,
    name_of_person,
)
from tidemark.model.arrangement import Arrangement
from tidemark.model.collection import Covers, Gate
from tidemark.model.wording import SHORT_ID
from tidemark.plan.gate import GateRequest
from tidemark.quality.report import GateReport, RuleResult


@dataclass(frozen=True)
class Accepting:
    """What a person asks to accept: `batches`, ids or beginnings of them, for a reason. `suite` is that of the rules
    under which they saw the failures (None: whatever rules there are now)."""

    batches: tuple[str, ...]
    by: str
    reason: str
    suite: str | None = None


def accepting(
    gate: Gate, accept: str | None, reason: str | None, by: str | None, judged_by: str | None
) -> Accepting | None:
    """What the arguments of the gate ask to accept; None if nothing. InvalidUsage where they do not fit together, for a
    gate that judges no data, for a bad reason."""
    batches = tuple(dict.fromkeys(filter(None, (accept or "").replace(",", " ").split())))
    if not batches:
        if accept is not None or reason or judged_by:
            raise InvalidUsage("a reason is given, but no batch: name the ones to accept with --accept BATCH")
        return None
    if gate.covers is not Covers.UNSEALED:
        raise InvalidUsage(
            f"what the {gate} gate checks are invariants of what is stored, and can be accepted by nobody; accept "
            "batches at the unsealed gate"
        )
    why = checked_reason(reason)
    return Accepting(batches, name_of_person(by), why, judged_by)


def check_named(state: Arrangement, request: GateRequest | None, asked: Accepting) -> None:
    """Raise InvalidUsage where a batch that is named is none that the gate could certify, or the rules have changed
    since. One that is certified already is fine: it was accepted by an earlier try."""
    suite = state.collection.suite(Gate.UNSEALED)
    if asked.suite not in (None, suite):
        raise InvalidUsage(
            f"the rules have changed from {asked.suite} to {suite} since the failure was seen: run the gate, look again"
        )
    open_ids = [each.id for each in request.unjudged] if request else []
    for name in asked.batches:
        found = [batch for batch in open_ids if batch.startswith(name)]
        if len(found) > 1:
            raise InvalidUsage(f"more than one batch begins with {name!r}: {listed(found)}; write more of the id")
        judged = (*state.live, *state.without_rows)
        if not found and not any(each.id.startswith(name) and state.is_certified(each) for each in judged):
            raise InvalidUsage(
                f"no batch of {state.collection.name} that waits for the unsealed gate begins with {name!r}; there "
                f"are: {listed(batch[:SHORT_ID] for batch in open_ids) or 'none'}"
            )


def accepted(report: GateReport, request: GateRequest, asked: Accepting) -> GateReport:
    """The report with the batches that are accepted. InvalidUsage, naming the rule, for one that breaks an invariant.
    What passed needs nobody's acceptance, and has none."""
    made = []
    for batch in request.unjudged:
        failures = [failure for failure in report.failures if failure.batch == batch.id]
        if not failures or not any(batch.id.startswith(name) for name in asked.batches):
            continue
        _check_acceptable(report.collection, failures)
        named = tuple(AcceptedFailure(shortened(one.rule, MOST_NAME), one.failing) for one in failures[:MOST_FAILURES])
        made.append(
            Acceptance(
                batch.id,
                batch.interval,
                report.suite,
                asked.by,
                time_ns() // 1_000,
                asked.reason,
                len(failures),
                named,
            )
        )
    return replace(report, accepted=tuple(made))


def _check_acceptable(collection: str, failures: Sequence[RuleResult]) -> None:
    broken = next((failure for failure in failures if not failure.acceptable), None)
    if broken is not None:
        name = broken.batch[:SHORT_ID]
        raise InvalidUsage(
            f"batch {name} cannot be accepted: `{broken.rule}` is no expectation about its data that was judged, but "
            f"what the collection relies on ({broken.message}); take it out with `tidemark quarantine {collection} "
            f"{name}`"
        )
