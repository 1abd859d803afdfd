"""What was aimed at and what was found, one line each: a figure that misses its target is shown as that."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

from benchmarks import (
    conditions,
    publishing,
    report_corrections,
    report_derived,
    report_windows,
    shipped,
    small_files,
    sql,
    task_sizes,
    undue,
    verified,
)
from benchmarks.figures import Figures
from benchmarks.report_age import name_of

Line = tuple[str, str, str, bool]


def targets(results: dict[str, Any]) -> Figures | None:
    """The targets that the newest results of all benchmarks can be compared with; None if there are none."""
    lines = [
        *_commits(results.get("commits")),
        *(line for life in results.get("longevity", []) for line in _life(life)),
        *_peers(results.get("peers")),
        *_gates(results.get("gates")),
        *report_corrections.targets(results.get("corrections")),
        *report_derived.targets(results.get("derived")),
        *undue.targets(results.get("undue")),
        *report_windows.targets(results.get("windows")),
        *publishing.targets(results.get("publishing")),
        *sql.targets(results.get("sql")),
        *shipped.targets(results.get("shipped")),
        *conditions.targets(results.get("conditions")),
        *verified.targets(results.get("verified")),
        *small_files.targets(results.get("small_files")),
        *task_sizes.targets(results.get("task_sizes")),
    ]
    if not lines:
        return None
    return Figures(
        "Targets",
        "CPU seconds and counts, not wall time: others used the machine too.",
        ("what", "target", "found", "met"),
        tuple((what, aimed, found, "yes" if met else "**no**") for what, aimed, found, met in lines),
    )


def _commits(result: dict[str, Any] | None) -> Iterator[Line]:
    if not result:
        return
    first, last = (result["points"][at]["load and commit"] for at in (0, -1))
    old = f"commit {result['points'][-1]['version']:,} beside commit {result['points'][0]['version']:,}"
    for what, name in (("store calls", "calls"), ("bytes read", "bytes_read"), ("bytes written", "bytes_written")):
        ratio = last[name] / first[name]
        yield f"{old}: {what}", "as many, but for the levels: ≤ 1.5", f"{ratio:.2f}", ratio <= 1.5
    ratio = last["cpu_milliseconds"] / first["cpu_milliseconds"]
    yield f"{old}: CPU", "the same, but for the levels: ≤ 1.5", f"{ratio:.2f}", ratio <= 1.5


def _life(life: dict[str, Any]) -> Iterator[Line]:
    name, writing, reads = name_of(life), life["writing"], life["as_of"]
    found = f"{writing['of_optimum']:.2f} ({writing['write_amplification']:.2f} beside {writing['optimum']:.2f})"
    most = writing["live_batches_most"]
    yield f"{name}: rows written, {most} live batches", "≤ 1.3 × optimum", found, writing["of_optimum"] <= 1.3
    yield f"{name}: as-of, CPU", "≤ 2 × one batch", f"{reads['cpu_ratio']:.2f}", reads["cpu_ratio"] <= 2
    yield f"{name}: as-of, bytes", "≤ 2 × one batch", f"{reads['bytes_ratio']:.2f}", reads["bytes_ratio"] <= 2
    opened = [found["bytes_opened"] for found in life["changes"]]
    if len(opened) > 1:
        slope = max(wide / narrow for narrow, wide in pairwise(opened))
        yield f"{name}: changes of twice the ingests", "≤ 2.2 × the bytes", f"{slope:.2f}", slope <= 2.2
        halves = [found["bytes_opened_last_half"] / found["bytes_opened_first_half"] for found in life["changes"]]
        worst = max(halves)
        yield f"{name}: changes late in history", "as early: ≤ 1.5 × the bytes", f"{worst:.2f}", worst <= 1.5


def _peers(result: dict[str, Any] | None) -> Iterator[Line]:
    if not result:
        return
    cases = [row["tidemark"] for row in result["cases"] if "tidemark" in row]
    right = sum(answer == "right" for answer in cases)
    yield "cases of late rows, deletes, repeats", "all right", f"{right} of {len(cases)}", right == len(cases)
    for run in result["runs"]:
        if run["engine"] == "tidemark":
            answers = [read["answer"] for read in run["reads"].values()]
            name = f"{run['ingests']:,} × {run['rows_per_ingest']:,} upserts into {run['base']:,}, seed {run['seed']}"
            right = sum(answer == "right" for answer in answers)
            yield f"{name}: answers", "all right", f"{right} of {len(answers)}", right == len(answers)
            allowed = {10_000: 8.0, 1_000: 9.0}.get(run["rows_per_ingest"])
            if allowed and run["base"] == 1_000_000:
                ratio = run["write_amplification"]
                yield f"{name}: bytes ÷ batches alone", f"≤ {allowed:g}", f"{ratio:.1f}", ratio <= allowed


def _gates(result: dict[str, Any] | None) -> Iterator[Line]:
    for name, found in (result or {"gates": {}})["gates"].items():
        worst = max(found["gate"], found["forked"])
        yield f"{name} gate, warm, CPU", "≤ 0.2 s", f"{worst:.3f} s", worst <= 0.2
