"""The interval index of chunks beside a scan of a sorted list and beside superintervals, a native library.

Each shape of intervals is asked the same ranges by all three, and all must find the same. The scan is what one writes
without an index: intervals sorted by first value, those that begin at or before the range's end looked at one by one.
superintervals is a yardstick of speed and no dependency: it is written in C, cannot count what it looks at and takes
no insertion once it is built. It takes ends of 32 bits, so the shapes stay below 2^31.
"""

from __future__ import annotations

import random
import time
from bisect import bisect_right
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

from benchmarks.figures import Figures
from benchmarks.measure import in_fresh_process
from benchmarks.peers.engines import missing
from tidemark.model.chunk.forest import Forest
from tidemark.model.chunk.index import IntervalIndex

Interval = tuple[int, int, int]
Ask = Callable[[int, int], Sequence[int]]
PEER = "superintervals"
QUERIES = 500


def shapes(count: int) -> dict[str, list[Interval]]:
    """Chunks as they are, and as they hurt."""
    chance = random.Random(1)
    disjoint = [(10 * at, 10 * at + 5, at) for at in range(count)]
    return {
        "disjoint": disjoint,
        "neighbours overlap": [(10 * at, 10 * at + 50, at) for at in range(count)],
        "one over everything": [(-1, 10 * count, count), *disjoint],
        "one of 1,000 is long": [(first, last + 10 * count * (at % 1000 == 0), at) for first, last, at in disjoint],
        "of all lengths": [
            (first, first + int(10 * count ** chance.random()), at)
            for at, first in enumerate(chance.randrange(10 * count) for _ in range(count))
        ],
    }


def chunk_index(full: bool, say: Callable[[str], None]) -> dict[str, Any]:
    """Every shape: 100,000 intervals, or a million if `full`."""
    if missing(PEER):
        say(f"chunk_index: without {PEER}, which is not installed (make bench PEERS=1)")
    count = 1_000_000 if full else 100_000
    say(f"chunk_index: {count:,} intervals")
    return {"intervals": count, "runs": [in_fresh_process(run, name, count) for name in shapes(1)]}


def run(shape: str, count: int, queries: int = QUERIES) -> dict[str, Any]:
    """One shape. AssertionError if two do not find the same."""
    some, chance = shapes(count)[shape], random.Random(2)
    ranges = [(low, low + 100) for low in (chance.randrange(10 * count) for _ in range(queries))]
    index, build = _clocked(lambda: IntervalIndex(some))
    expected, asked = _asked(lambda low, high: index.overlapping(low, high).items, ranges)
    found = [index.overlapping(*each) for each in ranges]
    first, falling = _clocked(lambda: [next(index.falling(high), None) for _, high in ranges])
    for each, (_, high) in zip(first[:20], ranges, strict=False):
        assert (each and each[0]) == _greatest(some, high), f"the first to open at {high} is not {each}"
    return {
        "shape": shape,
        "queries": queries,
        "found": sum(len(each.items) for each in found) / queries,
        "visited": sum(each.visited for each in found) / queries,
        "visited_most": max(each.visited for each in found),
        "build": build,
        "query": asked / queries,
        "falling": falling / queries,
        "insert": _insertions(some[:2000]) / min(2000, len(some)),
        "scan": _beside(_scan(some), expected, ranges[: max(1, queries // 25)]),
        "peer": None if missing(PEER) else _peer(some, expected, ranges),
    }


def _insertions(some: list[Interval]) -> float:
    def insert() -> None:
        index = Forest[int]()
        for each in some:
            index = index.inserted(*each)

    return _clocked(insert)[1]


def _scan(some: list[Interval]) -> Ask:
    ordered = sorted(some)
    firsts = [first for first, _, _ in ordered]

    def ask(low: int, high: int) -> list[int]:
        return [item for _, last, item in ordered[: bisect_right(firsts, high)] if last >= low]

    return ask


def _peer(some: list[Interval], expected: list[list[int]], ranges: list[tuple[int, int]]) -> dict[str, float]:
    def build() -> Any:
        found = import_module(PEER).IntervalMap()
        for each in some:
            found.add(*each)
        found.build()
        return found

    index, seconds = _clocked(build)
    return {"build": seconds, **_beside(index.search_values, expected, ranges)}


def _beside(ask: Ask, expected: list[list[int]], ranges: list[tuple[int, int]]) -> dict[str, float]:
    found, seconds = _asked(ask, ranges)
    assert found == expected[: len(ranges)], "they do not find the same"
    return {"query": seconds / len(ranges)}


def _asked(ask: Ask, ranges: list[tuple[int, int]]) -> tuple[list[list[int]], float]:
    found, seconds = _clocked(lambda: [ask(*each) for each in ranges])
    return [sorted(each) for each in found], seconds


def _greatest(some: list[Interval], at: int) -> int | None:
    return max((min(last, at) for first, last, _ in some if first <= at), default=None)


def _clocked(work: Callable[[], Any]) -> tuple[Any, float]:
    """What it gives, and the CPU seconds of this process."""
    start = time.process_time()
    answer = work()
    return answer, time.process_time() - start


def figures(found: dict[str, Any]) -> Figures:
    """The table."""
    return Figures(
        "The interval index of chunks",
        f"{found['intervals']:,} intervals; CPU microseconds a query over {QUERIES} ranges, the scan over fewer. "
        "Entries are those of the tree that a query looks at: mean, and most. `falling` is the first chunk that "
        "latest-at opens; an insertion is the mean of 2,000. superintervals is written in C and built once.",
        (
            *("shape", "found", "entries", "most", "query µs", "falling µs", "scan µs", "superintervals µs"),
            *("build ms", "superintervals ms", "insertion µs"),
        ),
        tuple(
            (
                run["shape"],
                f"{run['found']:.1f}",
                f"{run['visited']:.0f}",
                f"{run['visited_most']:,}",
                f"{run['query'] * 1e6:.1f}",
                f"{run['falling'] * 1e6:.1f}",
                f"{run['scan']['query'] * 1e6:,.0f}",
                f"{run['peer']['query'] * 1e6:.1f}" if run["peer"] else "-",
                f"{run['build'] * 1e3:.0f}",
                f"{run['peer']['build'] * 1e3:.0f}" if run["peer"] else "-",
                f"{run['insert'] * 1e6:.0f}",
            )
            for run in found["runs"]
        ),
    )
