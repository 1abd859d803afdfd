"""From suites to results: the built-in invariants over the evidence, the owner's expectations over a batch's
rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tidemark.model.batch import Part
from tidemark.model.collection import Collection
from tidemark.quality.evidence import Evidence, Row
from tidemark.quality.expectations import OwnerExpectation
from tidemark.quality.report import RuleResult
from tidemark.quality.rows import MAX_ROWS, held, matching_rows, rows_at
from tidemark.quality.suites import SUITES, Clause, Rule
from tidemark.quality.validation import Validator, Verdict
from tidemark.storage.store import ObjectStore

SHOWN_VALUES = 5


def judge_invariants(
    validator: Validator,
    collection: Collection,
    evidence: Evidence,
    find: Callable[[str, Sequence[Clause]], tuple[dict[str, Any], ...]],
) -> list[RuleResult]:
    """Each rule of the gate's suite for each row of the evidence. `find` fetches rows of a batch by query."""
    rules = SUITES[evidence.gate]
    verdicts = validator.judge_evidence(f"{collection.name} {evidence.gate}", rules, evidence)
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
    if verdict.error:
        return RuleResult(rule.name, rule.severity, batch, False, f"could not be evaluated: {verdict.error}")
    if at not in verdict.positions:
        return RuleResult(rule.name, rule.severity, batch, True)
    failing = row[rule.count] if rule.count else None
    rows = find(batch, rule.offending(row, collection))
    return RuleResult(rule.name, rule.severity, batch, False, rule.message.format(**row), failing, rows)


def judge_owners(
    validator: Validator,
    collection: Collection,
    batch: str,
    owners: Sequence[OwnerExpectation],
    frame: Any,
    *,
    store: ObjectStore,
    parts: Sequence[Part],
) -> list[RuleResult]:
    """Each of the owner's expectations for one batch, whose rows are `frame`; failing rows are read from the
    parts."""
    verdicts = validator.judge_rows(f"{collection.name} quality {batch}", owners, frame)
    results = []
    for owner, verdict in zip(owners, verdicts, strict=True):
        if verdict.passed:
            results.append(RuleResult(str(owner), owner.severity, batch, True))
            continue
        if verdict.positions:
            rows = rows_at(store, parts, verdict.positions, collection)
        else:
            clauses, facts = _clauses(owner, verdict), collection.keyed
            rows = matching_rows(store, parts, clauses, collection, facts=facts, among=held(collection))
        message = _said(owner, verdict)
        results.append(RuleResult(str(owner), owner.severity, batch, False, message, verdict.failing, rows))
    return results


def _clauses(owner: OwnerExpectation, verdict: Verdict) -> list[Clause]:
    """The query by the failing values, of one column or of several."""
    clauses = []
    for value in verdict.values[:MAX_ROWS]:
        if isinstance(value, Mapping):
            by_column = dict(value)
        elif len(owner.columns) == 1:
            by_column = {owner.columns[0]: value}
        else:
            by_column = dict(zip(owner.columns, value, strict=True))
        clauses.append(tuple((column, "==", held) for column, held in by_column.items()))
    return list(dict.fromkeys(clauses))


def _said(owner: OwnerExpectation, verdict: Verdict) -> str:
    if verdict.error:
        return f"could not be evaluated: {verdict.error}"
    if verdict.failing is None:
        return f"observed {_text(verdict.observed)}, not {_asked(owner)}"
    distinct = list(dict.fromkeys(map(_text, verdict.values)))
    shown = ", ".join(distinct[:SHOWN_VALUES]) + (", …" if len(distinct) > SHOWN_VALUES else "")
    asked = f", not {_asked(owner)}" if _asked(owner) else ""
    return f"{verdict.failing} {'row holds' if verdict.failing == 1 else 'rows hold'} {shown}{asked}"


def _asked(owner: OwnerExpectation) -> str:
    about = ("column", "column_A", "column_B", "column_list", "severity", "description", "notes", "mostly")
    return ", ".join(f"{name} {_text(value)}" for name, value in owner.arguments.items() if name not in about)


def _text(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {_text(held)}" for name, held in value.items())
    if isinstance(value, list | tuple):
        return "(" + ", ".join(map(_text, value)) + ")"
    return "null" if value is None else str(value)
