"""What drains and reads cost while updates wait whose time is still to come, and how often these are rewritten.

Two collections live the same days; in one of them the first day also brought `undue` updates of the next 30 to 300
days. From the second day on each drain, and a read of each day before its drain, is compared with the other
collection's: CPU seconds and bytes asked of the store. Then a year of bookings: each day brings rows of the next 1 to
300 days, and what is written is counted, by step, for each row.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from benchmarks.feed import DAY, LABELS, START, Ints, Rows, declared, fingerprint_of, write_day
from benchmarks.figures import MIB, Figures
from benchmarks.measure import TICKS, in_fresh_process, measured
from benchmarks.steps import Bench, silent
from tests.support.reading import as_of
from tidemark.model.change import AheadMerged
from tidemark.model.collection import Envelope
from tidemark.model.interval import Interval

Result = dict[str, Any]
SAME = 1.2
"""How much a drain, or a read, may cost of what it costs where nothing waits."""
READS = 5
"""How often each is read before a drain: of tenths of a second one alone tells what else the machine did."""


def undue(full: bool, say: Callable[[str], None]) -> Result:
    """Both parts; 10 million updates wait if `full`, else a million."""
    waiting = 10_000_000 if full else 1_000_000
    say(f"undue: 100,000 rows a day beside 0 and {waiting:,} that wait")
    cases = in_fresh_process(days_beside, (0, waiting), 100_000, 10, 1)
    say("undue: bookings of a year, 1 to 300 days ahead")
    return {"beside": cases, "bookings": [in_fresh_process(bookings, rows, 365, 1) for rows in (1_000, 10_000)]}


def days_beside(waiting: Sequence[int], rows: int, days: int, seed: int) -> list[Result]:
    """Days of `rows` rows each, drained two at a time, beside each of `waiting` updates that came with the first: day
    by day one collection after the other, in one process, as what else the machine does is then the same for all.
    AssertionError for a wrong answer."""
    with tempfile.TemporaryDirectory(prefix="tidemark-bench-") as folder:
        lives = [_Life(Path(folder, str(count)), count, seed) for count in waiting]
        for day in range(days):
            for life in lives:
                life.come(day, rows)
            if day % 2:
                _read_in_turn(lives, day)
                for life in lives:
                    life.drain(day)
        return [{"rows_a_day": rows, "days": days, "seed": seed, **life.result()} for life in lives]


class _Life:
    """A collection beside which `waiting` updates wait."""

    def __init__(self, folder: Path, waiting: int, seed: int) -> None:
        self.bench, self.waiting = _bench(folder), waiting
        self.chance = np.random.default_rng([seed, waiting])
        self.traffic = self.bench.counted()
        self.came, self.found = list[Rows](), list[Result]()

    def come(self, day: int, rows: int) -> None:
        new = [_rows(_interval(day).lower + self.chance.integers(0, DAY, rows), self.chance)]
        if not day and self.waiting:
            new.append(_rows(START + self.chance.integers(30 * DAY, 300 * DAY, self.waiting), self.chance))
        self.came += new
        write_day(self.bench.landing, _interval(day), Rows.concat(new).table(Envelope.APPEND))
        self.bench.certified_ingest(_interval(day))

    def read(self) -> float:
        """The CPU seconds of a read of all that is known."""
        with measured() as reading:
            as_of(self.bench.job.store, self.bench.job.log.load().state)
        return reading.cpu_total

    def drain(self, day: int) -> None:
        """Drain and compact, and look whether the current rows are right."""
        self.traffic.taken()
        self.bench.costs.pop("drain", None)
        self.bench.drained(_interval(day))
        cost, drained = self.bench.costs["drain"].cpu_total, self.traffic.taken()
        self.found[-1] |= {"drain_cpu": cost, "drain_bytes": drained["bytes_read"]}
        self.bench.certified_compaction(_interval(day))
        _check(self.bench, self.came, day)

    def result(self) -> Result:
        """Medians from the second drain on."""
        known = {name: median(costs[name] for costs in self.found[1:]) for name in self.found[0]}
        first = {"first_drain_cpu": self.found[0]["drain_cpu"], "first_drain_read": self.found[0]["drain_bytes"]}
        return {"undue": self.waiting, **known, **first, "settled": _settled(self.bench)}


def _read_in_turn(lives: Sequence[_Life], day: int) -> None:
    """Read each collection READS times, one after the other."""
    for life in lives:
        life.bench.certified_seal(_interval(day))
        life.traffic.taken()
        life.found.append({})
    spent = [[life.read() for life in lives] for _ in range(READS)]
    for life, times in zip(lives, zip(*spent, strict=True), strict=True):
        life.found[-1] |= {"read_cpu": median(times), "read_bytes": life.traffic.taken()["bytes_read"] // READS}


def bookings(rows: int, days: int, seed: int) -> Result:
    """Days that bring `rows` rows each, of the next 1 to 300 days. AssertionError for a wrong answer."""
    chance = np.random.default_rng([seed, rows])
    with tempfile.TemporaryDirectory(prefix="tidemark-bench-") as folder:
        bench = _bench(Path(folder))
        traffic, came, most, asked, read = bench.counted(), list[Rows](), 0, 0, 0
        for day in range(days):
            came.append(_rows(_interval(day).upper + chance.integers(0, 300 * DAY, rows), chance))
            write_day(bench.landing, _interval(day), came[-1].table(Envelope.APPEND))
            bench.certified_ingest(_interval(day))
            bench.certified_seal(_interval(day))
            traffic.taken()
            bench.drained(_interval(day))
            calls = traffic.taken()
            asked, read = asked + calls["calls_by_name"].get("open_input", 0), read + calls["bytes_read"]
            bench.certified_compaction(_interval(day))
            most = max(most, len(bench.job.log.load().state.ahead))
        _check(bench, came, days - 1)
        totals = bench.job.log.load().state.totals
        settled = _settled(bench)
    total = rows * days
    return {
        "rows_a_day": rows,
        "days": days,
        "seed": seed,
        "batches_at_most": most,
        "parts_a_drain": asked / days,
        "bytes_a_drain": read / days,
        "ingested_a_row": totals.bytes_ingested / total,
        "settled_a_row": settled / total,
        "drained_a_row": totals.bytes_drained / total,
    }


def figures(found: Result) -> Iterator[Figures]:
    """Two tables."""
    headings = ("undue updates", "drain CPU s", "its bytes read", "read CPU s", "its bytes read", "sorted, MiB written")
    yield Figures(
        "Drains and reads while updates wait",
        "Two days of 100,000 rows each; medians from the second drain on. What waits is due in 30 to 300 days.",
        headings,
        tuple(
            (
                f"{case['undue']:,}",
                f"{case['drain_cpu']:.3f}",
                f"{case['drain_bytes']:,.0f}",
                f"{case['read_cpu']:.3f}",
                f"{case['read_bytes']:,.0f}",
                f"{case['settled'] / MIB:.1f}",
            )
            for case in found["beside"]
        ),
    )
    yield Figures(
        "A year of bookings, 1 to 300 days ahead",
        "Bytes written for each row that came, by step, and what a drain opens; at most so many batches wait.",
        ("rows a day", "ingest", "sorting", "drain", "batches", "parts a drain", "bytes a drain"),
        tuple(
            (
                f"{case['rows_a_day']:,}",
                f"{case['ingested_a_row']:.1f}",
                f"{case['settled_a_row']:.1f}",
                f"{case['drained_a_row']:.1f}",
                f"{case['batches_at_most']}",
                f"{case['parts_a_drain']:.1f}",
                f"{case['bytes_a_drain']:,.0f}",
            )
            for case in found["bookings"]
        ),
    )


def targets(found: Result | None) -> Iterator[tuple[str, str, str, bool]]:
    """A drain and a read beside what waits, and where nothing does."""
    if not found:
        return
    none, *others = found["beside"]
    for case in others:
        for name in ("drain_cpu", "drain_bytes", "read_cpu", "read_bytes"):
            least = 1 / TICKS if name.endswith("cpu") else 1  # less cannot be distinguished from nothing
            ratio = max(case[name], least) / max(none[name], least)
            what = f"a {name.replace('_', ', ')}, beside {case['undue']:,} undue updates"
            yield what, f"≤ {SAME:g} × beside none", f"{ratio:.2f}", ratio <= SAME


def _check(bench: Bench, came: list[Rows], day: int) -> None:
    rows = Rows.concat(came)
    known = np.flatnonzero(rows.reported_at < _interval(day).upper)
    found, expected = fingerprint_of(as_of(bench.job.store, bench.job.log.load().state)), rows.fingerprint(known)
    if found != expected:
        raise AssertionError(f"after day {day} the collection holds {found}, calculated were {expected}")


def _settled(bench: Bench) -> int:
    """Bytes written to sort what is stored ahead, over all versions."""
    changes = (entry.change for entry in bench.job.log.history())
    return sum(change.bytes_written for change in changes if isinstance(change, AheadMerged))


def _bench(folder: Path) -> Bench:
    return Bench(declared(Envelope.APPEND), folder / "root", folder / "landing", note=silent)


def _interval(day: int) -> Interval:
    return Interval(START + day * DAY, START + (day + 1) * DAY)


def _rows(times: Ints, chance: np.random.Generator) -> Rows:
    count = len(times)
    return Rows(
        chance.integers(0, 1_000_000, count),
        chance.integers(0, 1_000_000, count),
        chance.integers(0, 2**20, count) / 1024,
        chance.integers(0, LABELS, count),
        times,
        times.copy(),
        np.zeros(count, np.bool_),
    )
