"""Where the kernels' time goes: the throughput benchmark in one process, each step under cProfile."""

from __future__ import annotations

import cProfile
import pstats
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.feed import Feed
from benchmarks.steps import Bench
from benchmarks.throughput import DAYS, KEYS_SHARE
from tidemark.model.collection import Envelope

SHOWN = 14


def profile(console: Console, updates: int) -> None:
    """Print, for each envelope and step, the functions with the most time of their own."""
    for envelope in (Envelope.APPEND, Envelope.UPSERT):
        feed = Feed(envelope, DAYS, updates // DAYS, max(1, updates // KEYS_SHARE))
        with tempfile.TemporaryDirectory(prefix="tidemark-bench-") as folder:
            bench = _Profiled(feed.collection, Path(folder, "root"), Path(folder, "landing"))
            bench.profiles = {}
            feed.write(bench.landing)
            for day in range(DAYS):
                bench.day(feed.interval(day))
                bench.compact(feed.interval(day))
        for step in ("ingest", "gate unsealed", "drain", "compact"):
            console.print(_hottest(f"{envelope} {step}", bench.profiles[step]), "")


class _Profiled(Bench):
    profiles: dict[str, cProfile.Profile]

    def _measured(self, step: str, work: Callable[[], dict[str, Any]]) -> None:
        profiler = self.profiles.setdefault(step, cProfile.Profile())
        profiler.enable()
        try:
            self.results[step].append(work())
        finally:
            profiler.disable()


def _hottest(title: str, profiler: cProfile.Profile) -> Table:
    stats = pstats.Stats(profiler)
    total = stats.total_tt  # type: ignore[attr-defined]
    table = Table(title=f"{title}: {total:.2f} s", title_justify="left", box=None)
    for heading in ("function", "calls", "own s", "with callees s", "own share"):
        table.add_column(heading, justify="left" if heading == "function" else "right")
    ranked = sorted(stats.stats.items(), key=lambda item: -item[1][2])  # type: ignore[attr-defined]
    for (file, line, name), (_, calls, own, whole, _) in ranked[:SHOWN]:
        where = name if file == "~" else f"{'/'.join(Path(file).parts[-2:])}:{line} {name}"
        table.add_row(where, f"{calls:,}", f"{own:.2f}", f"{whole:.2f}", f"{own / total:.0%}")
    return table
