"""Gate: look at what no certificate of the current suite covers, and certify it, or stop the run and show why."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from functools import cache
from io import StringIO
from typing import Any

from tidemark.errors import GateFailed, InvalidUsage, UpgradeRequired
from tidemark.jobs.in_process_runner import small_bytes
from tidemark.jobs.job import Job, Proposal, Runner
from tidemark.jobs.steps.gate_accept import accepted, accepting, check_named
from tidemark.jobs.steps.gate_corrections import corrected_batches
from tidemark.jobs.steps.gate_definition import defined_batches
from tidemark.jobs.steps.gate_result import keep_result
from tidemark.jobs.steps.gate_whole import Whole, wholes
from tidemark.model.arrangement import Arrangement
from tidemark.model.batch import Part, TraceBatch, UnsealedBatch
from tidemark.model.change import Certified
from tidemark.model.collection import Covers, Gate
from tidemark.model.interval import Interval
from tidemark.model.ledger import LedgerEntry
from tidemark.model.wording import counted
from tidemark.plan.gate import GateRequest, plan_gate
from tidemark.plan.task_size import estimate, is_small
from tidemark.plan.tasks import InspectTask
from tidemark.quality.evidence import Inspected, empty_evidence
from tidemark.quality.expectations import OwnerExpectation, owner_expectations
from tidemark.quality.gates import GATES, Seen
from tidemark.quality.report import GateReport, RuleResult, rendered
from tidemark.storage.log.log import Head
from tidemark.storage.sidecars import ledger, parts_table

LEDGER_ENTRIES = 20_000
"""Newest source files whose counts say what is usual: a gate must not cost more as a collection ages."""
REPORT_WIDTH = 160

Batch = UnsealedBatch | TraceBatch


def gate(
    job: Job,
    gate: Gate,
    *,
    intervals: Sequence[Interval] = (),
    accept: str | None = None,
    reason: str | None = None,
    by: str | None = None,
    judged_by: str | None = None,
) -> dict[str, Any]:
    """Run one gate over what it has not certified and commit the certificate; warnings are in the result. With
    `intervals`, of unsealed batches it is those that came with one of these.

    `accept` names batches that a person certifies although expectations of the collection's owner fail: for a `reason`,
    which is kept with the certificate, as is who it was, `by`. They are judged again, so that what is kept is what is
    found. InvalidUsage if one of them breaks an invariant, is none that waits for this gate, or if the rules are no
    longer those of `judged_by`. A batch that was accepted before stays as it is.

    Batches that pass are certified even where another fails. Raises GateFailed naming the first failure, with the
    failing rows shown through `job.note`; InvalidUsage for an expectation that cannot be run. Whatever came of it is
    kept (quality/results.py); `docs` in the result, and the failure, say where. Data are read only if there is
    something to look at, and Great Expectations is imported only if the collection has expectations of its own or
    something fails.
    """

    asked = accepting(gate, accept, reason, by, judged_by)

    def propose(head: Head) -> Proposal[Certified, GateReport]:
        try:
            request = plan_gate(head.state, gate, intervals)
            if asked is not None:
                check_named(head.state, request, asked)
            if request is None:
                return Proposal(None, _unseen(head, gate))
            report = _examine(job, head, request)
            if asked is not None:
                report = accepted(report, request, asked)
        except (InvalidUsage, UpgradeRequired) as error:
            keep_result(job, _unseen(head, gate), error=str(error))
            raise
        if not report.certified and not (report.passed and request.upper):
            raise _failure(job, report)
        return Proposal(Certified(gate, request.suite, report.certified, request.upper, report.accepted), report)

    done = job.settle(propose)
    head, report = done.head, done.found
    if done.change is None:
        docs = keep_result(job, report)
        return {"gate": str(gate), "outcome": str(done.outcome), "version": head.version, "docs": docs}
    if not report.passed:
        raise _failure(job, report)
    return {
        "gate": str(gate),
        "outcome": str(done.outcome),
        "version": head.version,
        "suite": report.suite,
        "batches": list(report.certified),
        **report.with_docs(keep_result(job, report, looked=True)).summary(),
    }


def _unseen(head: Head, gate: Gate) -> GateReport:
    """The report of a gate that looked at nothing."""
    collection = head.state.collection
    return GateReport(collection.name, gate, collection.suite(gate), (), ())


def _failure(job: Job, report: GateReport) -> GateFailed:
    report = report.with_docs(keep_result(job, report, looked=True))
    return GateFailed(report.headline, report.of_failures())


def _examine(job: Job, head: Head, request: GateRequest) -> GateReport:
    batches: tuple[Batch, ...] = (*request.unsealed, *request.trace)
    report = GateReport(head.state.collection.name, request.gate, request.suite, request.names, (), upper=request.upper)
    with_data = [batch for batch in batches if batch.rows]
    if request.upper is None and not with_data and not request.empty:
        # What metadata can say of a batch without data, the state checked when it was loaded.
        return report
    runner = job.runner() if with_data else None
    found = _inspected(job, runner, head.state, with_data) if runner else {}
    report = _judged(job, head, request, report, found, runner)
    if report.failures or report.warnings:
        job.note(_as_text(report))
    return report


def _inspected(job: Job, runner: Runner, state: Arrangement, batches: Sequence[Batch]) -> dict[str, Inspected]:
    """Every part of the batches, read in full by the runner."""
    from tidemark.arrow.rows.schema import unsealed_schema, updates_schema, without_source

    collection = state.collection
    tables = {batch.id: parts_table.parts_of(job.store, [batch]) for batch in batches}
    facts = {batch.id: collection.kind.facts_in(batch) for batch in batches}
    tasks = [InspectTask(collection, part, facts[batch]) for batch, parts in tables.items() for part in parts]
    job.note(f"checking {counted(sum(batch.rows for batch in batches), 'row')} in {counted(len(tasks), 'part')}")
    answers = iter(runner.run("inspect", tasks))
    unsealed, trace = tuple(without_source(unsealed_schema(collection).names)), tuple(updates_schema(collection).names)
    return {
        batch.id: Inspected(
            tables[batch.id],
            tuple(next(answers) for _ in tables[batch.id]),
            unsealed if isinstance(batch, UnsealedBatch) else trace,
        )
        for batch in batches
    }


def _judged(
    job: Job,
    head: Head,
    request: GateRequest,
    report: GateReport,
    found: dict[str, Inspected],
    runner: Runner | None,
) -> GateReport:
    from tidemark.quality.evaluate import evaluate_invariants
    from tidemark.quality.rows import matching_rows
    from tidemark.quality.validation import Validator

    collection, validator = head.state.collection, Validator()
    facts = {batch.id for batch in request.unsealed if collection.kind.facts_in(batch)}
    recent = cache(lambda: _recent(job, head.state))
    of_batches = {batch.id: found[batch.id].parts for batch in request.unsealed if runner}
    seen = Seen(
        head.state,
        request,
        found,
        recent,
        lambda: corrected_batches(job, runner, head.state, of_batches, recent()) if runner else {},
        lambda: defined_batches(job, head.state, of_batches) if collection.is_derived else {},
    )
    judgement = GATES[request.gate]
    evidence = judgement.evidence(seen)
    results = evaluate_invariants(
        validator,
        collection,
        evidence,
        lambda batch, clauses: (
            matching_rows(job.store, found[batch].parts, clauses, collection, facts=batch in facts) if batch else ()
        ),
    )
    without_rows = empty_evidence(head.state, request)
    results += evaluate_invariants(validator, collection, without_rows, lambda *_: (), judgement.rules_of_snapshots)
    if request.gate.covers is Covers.UNSEALED and (owners := owner_expectations(collection)):
        results += _judged_by_owner(job, head.state, request, owners, found, recent, runner)
    return replace(report, results=tuple(results), evidence=(evidence, without_rows))


def _judged_by_owner(
    job: Job,
    state: Arrangement,
    request: GateRequest,
    owners: Sequence[OwnerExpectation],
    found: dict[str, Inspected],
    recent: Callable[[], Sequence[LedgerEntry]],
    runner: Runner | None,
) -> Iterator[RuleResult]:
    """What is about rows is asked of each batch, what is about all of them once of each interval."""
    from tidemark.quality.evaluate import evaluate_owners
    from tidemark.quality.validation import Validator

    def judged(
        batch: str, some: Sequence[OwnerExpectation], batches: Sequence[UnsealedBatch], why: str = ""
    ) -> list[RuleResult]:
        tables = {
            of.id: found[of.id].parts if of.id in found else parts_table.parts_of(job.store, [of]) for of in batches
        }
        parts = [part for table in tables.values() for part in table]
        with nullcontext(why) if why else _rows(job, runner, state, batches, parts) as frame:
            return evaluate_owners(Validator(), state.collection, batch, some, frame, store=job.store, parts=parts)

    about_rows = [owner for owner in owners if not owner.is_about_whole]
    about_whole = [owner for owner in owners if owner.is_about_whole]
    content = wholes(state, request, recent) if about_whole else {}
    for batch in request.unsealed:
        # Where a batch is its interval's whole content, as mostly, its rows are read once for all.
        is_whole = content.get(batch.id) == Whole((batch,))
        if some := owners if is_whole else about_rows:
            yield from judged(batch.id, some, (batch,))
        if is_whole:
            del content[batch.id]
    by_content: dict[Whole, list[RuleResult]] = {}
    for name, whole in content.items():
        if whole not in by_content:
            by_content[whole] = judged(name, about_whole, whole.batches, whole.why_not)
        yield from (replace(result, batch=name) for result in by_content[whole])


def _recent(job: Job, state: Arrangement) -> tuple[LedgerEntry, ...]:
    """The newest entries of recently ingested files: whole runs of the ledger, newest first, within the budget."""
    last: dict[str, LedgerEntry] = {}
    budget = LEDGER_ENTRIES
    for run in reversed(state.ledger):
        budget -= run.entries
        if budget < 0:
            break
        last = {entry.path: entry for entry in ledger.load_run(job.store, run)} | last
    return tuple(last.values())


@contextmanager
def _rows(
    job: Job, runner: Runner | None, state: Arrangement, batches: Sequence[UnsealedBatch], parts: Sequence[Part]
) -> Iterator[Any]:
    """The rows of batches as a frame for the owner's expectations: of pandas where they are small, which takes Great
    Expectations milliseconds, else of Spark; a runner without a session has only pandas."""
    from tidemark.quality.rows import pandas_rows, spark_rows

    facts = state.collection.kind.facts
    estimated = estimate("expectations", [InspectTask(state.collection, part, facts) for part in parts])
    small = estimated is not None and is_small(estimated, small_bytes())
    # An interval may end without rows, and its cuts have many: then nothing was inspected here.
    spark = None if small else getattr(runner or job.runner(), "spark", None)
    if spark is None:
        yield pandas_rows(job.store, parts, state.collection)
        return
    frame = spark_rows(spark, job.store.url, parts, state.collection).persist()
    try:
        yield frame
    finally:
        frame.unpersist()


def _as_text(report: GateReport) -> str:
    from rich.console import Console

    out = StringIO()
    Console(file=out, width=REPORT_WIDTH, color_system=None).print(rendered(report))
    return out.getvalue().rstrip()
