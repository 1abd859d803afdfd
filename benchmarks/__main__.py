"""The runner: `make bench`, or `tools/run python -m benchmarks --only throughput --sizes 1m:5`.

Prints every table and keeps the figures: benchmarks/results/<date>-<commit>.json, and RESULTS.md made from it. A
wrong answer ends it with exit code 1; how long something took never does.
"""

from __future__ import annotations

import json
import re
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from benchmarks.machine import commit, machine, sources
from benchmarks.report import markdown, show, tables

HERE = Path(__file__).resolve().parent
NAMES = ("throughput", "selectivity", "compaction", "fixed_cost")
SCALES = {"": 1, "k": 1_000, "m": 1_000_000}

console = Console(highlight=False, width=None if sys.stdout.isatty() else 160)
app = typer.Typer(pretty_exceptions_enable=False)


@app.command()
def main(
    sizes: Annotated[str, typer.Option(help="updates, and how many seeds for each: 100k, 1m:5, 10m")] = "1m:5,10m",
    launchers: Annotated[str, typer.Option(help="for fixed_cost: resident, submit or both")] = "resident,submit",
    only: Annotated[str, typer.Option(help=f"some of {','.join(NAMES)}; or profile")] = ",".join(NAMES),
    out: Annotated[Path | None, typer.Option(help="where the JSON goes; RESULTS.md then stays as it is")] = None,
) -> None:
    """Measure Tidemark on this machine."""
    cases, chosen = [_size(text) for text in sizes.split(",")], only.split(",")
    if unknown := sorted(set(chosen) - {*NAMES, "profile"}):
        raise typer.BadParameter(f"there is no benchmark {unknown[0]!r}; write some of {', '.join(NAMES)}, or profile")
    if "profile" in chosen:
        from benchmarks.profile import profile

        return profile(console, cases[0][0])
    report = _measured(chosen, cases, launchers.split(","))
    show(console, tables(report))
    if out is None:
        out = HERE / "results" / f"{report['date'][:10]}-{report['commit'].rstrip('+')}.json"
        (HERE / "RESULTS.md").write_text(markdown(report))
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(json.dumps(report, indent=1) + "\n")
    console.print(f"kept in {out}")


def _measured(chosen: list[str], cases: list[tuple[int, int]], launchers: list[str]) -> dict[str, Any]:
    from benchmarks.throughput import settings

    before = sources()
    report: dict[str, Any] = {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "commit": commit(),
        "machine": machine(),
        "spark_settings": settings(),
        "results": {},
    }
    work = {"throughput": _throughput, "selectivity": _selectivity, "compaction": _compaction}
    for name in chosen:
        if name == "fixed_cost":
            from benchmarks.fixed_cost import fixed_cost

            report["results"][name] = fixed_cost(launchers, say)
        else:
            report["results"][name] = work[name](cases)
    report["sources_changed"] = sources() != before
    if report["sources_changed"]:
        say("[red]the sources changed meanwhile: these figures are of no one commit[/]")
    return report


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


def _compaction(cases: list[tuple[int, int]]) -> dict[str, Any]:
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
