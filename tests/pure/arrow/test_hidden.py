"""Hidden columns are stored and merged as any other, and in no answer: rows that differ in these alone are one row."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.pure.arrow.samples import CELLS, keys, rows
from tests.pure.arrow.test_read import arranged, changed, current_rows, frontiers
from tests.support.budget import laws
from tests.support.reading import as_of, changes
from tidemark.api.conditions import check_columns
from tidemark.arrow import runs
from tidemark.arrow.kernels import merge
from tidemark.arrow.read import rows_as_of
from tidemark.errors import InvalidUsage
from tidemark.model import update as model
from tidemark.model.collection import Collection, Column, ColumnType, Derived
from tidemark.model.derived import Definition
from tidemark.model.evolution import evolved
from tidemark.model.update import Update
from tidemark.plan.read import plan_as_of, read_tasks
from tidemark.plan.unmerged import unmerged
from tidemark.storage.sidecars.parts_table import opened_read
from tidemark.storage.stores.memory import MemoryStore

pytestmark = pytest.mark.pure

WORD, ROWS, ADDED = (
    Column("word", ColumnType.STRING),
    Column("_rows", ColumnType.INT),
    Column("added", ColumnType.BOOL),
)
LAST = Collection(
    "d", (Column("number", ColumnType.INT),), (WORD,), Derived(("a",), Definition("groups")), hidden=(ROWS,)
)
BETWEEN = evolved(LAST, Collection("d", LAST.key, (WORD, ADDED), LAST.origin, hidden=(ROWS,)))
"""A column that came later stands behind the hidden one."""


@pytest.fixture(autouse=True)
def little_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runs, "BUFFERED_ROWS", 8)
    monkeypatch.setattr(merge, "BUFFERED_ROWS", 8)
    monkeypatch.setattr(merge, "PIECE_BYTES", 200)


def updates(of: Collection) -> st.SearchStrategy[list[Update]]:
    cells = [st.integers(0, 2) if column in of.hidden else CELLS[column.type] for column in of.stored_value]
    time = st.integers(0, 12)
    one = st.builds(Update, keys(of), st.tuples(*cells), time, time, st.integers(-2, 2))
    return st.lists(one, max_size=24)


@pytest.mark.parametrize("of", [LAST, BETWEEN], ids=["last", "between"])
def test_reads_agree_with_the_model_of_what_is_seen(of: Collection) -> None:
    shown = [at for at, column in enumerate(of.stored_value) if column not in of.hidden]

    @laws
    @given(updates(of), frontiers, st.integers(0, 12), st.integers(0, 12))
    def check(some: list[Update], at: list[int], time: int, after: int) -> None:
        since, _, _, seal = at
        time, after = (min(max(one, since), seal - 1) for one in (time, after))
        store = MemoryStore()
        state = arranged(store, of, some, at)
        seen = [u._replace(value=tuple(u.value[index] for index in shown)) for u in some]
        assert current_rows(as_of(store, state, time=time), of) == model.as_of(seen, time=time, event_time=2**63 - 1)
        after, upto = sorted((after, time))
        expected = model.changes(model.advance(seen, state.function), after=after, upto=upto)
        assert changed(changes(store, state, after=after, upto=upto), of) == expected
        net = changes(store, state, after=after, upto=upto, net=True)
        inside = [u._replace(time=0, event_time=0) for u in seen if after < u.time <= upto]
        assert [row[: len(of.columns)] for row in rows(net)] == [(*u.key, *u.value) for u in model.consolidate(inside)]

    check()


def test_who_corrects_reads_them_by_name() -> None:
    store = MemoryStore()
    state = arranged(store, LAST, [Update((1,), ("a", 2), 1, 1, 1)], [0, 3, 8, 8])
    request, parts = opened_read(store, plan_as_of(state))
    (task,) = read_tasks(request, parts)
    (batch,) = rows_as_of(store, task, ["number", "word", "_rows"])
    assert rows(batch) == [(1, "a", 2, 1)]
    plain = unmerged(request, parts, times=False)
    assert not any(some.parts for some in plain), "Spark's own reader would return equal rows separately"
    with pytest.raises(InvalidUsage, match="has no column '_rows'"):
        check_columns(LAST, ("_rows",), "columns")
