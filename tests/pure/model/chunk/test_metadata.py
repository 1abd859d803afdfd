"""What is known of a chunk, and joining two."""

from __future__ import annotations

import pytest

from tidemark.errors import InvalidUsage
from tidemark.model.chunk.chunk import Chunk, Row, joined
from tidemark.model.chunk.metadata import Ends, TimelineMetadata, describe

pytestmark = pytest.mark.pure


def chunk(*rows: dict[str, int | None], key: str = "k", timelines: str = "t", **datatypes: str) -> Chunk:
    return Chunk((key,), frozenset(timelines), tuple(map(Row, rows)), {"x": "int", **datatypes})


def test_bounds_are_tight_and_nulls_are_counted():
    found = describe(chunk({"t": 3, "x": 1}, {"t": None, "x": 2}, {"t": 1}, y="int"))
    assert found.timelines["t"] == TimelineMetadata(Ends(1, 3), nulls=1, is_sorted=False)
    assert (found.bounds("t", "x"), found.columns["t", "x"].rows) == (Ends(3, 3), 1)
    assert found.bounds("t", "y") is found.bounds("u") is None
    assert (found.rows, found.values) == (3, 2)


def test_nulls_do_not_unsort_a_timeline_and_equal_times_are_in_order():
    assert describe(chunk({"t": 1}, {"t": None}, {"t": 1}, {"t": 2})).timelines["t"].is_sorted


def test_a_chunk_that_is_on_no_timeline_has_no_bounds():
    found = describe(chunk({"x": 1}, {"x": 2}))
    assert (found.timelines["t"].bounds, found.timelines["t"].nulls, found.columns) == (None, 2, {})


def test_joined_chunks_have_the_columns_of_both():
    whole = joined(chunk({"t": 2}), chunk({"t": 1, "y": 5}, y="float"))
    assert [row.values for row in whole.rows] == [{"t": 2}, {"t": 1, "y": 5}]
    assert whole.datatypes == {"x": "int", "y": "float"}
    assert [row.time("t") for row in whole.in_order(("t",)).rows] == [1, 2]


@pytest.mark.parametrize(
    ("other", "said"),
    [
        (chunk(key="l"), r"two keys .*'k'.*'l'"),
        (chunk(timelines="tu"), "two timeline sets cannot be joined: t and t, u"),
        (chunk(x="float"), "two datatypes cannot be joined: x is int and float"),
    ],
)
def test_what_cannot_be_joined_is_named(other: Chunk, said: str):
    with pytest.raises(InvalidUsage, match=said):
        joined(chunk(), other)
