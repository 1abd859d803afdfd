"""Asks Great Expectations again about what gates judged lately: the evidence is kept with each result.

A gate judges evidence that passes without Great Expectations (quality/compiled.py). This is what notices if the two
judges ever differ, or if a kept result was altered.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from time import time_ns
from typing import Any

from tidemark.errors import InvalidUsage, MissingExtra, Unavailable
from tidemark.jobs.job import Job
from tidemark.model.collection import Collection, Gate
from tidemark.model.wording import counted
from tidemark.quality.evidence import Evidence
from tidemark.quality.gates import GATES
from tidemark.quality.report import RuleResult
from tidemark.quality.results import Results, results_of_collection
from tidemark.storage.verify.history import Finding

LATELY = 2 * 86_400_000_000
"""Microseconds. An audit a day that is late, or fails once, leaves no result out."""

_NOT_COMPARED = ("rows", "rows_left_out")
"""Rows of data that failed are no evidence."""


@dataclass(frozen=True)
class Again:
    """What came of it.

    Attributes:
        validations: Results that were judged again.
        left: Results of that time that could not be judged again.
        findings: Every check whose verdict is not what was kept.
    """

    validations: int = 0
    left: int = 0
    findings: tuple[Finding, ...] = ()


def gates_again(job: Job, collection: Collection) -> Again:
    """Judge the kept evidence of the last two days again, and compare each check with the kept result.

    Results that cannot be judged again are counted, and a note says why.
    """
    results = results_of_collection(job.store.url)
    if results is None:
        return Again()
    repeated, findings, reasons = 0, list[Finding](), Counter[str]()
    try:
        for key, gate, document in _documents(results, collection, time_ns() // 1_000 - LATELY):
            if reason := _why_not(collection, gate, document):
                reasons[reason] += 1
            elif document["results"]:
                findings += _differences(collection, gate, document, key)
                repeated += 1
    except (MissingExtra, InvalidUsage, Unavailable) as error:
        reasons[str(error)] += 1
    for reason, count in reasons.items():
        job.note(f"{counted(count, 'result')} of gates not judged again: {reason}")
    return Again(repeated, reasons.total(), tuple(findings))


def _documents(results: Results, collection: Collection, since: int) -> Iterator[tuple[str, Gate, Mapping[str, Any]]]:
    """The kept results of what gates looked at since then, with their keys; of one that is gone or torn, nothing."""
    for gate in Gate:
        for name in results.names(collection.name, gate):
            if name.kept_at < since:
                break
            if name.outcome in ("passed", "failed"):
                document = results.load(collection.name, gate, name)
                yield f"{collection.name}/{gate}/{name.name}.json", gate, document or {}


def _why_not(collection: Collection, gate: Gate, document: Mapping[str, Any]) -> str:
    if not document:
        return "gone, or damaged"
    if document.get("suite") != collection.suite(gate):
        return "the rules have changed since"
    if not isinstance(document.get("evidence"), list):
        return "kept without evidence, by a release before 0.6.0 or for its size"
    return ""


def _differences(collection: Collection, gate: Gate, document: Mapping[str, Any], key: str) -> Iterator[Finding]:
    from tidemark.quality.evaluate import evaluate_invariants
    from tidemark.quality.validation import Validator

    kept = {(result.get("rule"), result.get("batch")): result for result in document["results"]}
    judgement = GATES[gate]
    rules_of_each = (judgement.rules_of(collection), judgement.rules_of_snapshots)
    try:
        for entry, rules in zip(document["evidence"], rules_of_each, strict=True):
            evidence = Evidence.from_dict(gate, entry)
            for result in evaluate_invariants(Validator(always_asks=True), collection, evidence, lambda *_: (), rules):
                stored = kept.get((result.rule, result.batch))
                if stored is None and result.passed and document.get("results_left_out"):
                    continue
                if difference := _difference(stored or {}, result):
                    yield Finding("gate result", f"{result.rule}: {difference}", result.batch, key)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        yield Finding("gate result", f"its evidence cannot be judged: {type(error).__name__} {error}", object=key)


def _difference(kept: Mapping[str, Any], result: RuleResult) -> str:
    """The fields in which a kept check is not what Great Expectations says now."""
    again = json.loads(json.dumps(asdict(result)))
    fields = dict.fromkeys((*again, *kept))
    return ", ".join(
        f"{field} was {kept.get(field)!r}, Great Expectations says {again.get(field)!r}"
        for field in fields
        if field not in _NOT_COMPARED and kept.get(field) != again.get(field)
    )
