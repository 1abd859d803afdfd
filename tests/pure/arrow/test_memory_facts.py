"""Bounded memory, measured as in test_memory.py: facts that are compared with an earlier reading, or merged."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from benchmarks.measure import in_fresh_process
from tests.pure.arrow.samples import KEY, collection
from tests.support.measured import Measure
from tests.support.memory import peak_bytes
from tidemark.arrow.kernels.remember import KeptTally, remaining_facts
from tidemark.arrow.kernels.restate import restatements
from tidemark.arrow.parts.writer import PartWriter
from tidemark.arrow.rows.schema import facts_schema
from tidemark.model.batch import Part
from tidemark.model.collection import Column, ColumnType, Envelope
from tidemark.model.frontier import IDENTITY
from tidemark.model.interval import Interval
from tidemark.plan.tasks import Contributed, KeyRange, RememberTask, Reread, RereadTask
from tidemark.storage.stores.local import LocalStore

pytestmark = [pytest.mark.pure, pytest.mark.measured]

OF = collection(Envelope.UPSERT, key=KEY[:1], value=(Column("word", ColumnType.STRING),))
WIDE, GROUP, BUFFERED = 400, 1_000, 10_000
LITTLE, MUCH = 20_000, 200_000
"""Rows of the input: what fills all buffers, and ten times that."""
ALLOWED = 25 * 2**20


def written(store: LocalStore, name: str, rows: int) -> tuple[Part, ...]:
    schema = facts_schema(OF)
    with PartWriter(store, name, schema, key_width=1, facts=True, group_rows=GROUP) as writer:
        for start in range(0, rows, GROUP):
            numbers = pa.array(range(start, start + GROUP), pa.int64())
            words = pa.array([f"{row % 7}".ljust(WIDE, "w") for row in range(GROUP)])
            gone, nothing = pa.array([False] * GROUP), pa.nulls(GROUP, pa.int64())
            columns = [numbers, words, gone, numbers, numbers, nothing, pa.array(["f"] * GROUP), numbers]
            writer.write(pa.RecordBatch.from_arrays(columns, schema=schema))
        return writer.close()


def remembering(store: LocalStore, parts: tuple[Part, ...]) -> None:
    task, tally = RememberTask(OF, parts, KeyRange(), 0, "out"), KeptTally()
    left = sum(rows.num_rows for rows in remaining_facts(store, task, tally, buffered_rows=BUFFERED))
    assert left == tally.rows == sum(part.rows for part in parts)


def restating(store: LocalStore, parts: tuple[Part, ...]) -> None:
    """The file says the same again."""
    reread, earlier = (Reread("f", None, 0, 0, 0),), (Contributed(parts, ((0, 0),)),)
    task = RereadTask(OF, Interval(0, 1), reread, earlier, 10**6, IDENTITY, "c", "out")
    assert list(restatements(store, task, [], parts, buffered_rows=BUFFERED)) == []


def grown(work: Callable[[LocalStore, tuple[Part, ...]], None], root: str) -> int:
    """Bytes by which the peak of much is above that of little."""
    store = LocalStore(root)
    little, much = written(store, "little", LITTLE), written(store, "much", MUCH)
    work(store, little)
    before = peak_bytes()
    work(store, much)
    return peak_bytes() - before


@pytest.mark.parametrize("work", [remembering, restating])
def test_more_facts_than_memory_stay_within_it(tmp_path: Any, work: Callable[..., None], measure: Measure) -> None:
    used = in_fresh_process(grown, work, str(tmp_path))
    assert ALLOWED < (MUCH - LITTLE) * WIDE / 2
    measure.below("more at the peak", used / 2**20, ALLOWED / 2**20, "MiB")
