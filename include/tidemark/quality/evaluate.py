"""From suites to results: the built-in invariants over the evidence, the owner's expectations over a batch's
rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from tidemark.model.batch import Part
from tidemark.model.collection import Collection
from tidemark.quality.evidence import Evidence, Row
from tidemark.quality.expectations import OwnerExpectation
from tidemark.quality.gates import GATES
from tidemark.quality.report import RuleResult
from tidemark.quality.rows import MAX_ROWS, is_judged, matching_rows, rows_at, shortened
from tidemark.quality.suites import Clause, Rule
from tidemark.quality.validation import Validator
from tidemark.quality.verdict import Verdict
from tidemark.quality.wording import Wording, by_column, plain_text, written
from tidemark.storage.stores.store import ObjectStore

LONGEST_MESSAGE = 1_500
"""Characters of a finding: the steps' results, which are lines of JSON, hold the warnings' ones."""


def evaluate_invariants(
    validator: Validator,
    collection: Collection,
    evidence: Evidence,
    find: Callable[[str, Sequence[Clause]], tuple[dict[str, Any], ...]],
    rules: Sequence[Rule] | None = None,
) -> list[RuleResult]:
    """Each rule, of the gate's suite unless others are given, for each row of the evidence. `find` fetches rows of a
    batch by query."""
    if not evidence.rows:
        return []
    rules = GATES[evidence.gate].rules_of(collection) if rules is None else rules
    verdicts = validator.judge_evidence(rules, evidence)
    return [
        _invariant(rule, verdict, at, row, collection, find)
        for rule, verdict in zip(rules, verdicts, strict=True)
        for at, row in enumerate(evidence.rows)
    ]


def _invariant(
    rule: Rule,
    verdict: Verdict,
    at: int,
    row: Row,
    collection: Collection,
    find: Callable[[str, Sequence[Clause]], tuple[dict[str, Any], ...]],
) -> RuleResult:
    batch = str(row["batch"])
    result = RuleResult(
        rule.name,
        rule.severity,
        batch,
        # Of a rule that failed without saying where, no row has passed.
        passed=verdict.passed or (not verdict.error and verdict.positions != () and at not in verdict.positions),
        asked=f"{rule.expectation}: {written(rule.arguments)}",
        observed=", ".join(f"{name} {plain_text(row[name])}" for name in rule.figures),
    )
    if verdict.error:
        return replace(result, message=f"could not be evaluated: {verdict.error}")
    if result.passed:
        return result
    message = shortened(rule.message.format(**row), LONGEST_MESSAGE)
    failing = row[rule.count] if rule.count else None
    rows = find(batch, rule.offending(row, collection))
    return replace(result, message=message, failing=failing, rows=rows, acceptable=rule.judgement)


def evaluate_owners(
    validator: Validator,
    collection: Collection,
    batch: str,
    owners: Sequence[OwnerExpectation],
    frame: Any,
    *,
    store: ObjectStore,
    parts: Sequence[Part],
) -> list[RuleResult]:
    """Each of the owner's expectations for one batch, whose rows are `frame`, or which is not asked for the reason that
    `frame` says; failing rows are read from the parts."""
    if isinstance(frame, str):
        verdicts = [Verdict.unasked(frame) for _ in owners]
    else:
        verdicts = validator.judge_rows(owners, frame)
    results = []
    for owner, verdict in zip(owners, verdicts, strict=True):
        wording = Wording(owner, verdict, collection)
        asked = f"{owner.name}: {written(owner.arguments)}"
        result = RuleResult(
            str(owner),
            owner.severity,
            batch,
            verdict.passed,
            asked=asked,
            observed=wording.observed(),
            not_asked=bool(verdict.not_asked),
        )
        if not verdict.passed:
            rows = _failing_rows(owner, verdict, collection, store, parts)
            message = shortened(wording.failure(), LONGEST_MESSAGE)
            # What could not be evaluated says nothing about the data: there is nothing to accept.
            acceptable = verdict.error is None
            result = replace(result, message=message, failing=verdict.failing, rows=rows, acceptable=acceptable)
        results.append(result)
    return results


def _failing_rows(
    owner: OwnerExpectation, verdict: Verdict, collection: Collection, store: ObjectStore, parts: Sequence[Part]
) -> tuple[dict[str, Any], ...]:
    if verdict.positions:
        return rows_at(store, parts, verdict.positions, collection)
    clauses, facts = _clauses(owner, verdict), collection.kind.facts
    return matching_rows(store, parts, clauses, collection, facts=facts, among=is_judged(collection))


def _clauses(owner: OwnerExpectation, verdict: Verdict) -> list[Clause]:
    """The query by the failing values, of one column or of several."""
    clauses = []
    for value in verdict.values[:MAX_ROWS]:
        clauses.append(tuple((column, "==", cell) for column, cell in by_column(owner, value)))
    return list(dict.fromkeys(clauses))
