"""The runner: `make bench`, or `tools/run python -m benchmarks --only throughput --sizes 1m:5`.

Prints every table and keeps the figures: benchmarks/results/<date>-<commit>.json, and RESULTS.md made of the newest
of each benchmark. A wrong answer ends it with exit code 1; how long something took never does.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from benchmarks import workload as workloads
from benchmarks.cold import cold
from benchmarks.figures import show
from benchmarks.kept import as_json, tell
from benchmarks.machine import commit, machine, sources
from benchmarks.report import tables

HERE = Path(__file__).resolve().parent
NAMES = (
    *("throughput", "selectivity", "compaction", "fixed_cost", "commits", "longevity"),
    *("peers", "spark_peers", "contention", "gates", "spark_reads", "corrections", "derived", "undue", "windows"),
    *("chunk_index", "timelines", "layouts", "publishing", "sql", "shipped", "conditions", "verified"),
    *("task_sizes", "cold", "small_files"),
)
SCALES = {"": 1, "k": 1_000, "m": 1_000_000}

console = Console(highlight=False, width=None if sys.stdout.isatty() else 160)
app = typer.Typer(pretty_exceptions_enable=False)


@app.command()
def main(
    sizes: Annotated[str, typer.Option(help="updates, and how many seeds for each: 100k, 1m:5, 10m")] = "1m:5,10m",
    launchers: Annotated[
        str, typer.Option(help="for fixed_cost: some of child,resident,submit")
    ] = "child,resident,submit",
    only: Annotated[str, typer.Option(help=f"some of {','.join(NAMES)}; or profile, or tables")] = ",".join(NAMES),
    full: Annotated[
        bool,
        typer.Option(
            help="commits, longevity, peers, contention, corrections, derived, undue, windows, timelines, "
            "layouts, publishing, sql, shipped, conditions, verified, task_sizes, small_files at full size"
        ),
    ] = False,
    beside: Annotated[str, typer.Option(help="what else the machine is doing, for the record")] = "",
    out: Annotated[Path | None, typer.Option(help="where the JSON goes; RESULTS.md then stays as it is")] = None,
) -> None:
    """Measure Tidemark on this machine."""
    cases, chosen = [_size(text) for text in sizes.split(",")], only.split(",")
    if unknown := sorted(set(chosen) - {*NAMES, "profile", "tables"}):
        raise typer.BadParameter(f"there is no benchmark {unknown[0]!r}; write some of {', '.join(NAMES)}, or profile")
    if out is not None and out.exists():
        raise typer.BadParameter(f"{out} is there; name another file for --out")
    if "profile" in chosen:
        from benchmarks.profile import profile

        return profile(console, cases[0][0])
    if chosen == ["tables"]:
        return tell(HERE)
    report = _measured(chosen, cases, launchers.split(","), full)
    report["beside"] = beside
    for name in report["results"]:
        show(console, tables(report, name))
    kept = out or HERE / "results" / _name(report)
    kept.parent.mkdir(parents=True, exist_ok=True)
    kept.write_text(as_json(report))
    if out is None:
        tell(HERE)
    console.print(f"kept in {kept}")


def _name(report: dict[str, Any]) -> str:
    """<date>-<commit>, and which benchmarks if they are not all."""
    names = list(report["results"])
    only = "" if set(names) == set(NAMES) else "-" + "-".join(name.replace("_", "-") for name in names)
    return f"{report['date'][:10]}-{report['commit'].rstrip('+')}{only}.json"


def _measured(chosen: list[str], cases: list[tuple[int, int]], launchers: list[str], full: bool) -> dict[str, Any]:
    from benchmarks.throughput import settings

    before = sources()
    report: dict[str, Any] = {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "commit": commit(),
        "machine": machine(),
        "spark_settings": settings(),
        "results": {},
    }
    work: dict[str, Callable[[], Any]] = {
        "throughput": lambda: _throughput(cases),
        "selectivity": lambda: _selectivity(cases),
        "compaction": _compaction,
        "fixed_cost": lambda: _fixed_cost(launchers),
        "commits": lambda: _commits(full),
        "longevity": lambda: _longevity(full),
        "peers": lambda: _peers(full),
        "spark_peers": lambda: _spark_peers(full),
        "contention": lambda: _contention(full),
        "gates": _gates,
        "spark_reads": lambda: _spark_reads(cases),
        "corrections": lambda: _corrections(full),
        "derived": lambda: _derived(full),
        "undue": lambda: _undue(full),
        "windows": lambda: _windows(full),
        "chunk_index": lambda: _chunk_index(full),
        "timelines": lambda: _timelines(full),
        "layouts": lambda: _layouts(full),
        "publishing": lambda: _publishing(full),
        "sql": lambda: _sql(full),
        "shipped": lambda: _shipped(full),
        "conditions": lambda: _conditions(full),
        "verified": lambda: _verified(full),
        "small_files": lambda: _small_files(full),
        "task_sizes": lambda: _task_sizes(full),
        "cold": cold,
    }
    for name in chosen:
        report["results"][name] = work[name]()
    report["sources_changed"] = sources() != before
    if report["sources_changed"]:
        say("[red]the sources changed meanwhile: these figures are of no one commit[/]")
    return report


def _timelines(full: bool) -> dict[str, Any]:
    from benchmarks.timelines import timelines

    return timelines(full, say)


def _layouts(full: bool) -> dict[str, Any]:
    from benchmarks.layouts import layouts

    return layouts(full, say)


def _publishing(full: bool) -> dict[str, Any]:
    from benchmarks.publishing import publishing

    return publishing(full, say)


def _sql(full: bool) -> dict[str, Any]:
    from benchmarks.sql import sql

    return sql(full, say)


def _shipped(full: bool) -> dict[str, Any]:
    from benchmarks.shipped import shipped

    return shipped(full, say)


def _conditions(full: bool) -> dict[str, Any]:
    from benchmarks.conditions import conditions

    return conditions(full, say)


def _verified(full: bool) -> dict[str, Any]:
    from benchmarks.verified import verified

    return verified(full, say)


def _small_files(full: bool) -> dict[str, Any]:
    from benchmarks.small_files import small_files

    return small_files(full, say)


def _task_sizes(full: bool) -> dict[str, Any]:
    from benchmarks.task_sizes import task_sizes

    return task_sizes(full, say)


def _fixed_cost(launchers: list[str]) -> dict[str, Any]:
    from benchmarks.fixed_cost import fixed_cost

    return fixed_cost(launchers, say)


def _commits(full: bool) -> dict[str, Any]:
    from benchmarks.commits import commits

    upto = 10_000 if full else 1_000
    say(f"commits: {upto:,}")
    return commits(upto, seed=1)


def _longevity(full: bool) -> list[dict[str, Any]]:
    from benchmarks.longevity import longevity

    results = []
    for workload in workloads.old_age(full):
        late = "" if workload.late_days is None else f", late up to {workload.late_days} days"
        say(f"longevity: {workload.ingests:,} ingests of {workload.rows:,} rows into {workload.base:,}{late}")
        results.append(longevity(workload))
    return results


def _peers(full: bool) -> dict[str, Any]:
    from benchmarks.peers.in_process import peers

    return peers(workloads.side_by_side(full), say)


def _spark_peers(full: bool) -> dict[str, Any]:
    from benchmarks.peers.spark.run import beside_spark

    return beside_spark(*workloads.beside_spark(full), say)


def _derived(full: bool) -> dict[str, Any]:
    from benchmarks.derived import derived

    return derived(full, say)


def _corrections(full: bool) -> dict[str, Any]:
    from benchmarks.corrections import corrections

    return corrections(full, say)


def _undue(full: bool) -> dict[str, Any]:
    from benchmarks.undue import undue

    return undue(full, say)


def _windows(full: bool) -> dict[str, Any]:
    from benchmarks.windows import windows

    return windows(full, say)


def _chunk_index(full: bool) -> dict[str, Any]:
    from benchmarks.chunk_index import chunk_index

    return chunk_index(full, say)


def _contention(full: bool) -> list[dict[str, Any]]:
    from benchmarks.contention import contention

    return contention(1_000 if full else 100, say)


def _gates() -> dict[str, Any]:
    from benchmarks.gates import gates

    say("gates")
    return gates(seed=1)


def _throughput(cases: list[tuple[int, int]]) -> list[dict[str, Any]]:
    from benchmarks.throughput import throughput
    from tidemark.model.collection import Envelope

    results = []
    for updates, seeds in cases:
        for envelope in (Envelope.APPEND, Envelope.UPSERT):
            for seed in range(1, seeds + 1):
                say(f"throughput: {updates:,} updates, {envelope}, seed {seed}")
                results.append(throughput(envelope, updates, seed))
    return results


def _selectivity(cases: list[tuple[int, int]]) -> list[dict[str, Any]]:
    from benchmarks.selectivity import selectivity

    rows = max(updates for updates, _ in cases)
    say(f"selectivity: a trace of {rows:,} rows")
    return [selectivity(rows, seed=1)]


def _spark_reads(cases: list[tuple[int, int]]) -> list[dict[str, Any]]:
    from benchmarks.spark_reads import CASES, spark_reads

    results = []
    for updates, _ in cases:
        for case in CASES:
            say(f"reads through Spark: {updates:,} updates, {case}")
            results.append(spark_reads(case, updates, seed=1))
    return results


def _compaction() -> dict[str, Any]:
    from benchmarks.compaction import compaction

    say("compaction: 64 days")
    return compaction(seed=1)


def _size(text: str) -> tuple[int, int]:
    found = re.fullmatch(r"(\d+)([km]?)(?::(\d+))?", text.strip().lower())
    if not found:
        raise typer.BadParameter(f"{text!r} is no size: write 100k, 1m or 1m:5")
    return int(found[1]) * SCALES[found[2]], int(found[3] or 1)


def say(text: str) -> None:
    console.print(f"[bold]{text}[/]")


if __name__ == "__main__":
    app(prog_name="python -m benchmarks")
