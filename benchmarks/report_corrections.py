"""Tables of what running the past again costs (benchmarks/corrections), and its targets."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from benchmarks.figures import MIB, Figures
from benchmarks.peers.spark import PEERS

Result = dict[str, Any]
OURS = {"Tidemark in one process": "", "Tidemark on Spark, without gates": ", on Spark without gates"}
"""What is compared with others: all of them, or those that run on Spark, as it does."""
SHAPE = ("envelope", "days", "rows_a_day")
"""What two lives must share to be compared."""
RERUN = 1.2
REPROCESS = 1.15
UNCHANGED = ("as it was", "touched")


def corrections(result: Result) -> Iterator[Figures]:
    """A day run again; a file corrected, beside others; days with reprocess_for and without."""
    for found in result["reruns"]:
        yield _rerun(found)
    groups: dict[tuple[Any, ...], list[Result]] = {}
    for life in result["lives"]:
        groups.setdefault(tuple(life[name] for name in SHAPE), []).append(life)
    for lives in groups.values():
        yield _one_file(lives)
    if result["reprocess"]:
        yield _reprocess(result["reprocess"])


def targets(result: Result | None) -> Iterator[tuple[str, str, str, bool]]:
    """What was aimed at, and what was found."""
    for found in (result or {"reruns": []})["reruns"]:
        for case in UNCHANGED:
            cost = found["cases"][case]
            ratio, data = cost["cpu_seconds"] / cost["reading"], cost["objects_of_data"]
            what = f"a day of {found['rows_a_day']:,} rows run again, {case}, {found['envelope']}"
            yield f"{what}: CPU", f"≤ {RERUN:g} × reading its files", f"{ratio:.2f}", ratio <= RERUN
            if "each_anew" in cost:
                alone = cost["each_anew"] / cost["reading"]
                yield f"{what}, each step by itself: CPU", f"≤ {RERUN:g} × reading", f"{alone:.2f}", alone <= RERUN
            yield f"{what}: objects of data", "0", f"{data:g}", data == 0
    for found in (result or {"reprocess": []})["reprocess"]:
        what = f"{found['days']} days of {found['rows_a_day']:,} rows with reprocess_for, {found['envelope']}: CPU"
        ratio = found["ratio_of_days"]
        yield what, f"≤ {REPROCESS:g} × without", f"{ratio:.2f}", ratio <= REPROCESS
    yield from _beside((result or {"lives": []})["lives"])


def _beside(lives: list[Result]) -> Iterator[tuple[str, str, str, bool]]:
    """A file corrected: Tidemark beside every other way."""
    for life in lives:
        if life["engine"] not in OURS or "ways" not in life:
            continue
        where = OURS[life["engine"]]
        what = f"one file of {life['days']} days of {life['rows_a_day']:,} rows corrected, {life['envelope']}{where}"
        way = life["ways"][0]
        right, days = (way["answers"][name] for name in ("right", "days"))
        yield f"{what}: answers of all days", "all right", f"{right} of {days}", right == days
        shape = [life[name] for name in SHAPE]
        others = [other for other in lives if [other[name] for name in SHAPE] == shape]
        others = [other for other in others if not where or other["engine"] in PEERS]
        for other in others:
            for theirs in other.get("ways", []) if not other["engine"].startswith("Tidemark") else ():
                for measure, unit in (("bytes", "bytes"), ("cpu_seconds", "CPU")):
                    ratio = way[measure] / theirs[measure]
                    beside = f"{what}: {unit}, beside {other['engine']}, {theirs['way']}"
                    yield beside, "fewer", f"{ratio:.3f} of it", ratio < 1


def _rerun(result: Result) -> Figures:
    rows = [
        (
            case,
            f"{1000 * cost['cpu_seconds']:.1f}",
            f"{1000 * cost['ingest']:.1f}",
            f"{1000 * cost['reading']:.1f}",
            f"{cost['cpu_seconds'] / cost['reading']:.2f}",
            f"{cost['each_anew'] / cost['reading']:.2f}" if "each_anew" in cost else "-",
            f"{cost['objects_of_data']:g}",
            f"{cost['versions']:g}",
            f"{cost['bytes_written']:,.0f}",
            f"{cost['calls']:g}",
        )
        for case, cost in result["cases"].items()
    ]
    return Figures(
        f"A day run again: {result['rows_a_day']:,} rows in {result['files_a_day']} files, {result['envelope']}",
        f"The day is one of {result['days']} that are done. All steps up to the drain, kernels in one process, "
        "certificates without gates; beside pyarrow reading the same files once, on one core. Medians of seven days. "
        "Each step by itself: it loads the state, as a task of a DAG does; else the process knows it from before. "
        "Written anew: other bytes, equal rows, so all are decoded and compared with what they contributed. "
        f"Target for a day of which no byte changed: {RERUN:g} × reading, and nothing written.",
        (
            *("the files", "CPU ms", "of it ingest", "reading ms", "ratio", "ratio, each step by itself"),
            *("objects of data", "versions", "bytes written", "store calls"),
        ),
        tuple(rows),
    )


def _one_file(lives: list[Result]) -> Figures:
    done = [life for life in lives if "ways" in life]
    first = done[0]
    rows = []
    for life in lives:
        if "error" in life:
            rows.append((life["engine"], life["error"], *["-"] * 8))
        for way in life.get("ways", []):
            answers = way["answers"]
            right = "right" if answers["right"] == answers["days"] else f"**{answers['right']} of {answers['days']}**"
            rows.append(
                (
                    life["engine"],
                    way["way"],
                    f"{way['cpu_seconds']:.3f}",
                    f"{way['cpu_seconds'] - way['jit']:.3f}" if way["jit"] else "-",
                    f"{way['bytes'] / 1024:,.1f}",
                    f"{way['objects']:g}",
                    f"{way['settled']:.3f}",
                    f"{way['seconds']:.2f}",
                    right,
                    f"{answers['cpu_seconds']:.1f}",
                )
            )
    settings = "; ".join(f"{life['engine']}: {life['settings']}" for life in done)
    return Figures(
        f"One file of {first['days']} days of {first['rows_a_day']:,} rows corrected, {first['envelope']}",
        f"Each day has {first['files_a_day']} files, {first['bytes_of_a_day'] / MIB:.1f} MiB; in the corrected one ten "
        "rows have another amount, one is gone and one is new. Medians of the last corrections of several, by when an "
        "engine on Spark is warm; CPU of the whole process tree, and without what the JVM's compilers took; bytes and "
        "objects that were not there before, metadata too. Then as-of the end of every day is asked for, in one read. "
        f"All know the rows' history by day, so all can answer. {settings}.",
        (
            *("engine", "way", "CPU s", "without compilers", "KiB written", "objects"),
            *("CPU s of compaction", "seconds", "answers of all days", "CPU s of these"),
        ),
        tuple(rows),
    )


def _reprocess(results: list[Result]) -> Figures:
    rows = []
    for found in results:
        without, kept = found["without"], found["with"]
        spent = [sum(way["cpu_seconds"].values()) for way in (without, kept)]
        rows.append(
            (
                f"{found['days']} days of {found['rows_a_day']:,} rows, {found['envelope']}",
                f"**{found['ratio_of_days']:.2f}**",
                f"{spent[0]:.2f}",
                f"{spent[1]:.2f}",
                f"{spent[1] / spent[0]:.2f}",
                f"{kept['bytes'] / without['bytes']:.3f}",
                f"{(kept['objects'] - without['objects']) / found['days']:.1f}",
            )
        )
    return Figures(
        "What it costs to be correctable: days with `reprocess_for: 30d` beside the same days without",
        "Ingest to compaction, each day of one collection beside the same day of the other, in one process; "
        f"the ratio is the median over the days. Target: {REPROCESS:g}. Objects are more a day: the table of an "
        "ingest's parts, which the ledger names, and what the ledger says of each file.",
        ("days", "CPU, with ÷ without", "CPU s without", "with", "sums' ratio", "bytes' ratio", "objects more a day"),
        tuple(rows),
    )
