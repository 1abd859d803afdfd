"""What tasks take: CPU seconds and memory, estimated before any of their rows is read; and what is small."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import Any

from tidemark.model.batch import Part
from tidemark.model.chunk.cuts import ROW_GROUP_BYTES, ROW_GROUP_ROWS
from tidemark.model.collection import Collection, ColumnType, Format
from tidemark.model.ledger import SourceFile
from tidemark.plan.ingest import HasBytes
from tidemark.plan.ranges import groups_within
from tidemark.plan.tasks import (
    ALL_KEYS,
    Contributed,
    DifferenceTask,
    IngestTask,
    InspectTask,
    KeyRange,
    MergeTask,
    NotContributedTask,
    RememberTask,
    ReplayTask,
    RereadTask,
    ResolveTask,
    RetractedShareTask,
    TrimTask,
)

MIB = 2**20
TIMES_BYTES = 24
"""Bytes of a row beside its columns: its two times, and its diff, or what of it counts."""
TEXT_RATIO = 4
"""Decoded bytes of texts per byte of a part, which is compressed: of words about so many."""


@dataclass(frozen=True)
class Size:
    """What a task reads at most, as far as it is known before anything is opened.

    Attributes:
        rows: Rows of parts and files.
        bytes: Bytes of the parts and files, as they are stored.
        decoded: Bytes that the rows take in memory.
        objects: Parts and files.
        columns: Columns of files and of row groups: each of them is opened.
    """

    rows: int = 0
    bytes: int = 0
    decoded: int = 0
    objects: int = 0
    columns: int = 0

    def __add__(self, other: Size) -> Size:
        return Size(
            self.rows + other.rows,
            self.bytes + other.bytes,
            self.decoded + other.decoded,
            self.objects + other.objects,
            self.columns + other.columns,
        )


@dataclass(frozen=True)
class Density:
    """How many rows, and decoded bytes, source files have per stored byte: guessed by format, or sampled of one."""

    rows: float
    decoded: float


GUESSED = {Format.CSV: Density(1 / 64, 2.0), Format.JSONL: Density(1 / 128, 1.0), Format.PARQUET: Density(1 / 20, 4.0)}
"""Of files of which nothing was sampled."""


def size_of(task: Any, density: Density | None = None) -> Size | None:
    """What a task reads; None for a task of which that is not known. `density` is that of its source files."""
    sizes = sizes_of("", task, density)
    return reduce(add, sizes.values(), Size()) if sizes else None


def sizes_of(kernel: str, task: Any, density: Density | None = None) -> dict[str, Size]:
    """What a task of a kernel reads, by the names of COSTS for it; nothing for a task of which that is not known."""
    match task:
        case IngestTask(collection=collection, files=files):
            return {_decoding(collection): _of_files(collection, files, density)}
        case RereadTask(collection=collection, files=files, contributed=contributed):
            read = [again.file for again in files if again.file is not None]
            return {
                _decoding(collection): _of_files(collection, read, density),
                "compared": _of_contributed(collection, contributed),
            }
        case ReplayTask(collection=collection, sources=sources):
            return {kernel: _of_sources(collection, sources, density or GUESSED[Format.PARQUET])}
        case NotContributedTask(collection=collection, contributed=contributed, keys=keys):
            return {"compared": _of_contributed(collection, contributed, keys)}
        case RetractedShareTask(collection=collection, contributed=contributed, written=written, keys=keys):
            return {"compared": _of_contributed(collection, (*contributed, *written), keys)}
        case MergeTask(collection=collection, parts=parts, keys=keys):
            return {kernel: _of_parts(collection, parts, keys)}
        case RememberTask(collection=collection, parts=parts, keys=keys):
            return {kernel: _of_parts(collection, parts, keys)}
        case TrimTask(collection=collection, part=part) | InspectTask(collection=collection, part=part):
            return {kernel: _of_parts(collection, [part])}
        case ResolveTask(collection=collection, facts=facts, trace=trace, keys=keys):
            new = _of_parts(collection, facts, keys)
            return {kernel: new, "lookup": _of_parts(collection, trace, keys, most=new.rows)}
        case DifferenceTask(collection=collection, trace=trace, snapshots=snapshots, keys=keys):
            of_snapshots = [part for rows in snapshots for part in rows.parts]
            return {kernel: _of_parts(collection, [*trace, *of_snapshots], keys)}
    return {}


def _decoding(collection: Collection) -> str:
    return f"ingest {collection.landed.source.format}"


def _of_files(collection: Collection, files: Sequence[SourceFile], density: Density | None) -> Size:
    return _of_sources(collection, files, density or GUESSED[collection.landed.source.format])


def _of_sources(collection: Collection, sources: Sequence[HasBytes], density: Density) -> Size:
    size, count = sum(source.bytes for source in sources), len(sources)
    return Size(int(size * density.rows), size, int(size * density.decoded), count, count * _width(collection))


def _width(collection: Collection) -> int:
    return len(collection.key) + len(collection.stored_value)


def _of_contributed(collection: Collection, contributed: Iterable[Contributed], keys: KeyRange = ALL_KEYS) -> Size:
    return _of_parts(collection, [part for each in contributed for part in each.parts], keys)


def _of_parts(
    collection: Collection, parts: Sequence[Part], keys: KeyRange = ALL_KEYS, most: int | None = None
) -> Size:
    """The row groups of parts that can hold keys of a range; of each part at most so many, the largest of them, as
    there are values to look up (`most`)."""
    total = Size()
    for part in parts:
        groups = sorted((part.groups[at][1] for at in groups_within(part, keys)), reverse=True)[:most]
        if rows := sum(groups):
            size = part.file.bytes * rows // max(1, part.rows)
            decoded = decoded_bytes(collection, part, rows, len(groups))
            total += Size(rows, size, decoded, 1, len(groups) * _width(collection))
    return total


def decoded_bytes(collection: Collection, part: Part, rows: int, groups: int) -> int:
    """How many bytes some rows of a part take in memory, which are in so many row groups.

    Row groups are cut by rows, or by what they take in memory. Where a cut by bytes shows, that is what they take; else
    it is what their columns take, of texts by what the part's file has, and not more than such a cut would allow.
    """
    most = groups * ROW_GROUP_BYTES
    cut_by_bytes = len(part.groups) > 1 and part.groups[0][1] < ROW_GROUP_ROWS
    if cut_by_bytes and not collection.timelines and not collection.layout:
        return most
    stored = part.file.bytes * rows // max(1, part.rows)
    texts = any(column.type in _OF_ANY_LENGTH for column in (*collection.key, *collection.stored_value))
    return min(most, max(rows * row_bytes(collection), TEXT_RATIO * stored if texts else 0))


def row_bytes(collection: Collection) -> int:
    """Bytes of a row in memory, of texts their places only."""
    return 8 * _width(collection) + TIMES_BYTES


_OF_ANY_LENGTH = (ColumnType.STRING, ColumnType.JSON, ColumnType.BYTES)


@dataclass(frozen=True)
class Cost:
    """What reading rows takes, as it was measured.

    Attributes:
        per_mib: CPU seconds per MiB of decoded rows.
        per_million: CPU seconds per million rows.
        per_object: CPU seconds per part or file.
        per_column: CPU seconds per column of a file, or of a row group.
        peak: Bytes of memory at its peak per decoded byte; of the first rows it is three times as many.
        most_mib: MiB of memory that it takes at most, however much it reads: kernels stream.
    """

    per_mib: float
    per_million: float
    per_object: float
    per_column: float
    peak: float
    most_mib: int

    @property
    def small_rows(self) -> int:
        """Rows that are read in the CPU seconds of small work, if nothing else is to be done."""
        return int(SMALL_CPU_SECONDS * 1e6 / self.per_million)

    def bytes_within(self, memory: int) -> int:
        """Decoded bytes whose reading takes so much memory."""
        return int(max(memory / 3, memory - FIRST_BYTES) / self.peak)

    def cpu_seconds(self, size: Size) -> float:
        """CPU seconds for reading so much."""
        by_rows = self.per_mib * size.decoded / MIB + self.per_million * size.rows / 1e6
        return by_rows + self.per_object * size.objects + self.per_column * size.columns

    def peak_bytes(self, size: Size) -> int:
        """Bytes of memory for it."""
        peak = self.peak * size.decoded
        return int(min(3 * peak, FIRST_BYTES + peak, self.most_mib * MIB))


COSTS: dict[str, Cost] = {
    "ingest csv": Cost(0.030, 0.50, 0.0012, 0.0004, 5.2, 500),
    "ingest jsonl": Cost(0.045, 0.50, 0.0010, 0.0004, 5.2, 500),
    "ingest parquet": Cost(0.018, 0.50, 0.0010, 0.0004, 5.2, 500),
    "replay": Cost(0.006, 0.50, 0.0030, 0.0003, 2.5, 500),
    "compared": Cost(0.003, 0.10, 0.0010, 0.0001, 2.5, 500),
    "merge": Cost(0.012, 0.20, 0.0010, 0.00015, 2.3, 500),
    "resolve": Cost(0.012, 0.30, 0.0030, 0.0002, 3.0, 500),
    "lookup": Cost(0.001, 0.05, 0.0010, 0.0001, 0.7, 250),
    "difference": Cost(0.012, 0.20, 0.0010, 0.00015, 2.3, 500),
    "remember": Cost(0.012, 0.20, 0.0010, 0.00015, 2.3, 500),
    "trim": Cost(0.008, 0.20, 0.0010, 0.0003, 2.3, 500),
    "inspect": Cost(0.0015, 0.15, 0.0010, 0.0001, 1.2, 250),
    "audit": Cost(0.0015, 0.15, 0.0010, 0.0001, 1.2, 250),
    "build": Cost(0.004, 1.2, 0.0010, 0.0001, 2.3, 500),
    "expectations": Cost(0.010, 1.0, 0.0010, 0.0001, 3.0, 1_000_000),
}
"""What the rows of tasks cost, by what is done with them: mostly a kernel, of source files by format.

Measured by `tools/run python -m benchmarks --only task_sizes --full`, which sets estimates beside what runs took; its
table says where these figures are off. `expectations` are the owner's, judged over a frame of pandas; `build` is the
first build of a derived collection, with the figures of sliding windows over 2,000,000 readings (docs/decisions/0072).
"""
FIRST_BYTES = 20 * MIB
"""What kernels take beyond their share of the rows: blocks, copies, and buffers of Arrow."""


@dataclass(frozen=True)
class Estimate:
    """What tasks take, one after the other in one process, beside what the process itself has."""

    cpu_seconds: float = 0.0
    peak_bytes: int = 0

    def __add__(self, other: Estimate) -> Estimate:
        return Estimate(self.cpu_seconds + other.cpu_seconds, max(self.peak_bytes, other.peak_bytes))


NOTHING = Estimate()


SMALL_CPU_SECONDS = 15
"""CPU seconds of small work: about as long as a session of Spark takes to start and to end."""
SMALL_BYTES = 128 * MIB
"""Memory of small work beside what its process has before it, some 100 MiB: 16 at once stay within 4 GiB."""
BUILD_BYTES = 320 * MIB
"""Memory of the first build of a derived collection: it is made once in a collection's life, so sixteen of them at once
are not to be expected, and Spark takes several times its CPU seconds."""
GIVEN_UP = 1.5
"""By how much rows may exceed what is small before they are given up: estimates are not exact."""


TASK_SECONDS = 0.003
"""CPU seconds of a task of which nothing is read."""


def estimate(kernel: str, tasks: Sequence[Any], density: Density | None = None) -> Estimate | None:
    """What tasks of a kernel take; None where that is not known of one of them."""
    total = NOTHING
    for task in tasks:
        sizes = sizes_of(kernel, task, density)
        if not sizes or not sizes.keys() <= COSTS.keys():
            return None
        seconds = sum(COSTS[name].cpu_seconds(size) for name, size in sizes.items())
        total += Estimate(TASK_SECONDS + seconds, sum(COSTS[name].peak_bytes(size) for name, size in sizes.items()))
    return total


def is_small(estimated: Estimate, most_bytes: int = SMALL_BYTES) -> bool:
    """Whether work is done in the process of the step: CPU seconds of one core and memory are small."""
    return estimated.cpu_seconds <= SMALL_CPU_SECONDS and estimated.peak_bytes <= most_bytes


def decoded_in_time(kernel: str, task: Any) -> int:
    """The most decoded bytes of source files that small work of tasks like this one has, by CPU seconds."""
    cost = next((COSTS[name] for name in sizes_of(kernel, task) if name in COSTS), None)
    if cost is None:
        return 0
    per_byte = cost.per_mib / MIB + cost.per_million / 1e6 / row_bytes(task.collection)
    return int(GIVEN_UP * SMALL_CPU_SECONDS / per_byte)


def decoded_in_memory(kernel: str, task: Any, most_bytes: int = SMALL_BYTES) -> int:
    """The most decoded bytes of source files that one task of small work has, by memory."""
    cost = next((COSTS[name] for name in sizes_of(kernel, task) if name in COSTS), None)
    return 0 if cost is None else int(GIVEN_UP * cost.bytes_within(most_bytes))
