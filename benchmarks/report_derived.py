"""Tables of what derived collections cost (benchmarks/derived), and its targets."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from benchmarks.figures import MIB, Figures

Result = dict[str, Any]


def derived(result: Result) -> Iterator[Figures]:
    """Refreshed beside whole; daily totals beside models that merge their last days."""
    yield _refresh(result["refresh"])
    if any("cpu_seconds" in life for life in result["beside"]):
        yield _beside(result["beside"])


def targets(result: Result | None) -> Iterator[tuple[str, str, str, bool]]:
    """What was aimed at, and what was found."""
    if result is None:
        return
    refresh = result["refresh"]
    for case, own, whole in _pairs(refresh):
        for changes in own["refreshed"]:
            what = f"{case}, 1 % of {refresh['rows']:,} rows changed, {changes}"
            ratio = _bytes_of(whole, changes) / _bytes_of(own, changes)
            if own["aim"] is None:
                yield (
                    f"{what}: bytes read, of groups that are everywhere",
                    "≤ 1.5 × all",
                    f"{1 / ratio:.2f}",
                    ratio > 1 / 1.5,
                )
                continue
            cheaper = _cpu(whole, changes) / _cpu(own, changes)
            yield f"{what}: CPU of whole ÷ refresh", f"≥ {own['aim']:g}", f"{cheaper:.1f}", cheaper >= own["aim"]
            yield f"{what}: bytes read by whole ÷ refresh", f"≥ {own['aim']:g}", f"{ratio:.1f}", ratio >= own["aim"]
    lives = {life["engine"]: life for life in result["beside"] if "cpu_seconds" in life}
    ours = lives.pop("Tidemark", None)
    if ours is None:
        return
    days = f"daily totals of {ours['days']} days of {ours['rows']:,} flights"
    right, totals = ours["right"], ours["totals"]
    yield f"{days}: totals that are right", "all", f"{right:,} of {totals:,}", right == totals
    for name, theirs in lives.items():
        for measure, unit in (("cpu_seconds", "CPU"), ("bytes", "bytes")):
            ratio = ours[measure] / theirs[measure]
            yield f"{days}: {unit} of a day, beside {name}", "fewer", f"{ratio:.2f} of it", ratio < 1


def _pairs(refresh: Result) -> Iterator[tuple[str, Result, Result]]:
    """Of each case the collection that is refreshed, and the one that is computed whole."""
    for own in refresh["cases"]:
        if own["refresh"] != "whole":
            both = (other for other in refresh["cases"] if other["case"] == own["case"] and other["refresh"] == "whole")
            yield own["case"], own, next(both)


def _cpu(case: Result, changes: str) -> float:
    return float(case["refreshed"][changes]["cpu_seconds_total"])


def _bytes_of(case: Result, changes: str) -> int:
    return int(case["refreshed"][changes]["result"]["bytes_read"])


def _refresh(refresh: Result) -> Figures:
    rows = []
    for case, own, whole in _pairs(refresh):
        for changes in own["refreshed"]:
            for one in (own, whole):
                found = one["refreshed"][changes]
                result = found["result"]
                rows.append(
                    (
                        f"{case}, {changes}" if one is own else "",
                        str(result["mode"]).replace("_", " "),
                        f"{one['built']['cpu_seconds_total']:.1f}",
                        f"{found['cpu_seconds_total']:.2f}",
                        f"{_cpu(whole, changes) / _cpu(one, changes):.1f}",
                        f"{found['seconds']:.1f}",
                        f"{result['rows_read']:,}",
                        f"{result['bytes_read'] / MIB:,.1f}",
                        f"{found['bytes_stored'] / 1024:,.1f}",
                    )
                )
    return Figures(
        f"A hundredth of {refresh['rows']:,} rows changed: derived collections refreshed, and computed whole",
        f"{refresh['shops']:,} shops, of which a hundredth changes all its sales: neighbours, or every hundredth one. "
        "CPU of driver, JVM and executors in a session that has done the same for few rows before; up to the commit of "
        "`correct`. Rows and bytes are those of the row groups that were opened; KiB stored are all that was written "
        "until the collection was compacted. All answers were compared with those calculated separately.",
        (
            *("definition", "mode", "CPU s first build", "CPU s after the change", "times cheaper than whole"),
            *("seconds", "rows opened", "MiB opened", "KiB stored"),
        ),
        tuple(rows),
    )


def _beside(lives: list[Result]) -> Figures:
    done = [life for life in lives if "cpu_seconds" in life]
    rows = tuple(
        (
            life["engine"],
            f"{life['cpu_seconds']:.2f}",
            f"{life['seconds']:.1f}",
            f"{life['bytes'] / 1024:,.1f}",
            f"{life['right']:,} of {life['totals']:,}",
        )
        for life in done
    )
    first = done[0]
    settings = "; ".join(f"{life['engine']}: {life['settings']}" for life in done)
    return Figures(
        f"Daily totals of {first['days']} days of {first['rows']:,} flights, one in 50 comes up to nine days late",
        "What a day's totals cost once its flights are there, up to when they can be read: CPU of the whole process "
        f"tree and bytes that were not there before, medians of the last half of the days. {settings}.",
        ("engine", "CPU s a day", "seconds", "KiB written", "totals that are right in the end"),
        rows,
    )
