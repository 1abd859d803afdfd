"""Whether storage still holds what the state names: every object, its size, the checksum of every one that is read."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from typing import TypeVar

from tidemark.errors import Corruption
from tidemark.model.arrangement import Arrangement
from tidemark.model.batch import DIGEST_MODULUS, ObjectRef, Part, PartsTable, TraceBatch, UnsealedBatch, verified
from tidemark.model.commit_times import CommitRun, SealCommit
from tidemark.model.invariants import Invariant
from tidemark.model.ledger import LedgerEntry
from tidemark.model.publication import Pin, pin_of
from tidemark.storage.log.versions import retried
from tidemark.storage.sidecars import commit_runs, ledger, parts_table
from tidemark.storage.sidecars.ledger import LedgerNode
from tidemark.storage.stores.store import ObjectInfo, ObjectStore
from tidemark.storage.verify.history import Finding, verify_history

__all__ = ["Contents", "Finding", "contents", "verify_history", "verify_objects"]

T = TypeVar("T")
U = TypeVar("U")
Batch = UnsealedBatch | TraceBatch
Progress = Callable[[str, int, int], None]
"""Called with what is being looked at, how many of it were, and how many there are."""
READERS = 16
"""Objects read at once: metadata objects are small, and a store across a network answers each in its own time."""


def silent(what: str, done: int, total: int) -> None:
    """Progress that nobody watches."""


@dataclass
class Contents:
    """What a state names, found by reading all metadata: parts with their batch, files with late rows, what is `kept`
    to correct files by (by its key, with such a file), what only published tables name, how many objects that is, and
    what was wrong with them.
    `lost` are the keys of data objects that are missing or of another size."""

    parts: list[tuple[Batch, Part]] = field(default_factory=list)
    late: list[LedgerEntry] = field(default_factory=list)
    kept: dict[str, tuple[LedgerEntry, ObjectRef]] = field(default_factory=dict)
    published: list[ObjectRef] = field(default_factory=list)
    objects: int = 0
    findings: list[Finding] = field(default_factory=list)
    lost: set[str] = field(default_factory=set)


def verify_objects(store: ObjectStore, state: Arrangement) -> Iterator[Finding]:
    """Every object the state names, directly or through another, exists with its size; those of metadata match their
    checksums, and what a batch's record says is what its parts' records add up to."""
    yield from contents(store, state).findings


def contents(store: ObjectStore, state: Arrangement, progress: Progress = silent) -> Contents:
    """Read every metadata object a state names, several at once, and compare data objects with one listing."""
    found = Contents()
    with ThreadPoolExecutor(READERS) as pool:

        def each(what: str, read: Callable[[T], U], items: Sequence[T]) -> Iterator[tuple[T, U | Corruption]]:
            for done, (item, answer) in enumerate(zip(items, pool.map(_tried(read), items), strict=True), start=1):
                progress(what, done, len(items))
                yield item, answer

        _read_tables(store, state, found, each)
        _read_ledger(store, state, found, each)
        _read_kept(store, state, found, each)
        _read_pins(store, state, found, each)
        _read_commit_times(store, state, found, each)
    _compare_with_listing(store, found)
    found.findings += _of_certificates(state)
    return found


def _tried(read: Callable[[T], U]) -> Callable[[T], U | Corruption]:
    """Reads again where the store refuses; Corruption is an answer."""

    def call(item: T) -> U | Corruption:
        try:
            return retried(lambda: read(item), time.sleep)
        except Corruption as error:
            return error

    return call


Each = Callable[..., Iterator[tuple[T, U | Corruption]]]


@dataclass
class Table:
    """A table of parts as far as it can be read: its parts, of how many objects it consists beside the one that names
    it, and what is wrong with an object, by its key."""

    parts: list[Part] = field(default_factory=list)
    more: int = 0
    wrong: dict[str, str] = field(default_factory=dict)

    def add(self, store: ObjectStore, key: str, read: Callable[[], parts_table.Block]) -> None:
        """Take an object, and those below it."""
        try:
            block = read()
        except Corruption as error:
            self.wrong[key] = str(error)
            return
        if isinstance(block, parts_table.PartsTable):
            self.parts += block.parts
            return
        self.more += len(block.blocks)
        for child in block.blocks:
            self.add(store, child.object.key, partial(parts_table.open_child, store, child))


def _table(store: ObjectStore, parts: PartsTable | None) -> Table:
    if not isinstance(parts, ObjectRef):
        return Table(list(parts or ()))
    table = Table()
    table.add(store, parts.key, partial(parts_table.open_block, store, parts))
    return table


def _read_tables(store: ObjectStore, state: Arrangement, found: Contents, each: Each[Batch, Table]) -> None:
    batches = [batch for batch in state.batches if batch.parts]
    found.objects += sum(isinstance(batch.parts, ObjectRef) for batch in batches)
    for batch, table in each("reading parts tables", lambda batch: _table(store, batch.parts), batches):
        assert isinstance(table, Table), "it says itself what is wrong with it"
        found.objects += table.more
        found.parts += [(batch, part) for part in table.parts]
        found.findings += [Finding("parts table", detail, batch.id, key) for key, detail in table.wrong.items()]
        found.findings += () if table.wrong else _of_batch(batch, table.parts)
    # A drain may have taken over a part from an unsealed batch that has other parts still to come.
    times = Counter((type(batch), part.file.key) for batch, part in found.parts)
    found.findings += [
        Finding("parts named once", f"named {times[type(batch), part.file.key]} times", batch.id, part.file.key)
        for batch, part in found.parts
        if times[type(batch), part.file.key] > 1
    ]


def _read_ledger(
    store: ObjectStore, state: Arrangement, found: Contents, each: Each[ledger.Span, ledger.Block]
) -> None:
    """The runs of the ledger, one height of their trees after the other."""
    spans: list[ledger.Span] = list(state.ledger)
    late: dict[str, LedgerEntry] = {}
    while spans:
        below: list[ledger.Span] = []
        found.objects += sum(isinstance(span.object, ObjectRef) for span in spans)
        for span, block in each("reading the ledger", lambda span: ledger.open_block(store, span), spans):
            if isinstance(block, Corruption):
                found.findings.append(Finding("ledger run", str(block), "", span.object.key))
            elif isinstance(block, LedgerNode):
                below += block.blocks
            else:
                late |= {entry.late.key: entry for entry in _with_replaced(block.entries) if entry.late is not None}
                kept = [entry for entry in block.entries if entry.interval.lower >= state.correctable_from]
                found.kept |= {
                    contribution.parts.key: (entry, contribution.parts)
                    for entry in kept
                    for contribution in entry.contributed
                }
        spans = below
    found.late = list(late.values())  # several runs may have an entry of one file


def _with_replaced(entries: Iterable[LedgerEntry]) -> Iterator[LedgerEntry]:
    """Entries, and those that hold again should a correction be taken out."""
    for entry in entries:
        current: LedgerEntry | None = entry
        while current is not None:
            yield current
            current = current.replaced


def _read_kept(store: ObjectStore, state: Arrangement, found: Contents, each: Each[ObjectRef, Table]) -> None:
    """The tables of what files contributed; their parts are then kept, too. Those of batches were read with these."""
    of_batches = {batch.parts.key for batch in state.batches if isinstance(batch.parts, ObjectRef)}
    files = {part.file.key for _, part in found.parts}
    tables = {key: found.kept.pop(key) for key in list(found.kept)}
    entries = {ref: entry for entry, ref in tables.values()}
    found.objects += len(tables.keys() - of_batches)
    for ref, table in each("reading what files contributed", lambda ref: _table(store, ref), list(entries)):
        assert isinstance(table, Table), "it says itself what is wrong with it"
        found.objects += 0 if ref.key in of_batches else table.more
        batch = entries[ref].batch or ""
        found.findings += [Finding("parts table", detail, batch, key) for key, detail in table.wrong.items()]
        found.kept |= {p.file.key: (entries[ref], p.file) for p in table.parts if p.file.key not in files}


def _read_pins(store: ObjectStore, state: Arrangement, found: Contents, each: Each[Pin, Table]) -> None:
    """The tables of parts that published tables may name, but for those of batches."""
    of_batches = {pin_of(batch.parts).name for batch in state.batches if batch.parts}
    files = {part.file.key for _, part in found.parts} | found.kept.keys()
    pins = {
        pin.name: pin for publication in state.publications for pin in publication.pins if pin.name not in of_batches
    }
    found.objects += sum(isinstance(pin.parts, ObjectRef) for pin in pins.values())
    for _, table in each("reading what is published", lambda pin: _table(store, pin.parts), list(pins.values())):
        assert isinstance(table, Table), "it says itself what is wrong with it"
        found.objects += table.more
        found.findings += [Finding("parts table", detail, "", key) for key, detail in table.wrong.items()]
        found.published += [part.file for part in table.parts if part.file.key not in files]
        files |= {part.file.key for part in table.parts}


def _read_commit_times(
    store: ObjectStore, state: Arrangement, into: Contents, each: Each[CommitRun, list[SealCommit]]
) -> None:
    runs = state.commits.runs
    into.objects += len(runs)
    for run, lines in each("reading commit times", lambda run: commit_runs.read_run(store, run), runs):
        if isinstance(lines, Corruption):
            into.findings.append(Finding("commit times", str(lines), "", run.object.key))


def _compare_with_listing(store: ObjectStore, found: Contents) -> None:
    """Data objects by their sizes: one listing costs less than a question for each of them."""
    named = [(batch.id, "", part.file) for batch, part in found.parts]
    named += [(entry.batch or "", f" of {entry.path}", entry.late) for entry in found.late if entry.late]
    named += [(entry.batch or "", f" of {entry.path}", file) for entry, file in found.kept.values()]
    named += [("", " that a published table names", file) for file in found.published]
    found.objects += len(named)
    folders = sorted({file.key.partition("/")[0] + "/" for _, _, file in named})
    listed = (info for folder in folders for info in retried(partial(_listed, store, folder), time.sleep))
    sizes = {info.key: info.bytes for info in listed}
    for batch, whose, file in named:
        size = sizes.get(file.key)
        if size is None:
            found.findings.append(Finding("object exists", f"{file.key}{whose} is missing", batch, file.key))
        elif size != file.bytes:
            detail = f"{file.key}{whose} has {size} bytes, recorded were {file.bytes}"
            found.findings.append(Finding("object size", detail, batch, file.key))
        if size != file.bytes:
            found.lost.add(file.key)


def _listed(store: ObjectStore, folder: str) -> list[ObjectInfo]:
    return list(store.list(folder))


def _of_batch(batch: Batch, parts: Sequence[Part]) -> Iterator[Finding]:
    """What is recorded of a batch, and what is recorded of its parts."""
    yield from _totals(batch, parts)
    for part in parts:
        firsts = [key for key, _ in part.groups]
        if sum(rows for _, rows in part.groups) != part.rows or any(
            a > b for a, b in pairwise([*firsts, part.last_key])
        ):
            detail = f"its {len(part.groups)} row groups do not ascend by key, or do not have {part.rows} rows"
            yield Finding("row groups", detail, batch.id, part.file.key)
    # What cancels is separate from the rest, in parts of several merges.
    for older, newer in pairwise(part for part in parts if not part.cancels) if isinstance(batch, TraceBatch) else ():
        if newer.first_key < older.last_key:
            detail = f"{newer.file.key} begins at key {newer.first_key}, the part before it ends at {older.last_key}"
            yield Finding("parts disjoint", detail, batch.id)
    yield from _times(batch, parts)


def _totals(batch: Batch, parts: Sequence[Part]) -> Iterator[Finding]:
    found = {
        "part count": len(parts),
        "verified parts": verified(parts),
        "rows": sum(part.rows for part in parts),
        "bytes": sum(part.file.bytes for part in parts),
        "sum": sum(part.digest for part in parts) % DIGEST_MODULUS,
    }
    recorded = {
        "part count": batch.part_count,
        "verified parts": batch.verified_parts,
        "rows": batch.rows,
        "bytes": batch.bytes,
        "sum": batch.digest,
    }
    for rule, value in recorded.items():
        if found[rule] != value:
            yield Finding(rule, f"recorded {value}, its parts give {found[rule]}", batch.id)


def _times(batch: Batch, parts: Sequence[Part]) -> Iterator[Finding]:
    """Bounds of times: an unsealed batch's are its parts', those of the trace's parts are within what it stands for."""
    if isinstance(batch, UnsealedBatch):
        for name, choose in (
            ("first_time", min),
            ("last_time", max),
            ("first_event_time", min),
            ("last_event_time", max),
        ):
            given = choose(getattr(part, name) for part in parts)
            if given != getattr(batch, name):
                detail = f"{name} is recorded as {getattr(batch, name)}, its parts give {given}"
                yield Finding("times as recorded", detail, batch.id)
        return
    first, last = batch.description.first_possible, batch.description.last_possible
    for part in parts:
        if part.first_time < first:
            detail = f"holds time {part.first_time}, before {first}, the first of {batch.description}"
            yield Finding(Invariant.TIMES_FROM_LOWER, detail, batch.id, part.file.key)
        if part.last_time > last:
            detail = f"holds time {part.last_time}, after {last}, the last of {batch.description}"
            yield Finding(Invariant.TIMES_TO_UPPER_OR_SINCE, detail, batch.id, part.file.key)


def _of_certificates(state: Arrangement) -> Iterable[Finding]:
    alive = {batch.id for batch in state.batches} | {snapshot.batch for snapshot in state.snapshots}
    alive |= {reading.id for reading in state.empty}
    for certificate in state.certificates:
        if certificate.batch not in alive:
            yield Finding("certificates of live batches", f"{certificate.suite} certifies it", certificate.batch)


def late_objects(found: Contents) -> list[tuple[LedgerEntry, ObjectRef]]:
    """The objects of late rows that are there to be read, each with its file's entry."""
    return [(entry, entry.late) for entry in found.late if entry.late and entry.late.key not in found.lost]
