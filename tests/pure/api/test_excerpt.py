"""A few of many windows, against all of them: the last ones, whatever their keys are, for opening little."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from tests.pure.arrow.samples import array
from tests.pure.arrow.test_read import arranged
from tests.pure.arrow.test_windows import SIZE, collection, histories, updates_of
from tests.support.budget import laws
from tidemark.api.excerpt import Excerpt, Gap, Wanted, excerpt, keys_between
from tidemark.api.opened import OpenCollection
from tidemark.api.pinned import Pinned
from tidemark.arrow.rows.schema import arrow_type
from tidemark.errors import InvalidUsage
from tidemark.model.arrangement import Arrangement
from tidemark.model.collection import Collection, Column, ColumnType, DecimalType, ValueType
from tidemark.model.derived import Definition, Derived
from tidemark.model.key import Key, key_scalar
from tidemark.model.update import Row, Update
from tidemark.model.window.aggregate import Aggregate, Function
from tidemark.model.window.kinds import Sliding, Tumbling
from tidemark.model.window.windows import WINDOW_END, WINDOW_START, Windows
from tidemark.plan.excerpt import Weight
from tidemark.storage.log.head import Head
from tidemark.storage.stores.memory import MemoryStore

pytestmark = pytest.mark.pure

ALL = Weight(10**9, 10**9)


def opened(store: Any, state: Arrangement) -> OpenCollection:
    return OpenCollection(Pinned("memory://root", store, None, Head(1, "", state, 0.0)))  # type: ignore[arg-type]


def windows_by(types: Sequence[ValueType]) -> Collection:
    """Tumbling windows by columns of these types."""
    by = tuple(Column(f"k{at}", of) for at, of in enumerate(types))
    bounds = (Column(WINDOW_START, ColumnType.INT), Column(WINDOW_END, ColumnType.INT))
    of = Windows(tuple(one.name for one in by), "at", Tumbling(SIZE), (Aggregate("n", Function.COUNT),))
    return Collection("w", (*by, *bounds), (Column("n", ColumnType.INT),), Derived(("rows",), Definition(windows=of)))


def holding(of: Collection, keys: Sequence[Row], starts: Sequence[int] = (0,)) -> tuple[MemoryStore, Arrangement]:
    """A window of each key at each start, in row groups of three."""
    store = MemoryStore()
    rows = [Update((*key, start, start + SIZE), (1,), start + SIZE, 0, 1) for key in keys for start in starts]
    return store, arranged(store, of, rows, [0, 10**6, 10**6, 10**6])


def shown(found: Excerpt, *more: str) -> list[tuple[Any, ...]]:
    names = [*found.windows.by, WINDOW_START, *more]
    return list(zip(*(found.rows.column(name).to_pylist() for name in names), strict=True))


@laws
@given(
    histories,
    st.integers(1, 8),
    st.none() | st.integers(-1, 3),
    st.none() | st.integers(0, 7),
    st.none() | st.integers(0, 7),
    st.sampled_from([3, 6, 12, 1000]),
)
def test_an_excerpt_is_the_last_of_all_windows_there_are(
    history: dict[Any, Any], last: int, key: int | None, lower: int | None, upper: int | None, rows: int
) -> None:
    store, of = MemoryStore(), collection(Sliding(SIZE))
    handle = opened(store, arranged(store, of, updates_of(history), [0, 6, 10, 13]))
    every = handle.windows().to_arrow().to_pylist()
    wanted = Wanted(last, None if key is None else (key,), lower, upper)
    found = excerpt(handle, wanted, "n", Weight(rows, 10**9))
    of_key = every if found.key is None else [row for row in every if (row["k"],) == found.key]
    inside = [
        row
        for row in of_key
        if (lower is None or row[WINDOW_START] >= lower) and (upper is None or row[WINDOW_START] < upper)
    ]
    inside.sort(key=lambda row: (row[WINDOW_START], row["k"]))
    answer = found.rows.to_pylist()
    assert answer == [{name: row[name] for name in found.schema.names} for row in inside[len(inside) - len(answer) :]]
    assert len(answer) <= last
    assert wanted.key is None or found.key == wanted.key
    if found.earlier is None:
        assert len(answer) == len(inside)
        return
    event("some were left out")
    # Going on before where they begin leaves nothing out, and so ends, unless more begin at once than are shown.
    before = [row for row in inside if row[WINDOW_START] < found.earlier]
    at_once = len({row[WINDOW_START] for row in answer}) == 1
    assert len(before) + len(answer) == len(inside) or at_once
    assert not answer or found.earlier <= answer[0][WINDOW_START]


EXACT: list[tuple[ValueType, list[Any]]] = [
    (ColumnType.STRING, ["", "</script>", "a\0b", "null", "é\U0001f30a", "\u202e"]),
    (ColumnType.BYTES, ["", "00", "ff00", "3c2f7363726970743e"]),
    (ColumnType.BOOL, [False, True]),
    (ColumnType.INT, [-(2**63), -1, 0, 2**63 - 1]),
    (ColumnType.DATE, [-1, 0, 20_000]),
    (ColumnType.TIMESTAMP, [-1, 0, 1_700_000_000_000_001]),
    (ColumnType.JSON, ['"1"', "1", '{"a":1}', "null"]),
    (DecimalType(38, 2), [-(10**38) + 1, -1, 0, 10**38 - 1]),
]


@pytest.mark.parametrize(("of", "values"), EXACT, ids=[str(of) for of, _ in EXACT])
@pytest.mark.parametrize("bound", [ALL, Weight(3, 10**9)], ids=["all", "little"])
def test_windows_of_any_key_are_found_by_it(of: ValueType, values: list[Any], bound: Weight) -> None:
    declared = windows_by([of, ColumnType.STRING])
    rows = [(value, name) for value in (*values, None) for name in ("", "z", None)]
    handle = opened(*holding(declared, rows, range(0, 12, SIZE)))
    keys = [tuple(map(key_scalar, row)) for row in rows]
    for key, row in zip(keys, rows, strict=True):
        found = excerpt(handle, Wanted(2, key), "n", bound)
        typed = array([row[0]], arrow_type(of)).to_pylist()[0]
        assert shown(found)[-1] == (typed, row[1], 8)
        assert {one[:2] for one in shown(found)} == {(typed, row[1])}
    all_keys = keys_between(handle, Gap(), 100, ALL)
    assert all_keys == sorted(keys)
    for above, below in zip(all_keys, all_keys[2:], strict=False):
        assert isinstance(above, tuple)
        assert isinstance(below, tuple)
        assert keys_between(handle, Gap(above, below), 100, ALL) == [all_keys[all_keys.index(above) + 1]]


def test_all_keys_are_reached_through_the_gaps_also_where_row_groups_tell_of_them_alone() -> None:
    keys = [(f"{at:03}",) for at in range(200)]
    handle = opened(*holding(windows_by([ColumnType.STRING]), keys))
    for bound in (ALL, Weight(12, 10**9)):
        reached: list[Key] = []
        gaps, looks = [Gap()], 0
        while gaps:
            looks += 1
            for one in keys_between(handle, gaps.pop(), 10, bound):
                if isinstance(one, Gap):
                    gaps.append(one)
                else:
                    reached.append(one)
        assert sorted(reached) == keys
        assert looks < 150


def test_windows_without_a_key_are_one_row_of_them() -> None:
    of = windows_by([])
    handle = opened(*holding(of, [()], range(0, 400, SIZE)))
    found = excerpt(handle, Wanted(3), "n", Weight(9, 10**9))
    assert shown(found) == [(388,), (392,), (396,)]
    assert (found.key, found.earlier) == ((), 388)
    assert shown(excerpt(handle, Wanted(3, lower=100, upper=108), "n", Weight(9, 10**9))) == [(100,), (104,)]


def test_where_all_windows_are_too_many_those_of_the_first_key_are_shown() -> None:
    keys = [(at,) for at in range(50)]
    handle = opened(*holding(windows_by([ColumnType.INT]), keys, range(0, 40, SIZE)))
    found = excerpt(handle, Wanted(4), "n", Weight(30, 10**9))
    assert found.key == (0,)
    assert shown(found) == [(0, 24), (0, 28), (0, 32), (0, 36)]
    assert excerpt(handle, Wanted(4), "n", ALL).key is None


def test_a_text_is_shown_in_part_and_a_number_is_not() -> None:
    of = windows_by([ColumnType.INT])
    value = (Column("n", ColumnType.JSON), Column("sum", DecimalType(38, 4)), Column("b", ColumnType.BYTES))
    several = tuple(Aggregate(one.name, Function.MAX, one.name) for one in value)
    windows = Windows(("k0",), "at", Tumbling(SIZE), several)
    of = Collection("w", of.key, value, Derived(("rows",), Definition(windows=windows)))
    store = MemoryStore()
    state = arranged(store, of, [Update((1, 0, SIZE), ("é" * 10**6, 10**38 - 1, "ff" * 10**6), 5, 0, 1)], [0, 9, 9, 9])
    handle = opened(store, state)
    assert shown(excerpt(handle, Wanted(4), "n", ALL), "n") == [(1, 0, "é" * 200)]
    assert shown(excerpt(handle, Wanted(4), "b", ALL), "b") == [(1, 0, b"\xff" * 200)]
    assert shown(excerpt(handle, Wanted(4), "sum", ALL), "sum") == [(1, 0, Decimal("9" * 34 + "." + "9" * 4))]


@pytest.mark.parametrize("key", [("a",), (None,), (1.5,), (), (1, 2), (2**63,), ([],)])
def test_a_key_that_is_none_of_its_type_is_refused(key: Any) -> None:
    handle = opened(*holding(windows_by([ColumnType.INT]), [(1,)]))
    with pytest.raises(InvalidUsage):
        excerpt(handle, Wanted(4, key), "n", ALL)
    with pytest.raises(InvalidUsage):
        keys_between(handle, Gap(key), 5, ALL)
