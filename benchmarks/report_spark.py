"""Tables of the engines beside Spark's peers (peers/spark/life.py)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from benchmarks.figures import MIB, Figures

Result = dict[str, Any]


def spark_peers(result: Result) -> Iterator[Figures]:
    """What writing costs and leaves; then the reads."""
    done = [run for run in result["runs"] if "error" not in run]
    if not result["runs"]:
        return
    title = "{ingests} × {rows_per_ingest:,} upserts into {base:,}".format_map(done[0]) if done else "nothing ran"
    yield Figures(
        f"Beside peers on Spark: {title}",
        "CPU seconds of the whole process tree, in brackets without what the JVM's compilers took of them. A batch is "
        "the median of the last ten. Late: a batch of rows that happened at any time before. Bytes ÷ alone: what lay "
        "on disk after all batches beyond the base, over the batches alone as zstd Parquet; objects a batch likewise. "
        "Cleaned: MiB on disk before and after all is deleted that no reader of the newest state needs. "
        + " ".join(f"{name}: {settings}." for name, settings in {r["engine"]: r["settings"] for r in done}.items()),
        (
            "engine", "maintained", "base, CPU s", "a batch", "a late batch", "maintenance", "bytes ÷ alone",
            "objects a batch", "cleaned",
        ),
        tuple(_writing(run) for run in result["runs"]),
    )  # fmt: skip
    if done:
        asked = tuple(done[0]["reads"])
        yield Figures(
            f"Beside peers on Spark, reads: {title}",
            "CPU seconds, in brackets without the JVM's compilers: the least of three, all columns read and summed up, "
            "the sums compared with ones calculated separately.",
            ("engine", "maintained", *asked),
            tuple((run["engine"], _often(run), *(_reading(run["reads"][what]) for what in asked)) for run in done),
        )


def _writing(run: Result) -> tuple[str, ...]:
    if "error" in run:
        return (run["engine"], run["error"], *["-"] * 7)
    after = run["bytes_after_clean"]
    return (
        run["engine"],
        _often(run),
        *(_spent(run[what]) for what in ("load", "batch", "late", "maintain")),
        f"{run['bytes_ratio']:.1f}",
        f"{run['objects_per_batch']:.1f}",
        after if isinstance(after, str) else f"{run['bytes_before_clean'] / MIB:.1f} → {after / MIB:.1f}",
    )


def _often(run: Result) -> str:
    return f"every {run['maintained_every']}" if run["maintained_every"] else "never"


def _reading(read: Result) -> str:
    if read["answer"].startswith("error"):
        return str(read["answer"])
    return f"{_spent(read)}, {read['answer'] if read['answer'] == 'right' else '**wrong**'}"


def _spent(cost: Result | None) -> str:
    return f"{cost['cpu_seconds']:.2f} ({cost['cpu_seconds'] - cost['jit']:.2f})" if cost else "-"


def spark_reads(results: Sequence[dict[str, Any]]) -> Figures:
    """What reads through Spark cost, beside the Arrow reader and plain Parquet."""
    rows = []
    for result in results:
        for what, cost in result["reads"].items():
            spent = (f"{cost['cpu_seconds'][role]:.2f}" for role in ("driver", "jvm", "executors"))
            case = f"{result['updates']:,} updates, {result['case']}: {result['rows']:,} rows"
            rows.append((case, what, f"{cost['cpu_seconds_total']:.2f}", *spent, f"{cost['seconds']:.2f}"))
    return Figures(
        "Reads through Spark",
        "The least of three in a session that has answered the same before; each answer added up and checked.",
        ("collection", "read", "CPU s", "driver", "JVM", "executors", "seconds"),
        tuple(rows),
    )
