"""A batch's parts as its table has them, against what the state recorded of the batch."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from support.drawn import ref
from tests.pure.arrow.samples import SMALL, of_updates, write
from tidemark.model.arrangement import Arrangement, Certificate
from tidemark.model.batch import Description, Part, TraceBatch, UnsealedBatch
from tidemark.model.interval import Interval
from tidemark.model.update import Update
from tidemark.storage.sidecars import parts_table
from tidemark.storage.stores.memory import MemoryStore
from tidemark.storage.verify.collection import verify_objects

pytestmark = pytest.mark.pure


def found(store: MemoryStore, parts: list[Part], **recorded: Any) -> list[tuple[str, str]]:
    batch = TraceBatch(
        "b",
        Description(0, 9),
        0,
        sum(part.rows for part in parts),
        sum(part.file.bytes for part in parts),
        sum(part.digest for part in parts) % 2**64,
        parts_table.save(store, f"data/b/{len(list(store.list('')))}.json", parts),
        len(parts),
        verified_parts=len(parts),
    )
    batch = replace(batch, **recorded)
    before = TraceBatch("a", Description(0, lower), 0, 0, 0, 0) if (lower := batch.description.lower) else None
    state = Arrangement(SMALL, complete_below=10, seal=10, trace=(*([before] if before else []), batch))
    return [(finding.rule, finding.subject) for finding in verify_objects(store, state)]


def test_parts_of_the_trace_follow_one_another_by_key_and_add_up():
    store = MemoryStore()
    rows = of_updates(SMALL, [Update((key // 2,), ("w",), 1, key, 1) for key in range(12)])
    first, second, third = write(store, SMALL, rows, group_rows=2, part_rows=5)
    assert found(store, [first, second, third]) == []
    assert found(store, [second, first, third]) == [("parts disjoint", "batch b")]
    assert found(store, [first, third], rows=9) == [("rows", "batch b")]
    twice = [("parts named once", f"batch b, {first.file.key}")] * 2
    assert found(store, [first, first]) == [("parts disjoint", "batch b"), *twice]
    gone = replace(third, file=ref("data/b/gone.parquet"))
    assert found(store, [first, second, gone]) == [("object exists", "batch b, data/b/gone.parquet")]
    longer = replace(third, file=replace(third.file, bytes=third.file.bytes + 1))
    assert found(store, [first, second, longer]) == [("object size", f"batch b, {third.file.key}")]


def test_what_is_recorded_of_parts_fits_together_and_their_batch():
    store = MemoryStore()
    rows = of_updates(SMALL, [Update((key,), ("w",), 3, 3, 1) for key in range(4)])
    (part,) = write(store, SMALL, rows, group_rows=2)
    of = f"batch b, {part.file.key}"
    assert found(store, [replace(part, groups=part.groups[::-1])]) == [("row groups", of)]
    assert found(store, [replace(part, groups=part.groups[:1])]) == [("row groups", of)]
    assert found(store, [replace(part, last_time=9)]) == [("times to upper or since", of)]
    assert found(store, [replace(part, last_time=9)], description=Description(4, 10)) == [("times from lower", of)]
    unsealed = UnsealedBatch(
        "u",
        Interval(0, 9),
        parts_table.save(store, "data/u/p.json", [part]),
        1,
        4,
        part.file.bytes,
        part.digest,
        *(3, 4, 3, 3),
        verified_parts=1,
    )
    state = Arrangement(SMALL, unsealed=(unsealed,), certificates=(Certificate("u", "s"), Certificate("gone", "s")))
    assert [(one.rule, one.subject) for one in verify_objects(store, state)] == [
        ("times as recorded", "batch u"),
        ("certificates of live batches", "batch gone"),
    ]
