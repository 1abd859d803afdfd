"""What stopped an interval: the state remembers it, so that all who show the collection say so (plan/day.py)."""

from __future__ import annotations

from collections.abc import Sequence

from tidemark.errors import Contention, InvalidUsage, TidemarkError
from tidemark.jobs.job import Job
from tidemark.model.arrangement import Fence, LedgerRun
from tidemark.model.change import Refused
from tidemark.model.interval import Interval
from tidemark.model.ledger import LedgerEntry, path_hash
from tidemark.model.transition import Stale
from tidemark.plan.ingest import check_within
from tidemark.storage.log.log import Head


def stopped_by_files(job: Job, head: Head, fence: Fence, bad: Sequence[LedgerEntry], run: LedgerRun) -> None:
    """Remember that files stopped their interval.

    Args:
        job: The attempt.
        head: The version that was read against.
        fence: The attempt's, of the interval.
        bad: What the ledger is to know of the files.
        run: The same as a run of it.

    Raises:
        Contention: Another run has taken a file meanwhile.
    """
    sources = tuple(sorted(path_hash(entry.path) for entry in bad))
    outcome = job.log.commit(head, Refused(run, fence, sources, bad[0].path, bad[0].reason or ""))
    if isinstance(outcome, Stale):
        raise Contention(f"{outcome.reason}; run the step again")


def stopped_by(job: Job, step: str, interval: Interval, error: InvalidUsage) -> None:
    """Remember what a run was refused for, of an interval that is still to be read.

    That it cannot be remembered is said and no more: the refusal is what matters.
    """
    try:
        head = job.log.load()
        if head.arrangement is None or head.state.ingested.covers(interval):
            return
        check_within(head.state.collection, interval)
        head, fence = job.fenced(head, step, interval)
        job.log.commit(head, Refused(None, fence, reason=str(error)))
    except InvalidUsage:
        return  # an interval that the collection does not have
    except TidemarkError as why:
        job.note(f"the state does not say what stopped {interval}: {why}")
