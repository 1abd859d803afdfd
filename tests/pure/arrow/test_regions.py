"""Regions of changes, beside stretches put together one by one."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tidemark.arrow.kernels.windows.regions import in_regions, regions

instants = st.integers(-20, 20) | st.sampled_from([-(2**61), 2**61])
spans = st.lists(st.tuples(st.integers(0, 2), instants, instants, st.booleans()), max_size=12)


def one_by_one(given: list[tuple[int, int, int, bool]]) -> list[tuple[int, int, int]]:
    """Two that meet become one, as long as any do."""
    left = list(given)
    while True:
        pair = next(
            (
                (one, other)
                for at, one in enumerate(left)
                for other in left[at + 1 :]
                if one[0] == other[0] and max(one[1], other[1]) <= min(one[2], other[2])
            ),
            None,
        )
        if pair is None:
            return sorted(one[:3] for one in left if one[3])
        for one in pair:
            left.remove(one)
        one, other = pair
        left.append((one[0], min(one[1], other[1]), max(one[2], other[2]), one[3] or other[3]))


@given(spans, st.lists(st.tuples(st.integers(0, 3), instants), max_size=12))
def test_regions_are_what_meets_what_changed(some: list[tuple[int, int, int, bool]], rows: list[tuple[int, int]]):
    ordered = [(group, min(ends), max(ends), changed) for group, *ends, changed in some]
    columns = [np.array([one[at] for one in ordered], np.int64) for at in range(3)]
    found = regions(*columns, np.array([one[3] for one in ordered], bool))
    expected = one_by_one(ordered)
    assert [tuple(map(int, one)) for one in zip(*found, strict=True)] == expected
    group, at = (np.array([row[column] for row in rows], np.int64) for column in (0, 1))
    assert in_regions(group, at, found).tolist() == [
        any(of == key and first <= when <= upto for of, first, upto in expected) for key, when in rows
    ]
