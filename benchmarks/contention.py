"""Sixteen processes that commit at once, round after round, to local files and to an S3 server on this machine.

A round is sixteen changes planned against one head and committed at the same moment (tests/support/crowd.py, which the
tests use too): a commit that loses the race folds what the winners did and tries again. Its seconds end when the last
writer is acknowledged. Afterwards the log is read and must tell of every acknowledged change once. The S3 server is
moto's, one process that answers one request at a time: on it the figures say how many requests a race takes, not how
fast S3 is.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from statistics import median, quantiles
from typing import Any

from benchmarks.figures import Figures
from tidemark.jobs.job import fresh_id
from tidemark.model.change import Created
from tidemark.storage import open_store
from tidemark.storage.log.log import StateLog

TESTS = str(Path(__file__).resolve().parent.parent / "tests")


def contention(rounds: int, say: Callable[[str], None]) -> list[dict[str, Any]]:
    """The figures of so many rounds on each kind of store. AssertionError if a change was lost or repeated."""
    if TESTS not in sys.path:
        sys.path.insert(0, TESTS)
    from support.s3_server import ACCESS, s3_server

    results = []
    say(f"contention: {rounds:,} rounds on local files")
    with tempfile.TemporaryDirectory(prefix="tidemark-contention-") as folder:
        results.append(_measured("local files", folder, rounds))
    say(f"contention: {rounds:,} rounds on S3")
    with s3_server() as address:
        before = dict(os.environ)
        os.environ.update(ACCESS, AWS_ENDPOINT_URL=address)
        try:
            import boto3

            boto3.client("s3").create_bucket(Bucket="contention")
            results.append(_measured("S3", "s3://contention/one", rounds))
        finally:
            os.environ.clear()
            os.environ.update(before)
    return results


def _measured(where: str, url: str, rounds: int) -> dict[str, Any]:
    from support.crowd import WRITERS, crowd, nothing_lost_or_repeated
    from support.world import collection

    log = StateLog(open_store(url), fresh_id)
    log.commit(log.load(), Created(collection()))
    tally = crowd(url, rounds)
    nothing_lost_or_repeated(url, tally)
    commits, seconds = len(tally.acknowledged), sum(tally.seconds)
    return {
        "where": where,
        "writers": WRITERS,
        "rounds": rounds,
        "commits": commits,
        "lost_or_repeated": 0,
        "seconds": round(seconds, 3),
        "commits_per_second": round(commits / seconds, 1),
        "creates": tally.creates,
        "retries": tally.creates - commits,
        "round_seconds": {
            "median": round(median(tally.seconds), 4),
            "p99": round(quantiles(tally.seconds, n=100, method="inclusive")[98], 4),
            "max": round(max(tally.seconds), 4),
        },
    }


def figures(results: list[dict[str, Any]]) -> Figures:
    """The table."""
    return Figures(
        "Sixteen processes that commit at once",
        "Rounds of as many changes as there are writers, all against one head. A retry is a conditional create that "
        "lost its race. No acknowledged change was lost, none is logged twice. S3 is a server of one process on the "
        "same machine.",
        ("store", "writers", "rounds", "commits", "commits/s", "retries", "retries/commit", "round ms", "p99"),
        tuple(
            (
                found["where"],
                f"{found['writers']}",
                f"{found['rounds']:,}",
                f"{found['commits']:,}",
                f"{found['commits_per_second']:,.0f}",
                f"{found['retries']:,}",
                f"{found['retries'] / found['commits']:.1f}",
                f"{found['round_seconds']['median'] * 1000:.0f}",
                f"{found['round_seconds']['p99'] * 1000:.0f}",
            )
            for found in results
        ),
    )
