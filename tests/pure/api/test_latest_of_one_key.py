"""`latest_at` of one key opens the chunks that its answer needs, and no others: counted where they are read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import tidemark
from tests.pure.api.made import Made
from tests.support.budget import laws
from tidemark.arrow.kernels import merge
from tidemark.arrow.parts.reader import OpenedPart
from tidemark.arrow.parts.writer import PartWriter
from tidemark.model.collection import Column, ColumnType, Envelope

pytestmark = pytest.mark.pure
GROUP = 3
VALUE = (Column("w", ColumnType.INT), Column("at", ColumnType.INT), Column("rare", ColumnType.STRING))
"""Rows of a key are in order of `w`, then of the timeline."""


@pytest.fixture(autouse=True)
def row_groups_of_few_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(PartWriter.__init__.__kwdefaults__, "group_rows", GROUP)  # type: ignore[arg-type]
    monkeypatch.setattr(merge, "ROW_GROUP_ROWS", GROUP)


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How many parts and how many row groups were opened."""
    count: Counter[str] = Counter()
    opened, read = OpenedPart.__init__, OpenedPart.read

    def counting_open(self: OpenedPart, *args: Any, **named: Any) -> None:
        count["parts"] += 1
        opened(self, *args, **named)

    def counting_read(self: OpenedPart, groups: Sequence[int], schema: pa.Schema | None = None) -> pa.RecordBatch:
        count["groups"] += len(groups)
        return read(self, groups, schema)

    monkeypatch.setattr(OpenedPart, "__init__", counting_open)
    monkeypatch.setattr(OpenedPart, "read", counting_read)
    return count


def row(at: int | None, w: int = 0, rare: str | None = None, d: int = 1, k: int = 1) -> dict[str, Any]:
    return {"k": k, "w": w, "at": at, "rare": rare, "d": d, "t": 1, "e": 1}


def made(folder: Path, *days: Sequence[dict[str, Any]], drained: bool = True) -> Made:
    found = Made(folder, Envelope.UPDATES, value=VALUE, timelines=("at",))
    for day, rows in enumerate(days):
        of_day = [{**one, "t": 10 * day + 1} for one in rows]
        (found.drained if drained else found.sealed)(day, of_day)
    return found


def asked(of: Made, t: int, counted: Counter[str], **more: Any) -> tuple[list[dict[str, Any]], Counter[str]]:
    """The answer of key 1, and what was opened for it."""
    answer = tidemark.open(of.root, "tides").latest_at("at", t, {"k": 1}, **more)
    counted.clear()
    rows = answer.to_arrow().to_pylist()
    found = Counter(counted)
    assert answer.explain().chunks_read == found["groups"]
    return rows, found


def test_of_two_hundred_chunks_of_one_key_one_is_opened(tmp_path: Path, counted: Counter[str]) -> None:
    of = made(tmp_path, [row(10 * at) for at in range(600)])
    for t, at in ((2995, 2990), (2990, 2990), (2989, 2980), (10**9, 5990), (0, 0)):
        rows, opened = asked(of, t, counted)
        assert ([found["at"] for found in rows], opened["groups"]) == ([at], 1)
    rows, opened = asked(of, -1, counted)
    assert (rows, opened["groups"]) == ([], 0)
    explained = tidemark.open(of.root, "tides").latest_at("at", 2995, {"k": 1}).explain()
    assert (explained.chunks, explained.chunks_read) == (200, 1)
    assert explained.chunks_missed == {"keys": 0, "values": 100, "settled": 99}
    said = "chunks read   1 of 200; 100 left out by values of columns; 99 left out by an answer that was settled before"
    assert said in str(explained)


def test_a_retraction_in_another_batch_is_found_before_the_row_is_answered(
    tmp_path: Path, counted: Counter[str]
) -> None:
    """What retracts a row has the same time, so the chunk that holds it is opened, too."""
    first, second = [row(at) for at in range(60)], [row(at, d=-1) for at in range(57, 60)]
    for drained in (True, False):
        of = made(tmp_path / str(drained), first, second, drained=drained)
        rows, opened = asked(of, 100, counted)
        assert ([found["at"] for found in rows], opened["groups"]) == ([56], 3)
        rows, opened = asked(of, 55, counted)
        assert ([found["at"] for found in rows], opened["groups"]) == ([55], 1)
        rows, opened = asked(of, 100, counted, time=9)
        assert ([found["at"] for found in rows], opened["groups"]) == ([59], 1)


def test_chunks_of_an_equal_bound_are_all_opened(tmp_path: Path, counted: Counter[str]) -> None:
    """A tie is won by the greatest row, wherever it is: only a bound strictly below stops."""
    of = made(tmp_path, [row(at, w) for w in range(20) for at in (1, 2, 3)])
    rows, opened = asked(of, 3, counted)
    assert ([found["w"] for found in rows], opened["groups"]) == ([19], 20)


def test_the_footers_of_older_parts_stay_shut(tmp_path: Path, counted: Counter[str]) -> None:
    days = [[row(10 * day + at, day) for at in range(9)] for day in range(5)]
    of = made(tmp_path, *days, drained=False)
    assert asked(of, 100, counted)[1] == {"parts": 1, "groups": 1}
    assert asked(of, 19, counted)[1] == {"parts": 1, "groups": 1}


def test_each_column_stops_by_the_rows_that_have_a_value_in_it(tmp_path: Path, counted: Counter[str]) -> None:
    of = made(tmp_path, [row(at, rare="x" if at in (4, 30) else None) for at in range(300)])
    rows, opened = asked(of, 1000, counted, each=True, columns=["w", "rare", "at"])
    assert rows == [{"w": 0, "w_at": 299, "rare": "x", "rare_at": 30, "at": 299}]
    assert opened["groups"] == 2
    rows, opened = asked(of, 3, counted, each=True, columns=["rare", "at"])
    # By the footer no chunk has a value of `rare` up to 3, though the second one has rows from 3 on.
    assert (rows, opened["groups"]) == ([{"rare": None, "rare_at": None, "at": 3}], 1)


def chunks_of(days: Sequence[Sequence[tuple[int, int]]], *, drained: bool) -> Iterator[tuple[int, int]]:
    """The first and last time of each row group: each day is a part, whose rows are in order. Only a drain makes one of
    rows that are equal."""
    for rows in days:
        ordered = sorted(set(rows)) if drained else sorted(rows)
        for start in range(0, len(ordered), GROUP):
            times = [at for _, at in ordered[start : start + GROUP]]
            yield min(times), max(times)


def test_no_more_are_opened_than_one_and_those_that_overlap_the_answer(
    tmp_path_factory: pytest.TempPathFactory, counted: Counter[str]
) -> None:
    rows = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 40)), max_size=20)

    @laws
    @given(st.lists(rows, min_size=1, max_size=3), st.integers(0, 45), st.booleans())
    @example([[(0, 0)] * 7], 0, False)
    def check(days: list[list[tuple[int, int]]], t: int, drained: bool) -> None:
        named = [[row(at, w) for w, at in day] for day in days]
        of = made(tmp_path_factory.mktemp("landing"), *named, drained=drained)
        found, opened = asked(of, t, counted)
        best = max((at for day in days for _, at in day if at <= t), default=None)
        assert [one["at"] for one in found] == ([] if best is None else [best])
        overlapping = [
            last for first, last in chunks_of(days, drained=drained) if best is not None and first <= best <= last
        ]
        assert opened["groups"] <= 1 + len(overlapping)

    check()
