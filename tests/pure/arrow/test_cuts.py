"""Cutting rows by bytes: the same rows, in order, in pieces that are no larger than asked."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.pure.arrow.samples import APPEND, SMALL, of_updates, rows, updates
from tests.support.budget import laws
from tidemark.arrow.rows.columns import row_bytes
from tidemark.arrow.rows.cuts import compacted, gathered, ranks_of, sorted_pieces, wholes
from tidemark.arrow.rows.order import last_start, ranks, sort
from tidemark.arrow.rows.schema import sort_columns
from tidemark.errors import InvalidUsage
from tidemark.model.update import Update

pytestmark = pytest.mark.pure

ORDER = sort_columns(APPEND, facts=False)
some_batches = st.lists(updates(APPEND, most=8), min_size=1, max_size=4).map(
    lambda batches: [of_updates(APPEND, some) for some in batches]
)


def whole(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    return pa.concat_batches(batches)


@laws
@given(some_batches, st.integers(1, 900), st.booleans())
def test_pieces_in_order_are_the_rows_in_order(batches: list[pa.RecordBatch], most: int, chunked: bool) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tidemark.arrow.rows.cuts.NARROW", 0 if chunked else 1024)
        found = list(sorted_pieces(batches, ORDER, most=most))
    assert [row for piece in found for row in rows(piece)] == rows(sort(whole(batches), ORDER))
    for piece in found:
        assert piece.num_rows <= 1 or row_bytes(piece).sum() <= most or piece.nbytes <= most


@laws
@given(some_batches, st.integers(1, 900), st.integers(1, 3))
def test_rows_equal_in_some_columns_stay_together(batches: list[pa.RecordBatch], most: int, width: int) -> None:
    found = list(sorted_pieces(batches, ORDER, together=ORDER[:width], most=most))
    assert [row for piece in found for row in rows(piece)] == rows(sort(whole(batches), ORDER))
    starts = [rows(piece.select(list(ORDER[:width])))[0] for piece in found if piece.num_rows]
    ends = [rows(piece.select(list(ORDER[:width])))[-1] for piece in found if piece.num_rows]
    assert all(end != start for end, start in zip(ends[:-1], starts[1:], strict=True))


@laws
@given(some_batches, st.integers(1, 900))
def test_ranks_over_batches_are_those_over_all_rows(batches: list[pa.RecordBatch], most: int) -> None:
    assert ranks_of(batches, ORDER, most).tolist() == ranks(whole(batches), ORDER).tolist()


@laws
@given(some_batches, st.data())
def test_any_rows_are_gathered_in_any_order(batches: list[pa.RecordBatch], data: st.DataObject) -> None:
    together = whole(batches)
    wanted = data.draw(st.lists(st.integers(0, together.num_rows - 1), max_size=12)) if together.num_rows else []
    found = gathered(batches, np.array(wanted, np.int64))
    assert rows(found) == [rows(together)[at] for at in wanted]


def test_a_small_slice_lets_its_batch_go() -> None:
    wide = of_updates(SMALL, [Update((n,), ("w" * 10_000,), n, n, 1) for n in range(50)])
    few, many = wide.slice(7, 2), wide.slice(0, 40)
    assert rows(compacted(few, wide)) == rows(few)
    assert compacted(few, wide).get_total_buffer_size() < 30_000 < few.get_total_buffer_size()
    assert compacted(many, wide) is many


@given(st.lists(st.lists(st.integers(0, 5), max_size=6), max_size=8), st.integers(1, 9))
def test_wholes_are_all_rows_and_cut_nothing_that_belongs_together(drawn: list[list[int]], least: int) -> None:
    several = [sorted(some) for some in drawn]
    in_order = sorted(key for some in several for key in some)
    bounds = np.cumsum([0, *map(len, several)]).tolist()
    batches = [pa.record_batch({"k": pa.array(in_order[a:b], pa.int64())}) for a, b in pairwise(bounds)]
    found = [piece.column(0).to_pylist() for piece in wholes(batches, ["k"], rows=least, room=2**20)]
    assert [key for piece in found for key in piece] == in_order
    assert all(one[-1] < other[0] for one, other in pairwise(found))


@pytest.mark.parametrize("last", [1, 3, 1_023, 1_024, 1_025, 2_000])
def test_the_first_of_the_last_rows(last: int) -> None:
    rows = pa.record_batch({"j": pa.array([1] * 2_000, pa.int64()), "k": pa.array(np.arange(2_000) >= 2_000 - last)})
    assert last_start(rows, ["j", "k"]) == 2_000 - last
    assert last_start(rows, []) == 0


def test_what_belongs_together_and_is_too_large_is_refused() -> None:
    batches = [pa.record_batch({"k": pa.array([7] * 10, pa.int64())})] * 10
    assert [piece.num_rows for piece in wholes(batches, ["k"], rows=10, room=800)] == [100]
    with pytest.raises(InvalidUsage, match="belong together"):
        list(wholes(batches, ["k"], rows=10, room=79))


@given(st.lists(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 500)), max_size=9), max_size=9))
def test_wide_rows_are_cut_sooner(drawn: list[list[tuple[int, int]]]) -> None:
    """However many rows are asked for, no piece takes more than the room there is."""
    in_order = sorted((2 * at + key // 10, size) for at, some in enumerate(drawn) for key, size in some)
    bounds = np.cumsum([0, *map(len, drawn)]).tolist()
    types = {"k": pa.int64(), "note": pa.string()}
    batches = [
        pa.record_batch([pa.array([k for k, _ in some], types["k"]), pa.array(["w" * n for _, n in some])], [*types])
        for some in (in_order[a:b] for a, b in pairwise(bounds))
    ]
    found = list(wholes(batches, ["k"], rows=10_000, room=12_000))
    assert [row["k"] for piece in found for row in piece.to_pylist()] == [key for key, _ in in_order]
    assert all(piece.nbytes <= 12_000 for piece in found)
    assert all(one["k"][-1].as_py() < other["k"][0].as_py() for one, other in pairwise(found))


def test_rows_to_come_are_not_gathered_beyond_the_room() -> None:
    """A batch of 1,000 rows of 4 KiB, and many after it: what was handed on is not far behind what was read."""
    read = 0

    def batches() -> Iterator[pa.RecordBatch]:
        nonlocal read
        for at in range(40):
            read += 1
            yield pa.record_batch({"k": pa.array([at] * 100, pa.int64()), "note": ["w" * 4096] * 100})

    handed = 0
    for piece in wholes(batches(), ["k"], rows=10_000, room=2**21):
        handed += piece.num_rows
        assert read * 100 - handed <= 600
    assert handed == 4000
