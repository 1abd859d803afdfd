"""A batch's table of parts: in the state while it is small, because one more object would cost more; else an immutable
object of its own, so that a state stays small whatever a batch holds; and where that would be large a tree of blocks,
of which a read opens those whose hulls meet what it asks for."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated, Literal

from pydantic import Discriminator

from tidemark.errors import Corruption
from tidemark.model import batch
from tidemark.model.batch import ObjectRef, Part, TraceBatch, UnsealedBatch
from tidemark.model.chunk.hull import Hull, hull_of
from tidemark.plan.kinds import plan_of
from tidemark.plan.read import ReadRequest
from tidemark.plan.unsealed import PartsOf, UnsealedRequest
from tidemark.storage.cache import remembered
from tidemark.storage.documents.codec import encode
from tidemark.storage.documents.upgrade import Kind
from tidemark.storage.read_many import read_many
from tidemark.storage.sidecars import sidecar
from tidemark.storage.sidecars.tree import Tree
from tidemark.storage.stores.store import ObjectStore

SMALL = 2_048
"""Bytes of JSON up to which a table, and a leaf of the ledger, is kept in the state: a part of few row groups is 500,
an entry of the ledger 400. At most so many a state has for each live batch."""
WHOLE = 64 * 2**10
"""Bytes of JSON up to which a table is one object: some 28 parts of full size."""
LEAF = 16 * 2**10
"""Bytes of JSON of a leaf, about: a part of full size, with its 61 row groups, is 2,300."""
FAN_OUT = 64
"""Children of a node, some 20 kB: a read of one key among 100,000 row groups opens a root, a node and a leaf."""
DECODED = 9
"""A block takes so many times the bytes of its JSON once it is decoded."""
FEW = 4
"""So many objects of a tree are read or written one after the other."""


@dataclass(frozen=True)
class PartsTable:
    """The parts of a batch, in order of key where it is a trace batch; or some of them, which follow each other."""

    parts: tuple[Part, ...]
    kind: Literal["leaf"] = "leaf"


@dataclass(frozen=True)
class PartsBlock:
    """A child of a node: its object, and the hull of the parts below it."""

    object: ObjectRef
    hull: Hull


@dataclass(frozen=True)
class PartsNode:
    """The root or an inner object of a table that is a tree; of `height` 1 if its children are leaves."""

    height: int
    blocks: tuple[PartsBlock, ...]
    kind: Literal["node"] = "node"


Block = PartsTable | PartsNode
"""What an object of a table holds."""
SHAPE = Annotated[Block, Discriminator("kind")]
Meets = Callable[[Hull], bool]
"""Whether a read needs a part that has these bounds: what it says no to is not opened."""


def everything(_: Hull) -> bool:
    """What meets every hull."""
    return True


def save(store: ObjectStore, key: str, parts: Sequence[Part]) -> batch.PartsTable:
    """A parts table as a batch has it; one that is not small is written under a fresh key."""
    table = PartsTable(tuple(parts))
    return table.parts if len(encode(table)) <= SMALL else save_separately(store, key, parts)


def save_separately(store: ObjectStore, key: str, parts: Sequence[Part]) -> ObjectRef:
    """A parts table that others than its batch name too: an object whatever its size, or the root of a tree."""
    leaves = list(_leaves(parts))
    if len(leaves) < 2:
        return sidecar.write(store, key, PartsTable(tuple(parts)))
    tree: Tree[PartsBlock] = Tree(key.removesuffix(".json"), FAN_OUT, partial(_write_node, store))
    named = [(tree.fresh_key(), leaf) for leaf in leaves]
    for block in read_many(lambda one: _write_leaf(store, *one), named, few=FEW):
        tree.add(block)
    return tree.finish(key).object


def _leaves(parts: Sequence[Part]) -> Iterator[tuple[Part, ...]]:
    """The parts by leaves; all in one, if they are few."""
    sizes = [len(encode(part)) for part in parts]
    if sum(sizes) <= WHOLE:
        yield tuple(parts)
        return
    start = leaf_size = 0
    for at, size in enumerate(sizes):
        if leaf_size and leaf_size + size > LEAF:
            yield tuple(parts[start:at])
            start, leaf_size = at, 0
        leaf_size += size
    yield tuple(parts[start:])


def _write_leaf(store: ObjectStore, key: str, parts: tuple[Part, ...]) -> PartsBlock:
    leaf = PartsTable(parts)
    return PartsBlock(sidecar.write(store, key, leaf), _hull(leaf))


def _write_node(store: ObjectStore, key: str, height: int, blocks: Sequence[PartsBlock]) -> PartsBlock:
    node = PartsNode(height, tuple(blocks))
    return PartsBlock(sidecar.write(store, key, node), _hull(node))


def _hull(block: Block) -> Hull:
    if isinstance(block, PartsTable):
        return hull_of(block.parts, parts=len(block.parts), bytes=sum(part.file.bytes for part in block.parts))
    hulls = [child.hull for child in block.blocks]
    return hull_of(hulls, parts=sum(hull.parts for hull in hulls), bytes=sum(hull.bytes for hull in hulls))


def load(store: ObjectStore, table: batch.PartsTable) -> tuple[Part, ...]:
    """The parts a batch's table names; Corruption if the table is not what was recorded."""
    return load_some(store, table, everything)


def load_some(store: ObjectStore, table: batch.PartsTable, meets: Meets) -> tuple[Part, ...]:
    """The parts of a table in blocks whose hulls meet something, in order: all that it can need, and some others."""
    if not isinstance(table, ObjectRef):
        return table
    return tuple(
        part for _, block in blocks(store, table, meets) if isinstance(block, PartsTable) for part in block.parts
    )


def blocks(store: ObjectStore, table: ObjectRef, meets: Meets = everything) -> Iterator[tuple[ObjectRef, Block]]:
    """The objects of a table that meet something, from the root on, each before those below it, and leaves in order."""
    root = open_block(store, table)
    yield table, root
    if isinstance(root, PartsNode):
        yield from _below(store, root, meets)


def _below(store: ObjectStore, node: PartsNode, meets: Meets) -> Iterator[tuple[ObjectRef, Block]]:
    children = [child for child in node.blocks if meets(child.hull)]
    opened = read_many(lambda child: open_child(store, child), children, few=FEW)
    for child, block in zip(children, opened, strict=True):
        yield child.object, block
        if isinstance(block, PartsNode):
            yield from _below(store, block, meets)


def objects(store: ObjectStore, table: ObjectRef) -> Iterator[ObjectRef]:
    """Every object that a table names: those it consists of, and the files of its parts."""
    for ref, block in blocks(store, table):
        yield ref
        yield from (part.file for part in block.parts) if isinstance(block, PartsTable) else ()


def open_block(store: ObjectStore, ref: ObjectRef) -> Block:
    """The root of a table; Corruption if the object is not what was recorded."""

    def read() -> Block:
        block: Block = sidecar.read(store, ref, Kind.PARTS, SHAPE)
        return block

    return remembered(store, ("parts", ref.sha256), read, lambda _: ref.bytes * DECODED)


def open_child(store: ObjectStore, child: PartsBlock) -> Block:
    """The object below a node; Corruption if it, or its hull, is not what was recorded: a hull that is too narrow would
    hide parts."""
    block = open_block(store, child.object)
    if (found := _hull(block)) != child.hull:
        raise Corruption(f"{child.object.key} has parts of {_described(found)}, recorded were {_described(child.hull)}")
    return block


def _described(hull: Hull) -> str:
    return (
        f"{hull.rows} rows in {hull.parts} parts, keys {list(hull.first_key)} to {list(hull.last_key)}, times "
        f"{hull.first_time} to {hull.last_time}, event times {hull.first_event_time} to {hull.last_event_time}"
        + "".join(f", timeline {each.id} from {each.bounds}" for each in hull.timelines)
    )


def parts_of(store: ObjectStore, batches: Iterable[UnsealedBatch | TraceBatch]) -> tuple[Part, ...]:
    """The parts of several batches, in order."""
    return tuple(part for batch in batches if batch.parts is not None for part in load(store, batch.parts))


def opened(store: ObjectStore, request: UnsealedRequest, meets: Meets = everything) -> tuple[UnsealedRequest, PartsOf]:
    """The parts that a request for unsealed rows needs, and the request as these narrow it down."""
    if request.is_empty:
        return request, {}
    parts = _tables(store, request.batches, meets)
    request = request.among(parts)
    return request, parts | _tables(store, request.others, meets)


def opened_read(store: ObjectStore, request: ReadRequest) -> tuple[ReadRequest, PartsOf]:
    """The parts that a read needs, and the request as these narrow it down. Blocks are opened that can have such parts;
    of unsealed rows that are resolved, and of the trace that they are resolved against, all are."""
    resolves = plan_of(request.collection.kind).resolves
    unsealed, parts = opened(store, request.unsealed, everything if resolves else request.reaches)
    missing = [batch for batch in request.trace if batch.id not in parts]
    return replace(request, unsealed=unsealed), {**parts, **_tables(store, missing, request.reaches)}


def _tables(
    store: ObjectStore, batches: Iterable[UnsealedBatch | TraceBatch], meets: Meets
) -> dict[str, tuple[Part, ...]]:
    return {batch.id: load_some(store, batch.parts, meets) if batch.parts else () for batch in batches}


def is_one(ref: ObjectRef) -> bool:
    """Whether a reference is to a table of parts, by its name."""
    return ref.key.rpartition("/")[2].startswith("parts-")
