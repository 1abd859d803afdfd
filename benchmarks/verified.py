"""What it costs a read to verify the bytes of its parts: pairs of a read that does, and one that does not.

Both read the same collection in this process, without the cache, one after the other; which is first alternates.
Answers of a pair are compared.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any
from unittest import mock

import tidemark
from benchmarks.figures import Figures
from benchmarks.measure import in_fresh_process
from benchmarks.timelines import HOUR, START, STEP, collected, measurements
from tidemark.arrow.parts.checksums import Checksums
from tidemark.storage.cache import VARIABLE

PAIRS = 21
MOST = 1.05
"""The CPU of a read that verifies, beside one that does not."""


def verified(full: bool, say: Callable[[str], None]) -> dict[str, Any]:
    """The figures of a million rows, or of ten million if `full`. AssertionError if two answers differ."""
    rows = 10_000_000 if full else 1_000_000
    say(f"verified: {rows:,} rows, {PAIRS} pairs of each read")
    return {"rows": rows, "reads": in_fresh_process(_measured, rows)}


def _measured(rows: int) -> list[dict[str, Any]]:
    os.environ[VARIABLE] = "0"
    middle = START + rows * STEP // 2
    questions: dict[str, Callable[[tidemark.OpenCollection], Any]] = {
        "all rows, counted": lambda ticks: ticks.as_of().count(),
        "all rows": lambda ticks: ticks.as_of().to_arrow(),
        "one hour": lambda ticks: ticks.range("at", middle, middle + min(HOUR, rows * STEP // 10)).to_arrow(),
        "one key": lambda ticks: ticks.as_of(where={"id": rows // 2}).to_arrow(),
    }
    with tempfile.TemporaryDirectory(prefix="tidemark-bench-") as folder:
        ticks = collected(Path(folder), measurements(rows), ("id",))
        return [{"read": name, **_pairs(partial(question, ticks))} for name, question in questions.items()]


def _pairs(read: Callable[[], Any]) -> dict[str, Any]:
    read()
    cpu: dict[bool, list[float]] = {True: [], False: []}
    for pair in range(PAIRS):
        answers = []
        for verifies in (pair % 2 == 0, pair % 2 == 1):
            with _reads(verifies):
                before = time.process_time()
                answers.append(read())
                cpu[verifies].append(time.process_time() - before)
        assert answers[0] == answers[1], "a read that verifies has another answer"
    ratios = [one / other for one, other in zip(cpu[True], cpu[False], strict=True)]
    return {"verified": median(cpu[True]), "unverified": median(cpu[False]), "ratio": median(ratios)}


@contextmanager
def _reads(verifies: bool) -> Iterator[None]:
    if verifies:
        yield
        return
    with mock.patch.object(Checksums, "verify"):
        yield


def figures(found: dict[str, Any]) -> Figures:
    """CPU milliseconds of each read."""
    return Figures(
        "Verified reads",
        f"{found['rows']:,} rows, local files, no cache; median of {PAIRS} pairs.",
        ("read", "verified, CPU ms", "not verified", "median of ratios"),
        tuple(
            (each["read"], f"{each['verified'] * 1e3:.1f}", f"{each['unverified'] * 1e3:.1f}", f"{each['ratio']:.3f} x")
            for each in found["reads"]
        ),
    )


def targets(found: dict[str, Any] | None) -> list[tuple[str, str, str, bool]]:
    """A twentieth more CPU at most."""
    return [
        (f"{each['read']}: CPU of a verified read", f"<= {MOST} x", f"{each['ratio']:.3f} x", each["ratio"] <= MOST)
        for each in (found["reads"] if found else [])
    ]
