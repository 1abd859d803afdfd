"""What was measured, as tables: those of each benchmark, and RESULTS.md made of all."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from statistics import median
from typing import Any

from benchmarks import (
    chunk_index,
    cold,
    conditions,
    contention,
    layouts,
    publishing,
    report_age,
    report_corrections,
    report_derived,
    report_spark,
    report_windows,
    shipped,
    small_files,
    sql,
    task_sizes,
    timelines,
    undue,
    verified,
)
from benchmarks.figures import MIB, Figures, as_markdown, spread
from benchmarks.targets import targets

PREAMBLE = (
    "Made by `make bench`; do not edit. What is measured and how is said in each module of this folder. Of each "
    "benchmark these are the newest figures in results/."
)
NEED_SPARK = {"throughput", "selectivity", "fixed_cost", "spark_reads", "derived", "windows"}


def markdown(reports: Sequence[dict[str, Any]], pictures: Mapping[str, str]) -> str:
    """RESULTS.md of reports, oldest first: of each benchmark the newest figures, with where they were measured.

    `pictures` are files to show, by the name of their benchmark.
    """
    newest = {name: report for report in reports for name in report["results"]}
    lines = [
        "# Figures",
        "",
        PREAMBLE,
        "",
    ]
    for report in reports:
        if names := [name for name, one in newest.items() if one is report]:
            lines += [*_where(report, names), ""]
    if summary := targets({name: report["results"][name] for name, report in newest.items()}):
        lines += as_markdown(summary)
    for name, report in newest.items():
        for figures in tables(report, name):
            lines += as_markdown(figures)
        if name in pictures:
            lines += [f"![{name}]({pictures[name]})", ""]
    return "\n".join(lines)


def _where(report: dict[str, Any], names: Sequence[str]) -> list[str]:
    """The machine and the settings behind some benchmarks."""
    machine = report["machine"]
    packages = ", ".join(f"{name} {number}" for name, number in machine["packages"].items())
    peers = {
        package: number
        for name in ("peers", "spark_peers", "corrections", "derived", "windows")
        for package, number in report["results"].get(name, {}).get("versions", {}).items()
    }
    packages += "".join(f", {name} {number}" for name, number in peers.items())
    changed = " (**the sources changed meanwhile**)" if report["sources_changed"] else ""
    lines = [
        f"**{', '.join(name.replace('_', ' ') for name in names)}**",
        "",
        f"- commit {report['commit']}, {report['date']}{changed}",
        f"- {machine['cores']} cores of {machine['cpu']}, {machine['memory_bytes'] / 2**30:.0f} GiB",
        f"- Python {machine['python']}, {machine['java']}, {packages}, {machine['system']}",
    ]
    if set(names) & NEED_SPARK:
        settings = ", ".join(f"{k}={v}" for k, v in report["spark_settings"].items())
        lines.append(f"- Spark settings: {settings}")
    beside = f"; beside it ran: {report['beside']}" if report.get("beside") else ""
    before = machine["load_before"][0] if "load_before" in machine else "not noted"
    return [*lines, f"- load of the machine before: {before}{beside}"]


def tables(report: dict[str, Any], name: str) -> Iterator[Figures]:
    """The tables of one benchmark of a report."""
    found = report["results"][name]
    if name == "throughput":
        yield from _throughput(found)
    elif name == "fixed_cost":
        yield from _fixed_cost(found)
    elif name in ("longevity", "peers"):
        yield from getattr(report_age, name)(found)
    elif name == "spark_peers":
        yield from report_spark.spark_peers(found)
    elif name == "corrections":
        yield from report_corrections.corrections(found)
    elif name == "derived":
        yield from report_derived.derived(found)
    elif name == "windows":
        yield from report_windows.windows(found)
    elif name == "undue":
        yield from undue.figures(found)
    elif name == "commits":
        yield report_age.commits(found)
    elif name == "cold":
        yield cold.figures(found)
    elif name == "contention":
        yield contention.figures(found)
    elif name == "chunk_index":
        yield chunk_index.figures(found)
    elif name == "timelines":
        yield timelines.figures(found)
    elif name == "layouts":
        yield layouts.figures(found)
    elif name == "publishing":
        yield publishing.figures(found)
    elif name == "shipped":
        yield shipped.figures(found)
    elif name == "conditions":
        yield conditions.figures(found)
    elif name == "task_sizes":
        yield task_sizes.figures(found)
    elif name == "small_files":
        yield small_files.figures(found)
    elif name == "verified":
        yield verified.figures(found)
    elif name == "sql":
        yield sql.figures(found)
    else:
        table: dict[str, Callable[[Any], Figures]] = {
            "selectivity": _selectivity,
            "spark_reads": report_spark.spark_reads,
            "compaction": _compaction,
            "gates": _gates,
        }
        yield table[name](found)


def _throughput(results: Sequence[dict[str, Any]]) -> Iterator[Figures]:
    cases: dict[tuple[str, int], list[dict[str, Any]]] = {}
    for result in results:
        cases.setdefault((result["envelope"], result["updates"]), []).append(result)
    for (envelope, updates), runs in cases.items():
        first, written = runs[0], runs[0]["bytes"]
        spark, gx = ([run[name]["seconds"] for run in runs] for name in ("start_spark", "import_great_expectations"))
        parts = ", ".join(f"{name} {amount / MIB:.1f}" for name, amount in written["written"].items())
        yield Figures(
            f"{updates:,} updates, {envelope}",
            f"{first['days']} days, {first['keys']:,} keys; {_seeds(runs)}. Bytes written per byte of change files: "
            f"{spread([run['bytes']['written_per_byte'] for run in runs], '.2f')} "
            f"({written['change_files'] / MIB:.1f} MiB in; MiB out: {parts}; {written['objects']} objects). "
            f"In no step: starting Spark, {spread(spark, '.1f')} s, and importing Great Expectations, "
            f"{spread(gx, '.1f')} s. "
            "Peak memory adds up driver, JVM and executors; in a session that has run other steps before.",
            ("step", "seconds", "rows/s", "CPU s", "driver", "JVM", "executors", "peak MiB", "of it executors"),
            tuple(_step_row(name, [run["steps"][name] for run in runs]) for name in first["steps"]),
        )


def _step_row(name: str, costs: Sequence[dict[str, Any]]) -> tuple[str, ...]:
    return (
        name,
        spread([cost["seconds"] for cost in costs], ".2f"),
        f"{median(cost['rows_per_second'] for cost in costs):,.0f}" if costs[0]["rows"] else "-",
        spread([cost["cpu_seconds_total"] for cost in costs], ".2f"),
        *(f"{median(cost['cpu_seconds'][role] for cost in costs):.2f}" for role in ("driver", "jvm", "executors")),
        f"{max(cost['peak_rss']['total'] for cost in costs) / MIB:,.0f}",
        f"{max(cost['peak_rss']['executors'] for cost in costs) / MIB:,.0f}",
    )


def _gates(result: dict[str, Any]) -> Figures:
    columns = {
        "later": "gate",
        "in a fork": "forked",
        "of it judging": "judging",
        "its built-in rules": "rules",
        "judged by Great Expectations alone": "great_expectations",
        "by plain Python": "plain",
    }
    return Figures(
        "What gates cost",
        f"CPU seconds, medians of {result['days']} days of {result['rows_per_day']:,} upserts, seed {result['seed']}; "
        f"{result['forked_days']} more days in a fork each, as the resident launcher has them. The first gate of a "
        "kind in a process prepares its expectations. Importing Great Expectations, once in a process that asks it, "
        f"takes {result['import_cpu_seconds']:.1f} s. Gates ask it about a collection's own expectations (two here, of "
        "the unsealed gate) and about what fails; where the columns of judging are empty, they asked it about "
        "everything. Judging is the part that plain Python is compared with, over the same figures and rows; the rest "
        "reads the batch and the state, commits the certificate and keeps the result. Target: 0.2 a gate.",
        ("gate", "checks", "first", *columns),
        tuple(
            (
                name,
                str(found["checks"]),
                f"{found['first']:.3f}",
                *(f"{found[what]:.5f}" if what in found else "" for what in columns.values()),
            )
            for name, found in result["gates"].items()
        ),
    )


def _seeds(runs: Sequence[dict[str, Any]]) -> str:
    if len(runs) == 1:
        return f"one run, seed {runs[0]['seed']}"
    return f"median of {len(runs)} runs, seeds {', '.join(str(run['seed']) for run in runs)}, with the range"


def _selectivity(results: Sequence[dict[str, Any]]) -> Figures:
    rows = []
    for result in results:
        for way, found in result["drains"].items():
            rows.append(
                (
                    f"{result['trace_rows']:,} rows, {result['touched']} keys, {way}",
                    f"{result['trace_bytes'] / MIB:,.1f}",
                    f"{found['bytes_read'] / MIB:,.2f}",
                    f"{found['bytes_read'] / result['trace_bytes']:.2%}",
                    f"{found['row_groups_that_can_hold']} of {found['row_groups']}",
                    f"{found['rows_in_those']:,}",
                    f"{found['bytes_written'] / 1024:,.1f}",
                    f"{found['drain']['seconds']:.2f}",
                    f"{found['drain']['cpu_seconds_total']:.2f}",
                )
            )
    return Figures(
        "What a keyed drain reads of the trace",
        "Bytes as fetched from storage by the executors, of all files they read.",
        ("trace", "MiB", "MiB read", "share", "row groups", "rows in them", "KiB written", "seconds", "CPU s"),
        tuple(rows),
    )


def _compaction(result: dict[str, Any]) -> Figures:
    alive, pairs = result["live_batches"], result["live_batches_pairwise"]
    most = (max(alive), max(pairs), max(alive), max(alive))
    sizes = result["bytes"]
    parts = ", ".join(f"{name.replace('_', ' ')} {amount / MIB:.1f}" for name, amount in sizes.items())
    return Figures(
        f"What compaction writes: {result['days']} days of {result['rows_per_day']:,} rows",
        f"In days' rows, the drain's own write included. MiB: {parts}; {result['objects']} objects. "
        f"Batches alive after each day: {' '.join(map(str, alive))}",
        ("policy", "days' rows written", "written per row", "most batches alive"),
        tuple(
            (name, f"{written:,.1f}", f"{written / result['days']:.2f}", str(runs))
            for (name, written), runs in zip(result["days_written"].items(), most, strict=True)
        ),
    )


def _fixed_cost(result: dict[str, Any]) -> Iterator[Figures]:
    runs = result["dag_runs"]
    floor = median(runs[0]["seconds"])
    yield Figures(
        f"One whole DAG run over a day of {result['changes']} changes, gates included",
        "From the moment a run is queued to its end, by Airflow's own times. Floor: a DAG of as many empty tasks. "
        "Between tasks: what is left of a run without its tasks. CPU seconds are those of the whole Airflow meanwhile.",
        ("run", "median s", "above the floor", "range", "runs", "in tasks", "between tasks", "CPU s"),
        tuple(
            (
                run["name"],
                f"{median(run['seconds']):.1f}",
                f"{median(run['seconds']) - floor:+.1f}",
                f"{min(run['seconds']):.1f}–{max(run['seconds']):.1f}",
                f"{len(run['seconds'])}",
                f"{sum(run['tasks'].values()):.1f}",
                f"{run['between_tasks']:.1f}",
                f"{median(run['cpu_seconds']):.1f}",
            )
            for run in runs
        ),
    )
    kinds = list(dict.fromkeys((found["launcher"], found["plan"]) for found in result["steps"]))
    found_at = {(f["step"], f["launcher"], f["plan"]): f"{median(f['seconds']):.2f}" for f in result["steps"]}
    yield Figures(
        "One step",
        "Median seconds of its task, from the start of its process to its end.",
        ("step", *(f"{launcher}, {plan}" for launcher, plan in kinds)),
        tuple(
            (step, *(found_at.get((step, *kind), "-") for kind in kinds))
            for step in dict.fromkeys(found["step"] for found in result["steps"])
        ),
    )
