"""Tables of what grows old: commits, a thousand ingests, and the same days through others."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from statistics import median
from typing import Any

from benchmarks.figures import MIB, Figures, spread
from benchmarks.picture import courses

Result = dict[str, Any]


def commits(result: Result) -> Figures:
    """A load and a commit, at the points."""
    first = result["points"][0]["load and commit"]
    shown = ("calls", "bytes_read", "bytes_written", "names_listed", "milliseconds", "cpu_milliseconds")

    def row(point: Result) -> tuple[str, ...]:
        state, both = point["state"], point["load and commit"]
        ratio = max(both[name] / first[name] for name in ("calls", "bytes_read", "bytes_written"))
        return (
            f"{point['version']:,}",
            *(f"{both[name]:,.{2 if 'milli' in name else 1 if name == 'calls' else 0}f}" for name in shown),
            f"{ratio:.2f}",
            f"{both['cpu_milliseconds'] / first['cpu_milliseconds']:.2f}",
            f"{state['bytes']:,}",
            f"{state['trace_batches']}",
            f"{state['ledger_runs']}",
        )

    return Figures(
        "What a commit costs as a collection ages",
        f"A load of the newest state and a commit on local files, means (of times medians) over the versions around: "
        f"{result['days']:,} real days of {result['rows_per_day']} rows, seed {result['seed']}, each ingested, sealed, "
        "drained and compacted in one process. Names are those of version folders and of one folder's versions; they "
        "grow by one with every hundred commits until old versions are collected. The state grows with the logarithm "
        "of the days. Target: the last row costs what the first does.",
        (
            "version", "store calls", "bytes read", "bytes written", "names listed", "ms", "CPU ms",
            "most of calls, bytes ÷ first", "CPU ÷ first", "state bytes", "trace batches", "ledger runs",
        ),
        tuple(row(point) for point in result["points"]),
    )  # fmt: skip


def longevity(results: Sequence[Result]) -> Iterator[Figures]:
    """Write amplification and reads; changes; steps; for each workload."""
    yield Figures(
        "Many small ingests into a large base: what is written, what a read costs",
        "Compaction after every ingest, all history kept, answers checked against calculated ones. Rows written by "
        "drains and compactions per row drained, beside the optimum for as many live batches (benchmarks/optimum.py, "
        "the base as it is, flushes by themselves): target at most 1.3 of it. At its worst moment, right after a merge "
        "and mostly the first, it is compared with an optimum that ends there. As-of after all ingests beside the same "
        "rows merged into one batch: target at most 2, the least of three reads each. CPU seconds are those of all "
        "jobs of all ingests in one process, gates left out; RSS is that process's peak.",
        (
            "ingests", "live batches, most (mean)", "written per row", "optimum", "of optimum", "at its worst",
            "in bytes", "largest merge, rows", "as-of CPU s", "in one batch", "ratio", "ratio of bytes",
            "CPU s of all ingests", "ms an ingest", "RSS MiB", "objects",
        ),
        tuple(_aged(result) for result in results),
    )  # fmt: skip
    for result in results:
        if result.get("days"):
            yield _by_age(result)
        yield _looking_back(result)
        yield _rounds(result)


def name_of(result: Result) -> str:
    """A workload in words."""
    late = f", late up to {days} days" if (days := result.get("late_days")) else ""
    return f"{result['ingests']:,} × {result['rows_per_ingest']:,} into {result['base']:,}, {result['envelope']}{late}"


def _aged(result: Result) -> tuple[str, ...]:
    writing, reads = result["writing"], result["as_of"]
    spent = sum(step["cpu_seconds_total"] for step in result["steps"].values())
    return (
        name_of(result),
        f"{writing['live_batches_most']} ({writing['live_batches_mean']:.1f})",
        f"{writing['write_amplification']:.2f}",
        f"{writing['optimum']:.2f}",
        f"**{writing['of_optimum']:.2f}**",
        f"{max(found / least for found, least in zip(*courses(result), strict=True)):.2f}",
        f"{writing['write_amplification_bytes']:.2f}",
        f"{writing['largest_merge_rows']:,}",
        f"{min(read['cpu_seconds'] for read in reads['at_the_end']):.2f}",
        f"{min(read['cpu_seconds'] for read in reads['compacted']):.2f}",
        f"**{reads['cpu_ratio']:.2f}**",
        f"{reads['bytes_ratio']:.2f}",
        f"{spent:.1f}",
        f"{1000 * spent / result['ingests']:.0f}",
        f"{result['peak_rss'] / MIB:,.0f}",
        f"{result['objects']:,}",
    )


AGES = (1, 91, 291, 991)
"""Where ten batches are looked at, besides the last ten."""
KINDS = ("version", "part", "table", "ledger", "late rows")


def _by_age(result: Result) -> Figures:
    days = result["days"]
    starts = [start for start in AGES if start + 9 <= len(days)]
    starts += [len(days) - 9] if len(days) > 9 and len(days) - 9 not in starts else []
    steps = list(days[0]["cpu_seconds"])

    def row(start: int) -> tuple[str, ...]:
        ten = days[start - 1 : start + 9]
        spent = [1000 * sum(day["cpu_seconds"][step] for day in ten) / len(ten) for step in steps]
        left = [sum(day["created"].get(kind, 0) for day in ten) / len(ten) for kind in KINDS]
        read = sum(day["bytes_read"] for day in ten) / len(ten) / MIB
        costs = (*(f"{each:.0f}" for each in spent), f"**{sum(spent):.0f}**", f"{read:.1f}")
        return (f"{start}-{start + 9}", *costs, *(f"{each:.1f}" for each in left), f"**{sum(left):.1f}**")

    return Figures(
        f"Batches by age: {name_of(result)}",
        "Means of ten batches: CPU ms by step and in all, MiB read, and the objects they left, by kind. Targets: as "
        "much CPU at any age; few objects. Six versions are those of ingest, seal, drain and their gates (0033).",
        (
            "batches",
            *steps,
            "CPU ms",
            "MiB read",
            *(f"{kind}s" if kind != "late rows" else kind for kind in KINDS),
            "objects",
        ),
        tuple(row(start) for start in starts),
    )


def _looking_back(result: Result) -> Figures:
    rows, before = [], None
    for found in result["changes"]:
        opened = found["bytes_opened"]
        rows.append(
            (
                f"{found['width']}",
                f"{found['bytes_drained'] / MIB:.2f}",
                f"{opened / MIB:.2f}",
                f"{opened / found['bytes_drained']:.2f}",
                f"{opened / before:.2f}" if before else "-",
                f"{found['bytes_opened_last_half'] / found['bytes_opened_first_half']:.2f}",
                f"{found['bytes_opened_median'] / MIB:.2f}",
                f"{found['bytes_opened_most'] / MIB:.2f}",
                f"{found['bytes_read'] / MIB:.2f}" if found["bytes_read"] else "-",
                f"{1000 * found['cpu_seconds']:.0f}" if found["cpu_seconds"] else "-",
            )
        )
        before = opened
    return Figures(
        f"Changes of the last ingests: {name_of(result)}",
        "MiB of the batches that a read of the changes of the last w ingests opens, mean over all ingests, "
        "beside what the drains of w ingests wrote. Target: twice the width at most 2.2 times the bytes, and the last "
        "half of the history as the first. Read: as fetched by real reads at some places, checked, with their CPU.",
        (
            "width w", "MiB drained", "MiB opened", "opened ÷ drained", "÷ half the width", "last half ÷ first",
            "median MiB", "most MiB", "MiB read", "CPU ms",
        ),
        tuple(rows),
    )  # fmt: skip


def _rounds(result: Result) -> Figures:
    rounds = result["rounds"]
    rates = [1e9 * read["cpu_seconds"] / read["trace_rows"] for read in rounds]
    growth = [after / before - 1 for before, after in pairwise(rates)]
    decay = sum(growth) / len(growth) if growth else 0.0
    return Figures(
        f"As-of on the way: {name_of(result)}",
        f"CPU a row, read by read: mean change from one to the next {decay:+.3f} (0 is none; LST-Bench's degradation "
        "rate, here per row stored).",
        ("after ingests", *(f"{read['ingests']:,}" for read in rounds)),
        (
            ("live batches", *(str(read["live_batches"]) for read in rounds)),
            ("rows stored", *(f"{read['trace_rows']:,}" for read in rounds)),
            ("CPU s", *(f"{read['cpu_seconds']:.2f}" for read in rounds)),
            ("ns a row", *(f"{rate:.0f}" for rate in rates)),
        ),
    )


def peers(result: Result) -> Iterator[Figures]:
    """Each workload's engines side by side; then the cases."""
    groups: dict[tuple[int, int, int, int], dict[str, list[Result]]] = {}
    for run in result["runs"]:
        key = (run["ingests"], run["rows_per_ingest"], run["base"], run["maintained_every"])
        groups.setdefault(key, {}).setdefault(run["engine"], []).append(run)
    for (ingests, rows, base, every), engines in groups.items():
        yield _side_by_side(f"{ingests:,} × {rows:,} upserts into {base:,}", every, engines)
        yield _answers(f"{ingests:,} × {rows:,} upserts into {base:,}", engines)
    headings = tuple(result["cases"][0]) if result["cases"] else ("case",)
    yield Figures(
        "Cases of late rows, deletes and repeats, and changes after compactions",
        "Right is what was true by event time. Peers' MERGE with their documented guard (`s.ts > t.ts`), given the "
        "rows as they came, and with each batch's rows reduced to the newest of each key before. Changes are asked for "
        f"at the end of a short life.{' Note: ' + result['note'] + '.' if 'note' in result else ''}",
        headings,
        tuple(tuple(row[name] for name in headings) for row in result["cases"]),
    )


def _side_by_side(title: str, every: int, engines: dict[str, list[Result]]) -> Figures:
    runs = next(iter(engines.values()))
    settings = "; ".join(f"{name}: {found[0]['settings']}" for name, found in engines.items())
    seeds = ", ".join(str(run["seed"]) for run in runs)
    return Figures(
        f"Peers: {title}",
        f"Compaction and the like after every {every} ingests; nothing deleted. Medians (range) over seeds {seeds}. "
        f"Bytes ÷ alone: all new objects over the batches alone as zstd Parquet. {settings}.",
        (
            "engine", "data MiB", "metadata MiB", "bytes ÷ alone", "MiB to the kernel", "objects",
            "CPU s of ingests", "ms an ingest", "CPU s of maintenance", "RSS MiB",
        ),
        tuple(
            (
                name,
                spread([run["stored"]["data"] / MIB for run in found], ".1f"),
                spread([run["stored"]["metadata"] / MIB for run in found], ".2f"),
                spread([run["write_amplification"] for run in found], ".1f"),
                spread([run["bytes_to_kernel"] / MIB for run in found], ".1f"),
                spread([float(run["stored"]["objects"]) for run in found], ".0f"),
                spread([run["ingest"]["cpu_seconds"] for run in found], ".2f"),
                spread([1000 * run["ingest"]["cpu_seconds"] / run["ingests"] for run in found], ".0f"),
                spread([run["maintain"]["cpu_seconds"] for run in found], ".2f"),
                f"{max(run['peak_rss'] for run in found) / MIB:,.0f}",
            )
            for name, found in engines.items()
        ),
    )  # fmt: skip


def _answers(title: str, engines: dict[str, list[Result]]) -> Figures:
    asked = tuple(next(iter(engines.values()))[0]["reads"])

    def cell(runs: Sequence[Result], what: str) -> str:
        answers = {run["reads"][what]["answer"] for run in runs}
        verdict = answers.pop() if len(answers) == 1 else " / ".join(sorted(answers))
        if verdict.startswith("error"):
            return verdict
        spent = median(run["reads"][what]["cpu_seconds"] for run in runs)
        return f"{1000 * spent:,.0f} ms, {verdict if verdict == 'right' else f'**{verdict}**'}"

    return Figures(
        f"Peers, reads: {title}",
        "CPU of a read, the least of three, median over seeds; its answer compared with one calculated separately.",
        ("engine", *asked),
        tuple((name, *(cell(found, what) for what in asked)) for name, found in engines.items()),
    )
