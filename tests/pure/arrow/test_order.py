"""The order of rows, against the model's."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.pure.arrow.samples import APPEND, batch, keys, laws, of_updates, rows, updates, values
from tidemark.arrow.rows.order import (
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
def test_neighbours_are_told_apart_column_by_column(some: list[Update]) -> None:
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


def test_a_slice_is_compared_by_its_own_rows() -> None:
    table = of_updates(APPEND, [Update((n, "k"), (None,) * len(APPEND.value), 0, 0, 1) for n in (3, 1, 2)])
    part = table.slice(1)
    assert sort_key_at(part, 0, ["number"]) == sort_key_of((2,))
    assert starts(part, ["number"]).tolist() == [True, True]
    assert np.array_equal(ranks(part, ["number"]), [0, 1])
