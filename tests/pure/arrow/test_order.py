"""The order of rows, against the model's."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.pure.arrow.samples import APPEND, batch, keys, of_updates, rows, updates, values
from tests.support.budget import laws
from tidemark.arrow.rows.order import (
    in_order,
    neighbours,
    ranks,
    rows_before,
    rows_up_to,
    sort,
    sort_key_at,
    sort_key_of,
    starts,
    unsorted,
)
from tidemark.arrow.rows.schema import sort_columns, updates_schema
from tidemark.model.update import Row, Update, sort_key

pytestmark = pytest.mark.pure

ORDER = sort_columns(APPEND, facts=False)
SCHEMA = updates_schema(APPEND)


def flat(update: Update) -> Row:
    return (*update.key, *update.value, update.time, update.event_time, update.diff)


@laws
@given(updates(APPEND))
def test_sorted_as_the_model_sorts(some: list[Update]) -> None:
    table = sort(batch(SCHEMA, [flat(u) for u in some]), ORDER)
    assert rows(table) == [flat(u) for u in sorted(some, key=sort_key)]
    assert unsorted(table, ORDER) == 0


@laws
@given(updates(APPEND))
def test_rows_before_their_predecessor_are_counted(some: list[Update]) -> None:
    found = unsorted(batch(SCHEMA, [flat(u) for u in some]), ORDER)
    assert found == sum(sort_key(b) < sort_key(a) for a, b in pairwise(some))


@laws
@given(updates(APPEND))
def test_starts_and_ranks_tell_equal_rows(some: list[Update]) -> None:
    table = batch(SCHEMA, [flat(u) for u in some])
    places = [sort_key(u) for u in some]
    expected = [at == 0 or places[at] != places[at - 1] for at in range(len(some))]
    assert starts(table, ORDER).tolist() == expected
    distinct = sorted(set(places))
    assert ranks(table, ORDER).tolist() == [distinct.index(p) for p in places]


@laws
@given(updates(APPEND))
def test_neighbours_are_distinguished_column_by_column(some: list[Update]) -> None:
    table = batch(SCHEMA, [flat(u) for u in some])
    found = [(wrong, differs.tolist()) for wrong, differs in neighbours(table, ORDER)]
    upto = [ORDER[: columns + 1] for columns in range(len(ORDER))]
    assert [differs for _, differs in found] == [starts(table, columns).tolist() for columns in upto]
    before = [0, *(unsorted(table, columns) for columns in upto)]
    assert [wrong for wrong, _ in found] == [more - less for less, more in pairwise(before)]


@laws
@given(updates(APPEND), keys(APPEND), values(APPEND), st.integers(0, 12))
def test_bounds_are_found_where_the_order_puts_them(some: list[Update], key: Row, value: Row, time: int) -> None:
    table = of_updates(APPEND, some)
    bound = sort_key_of((*key, *value, time))
    at = [sort_key_of((*u.key, *u.value, u.time)) for u in some]
    assert rows_before(table, bound, ORDER[:-1]) == sum(p < bound for p in at)
    assert rows_up_to(table, bound, ORDER[:-1]) == sum(p <= bound for p in at)


@laws
@given(updates(APPEND), keys(APPEND), st.integers(0, len(ORDER) + 1))
def test_a_place_of_fewer_or_more_columns_is_before_or_behind_rows_that_begin_so(
    some: list[Update], key: Row, width: int
) -> None:
    table = of_updates(APPEND, some)
    bound = sort_key_of((*key, *(None,) * len(APPEND.value), 3, 3, 1)[:width])
    for columns in (ORDER, ORDER[:1], ORDER[: len(key)]):
        at = [sort_key_of(row[: len(columns)]) for row in rows(table)]
        assert rows_before(table, bound, columns) == sum(p < bound for p in at)
        assert rows_up_to(table, bound, columns) == sum(p <= bound for p in at)


@pytest.mark.parametrize("different", [1, 40, 3_000, 6_000])
@pytest.mark.parametrize("nulls", [False, True])
def test_many_texts_are_sorted_as_their_letters_are(different: int, nulls: bool) -> None:
    chance = np.random.default_rng(different)
    words = [None if nulls and n % 7 == 3 else f"{'äzZ'[n % 3]}{n:x}" for n in range(different)]
    texts = [words[at] for at in chance.integers(0, different, 6_000)]
    numbers = chance.integers(0, 5, 6_000).tolist()
    table = pa.record_batch({"text": pa.array(texts, pa.string()), "n": numbers, "row": range(6_000)})
    for some in (table, table.slice(17, 5_000)):
        listed = some.to_pylist()
        expected = sorted(listed, key=lambda row: (row["text"] is not None, row["text"] or "", row["n"]))
        assert sort(some, ["text", "n"]).to_pylist() == expected
        assert sort(some, ["text"]).to_pylist() == sorted(
            listed, key=lambda row: (row["text"] is not None, row["text"] or "")
        )


def test_rows_that_are_in_order_but_for_the_last_are_sorted() -> None:
    numbers = [*range(3_000), 5]
    table = pa.record_batch({"n": numbers})
    assert not in_order(table, ["n"])
    assert sort(table, ["n"])["n"].to_pylist() == sorted(numbers)
    assert sort(table.slice(0, 3_000), ["n"])["n"].to_pylist() == list(range(3_000))
    assert in_order(table.slice(0, 0), ["n"])


def test_places_beyond_all_numbers_are_found() -> None:
    table = pa.record_batch({"a": [1, 1, 2], "n": [-(2**63), 2**63 - 1, 0]})
    for bound, before in (((1, 2**63), 2), ((1, -(2**63) - 1), 0), ((1, 2**63 - 1), 1), ((2**63,), 3)):
        assert rows_before(table, sort_key_of(bound), ["a", "n"]) == before


def test_a_slice_is_compared_by_its_own_rows() -> None:
    table = of_updates(APPEND, [Update((n, "k"), (None,) * len(APPEND.value), 0, 0, 1) for n in (3, 1, 2)])
    part = table.slice(1)
    assert sort_key_at(part, 0, ["number"]) == sort_key_of((2,))
    assert starts(part, ["number"]).tolist() == [True, True]
    assert np.array_equal(ranks(part, ["number"]), [0, 1])
