"""Keys that rows have, beside a look-up one by one."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from tidemark.arrow.rows.known_keys import numbers_among

SCHEMA = pa.schema([("a", pa.string()), ("b", pa.int64()), ("c", pa.timestamp("us", "UTC"))])
TEXTS, NUMBERS = st.sampled_from(["", "x", "é"]), st.sampled_from([-(2**63), -1, 0, 2**63 - 1])
KEYS = st.sets(st.tuples(st.none() | TEXTS, st.none() | NUMBERS, st.none() | st.integers(0, 2)), max_size=9)
ROWS = st.lists(st.tuples(st.none() | TEXTS, st.none() | NUMBERS, st.none() | st.integers(0, 3)), max_size=20)


def batch(rows: list[tuple[Any, ...]], width: int) -> pa.RecordBatch:
    fields = list(SCHEMA)[:width]
    arrays = [pa.array([row[at] for row in rows], of.type) for at, of in enumerate(fields)]
    return pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields))


@given(KEYS, ROWS, st.integers(1, 3))
def test_each_row_has_the_number_of_its_key(
    keys: set[tuple[Any, ...]], rows: list[tuple[Any, ...]], width: int
) -> None:
    known = list(dict.fromkeys(key[:width] for key in keys))
    numbers = {key: number for number, key in enumerate(known)}
    found = numbers_among(batch(known, width), batch(rows, width))
    assert found.tolist() == [numbers.get(row[:width], -1) for row in rows]


def test_without_columns_all_rows_have_the_one_key() -> None:
    rows = batch([("x", 1, 1)] * 3, 3)
    assert numbers_among(rows.select([]), rows.select([])).tolist() == [0, 0, 0]
