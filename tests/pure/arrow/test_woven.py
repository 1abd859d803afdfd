"""Few rows added up with many in order, against sorting and adding up all of them."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.pure.arrow.samples import (
    APPEND,
    EXACT,
    KEY,
    KEYED_BY_ALL,
    NULLABLE,
    SMALL,
    as_updates,
    collection,
    keys,
    of_updates,
    rows,
    values,
)
from tests.support.budget import laws
from tidemark.arrow.rows.consolidate import consolidated
from tidemark.arrow.rows.order import sort
from tidemark.arrow.rows.schema import sort_columns, updates_schema
from tidemark.arrow.rows.woven import woven
from tidemark.errors import InvalidUsage
from tidemark.model.collection import Collection, Column, ColumnType, Envelope
from tidemark.model.update import Row, Update

pytestmark = pytest.mark.pure

BY_TEXT = collection(Envelope.UPDATES, key=KEY[::-1], value=APPEND.value)
BY_DAY = collection(Envelope.UPDATES, key=(Column("day", ColumnType.DATE), *EXACT), value=APPEND.value)
BY_NULLS = replace(NULLABLE, key=KEY[:1])
BY_OTHERS = (BY_TEXT, KEYED_BY_ALL)
KINDS = (SMALL, APPEND, BY_DAY, *BY_OTHERS)


def negated(value: Row) -> Row:
    """With -0.0 for 0.0, which is equal to it, and not the same."""
    return tuple(-cell if isinstance(cell, float) and cell == 0 else cell for cell in value)


@st.composite
def runs(draw: st.DrawFn, of: Collection) -> list[list[Update]]:
    """Few different keys and values and times, so that rows are equal within a run and over several."""
    signs = values(of) | values(of).map(negated)
    some_keys, some_values = draw(st.lists(keys(of), min_size=1, max_size=6)), draw(st.lists(signs, min_size=1))
    time = st.integers(0, 2)
    one = st.builds(Update, st.sampled_from(some_keys), st.sampled_from(some_values), time, time, st.integers(-2, 2))
    return draw(st.lists(st.lists(one, max_size=12), min_size=2, max_size=5))


def plainly(batches: list[pa.RecordBatch], columns: list[str]) -> pa.RecordBatch:
    return consolidated(sort(pa.concat_batches(batches), columns), columns)


def as_it_is(batch: pa.RecordBatch) -> str:
    """What tells -0.0 from 0.0."""
    return repr(rows(batch))


@laws
@given(runs(BY_NULLS), st.booleans())
def test_where_the_first_column_has_nulls_all_are_sorted(inputs: list[list[Update]], with_times: bool) -> None:
    columns = list(sort_columns(BY_NULLS, facts=False)[: None if with_times else -2])
    batches = [of_updates(BY_NULLS, some) for some in inputs]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tidemark.arrow.rows.woven.LARGE", 0)
        patch.setattr("tidemark.arrow.rows.woven.MOST_TOUCHED", 1)
        found = woven(batches, columns)
    assert (found is None) == any(u.key[0] is None for some in inputs for u in some)
    assert found is None or as_it_is(found) == as_it_is(plainly(batches, columns))


@laws
@given(st.sampled_from(KINDS).flatmap(lambda of: st.tuples(st.just(of), runs(of))), st.booleans())
def test_what_is_woven_is_what_is_sorted_and_added_up(
    drawn: tuple[Collection, list[list[Update]]], with_times: bool
) -> None:
    of, inputs = drawn
    columns = list(sort_columns(of, facts=False)[: None if with_times else -2])
    batches = [of_updates(of, some) for some in inputs]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tidemark.arrow.rows.woven.LARGE", 0)
        patch.setattr("tidemark.arrow.rows.woven.MOST_TOUCHED", 1)
        found = woven(batches, columns)
    if of in BY_OTHERS:
        assert found is None
        return
    assert found is not None
    assert found.schema == batches[0].schema
    assert as_it_is(found) == as_it_is(plainly(batches, columns))


def pairs(numbers: range | list[int], diff: int = 1) -> pa.RecordBatch:
    return of_updates(SMALL, [Update((number,), ("v",), 1, 1, diff) for number in numbers])


ORDER = list(sort_columns(SMALL, facts=False)[:-2])


def test_rows_that_meet_too_many_are_left_to_a_sort() -> None:
    coarse = of_updates(SMALL, [Update((0,), (f"{n:03}",), 1, 1, 1) for n in range(100)])
    assert woven([coarse, pairs([0])], ORDER) is None
    assert woven([pairs(range(8)), pairs([2, 9, 10])], ORDER) is None
    twice = pa.concat_batches([pairs([n, n]) for n in range(50)])
    assert woven([twice, pairs([70])], ORDER) is None


def test_sums_that_fit_are_returned_and_others_refused() -> None:
    much = 2**63 - 1
    of_five = [*pairs([5], much).to_pylist(), *pairs([5], much).to_pylist(), *pairs([5], -much).to_pylist()]
    large = pa.concat_batches([pairs(range(5)), pa.RecordBatch.from_pylist(of_five, updates_schema(SMALL))])
    large = pa.concat_batches([large, pairs(range(6, 20))])
    found = woven([large, pairs([5], -1)], ORDER)
    assert found is not None
    assert [u.diff for u in as_updates(SMALL, [found]) if u.key == (5,)] == [much - 1]
    with pytest.raises(InvalidUsage, match="number 5, word 'v' add up to 9223372036854775808"):
        woven([large, pairs([5], 1)], ORDER)
