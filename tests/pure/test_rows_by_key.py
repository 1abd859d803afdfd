"""Rows of an input that this process builds a collection of, all rows of a key at a time."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidemark.errors import InvalidUsage
from tidemark.spark.derive.here import rows as module
from tidemark.spark.derive.here.rows import RowsByKey

pytestmark = pytest.mark.pure
KEYS = st.lists(st.lists(st.integers(0, 6), max_size=9), max_size=9)


def batches_of(keys: list[list[int]]) -> Iterator[pa.RecordBatch]:
    for batch in keys:
        yield pa.record_batch({"n": pa.array(batch, pa.int64()), "k": pa.array(batch, pa.int64())})


def pieces(keys: list[list[int]], *, in_order: bool) -> list[list[int]]:
    """The keys of each piece of rows."""
    made = RowsByKey(["k"], ["k"], lambda rows: iter(rows.to_batches()), in_order)
    return [piece.column("k").to_pylist() for piece in made.updates(batches_of(keys))]


@given(KEYS, st.integers(1, 9))
def test_all_rows_of_a_key_are_in_one_piece(keys: list[list[int]], at_a_time: int) -> None:
    everything = sorted(key for batch in keys for key in batch)
    ordered = [everything[at : at + 4] for at in range(0, len(everything), 4)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "AT_A_TIME", at_a_time)
        for cut in (pieces(keys, in_order=False), pieces(ordered, in_order=True)):
            assert [key for piece in cut for key in piece] == everything
            assert len(set(everything)) == sum(len(set(piece)) for piece in cut)


def test_rows_that_come_in_order_are_not_gathered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "AT_A_TIME", 2)
    read = list[int]()

    def come() -> Iterator[pa.RecordBatch]:
        for at, rows in enumerate(batches_of([[1, 2], [3, 4], [5, 6]])):
            read.append(at)
            yield rows

    updates = RowsByKey(["k"], ["k"], lambda rows: iter(rows.to_batches()), True).updates(come())
    assert next(updates).column("k").to_pylist() == [1]
    assert read == [0]


@pytest.mark.parametrize("in_order", [False, True])
def test_a_key_of_too_many_rows_is_refused(monkeypatch: pytest.MonkeyPatch, in_order: bool) -> None:
    monkeypatch.setattr(module, "ONE_KEY", 3)
    assert pieces([[1, 1, 1], [2]], in_order=in_order) == [[1, 1, 1, 2]]
    with pytest.raises(InvalidUsage, match="4 rows of one key"):
        pieces([[1, 1, 1], [1, 2]], in_order=in_order)


def test_rows_that_are_gathered_are_bounded_by_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "BUILT_BYTES", 24)
    assert pieces([[2, 1, 1]], in_order=False) == [[1, 1], [2]]
    with pytest.raises(InvalidUsage, match="kept of rows"):
        pieces([[3, 1], [1, 2]], in_order=False)
