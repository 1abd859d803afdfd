"""What a read opens and why it skips the rest: by the records of parts and their footers, without a row being read.

It asks what the read itself asks (plan/read.py, arrow/runs.py, parts/chunks.py), in the same order. Only of a read that
stops once its answer is settled rows are read, as that is what decides (arrow/one_key.py).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from tidemark.arrow.kernels.merge import chained
from tidemark.arrow.one_key import ChunkName
from tidemark.arrow.parts.reader import OpenedPart
from tidemark.arrow.rows.fields import found
from tidemark.arrow.runs import Asked
from tidemark.model.batch import Part, TraceBatch, UnsealedBatch
from tidemark.model.chunk.law import Miss
from tidemark.model.instant import format_duration
from tidemark.model.layout import Layout
from tidemark.plan.kinds import plan_of
from tidemark.plan.ranges import groups_among, within
from tidemark.plan.read import ReadRequest, considered, read_tasks
from tidemark.plan.tasks import ReadTask
from tidemark.plan.unsealed import PartsOf
from tidemark.storage.read_many import read_many
from tidemark.storage.sidecars import parts_table
from tidemark.storage.stores.store import ObjectStore


@dataclass(frozen=True)
class Explanation:
    """What a read opens. A chunk is a row group of a part.

    Of the `parts` in the batches that a read is about, `parts_opened` were not left out by what is recorded of them; of
    the `chunks` of those whose records were read, `chunks_read` were not left out by that, nor by what the parts'
    footers say, nor because the answer was settled before. `bytes` is what all parts have, `bytes_read` what the
    columns read take in the chunks read, compressed. `missed` and `chunks_missed` say how many parts, and how many
    chunks of those opened, were left out by what: `hulls` are those of blocks of large tables of parts. `runs` are the
    sorted runs that are merged. Rows of `resolved` parts are facts or full snapshots, and become updates first.
    `layout` says by what time rows are laid out (empty: they are in order of their key), `not_a_number` where NaN is
    among rows of one time, of which the greatest is the latest (empty: no column of floats is compared).
    """

    question: str
    batches: int
    parts: int
    parts_opened: int
    chunks: int
    chunks_read: int
    bytes: int
    bytes_read: int
    runs: int
    resolved: int = 0
    resolved_rows: int = 0
    missed: Mapping[str, int] = field(default_factory=dict)
    chunks_missed: Mapping[str, int] = field(default_factory=dict)
    columns: tuple[str, ...] = ()
    layout: str = ""
    not_a_number: str = ""

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        yield self.question
        opened = f"{self.parts_opened:,} of {self.parts:,} in {_count(self.batches, 'batch', 'batches')}"
        yield f"  parts opened  {opened}{_by(self.missed)}"
        yield f"  chunks read   {self.chunks_read:,} of {self.chunks:,}{_by(self.chunks_missed)}"
        yield f"  bytes read    {self.bytes_read:,} of {self.bytes:,}, in columns {', '.join(self.columns)}"
        if self.resolved:
            rows = _count(self.resolved_rows, "row", "rows")
            parts = _count(self.resolved, "part", "parts")
            yield f"  resolved      {parts} of {rows}, with the stored rows of their keys"
        if self.layout:
            yield f"  laid out      {self.layout}; rows of a key are in many buckets"
        if self.not_a_number:
            yield f"  at one time   {self.not_a_number}"
        yield f"  merged        {_count(self.runs, 'sorted run', 'sorted runs')}"


def _layout(layout: Layout | None) -> str:
    return f"by {layout.by}, every {format_duration(layout.every)}" if layout else ""


def _by(missed: Mapping[str, int]) -> str:
    return "".join(f"; {count:,} left out by {_WORDS[why]}" for why, count in missed.items() if count)


_HULLS, _SETTLED = "hulls", "settled"
_WORDS = {
    Miss.KEYS.value: "keys",
    Miss.TIMES.value: "times",
    Miss.VALUES.value: "values of columns",
    Miss.SUMS.value: "adding up to nothing",
    _HULLS: "hulls of blocks",
    _SETTLED: "an answer that was settled before",
}


def _count(number: int, one: str, several: str) -> str:
    return f"{number:,} {one if number == 1 else several}"


Opened = Callable[[ObjectStore, ReadTask], frozenset[ChunkName] | None]
"""The chunks that the read of a task opens of those that can matter; None: all."""


def all_opened(store: ObjectStore, task: ReadTask) -> None:
    """What most reads open."""


def explained(
    store: ObjectStore, request: ReadRequest, names: Sequence[str], question: str, opened: Opened = all_opened
) -> Explanation:
    """What the read of a request opens, in the columns `names`; `question` says in words what is asked."""
    request, parts = parts_table.opened_read(store, request)
    all_parts = [part for some in considered(request, parts) for part in some]
    missed = Counter(miss.value for part in all_parts if (miss := request.miss_of(part)) is not None)
    batches = _batches(request)
    recorded = sum(len(parts[batch.id]) for batch in batches)
    missed[Miss.TIMES.value] += recorded - len(all_parts)
    missed[_HULLS] = sum(batch.part_count for batch in batches) - recorded
    (task,) = read_tasks(request, parts)
    needed = opened(store, task)
    chunks = list(_chunks(store, task, names, needed))
    resolved = _resolved(request, parts)
    return Explanation(
        question,
        batches=len(batches),
        parts=sum(batch.part_count for batch in batches),
        parts_opened=sum(len(some.parts) for some in task.at_rest),
        chunks=sum(len(part.groups) for part in all_parts),
        chunks_read=sum(some.read for some in chunks),
        bytes=sum(batch.bytes for batch in batches),
        bytes_read=sum(some.bytes for some in chunks),
        runs=sum(len(chained(some.parts)) for some in task.at_rest) + (task.unsealed is not None),
        resolved=len(resolved),
        resolved_rows=sum(part.rows for part in resolved),
        missed={why: count for why, count in missed.items() if count},
        chunks_missed={
            Miss.KEYS.value: sum(some.by_keys for some in chunks),
            Miss.VALUES.value: sum(some.by_values for some in chunks),
            **({} if needed is None else {_SETTLED: sum(some.settled for some in chunks)}),
        },
        columns=tuple(names),
        layout=_layout(request.collection.layout),
    )


def _batches(request: ReadRequest) -> list[TraceBatch | UnsealedBatch]:
    """The batches whose rows are updates as they are."""
    resolves = plan_of(request.collection.kind).resolves
    return [*request.trace, *(() if resolves else request.unsealed.batches)]


@dataclass(frozen=True)
class _Chunks:
    """How many chunks of a part are read, with how many bytes, and by what the others are left out."""

    read: int
    bytes: int
    by_keys: int
    by_values: int
    settled: int


def _chunks(
    store: ObjectStore, task: ReadTask, names: Sequence[str], opened: frozenset[ChunkName] | None
) -> Iterator[_Chunks]:
    asked = Asked(store, task, names)
    several = [(part, some.after) for some in task.at_rest for part in some.parts]
    return read_many(lambda one: _of_part(asked, *one, opened), several)


def _of_part(asked: Asked, part: Part, after: int, opened: frozenset[ChunkName] | None) -> _Chunks:
    groups = groups_among(part, [asked.task.keys])
    if not groups:
        return _Chunks(0, 0, len(part.groups), 0, 0)
    with OpenedPart(asked.store, part) as file:
        able = asked.spanned.among(file, groups)
        needed = [group for group in able if opened is None or (part.file.key, group) in opened]
        sources = [source.name for _, source in found(file.schema, asked.columns_of(part, after)) if source is not None]
        columns = [file.schema.get_field_index(name) for name in sources]
        size = sum(
            file.metadata.row_group(group).column(at).total_compressed_size for group in needed for at in columns
        )
    by_values, settled = len(groups) - len(able), len(able) - len(needed)
    return _Chunks(len(needed), size, len(part.groups) - len(groups), by_values, settled)


def _resolved(request: ReadRequest, parts: PartsOf) -> tuple[Part, ...]:
    """The parts with rows that are no updates yet."""
    plan = plan_of(request.collection.kind)
    if not plan.resolves or request.unsealed.is_empty:
        return ()
    return within(plan.cut_by(request.unsealed, parts), request.keys)
