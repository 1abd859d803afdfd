"""Answers in some columns and of some rows are the whole answer, added up; whatever memory there is."""

from __future__ import annotations

import pickle
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tidemark
from tests.pure.api.made import ROWS, Made
from tests.pure.arrow.samples import APPEND, KEYED_BY_ALL, NULLABLE, SMALL, rows, updates
from tests.pure.arrow.test_read import arranged, frontiers
from tests.support import reading
from tests.support.budget import laws
from tidemark.arrow import read, runs, view
from tidemark.arrow.kernels import merge
from tidemark.arrow.read import changes_of
from tidemark.arrow.rows.schema import plain_scalars
from tidemark.arrow.view import View, changes_in, rows_in
from tidemark.errors import InvalidUsage
from tidemark.model.collection import Collection, Envelope
from tidemark.model.instant import format_instant, from_datetime
from tidemark.model.update import Update
from tidemark.plan.read import plan_as_of, plan_changes, read_tasks
from tidemark.storage.sidecars.parts_table import opened_read
from tidemark.storage.stores.memory import MemoryStore

pytestmark = pytest.mark.pure
TIMES = ("_commit_version", "_commit_timestamp", "_event_time")


@pytest.fixture(autouse=True)
def little_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (runs, merge, read, view):
        monkeypatch.setattr(module, "BUFFERED_ROWS", 8)
    monkeypatch.setattr(merge, "PIECE_BYTES", 200)


def counted(
    table: pa.Table, names: Sequence[str], keep: Callable[[dict[str, Any]], bool] | None = None
) -> Counter[Any]:
    """How many there are of each row in some columns, the last column being the count; of those that `keep` leaves."""
    found: Counter[Any] = Counter()
    for row in rows(table):
        named = dict(zip(table.column_names, row, strict=True))
        if keep is None or keep(named):
            found[tuple(named[name] for name in names)] += row[-1]
    return Counter({row: count for row, count in found.items() if count})


def exactly(table: pa.Table) -> Counter[Any]:
    """The same of an answer, in which every row must be there once."""
    found = counted(table, table.column_names[:-1])
    assert len(found) == table.num_rows, "equal rows were not added up, or some add up to nothing"
    return found


def kept_where(column: str, values: Iterable[Any]) -> tuple[Any, Any]:
    """Rows whose column holds one of the plain values: for a view, and for a row by name."""
    wanted = list(values)

    def keep(batch: pa.RecordBatch) -> pa.RecordBatch:
        return batch.filter(pa.array([value in wanted for value in plain_scalars(batch.column(column))], pa.bool_()))

    return keep, lambda row: row[column] in wanted


@pytest.mark.parametrize(
    "of", [SMALL, APPEND, KEYED_BY_ALL, NULLABLE], ids=["small", "all types", "keys of exact types", "keys of nulls"]
)
def test_any_columns_and_rows_of_an_answer(of: Collection) -> None:
    names = [column.name for column in of.columns]
    some_names = st.lists(st.sampled_from(names), min_size=1, max_size=3, unique=True)

    @laws
    @given(updates(of, most=20), frontiers, some_names, st.sampled_from(names), st.booleans(), st.booleans())
    def check(some: list[Update], at: list[int], shown: list[str], column: str, filtered: bool, net: bool) -> None:
        store = MemoryStore()
        state = arranged(store, of, some, at)
        [task] = read_tasks(*opened_read(store, plan_as_of(state)))
        whole = reading.as_of(store, state)
        values = set(plain_scalars(whole.column(column)))
        keep, row_fits = kept_where(column, sorted(values, key=repr)[::2]) if filtered else (None, None)
        asked = View(tuple(shown), (column,) if filtered else (), keep)
        table = pa.Table.from_batches(rows_in(store, task, asked), schema=read.as_of_schema(of, shown))
        assert exactly(table) == counted(whole, shown, row_fits)

        request = plan_changes(state, at[0] if at[0] else -1)
        [task] = read_tasks(*opened_read(store, request))
        narrow = pa.Table.from_batches(
            changes_in(store, task, asked, net=net), schema=read.changes_schema(of, net=net, columns=shown)
        )
        full = pa.Table.from_batches(changes_of(store, task, net=net), schema=read.changes_schema(of, net=net))
        untyped = [name for name in narrow.column_names[:-1] if name != "_change_type"]
        assert counted(narrow, untyped) == counted(full, untyped, row_fits)
        exactly(narrow)
        assert all(row["_change_type"] == ("insert" if row["diff"] > 0 else "delete") for row in narrow.to_pylist())
        assert set(narrow.column_names) - {"_change_type", "diff", *TIMES} == set(shown)

    check()


def test_an_update_of_other_columns_is_no_change_and_images_need_the_whole_key(tmp_path: Path) -> None:
    made = Made(tmp_path, Envelope.UPSERT)
    made.drained(0)
    made.drained(1)
    tides = tidemark.open(made.root, "tides")

    def net_changes(**asked: Any) -> list[tuple[Any, ...]]:
        shown = tides.changes(net=True, after=9, **asked).to_arrow()
        return [tuple(row.values()) for row in shown.to_pylist()]

    assert net_changes() == [
        (1, "b", "delete", -1),
        (2, "a", "update_preimage", -1),
        (2, "c", "update_postimage", 1),
        (3, "a", "insert", 1),
    ]
    assert net_changes(columns=["k"]) == [(1, "delete", -1), (3, "insert", 1)]
    assert net_changes(columns=["v"]) == [("b", "delete", -1), ("c", "insert", 1)], "one a went, another came"
    assert net_changes(where="v = 'c'") == [(2, "c", "update_postimage", 1)], "computed from whole rows, then filtered"
    assert net_changes(columns=["k"], where={"v": ["a", "c"]}) == [
        (2, "update_postimage", 1),
        (2, "update_preimage", -1),
        (3, "insert", 1),
    ]


@pytest.mark.parametrize("envelope", list(ROWS))
@pytest.mark.parametrize("columns", [None, ["k"], ["v"]])
@pytest.mark.parametrize("name", TIMES)
def test_changes_are_chosen_by_when_they_happened_and_were_learned(
    tmp_path: Path, envelope: Envelope, columns: list[str] | None, name: str
) -> None:
    """They are those of the whole answer that have such a time."""
    made = Made(tmp_path, envelope)
    for day in range(len(ROWS[envelope])):
        made.sealed(day)
    opened = tidemark.open(made.root, "tides")
    whole = opened.changes(columns=columns).to_arrow()
    values = sorted(set(whole.column(name).to_pylist()))
    assert len(values) > 1 or columns == ["v"]
    for value in values:
        micros = value if isinstance(value, int) else from_datetime(value)
        said = str(micros) if name == "_commit_version" else f"'{format_instant(micros)}'"
        found = opened.changes(columns=columns, where=f"{name} >= {said}").to_arrow()
        kept = whole.filter(pa.array([one >= value for one in whole.column(name).to_pylist()]))
        assert exactly(found) == exactly(kept)
        assert found.schema == whole.schema
        equal = opened.changes(columns=columns, where={name: micros if name == "_commit_version" else said[1:-1]})
        assert exactly(equal.to_arrow()) == exactly(
            whole.filter(pa.array([one == value for one in whole.column(name).to_pylist()]))
        )
        both = opened.changes(columns=["v"], where=[f"{name} >= {said}", "k > 1"]).to_arrow()
        fits = partial(lambda least, row: row[name] >= least and row["k"] > 1, micros)
        assert exactly(both) == counted(opened.changes().to_arrow(), both.column_names[:-1], fits)
        again = pickle.loads(pickle.dumps(opened.changes(where=f"{name} >= {said}")))
        assert again.to_arrow() == opened.changes(where=f"{name} >= {said}").to_arrow()
    for refused in ({"net": True}, {"columns": [name]}):
        with pytest.raises(InvalidUsage, match=f"has no column '{name}'; only changes that are not net have it"):
            opened.changes(**{"where": f"{name} IS NULL", **refused})
    with pytest.raises(InvalidUsage, match="only changes that are not net have it"):
        opened.as_of(where=f"{name} IS NULL")
