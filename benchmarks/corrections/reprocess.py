"""What a collection pays for being correctable: the same days with `reprocess_for: 30d` and without.

Both are built side by side in one process, a day of one and the same day of the other, so that what else the machine
does falls on both; which goes first changes from day to day. Two shapes of days: many small ones, where metadata is
most of the cost, and some large ones, where rows are.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.corrections.history import History
from benchmarks.corrections.ours import correctable
from benchmarks.feed import DAY, fingerprint_of
from benchmarks.measure import in_fresh_process, timed
from benchmarks.steps import Bench, silent, stored
from tests.support.reading import as_of
from tidemark.model.collection import Envelope

REPROCESS_FOR = 30 * DAY
WAYS = {"without": 0, "with": REPROCESS_FOR}


def reprocess(envelope: Envelope, full: bool) -> list[dict[str, Any]]:
    """The figures of both shapes."""
    shapes = ((100, 1_000), (10, 250_000)) if full else ((40, 500), (4, 20_000))
    return [in_fresh_process(_reprocess, History(envelope, days, rows)) for days, rows in shapes]


def _reprocess(history: History) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix="tidemark-bench-") as folder:
        landing = Path(folder, "landing")
        benches = {
            way: Bench(correctable(history, kept), Path(folder, way), landing, measure=timed, note=silent)
            for way, kept in WAYS.items()
        }
        ratios = []
        for number in range(history.days):
            history.land(landing, number)
            spent = {}
            for way in list(WAYS)[:: 1 if number % 2 else -1]:
                bench, before = benches[way], _spent(benches[way])
                bench.certified_day(history.feed.interval(number))
                spent[way] = _spent(bench) - before
            ratios.append(spent["with"] / spent["without"])
        expected = history.expected()[-1]
        for way, bench in benches.items():
            found = fingerprint_of(as_of(bench.job.store, bench.job.log.load().state))
            if found != expected:
                raise AssertionError(f"{way} reprocess_for {found} is stored, calculated was {expected}")
        return {
            **history.parameters,
            "ratio_of_days": round(median(ratios), 3),
            **{way: _costs(bench) for way, bench in benches.items()},
        }


def _spent(bench: Bench) -> float:
    return sum(cost.cpu_total for cost in bench.costs.values())


def _costs(bench: Bench) -> dict[str, Any]:
    written, objects = stored(bench.folder)
    steps = {name: round(cost.cpu_total, 4) for name, cost in bench.costs.items()}
    return {"cpu_seconds": steps, "bytes": written, "objects": objects}
