"""The benchmark of the interval index: each shape is answered alike by all that take part."""

from __future__ import annotations

import pytest

from benchmarks.chunk_index import figures, run, shapes

pytestmark = pytest.mark.pure


def test_all_find_the_same_in_every_shape_and_the_table_shows_it():
    runs = [run(shape, count=300, queries=30) for shape in shapes(1)]
    table = figures({"intervals": 300, "runs": runs})
    assert [row[0] for row in table.rows] == list(shapes(1))
    assert {len(row) for row in table.rows} == {len(table.headings)}
    assert all(run["visited_most"] >= run["visited"] > 0 for run in runs)
