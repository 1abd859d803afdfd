"""Tables of what windows cost (benchmarks/windows), and its targets."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from benchmarks.figures import MIB, Figures

Result = dict[str, Any]
Line = tuple[str, str, str, bool]
CHEAPER, FRAMES, LINEAR = 20, 50, 1.2
"""How many times cheaper a refresh is to be than a whole computation, and sliding windows of 10,000 records than
Spark's frames; how much more CPU a row may cost where there are more of them."""
MOST_BYTES = 1.5


def windows(result: Result) -> Iterator[Figures]:
    """Built whole; refreshed; day by day: of what was measured."""
    yield _built(result["built"])
    if refresh := result.get("refresh"):
        yield _refreshed(refresh)
    if streaming := result.get("streaming"):
        yield _streamed(streaming)


def targets(result: Result | None) -> Iterator[Line]:
    """What was aimed at, and what was found."""
    if result is None:
        return
    yield from _targets_of_builds(result["built"])
    if refresh := result.get("refresh"):
        yield from _targets_of_refresh(refresh)
        yield from _targets_beside_spark(result["built"], refresh)
    for one in result.get("streaming", []):
        if one["engine"] == "Tidemark":
            what = f"{one['kind']}, {one['days']} days of {one['rows']:,} flights, some late: windows that are right"
            yield what, "all", f"{one['right']:,} of {one['windows']:,}", one["right"] == one["windows"]


def _targets_of_builds(built: list[Result]) -> Iterator[Line]:
    for one in built:
        what, records = f"{one['kind']}, {one['rows']:,} rows, built whole: CPU", one["records"]
        ratio = _cpu(one["engines"]["Spark"]) / _cpu(one["engines"]["Tidemark"])
        if records is None:
            yield f"{what} beside Spark's", "no more", f"{1 / ratio:.2f} of it", ratio >= 1
        elif records >= 10_000:
            yield f"{what} of Spark's frames ÷ ours", f"≥ {FRAMES}", f"{ratio:.1f}", ratio >= FRAMES
    for few in built:
        for many in built:
            if few["records"] == many["records"] is not None and few["rows"] < many["rows"]:
                ratio = _a_row(many) / _a_row(few)
                what = f"{few['kind']}: CPU of a row, of {many['rows']:,} beside {few['rows']:,}"
                yield what, f"≤ {LINEAR:g} ×", f"{ratio:.2f}", ratio <= LINEAR


def _targets_of_refresh(refresh: Result) -> Iterator[Line]:
    for own, whole in _pairs(refresh):
        for changes in own["refreshed"]:
            what = f"{own['kind']}, 1 % of {refresh['rows']:,} rows changed, {changes}"
            ratio = _bytes_of(whole, changes) / _bytes_of(own, changes)
            if own["subtracts"] or changes == "of neighbours":
                cheaper = _cpu(whole["refreshed"][changes]) / _cpu(own["refreshed"][changes])
                yield f"{what}: CPU of whole ÷ refresh", f"≥ {CHEAPER}", f"{cheaper:.1f}", cheaper >= CHEAPER
                yield f"{what}: bytes read by whole ÷ refresh", f"≥ {CHEAPER}", f"{ratio:.1f}", ratio >= CHEAPER
            else:
                what = f"{what}: bytes read, of groups that are everywhere"
                yield what, f"≤ {MOST_BYTES:g} × all", f"{1 / ratio:.2f}", 1 / ratio <= MOST_BYTES


def _targets_beside_spark(built: list[Result], refresh: Result) -> Iterator[Line]:
    """What is refreshed beside what is built again by who cannot refresh."""
    theirs = {one["kind"]: _cpu(one["engines"]["Spark"]) for one in built if one["rows"] == refresh["rows"]}
    for own, _ in _pairs(refresh):
        if own["kind"] in theirs:
            cheaper = theirs[own["kind"]] / _cpu(own["refreshed"]["of neighbours"])
            what = (
                f"{own['kind']}, 1 % of {refresh['rows']:,} rows changed, of neighbours: CPU of Spark's whole ÷ refresh"
            )
            yield what, f"≥ {CHEAPER}", f"{cheaper:.1f}", cheaper >= CHEAPER


def _pairs(refresh: Result) -> Iterator[tuple[Result, Result]]:
    """Of each kind the windows that are refreshed, and those that are computed whole."""
    for own in refresh["cases"]:
        if own["refresh"] != "whole":
            same = (one for one in refresh["cases"] if one["kind"] == own["kind"] and one["refresh"] == "whole")
            yield own, next(same)


def _cpu(cost: Result) -> float:
    return float(cost["cpu_seconds_total"])


def _a_row(one: Result) -> float:
    """CPU seconds of ours."""
    return _cpu(one["engines"]["Tidemark"]) / int(one["rows"])


def _bytes_of(case: Result, changes: str) -> float:
    return float(case["refreshed"][changes]["result"]["bytes_read"])


def _built(built: list[Result]) -> Figures:
    rows = []
    for one in built:
        for engine, cost in one["engines"].items():
            ratio = _cpu(cost) / _cpu(one["engines"]["Tidemark"])
            rows.append(
                (
                    f"{one['kind']}: {engine}",
                    f"{one['rows']:,}",
                    f"{one['sensors']:,}",
                    f"{cost['windows']:,}",
                    f"{_cpu(cost):.2f}",
                    f"{ratio:.2f}",
                    f"{cost['seconds']:.1f}",
                    f"{1e6 * _cpu(cost) / one['rows']:.1f}",
                    f"{cost['bytes_stored'] / MIB:,.1f}",
                )
            )
    return Figures(
        "Windows built whole, beside Spark and DuckDB",
        "Count, sum and max (the first: count and sum) of readings by sensor. CPU of driver, JVM and executors in a "
        "session that has done the same before, twice for few rows and once for all, Spark's frames of 1,000 records "
        "and more for few only; with what is written; DuckDB's of its process. Spark and "
        "DuckDB read the landed files and write Parquet, and tell of sliding windows those that end with a row "
        "(`RANGE BETWEEN`); Tidemark emits those that begin just after one, too. All answers were compared with "
        "those calculated separately.",
        ("windows", "rows", "keys", "windows emitted", "CPU s", "× ours", "seconds", "CPU µs a row", "MiB written"),
        tuple(rows),
    )


def _refreshed(refresh: Result) -> Figures:
    rows = []
    for own, whole in _pairs(refresh):
        for changes, found in own["refreshed"].items():
            result = found["result"]
            rows.append(
                (
                    f"{own['kind']}, {changes}",
                    str(result["mode"]).replace("_", " "),
                    f"{_cpu(own['built']):.1f}",
                    f"{_cpu(found):.2f}",
                    f"{_cpu(whole['refreshed'][changes]) / _cpu(found):.1f}",
                    f"{found['seconds']:.1f}",
                    f"{result['rows_read']:,}",
                    f"{result['bytes_read'] / MIB:,.1f}",
                    f"{_bytes_of(own, changes) / _bytes_of(whole, changes):.3f}",
                    f"{found['bytes_stored'] / 1024:,.1f}",
                )
            )
    changed = "; ".join(f"{changes} {rows:,}" for changes, rows in refresh["changed"].items())
    return Figures(
        f"A hundredth of {refresh['rows']:,} readings changed: windows refreshed, and computed whole",
        f"{refresh['sensors']:,} sensors. Readings that changed: {changed}. CPU of driver, JVM and executors in a "
        "session that has done the same for few rows before; up to the commit of `correct`. Rows and bytes are those "
        "of the row groups that were opened, of the readings and of the windows stored. All answers were compared "
        "with those calculated separately.",
        (
            *("windows", "mode", "CPU s first build", "CPU s after the change", "times cheaper than whole", "seconds"),
            *("rows opened", "MiB opened", "of whole", "KiB stored"),
        ),
        tuple(rows),
    )


def _streamed(lives: list[Result]) -> Figures:
    first = lives[0]
    return Figures(
        f"Windows day by day: {first['days']} days of {first['rows']:,} flights, one in 50 comes up to nine days late",
        "By carrier, count and sum. What a day takes from its landed file to its windows, medians of the last half of "
        "the days: CPU of the whole process tree; Tidemark's with the steps of the flights, without what gates read. "
        "The watermark of streams is a day. State is what a stream must keep to go on; Tidemark keeps the flights' "
        "history, from which any day can be read again, and the windows'.",
        (
            *("windows", "CPU s a day", "seconds", "KiB state, memory", "KiB state, disk", "KiB of windows"),
            *("KiB of flights kept", "flights lost", "windows that are right", "that are none"),
        ),
        tuple(
            (
                f"{life['kind']}: {life['engine']}",
                f"{life['cpu_seconds']:.2f}",
                f"{life['seconds']:.1f}",
                *(
                    f"{life[what] / 1024:,.0f}"
                    for what in ("state_memory", "state_disk", "answer_bytes", "input_bytes")
                ),
                f"{life['lost']:,} of {life['late']:,} late",
                f"{life['right']:,} of {life['windows']:,}",
                f"{life['none']:,}",
            )
            for life in lives
        ),
    )
