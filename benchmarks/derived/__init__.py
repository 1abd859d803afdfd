"""What derived collections cost: kept right after a change, beside computed whole (refresh.py); and daily totals beside
models that merge their last days (beside.py)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def derived(full: bool, say: Callable[[str], None]) -> dict[str, Any]:
    """The figures of both. AssertionError if an answer of ours is wrong."""
    from benchmarks.derived.beside import beside
    from benchmarks.derived.days import Days
    from benchmarks.derived.refresh import refresh
    from benchmarks.derived.sales import Sales
    from benchmarks.peers.spark.run import versions

    sales = Sales(10_000, 1_000) if full else Sales(1_000, 100)
    say(f"collections derived from {sales.shops * sales.each:,} sales, of which a hundredth changes")
    days = Days(20, 100_000) if full else Days(6, 10_000)
    return {"versions": versions(), "refresh": refresh(sales), "beside": beside(days, say)}
