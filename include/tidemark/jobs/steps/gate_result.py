"""Keeping what became of a gate run, for people to look at later."""

from __future__ import annotations

from time import time_ns

from tidemark.jobs.job import Job
from tidemark.quality.report import GateReport
from tidemark.quality.results import ran, results_of_collection


def keep_result(job: Job, report: GateReport, *, looked: bool = False, error: str | None = None) -> str | None:
    """Keep a gate run's report and return where, or None if that failed: a full disk must not hide why a gate failed.

    `looked` says that there was something to look at; `error` says why the gate could not run.
    """
    outcome = "refused" if error else "nothing" if not looked else "passed" if report.passed else "failed"
    try:
        results = results_of_collection(job.store.url)
        if results is None:
            return None
        document = {**report.as_dict(), "error": error}
        return results.keep(document, ran(job.attempt), outcome, time_ns() // 1_000)
    except Exception as problem:  # of whatever kind: what the gate found is what counts
        job.note(f"the gate's result could not be kept: {problem}")
        return None
