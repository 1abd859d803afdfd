"""The ingest kernel: delta files in, unsealed parts, late objects and ledger entries out.

A file is taken whole or not at all: it is decoded to its end before the first of its rows goes into a part. What is not
too large is kept meanwhile, a larger one is decoded a second time; so memory is bounded whatever the files' size.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq

from tidemark.arrow.decode.content import BadFile, Content, check_as_listed, fetched
from tidemark.arrow.decode.source import decode, undeclared
from tidemark.arrow.kernels.ahead import cut_by_buckets, cut_of, split_ahead
from tidemark.arrow.kernels.lateness import Judged, LatenessBounds, judge
from tidemark.arrow.parts.hashing import HashingSink
from tidemark.arrow.parts.writer import PART_ROWS, PartWriter
from tidemark.arrow.rows.cuts import PIECE_BYTES, sorted_pieces
from tidemark.arrow.rows.memory import Gathered
from tidemark.arrow.rows.order import starts
from tidemark.arrow.rows.progress import count_file
from tidemark.arrow.rows.schema import key_at_rest, keys_of, sort_columns, unsealed_schema
from tidemark.errors import NotReady
from tidemark.model.batch import ObjectRef, Part
from tidemark.model.change import MOST_UNDECLARED
from tidemark.model.chunk.cuts import ROW_GROUP_ROWS
from tidemark.model.collection import Collection
from tidemark.model.ledger import LedgerEntry, SourceFile, Status, set_aside
from tidemark.plan.ahead import Cut
from tidemark.plan.tasks import IngestAnswer, IngestTask, ReplayTask, RereadTask
from tidemark.storage.stores.store import ObjectStore

SORTED_ROWS = PART_ROWS // ROW_GROUP_ROWS * ROW_GROUP_ROWS
"""Most rows sorted together: what fills one part."""
SORTED_BYTES = 128 * 2**20
"""Most bytes of rows kept for sorting, for rows that are wide."""
CHECKED_BYTES = 128 * 2**20
"""Most bytes of decoded rows kept until their file is known to be whole; a file with more is decoded twice."""


def ingest_files(store: ObjectStore, task: IngestTask) -> IngestAnswer:
    """Read the task's files, judge their rows, write parts sorted by key and one late object per file that needs it.

    A file that cannot be taken gives a quarantined entry with its reason, and none of its rows is in any part. The
    entries are in the order of the files; their `rows` are those applied, and add up to the parts' rows. Raises
    NotReady if a file changes while it is read, Unavailable if one, or memory for it, is not available now: which is no
    verdict on any file.
    """
    with Gathered("sorted") as room:
        parts = SortedParts(store, task, room)
        contents = fetched(task.files, task.collection.landed.source)
        numbered = enumerate(task.files, task.first)
        entries = [_ingest_file(store, task, file, number, parts, contents=contents) for number, file in numbered]
        unread = tuple(sorted(parts.unread.most_common(MOST_UNDECLARED)))
        senders = tuple(sorted(parts.servers)), tuple(sorted(parts.tables)[:2])
        notes = tuple(sorted(parts.notes))
        made = IngestAnswer(parts.close(), tuple(entries), parts.first_on_time, unread, parts.keys, *senders, notes)
        return replace(made, images_unfit=parts.images_unfit, first_unfit=parts.first_unfit)


def _ingest_file(
    store: ObjectStore,
    task: IngestTask,
    file: SourceFile,
    number: int,
    parts: SortedParts,
    *,
    contents: Iterator[Content | BadFile],
) -> LedgerEntry:
    turn = task.collection.landed.complete_before(task.interval)
    bounds = LatenessBounds(task.complete_below, task.seal, task.since, task.interval.upper - 1, turn=turn)
    return taken(store, task, file, bounds, number, parts.add, see=parts.see, contents=contents)


def taken(
    store: ObjectStore,
    task: IngestTask | RereadTask,
    file: SourceFile,
    bounds: LatenessBounds,
    number: int,
    take: Callable[[Judged], None],
    *,
    see: Callable[[Content], object] = lambda content: None,
    contents: Iterator[Content | BadFile] | None = None,
) -> LedgerEntry:
    """Read a file, judge its rows against `bounds` and hand them on to `take`; the file's ledger entry.

    Where files are fetched together, the next of `contents` is this one's. It is handed to `see` if it can be taken.
    One that cannot be taken gives a quarantined entry, and nothing of it is handed on. Raises as `ingest_files` does.
    """
    contents = fetched([file], task.collection.landed.source) if contents is None else contents
    with Gathered("decoded") as room:
        entry = _taken(store, task, file, bounds, number, take, room, see=see, contents=contents)
    count_file(entry.rows)
    return entry


def _taken(
    store: ObjectStore,
    task: IngestTask | RereadTask,
    file: SourceFile,
    bounds: LatenessBounds,
    number: int,
    take: Callable[[Judged], None],
    room: Gathered,
    *,
    see: Callable[[Content], object],
    contents: Iterator[Content | BadFile],
) -> LedgerEntry:
    # Nothing else refers to a content: the next one is fetched when this one is gone from memory.
    if isinstance(content := next(contents), BadFile):
        check_as_listed(file)
        # Without a checksum, for which all of it would be read: the verdict is given again as soon as it is asked for.
        return set_aside(task.collection, task.interval, file, "", content.reason)
    try:
        blocks = _checked(content, task.collection, room)
        see(content)
    except BadFile as bad:
        content.check_unchanged()
        return set_aside(task.collection, task.interval, file, content.sha256, bad.reason)
    applied = late_applied = late_discarded = late_moved = 0
    with LateObject(store, task.prefix) as late:
        try:
            for block in blocks:
                judged = judge(block, task.collection, bounds, path=file.identity, number=number)
                take(judged)
                late.write(judged.late)
                applied += judged.applied.num_rows
                late_applied += judged.late_applied
                late_discarded += judged.late_discarded
                late_moved += judged.late_moved
        except BadFile as bad:
            raise NotReady(f"{bad}; it was whole when read a moment ago: run the step again") from None
        content.check_unchanged()
        reference = late.close()
    return LedgerEntry(
        file.identity,
        content.bytes,
        content.sha256,
        file.token,
        task.interval,
        Status.INGESTED,
        task.batch,
        applied,
        late_applied,
        late_discarded,
        reference,
        rows_late_moved=late_moved,
        rows_left_out=content.seen.left_out,
    )


def _checked(content: Content, collection: Collection, room: Gathered) -> Iterator[pa.RecordBatch]:
    """The rows of a file that decodes to its end, kept in `room` if there is. Raises BadFile at once if it does not."""
    blocks: list[pa.RecordBatch] = []
    size, whole = 0, True
    for block in decode(content, collection):
        size += block.nbytes
        whole = whole and size <= CHECKED_BYTES and room.add(block.nbytes)
        if whole:
            blocks.append(block)
        else:
            blocks.clear()
            room.release()
    return iter(blocks) if whole else decode(content, collection)


class SortedParts:
    """Gathers applied rows, and writes them sorted whenever enough have come, or no room is left for them."""

    def __init__(self, store: ObjectStore, task: IngestTask | ReplayTask, room: Gathered) -> None:
        self._store, self._task = store, task
        self._schema = unsealed_schema(task.collection)
        self._batches: list[pa.RecordBatch] = []
        self._rows = self._bytes = 0
        self._room = room
        self._parts: list[Part] = []
        self.first_on_time: int | None = None
        self.unread = Counter[str]()
        self.keys = 0
        self.servers: set[str] = set()
        self.tables: set[str] = set()
        self.notes: set[str] = set()
        self.images_unfit = 0
        self.first_unfit = ""

    def see(self, content: Content) -> None:
        """Note the columns of a file that nothing declares, and whose messages it has."""
        self.servers |= content.seen.servers
        self.tables |= content.seen.tables
        self.notes |= content.seen.notes
        self.images_unfit += content.seen.images_unfit
        self.first_unfit = self.first_unfit or content.seen.first_unfit
        self.unread.update(undeclared(content, self._task.collection)[:MOST_UNDECLARED])

    def add(self, judged: Judged) -> None:
        """Take over the rows to apply."""
        if judged.first_on_time is not None:
            bounds = (judged.first_on_time, self.first_on_time)
            self.first_on_time = min(bound for bound in bounds if bound is not None)
        batch = judged.applied
        if self._batches and (self._rows + batch.num_rows > SORTED_ROWS or self._bytes + batch.nbytes > SORTED_BYTES):
            self._write()
        if batch.num_rows:
            if not self._room.add(batch.nbytes) and self._batches:
                self._write()
                self._room.add(batch.nbytes)  # the only rows kept need no room
            self._batches.append(batch)
            self._rows += batch.num_rows
            self._bytes += batch.nbytes

    def close(self) -> tuple[Part, ...]:
        """Write the rest; all parts written."""
        self._write()
        return tuple(self._parts)

    def _write(self) -> None:
        if not self._batches:
            return
        collection = self._task.collection
        batches, self._batches, self._rows, self._bytes = self._batches, [], 0, 0
        order = sort_columns(collection, facts=collection.kind.facts)
        cut = self._cut(batches)
        with self._room, ExitStack() as stack:
            writers = [stack.enter_context(self._writer()) for _ in range(cut.parts)]
            for piece in self._counted(sorted_pieces(batches, order, most=PIECE_BYTES)):
                for number, rows in split_ahead(piece, cut):
                    writers[number].write(rows)
            self._parts += [part for writer in writers for part in writer.close()]

    def _counted(self, pieces: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Rows in order, whose keys are counted where the task asks for that."""
        counts = isinstance(self._task, IngestTask) and self._task.counts_keys
        names, last = key_at_rest(self._task.collection), None
        for piece in pieces:
            if counts and piece.num_rows:
                first, newest = keys_of(piece, [0, piece.num_rows - 1], len(names))
                self.keys += int(starts(piece, names).sum()) - (first == last)
                last = newest
            yield piece

    def _writer(self) -> PartWriter:
        collection = self._task.collection
        return PartWriter(
            self._store,
            self._task.prefix,
            self._schema,
            key_width=len(key_at_rest(collection)),
            facts=collection.kind.facts,
            records_consolidated=not collection.kind.facts,
        )

    def _cut(self, rows: Sequence[pa.RecordBatch]) -> Cut:
        """How rows ahead are distinguished from those due with their interval; replayed ones are due at once."""
        if isinstance(self._task, ReplayTask):
            return Cut()
        task, interval = self._task, self._task.interval
        width = interval.upper - interval.lower
        # What is learned at the seal is due with the next tick, be the interval's end where it is.
        due = max(interval.upper, task.complete_below + width, task.seal + 1)
        kind = task.collection.kind
        return cut_by_buckets(rows, due, width) if kind.waits_ahead else cut_of(rows, due, width, facts=kind.facts)


@dataclass
class LateObject:
    """The Parquet object of one file's late rows, begun with the first of them."""

    store: ObjectStore
    prefix: str
    _stack: ExitStack = field(default_factory=ExitStack)
    _open: tuple[str, HashingSink, pq.ParquetWriter] | None = None

    def __enter__(self) -> LateObject:
        self._stack.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self._stack.__exit__(*error)  # type: ignore[arg-type]

    def write(self, late: pa.RecordBatch) -> None:
        """Append rows."""
        if not late.num_rows:
            return
        if self._open is None:
            key = f"{self.prefix.rstrip('/')}/late-{uuid4().hex}.parquet"
            sink = HashingSink(self._stack.enter_context(self.store.open_output(key)))
            self._open = key, sink, pq.ParquetWriter(sink, late.schema, compression="zstd", write_page_checksum=True)
        self._open[2].write_batch(late)

    def close(self) -> ObjectRef | None:
        """The object, whole and durable; None if no row was late."""
        if self._open is None:
            return None
        key, sink, writer = self._open
        writer.close()
        sink.flush()
        self._stack.close()
        return ObjectRef(key, sink.bytes, sink.sha256.hexdigest())
