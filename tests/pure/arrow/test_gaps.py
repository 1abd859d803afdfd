"""The kernel of sessions against sessions found row by row."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidemark.arrow.kernels.windows.gaps import FIRST, LAST, Gaps, in_sessions
from tidemark.definition.windows.rows import START
from tidemark.errors import InvalidUsage

Cells = list[tuple[str, int]]


def begun(cells: Cells, gaps: Gaps, each: int) -> list[tuple[str, int, int]]:
    columns = {"key": [key for key, _ in cells], FIRST: [at for _, at in cells], LAST: [at for _, at in cells]}
    rows = pa.record_batch(columns)
    batches = (rows.slice(at, each) for at in range(0, len(rows), each))
    found = [row for batch in in_sessions(batches, gaps) for row in batch.to_pylist()]
    return [(row["key"], row[FIRST], row[START]) for row in found]


def one_by_one(cells: Cells, gaps: Gaps) -> list[tuple[str, int, int]]:
    found: list[tuple[str, int, int]] = []
    for key, at in cells:
        start = at
        if found and found[-1][0] == key:
            distance, so_far = at - found[-1][1], at - found[-1][2]
            near = distance <= gaps.gap if gaps.exact_gap_merges else distance < gaps.gap
            if near and (gaps.max_length is None or so_far < gaps.max_length):
                start = found[-1][2]
        found.append((key, at, start))
    return found


@given(
    st.sets(st.tuples(st.sampled_from("xy"), st.integers(-40, 40)), min_size=1, max_size=30),
    st.builds(Gaps, st.just(("key",)), st.integers(1, 12), st.booleans(), st.none() | st.integers(1, 15)),
    st.integers(1, 7),
)
@settings(deadline=None, max_examples=200)
def test_sessions_are_those_found_row_by_row_whatever_batches_they_come_in(
    places: set[tuple[str, int]], gaps: Gaps, each: int
) -> None:
    cells = sorted(places)
    assert begun(cells, gaps, each) == one_by_one(cells, gaps)


def test_instants_may_be_at_great_distances() -> None:
    far = 2**61
    assert begun([("x", -far), ("x", far)], Gaps(("key",), 2**63), 1) == [("x", -far, -far), ("x", far, -far)]
    with pytest.raises(InvalidUsage, match="beyond 2\\^61"):
        begun([("x", far + 1)], Gaps(("key",), 1), 1)
