"""A batch's parts as its table has them, against what the state recorded of the batch."""

from __future__ import annotations

from dataclasses import replace

import pytest

from support.drawn import ref
from tests.pure.arrow.samples import SMALL, of_updates, write
from tidemark.model.arrangement import Arrangement
from tidemark.model.batch import Description, Part, TraceBatch
from tidemark.model.update import Update
from tidemark.storage import parts_table
from tidemark.storage.memory import MemoryStore
from tidemark.storage.verify import verify_objects

pytestmark = pytest.mark.pure


def found(store: MemoryStore, parts: list[Part], **recorded: int) -> list[tuple[str, str]]:
    batch = TraceBatch(
        "b",
        Description(0, 9),
        0,
        sum(part.rows for part in parts),
        sum(part.file.bytes for part in parts),
        sum(part.digest for part in parts) % 2**64,
        parts_table.save(store, f"data/b/{len(list(store.list('')))}.json", parts),
        len(parts),
    )
    state = Arrangement(SMALL, seal=9, trace=(replace(batch, **recorded),))
    return [(finding.rule, finding.subject) for finding in verify_objects(store, state)]


def test_parts_of_the_trace_follow_one_another_by_key_and_add_up():
    store = MemoryStore()
    rows = of_updates(SMALL, [Update((key // 2,), ("w",), 1, key, 1) for key in range(12)])
    first, second, third = write(store, SMALL, rows, group_rows=2, part_rows=5)
    assert found(store, [first, second, third]) == []
    assert found(store, [second, first, third]) == [("parts disjoint", "b")]
    assert found(store, [first, third], rows=9) == [("rows", "b")]
    assert found(store, [first, first]) == [("parts disjoint", "b")]
    gone = replace(third, file=ref("data/b/gone.parquet"))
    assert found(store, [first, second, gone]) == [("object exists", "b")]
