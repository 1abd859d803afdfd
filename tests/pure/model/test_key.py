"""Null in keys: it equals itself and comes first, in whatever way keys are compared, and travels as JSON's null."""

from __future__ import annotations

import pickle
from bisect import bisect_left, bisect_right
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidemark.arrow.rows.order import sort_key_of
from tidemark.errors import Corruption
from tidemark.model.batch import ObjectRef, Part
from tidemark.model.key import BEHIND_NULL, NULL, key_scalar, plain_scalar
from tidemark.model.update import Update, sort_key
from tidemark.plan.ranges import behind
from tidemark.plan.tasks import KeyRange
from tidemark.storage.documents.codec import decode, encode

numbers = st.none() | st.integers(-(2**63), 2**63 - 1)
texts = st.none() | st.sampled_from(["", "\0", "a", "ü"])
truths = st.none() | st.booleans()
rows = st.tuples(numbers, texts, truths)


def key_of(row: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(map(key_scalar, row))


def reference(row: tuple[Any, ...]) -> Any:
    """The order of rows at rest, by the pure law."""
    return sort_key(Update(row, (), 0, 0, 1))


@given(st.lists(rows, max_size=8), rows)
def test_keys_compare_as_rows_at_rest_do(some: list[Any], sought: Any) -> None:
    keys = sorted(map(key_of, some))
    assert keys == [key_of(row) for row in sorted(some, key=reference)]
    places = sorted(map(reference, some))
    assert bisect_left(keys, key_of(sought)) == bisect_left(places, reference(sought))
    assert bisect_right(keys, key_of(sought)) == bisect_right(places, reference(sought))


@given(rows, rows)
def test_every_comparison_says_the_same(one: Any, other: Any) -> None:
    a, b, first, second = key_of(one), key_of(other), reference(one), reference(other)
    assert (a < b, a <= b, a > b, a >= b) == (first < second, first <= second, first > second, first >= second)
    assert ((a == b), (a != b)) == (one == other, one != other)
    assert a != b or hash(a) == hash(b)
    assert (sort_key_of(a) < sort_key_of(b)) == (first < second)


@given(rows.map(key_of), st.integers(1, 3), rows.map(key_of))
def test_behind_a_prefix_is_between_it_and_all_that_follows(key: Any, width: int, other: Any) -> None:
    prefix = key[:width]
    upper = behind(prefix)
    if upper is None:
        assert prefix[-1] == 2**63 - 1
        return
    assert (other < upper) == (other[:width] <= prefix)
    assert (sort_key_of(other) < sort_key_of(upper)) == (other < upper)


def test_what_is_behind_null_comes_before_every_value_and_after_null() -> None:
    for value in (False, -(2**63), "", -(10**38)):
        assert NULL < BEHIND_NULL < value
        assert value > BEHIND_NULL > NULL
        assert not value <= BEHIND_NULL
        assert not BEHIND_NULL <= NULL
    assert BEHIND_NULL <= BEHIND_NULL
    assert BEHIND_NULL >= NULL
    assert NULL <= BEHIND_NULL
    assert not NULL >= BEHIND_NULL


@pytest.mark.parametrize("place", [NULL, BEHIND_NULL])
def test_a_key_with_none_in_it_is_compared_with_nothing(place: Any) -> None:
    for compared in (lambda: place < None, lambda: place <= None, lambda: place > None, lambda: place >= None):
        with pytest.raises(TypeError):
            compared()
    with pytest.raises(TypeError):
        sorted([(None, 1), (NULL, 1)])


def test_a_float_is_no_value_of_a_key() -> None:
    with pytest.raises(TypeError, match=r"0\.5 is a float"):
        key_scalar(0.5)


@given(rows)
def test_a_key_travels_as_json(row: Any) -> None:
    part = Part(ObjectRef("p", 1, "0"), 1, 0, ((key_of(row), 1),), key_of(row), 0, 0, 0, 0)
    assert decode(encode(part), Part, name="part") == part
    assert tuple(map(plain_scalar, part.last_key)) == row
    assert pickle.loads(pickle.dumps(part)) == part


def test_null_is_null_in_json_and_no_bound_of_a_range() -> None:
    part = Part(ObjectRef("p", 1, "0"), 1, 0, (((NULL, 1), 1),), (NULL, 1), 0, 0, 0, 0)
    assert b'"last_key":[null,1]' in encode(part)
    for keys in (KeyRange(), KeyRange((NULL,), (BEHIND_NULL,)), KeyRange((NULL, 3)), KeyRange(upper=(1, NULL))):
        assert decode(encode(keys), KeyRange, name="range") == keys
    with pytest.raises(Corruption, match="last_key"):
        decode(encode(part).replace(b'"last_key":[null', b'"last_key":[0.5'), Part, name="part")
