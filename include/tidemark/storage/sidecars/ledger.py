"""The ledger of source files as stored: sorted runs, newest last, merged by levels so that a look-up stays short.

A run is a tree of immutable objects. A leaf is a list of at most LEAF entries, ascending by path; a node names at most
FAN_OUT children, each with the span of its paths. A look-up opens the nodes and leaves that can hold a path, and no
others; a merge streams: neither holds more than a few objects in memory, however many files were ever counted.
"""

from __future__ import annotations

import heapq
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice, pairwise
from typing import Annotated, Literal

from pydantic import Discriminator

from tidemark.errors import Corruption
from tidemark.model.arrangement import LedgerRun, SmallLeaf
from tidemark.model.batch import ObjectRef
from tidemark.model.ledger import LedgerEntry, Status, late_identity
from tidemark.storage.documents.codec import encode
from tidemark.storage.documents.upgrade import Kind
from tidemark.storage.sidecars import parts_table, sidecar
from tidemark.storage.sidecars.tree import Tree
from tidemark.storage.stores.store import ObjectStore

FAN_IN = 8
"""Neighbouring runs of one level that are merged into one of the next: ingest N leaves at most 8 log8 N runs."""
LEAF = 1000
"""Entries in a leaf, some 300 kB: what one look-up of one path reads at most of a run, beside the nodes above it."""
FAN_OUT = 256
"""Children of a node, some 80 kB: a million files are two nodes above their leaves, a billion three."""


@dataclass(frozen=True)
class LedgerBlock:
    """A child of a node: its object, the entries below it, the span of their paths, and how many of them name objects:
    of late rows, or of what may be corrected."""

    object: ObjectRef
    entries: int
    first_path: str
    last_path: str
    late: int = 0


@dataclass(frozen=True)
class LedgerLeaf:
    """Entries of a run, ascending by path."""

    entries: tuple[LedgerEntry, ...]
    kind: Literal["leaf"] = "leaf"


@dataclass(frozen=True)
class LedgerNode:
    """The root or an inner object of a run of more than one leaf; of `height` 1 if its children are leaves."""

    height: int
    blocks: tuple[LedgerBlock, ...]
    kind: Literal["node"] = "node"


Block = LedgerLeaf | LedgerNode
"""What an object of a run holds."""
SHAPE = Annotated[Block, Discriminator("kind")]
Span = LedgerRun | LedgerBlock


def save_run(store: ObjectStore, key: str, entries: Iterable[LedgerEntry], *, level: int = 0) -> LedgerRun:
    """Entries, in whatever order, as one run; one that is not small is written under a fresh key. `entries` must not be
    empty."""
    ordered = tuple(sorted(entries, key=lambda entry: entry.path))
    leaf = LedgerLeaf(ordered)
    if len(ordered) <= LEAF and len(encode(leaf)) <= parts_table.SMALL:
        return LedgerRun(SmallLeaf(key, ordered), len(ordered), ordered[0].path, ordered[-1].path, level)
    return write_run(store, key, iter(ordered), level=level)


def merge_runs(store: ObjectStore, key: str, runs: Sequence[LedgerRun]) -> LedgerRun:
    """Replace neighbouring runs, oldest first, by one of the next level that holds the newest entry of each path."""
    return write_run(store, key, entries(store, runs), level=runs[0].level + 1)


def write_run(store: ObjectStore, key: str, ordered: Iterator[LedgerEntry], *, level: int) -> LedgerRun:
    """Write entries that ascend by path as one run: its root under the fresh `key`, the rest under names made of it.

    Holds one leaf and one node of each height in memory.
    """
    leaf = tuple(islice(ordered, LEAF))
    following = tuple(islice(ordered, LEAF))
    if not following:
        root = _leaf(store, key, leaf)
    else:
        tree: Tree[LedgerBlock] = Tree(key.removesuffix(".json"), FAN_OUT, partial(_node, store))
        while leaf:
            tree.add(_leaf(store, tree.fresh_key(), leaf))
            leaf, following = following, tuple(islice(ordered, LEAF))
        root = tree.finish(key)
    return LedgerRun(root.object, root.entries, root.first_path, root.last_path, level)


def load_run(store: ObjectStore, run: LedgerRun) -> tuple[LedgerEntry, ...]:
    """All entries of one run, in memory."""
    return tuple(scan(store, run))


def scan(store: ObjectStore, run: Span, *, below: str = "") -> Iterator[LedgerEntry]:
    """The entries of one run whose paths begin with `below`, ascending by path.

    Raises:
        Corruption: An object is not what its parent recorded.
    """
    if run.last_path < below or run.first_path[: len(below)] > below:
        return
    block = open_block(store, run)
    if isinstance(block, LedgerNode):
        for child in block.blocks:
            yield from scan(store, child, below=below)
    else:
        yield from (entry for entry in block.entries if entry.path.startswith(below))


def known(store: ObjectStore, runs: Sequence[LedgerRun], paths: Sequence[str]) -> dict[str, LedgerEntry]:
    """The newest entry of each of `paths` that has one; opens only objects that can hold it."""
    found: dict[str, LedgerEntry] = {}
    wanted = sorted(set(paths))
    for run in reversed(runs):
        found.update((entry.path, entry) for entry in _looked_up(store, run, wanted))
        wanted = [path for path in wanted if path not in found]
    return found


def entries(store: ObjectStore, runs: Sequence[LedgerRun], *, below: str = "") -> Iterator[LedgerEntry]:
    """The newest entry of every path that begins with `below`, ascending by path; holds one leaf of each run."""
    last: str | None = None
    streams = (_aged(scan(store, run, below=below), age) for age, run in enumerate(reversed(runs)))
    for path, _, entry in heapq.merge(*streams, key=lambda item: item[:2]):
        if path != last:
            yield entry
        last = path


def replays(
    store: ObjectStore,
    runs: Sequence[LedgerRun],
    of: Iterable[LedgerEntry],
    *,
    claimed: Mapping[str, LedgerEntry] | None = None,
) -> dict[str, tuple[LedgerEntry, ...]]:
    """The replays that count of each of some entries, by its path: that of its late object, that of what this left, and
    so on. `claimed` are entries, by path, that are to apply instead of the stored ones."""
    found: dict[str, tuple[LedgerEntry, ...]] = {}
    letters: dict[str, str] = {}
    for entry in of:
        found[entry.path] = ()
        letters |= {late_identity(entry.late): entry.path} if entry.late is not None else {}
    while letters:
        further: dict[str, str] = {}
        for name, replay in (known(store, runs, list(letters)) | dict(claimed or {})).items():
            if name in letters and replay.status is Status.INGESTED:
                found[letters[name]] += (replay,)
                further |= {late_identity(replay.late): letters[name]} if replay.late is not None else {}
        letters = further
    return found


def named_objects(store: ObjectStore, run: Span, *, corrected_from: int = 0) -> Iterator[ObjectRef]:
    """Every object a run names: those it consists of, those of late rows, and tables of the parts that hold what files
    contributed, of intervals that begin at `corrected_from` or later. Opens nodes, and leaves that name one."""
    if isinstance(run.object, ObjectRef):
        yield run.object
    block = open_block(store, run)
    if isinstance(block, LedgerNode):
        for child in block.blocks:
            opened = child.late or block.height > 1
            yield from named_objects(store, child, corrected_from=corrected_from) if opened else (child.object,)
    else:
        for entry in block.entries:
            yield from _named_by(entry, corrected_from)


def _named_by(entry: LedgerEntry, corrected_from: int) -> Iterator[ObjectRef]:
    if entry.late is not None:
        yield entry.late
    if entry.interval.lower >= corrected_from:
        yield from (contribution.parts for contribution in entry.contributed)
    if entry.replaced is not None:
        yield from _named_by(entry.replaced, corrected_from)


def due_for_merge(runs: Sequence[LedgerRun]) -> tuple[LedgerRun, ...]:
    """The oldest FAN_IN neighbouring runs of one level, or nothing."""
    for start in range(len(runs) - FAN_IN + 1):
        window = tuple(runs[start : start + FAN_IN])
        if len({run.level for run in window}) == 1:
            return window
    return ()


def _leaf(store: ObjectStore, key: str, ordered: tuple[LedgerEntry, ...]) -> LedgerBlock:
    ref = sidecar.write(store, key, LedgerLeaf(ordered))
    late = sum(any(True for _ in _named_by(entry, 0)) for entry in ordered)
    return LedgerBlock(ref, len(ordered), ordered[0].path, ordered[-1].path, late)


def _node(store: ObjectStore, key: str, height: int, blocks: Sequence[LedgerBlock]) -> LedgerBlock:
    ref = sidecar.write(store, key, LedgerNode(height, tuple(blocks)))
    counts = sum(block.entries for block in blocks), sum(block.late for block in blocks)
    return LedgerBlock(ref, counts[0], blocks[0].first_path, blocks[-1].last_path, counts[1])


def open_block(store: ObjectStore, span: Span) -> Block:
    """The object of a run or of a block; Corruption if it is not what was recorded of it."""
    if isinstance(span.object, SmallLeaf):
        block: Block = LedgerLeaf(span.object.held)
    else:
        block = sidecar.read(store, span.object, Kind.LEDGER, SHAPE)
    if isinstance(block, LedgerNode):
        children, paths = block.blocks, [path for child in block.blocks for path in (child.first_path, child.last_path)]
        count = sum(child.entries for child in children)
    else:
        paths, count = [entry.path for entry in block.entries], len(block.entries)
    found = (count, paths[0], paths[-1]) if paths else (0, "", "")
    recorded = (span.entries, span.first_path, span.last_path)
    if found != recorded:
        raise Corruption(f"{span.object.key} holds {found}, recorded were {recorded} (entries, first and last path)")
    if any(left > right for left, right in pairwise(paths)):
        raise Corruption(f"{span.object.key} does not ascend by path")
    return block


def _looked_up(store: ObjectStore, span: Span, wanted: Sequence[str]) -> Iterator[LedgerEntry]:
    """What a run or block says of paths, which ascend."""
    within = wanted[bisect_left(wanted, span.first_path) : bisect_right(wanted, span.last_path)]
    if not within:
        return
    block = open_block(store, span)
    if isinstance(block, LedgerNode):
        for child in block.blocks:
            yield from _looked_up(store, child, within)
    else:
        asked = set(within)
        yield from (entry for entry in block.entries if entry.path in asked)


def _aged(stream: Iterator[LedgerEntry], age: int) -> Iterator[tuple[str, int, LedgerEntry]]:
    """Entries with what orders them: by path, of one path the newest run's first."""
    return ((entry.path, age, entry) for entry in stream)
