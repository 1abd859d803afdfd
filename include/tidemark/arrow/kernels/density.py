"""How dense source files are, found by decoding the beginning of one: for estimates of what reading them takes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from tidemark.arrow.decode.content import Content
from tidemark.arrow.decode.packed import beginning
from tidemark.arrow.decode.parquetfile import opened
from tidemark.arrow.decode.source import BadFile, decode
from tidemark.arrow.kernels.letters import dead_letters
from tidemark.errors import TidemarkError
from tidemark.model.collection import Collection, Format
from tidemark.model.dialect import compression_of
from tidemark.model.ledger import SourceFile
from tidemark.plan.task_size import Density
from tidemark.plan.tasks import DeadLetters, IngestTask, ReplayTask, RereadTask
from tidemark.storage.landing import open_source
from tidemark.storage.stores.store import ObjectStore

SAMPLED_BYTES = 2**20
"""Fewer bytes of source files are not worth a sample: whatever they are taken for, they are small, or decoded in vain
for a second."""
HEAD_BYTES = 64 * 2**10
"""Of a file of texts: hundreds of rows, decoded in milliseconds."""
MOST_UNPACKED_BYTES = 2**20
"""Of a compressed file, and of what these are unpacked to: a block of bz2 is nearly as large."""


def density_of(store: ObjectStore, tasks: Sequence[Any]) -> Density | None:
    """Sample the largest source file of tasks.

    Returns:
        None where they have few bytes of source files, or the file cannot be read: whoever reads it says why.
    """
    sources = [(task.collection, source) for task in tasks for source in _sources(task)]
    if sum(source.bytes for _, source in sources) < SAMPLED_BYTES:
        return None
    collection, largest = max(sources, key=lambda source: source[1].bytes)
    try:
        if isinstance(largest, DeadLetters):
            return _of_letters(store, largest)
        if collection.landed.source.format is Format.PARQUET:
            return _of_parquet(largest, collection)
        return _of_text(largest, collection)
    except (BadFile, TidemarkError, OSError, pa.ArrowException):
        return None


def _sources(task: Any) -> Iterator[SourceFile | DeadLetters]:
    match task:
        case IngestTask(files=files):
            yield from files
        case RereadTask(files=files):
            yield from (again.file for again in files if again.file is not None)
        case ReplayTask(sources=sources):
            yield from sources


def _of_text(file: SourceFile, collection: Collection) -> Density | None:
    """By the rows of the first HEAD_BYTES, as far as these end in whole lines."""
    compression = compression_of(file.path, collection.landed.source.compression)
    with open_source(file.path) as source:
        head = source.read(HEAD_BYTES if compression == "none" else MOST_UNPACKED_BYTES)
    content = Content(file, "", len(head), pa.py_buffer(head), source=collection.landed.source)
    text, size, is_packed = head, len(head), content.compression != "none"
    if is_packed:
        text, size = beginning(content.open(), content.compression, MOST_UNPACKED_BYTES)
        collection = _unpacked(collection)
    whole = text[: text.rfind(b"\n") + 1] if is_packed or file.bytes > len(head) else text
    blocks = list(decode(Content(file, "", len(whole), pa.py_buffer(whole)), collection))
    return _density(blocks, sum(block.num_rows for block in blocks), size * len(whole) // max(1, len(text)))


def _unpacked(collection: Collection) -> Collection:
    """A collection as if its files were not compressed."""
    source = replace(collection.landed.source, compression="none")
    return replace(collection, origin=replace(collection.landed, source=source))


def _of_parquet(file: SourceFile, collection: Collection) -> Density | None:
    """By the first block of rows; the footer says how many rows there are."""
    content = Content(file, "", file.bytes, None)
    with opened(content) as parquet:
        rows = parquet.footer.metadata.num_rows
    return _density([block] if (block := next(decode(content, collection), None)) else [], rows, file.bytes)


def _of_letters(store: ObjectStore, letters: DeadLetters) -> Density | None:
    with store.open_input(letters.object.key) as native:
        rows = pq.read_metadata(native).num_rows
    block = next(dead_letters(store, letters.object), None)
    return _density([block] if block else [], rows, letters.bytes)


def _density(blocks: Sequence[pa.RecordBatch], rows: int, size: int) -> Density | None:
    """That of `size` bytes with so many rows, of which `blocks` were decoded."""
    decoded = sum(block.num_rows for block in blocks)
    if not decoded or not size:
        return None
    row_bytes = sum(block.nbytes for block in blocks) / decoded
    return Density(rows / size, rows * row_bytes / size)
