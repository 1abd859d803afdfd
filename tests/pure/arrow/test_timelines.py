"""Bounds of timelines: of a part in its record, of a row group in the footer. They are what the rows have."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.pure.arrow.samples import APPEND, KEYED, MONEY, SMALL, of_facts, of_updates, updates, write
from tests.support.budget import laws
from tidemark.arrow.kernels.inspect import inspect_part
from tidemark.arrow.parts import footer, recount
from tidemark.arrow.parts.bounds import chunk_bounds
from tidemark.arrow.parts.reader import OpenedPart, read_groups
from tidemark.arrow.rows.schema import plain_scalars, updates_schema
from tidemark.errors import Corruption
from tidemark.model.batch import Part
from tidemark.model.chunk.bounds import DAY, Bounds, TimelineBounds, union
from tidemark.model.chunk.footer import Present, TimelineChunks
from tidemark.model.collection import Column, ColumnType, DecimalType
from tidemark.model.fact import Fact
from tidemark.model.update import Update
from tidemark.plan.tasks import InspectTask
from tidemark.storage.stores.memory import MemoryStore

pytestmark = pytest.mark.pure
TIMED = replace(APPEND, timelines=("a_timestamp", "a_int", "a_date"))
IDS = {column.name: column.id for column in TIMED.columns}
AT = replace(SMALL, value=(Column("at", ColumnType.INT), Column("word", ColumnType.STRING)), timelines=("at",))


def recounted(values: Sequence[Any]) -> Bounds:
    known = [value for value in values if value is not None]
    return Bounds(min(known, default=None), max(known, default=None), len(values) - len(known))


def cells(batch: pa.RecordBatch, name: str) -> list[Any]:
    return list(plain_scalars(batch.column(name)))


@laws
@given(updates(APPEND), st.integers(1, 5), st.integers(1, 9))
def test_record_and_footer_say_what_the_rows_have(some: list[Update], group_rows: int, part_rows: int) -> None:
    store = MemoryStore()
    for part in write(store, TIMED, of_updates(TIMED, some), group_rows=group_rows, part_rows=part_rows):
        groups = list(read_groups(store, part))
        with OpenedPart(store, part) as opened:
            assert [each.id for each in part.timelines] == sorted(opened.timelines)
            for name in TIMED.timelines:
                found = [recounted(cells(group, name)) for group in groups]
                unit = DAY if name == "a_date" else 1
                assert part.bounds_of(IDS[name]) == union(found).times(unit)
                assert chunk_bounds(opened, updates_schema(TIMED).field(name)) == found
                chunks = opened.timelines[IDS[name]]
                assert chunks.ascends == tuple(is_ascending(cells(group, name)) for group in groups)
                others = [each for each in TIMED.value if each.name != name]
                expected = {
                    each.id: tuple(where_present(group, name, each.name, unit) for group in groups) for each in others
                }
                assert chunks.present == {number: each for number, each in expected.items() if any(each)}


def is_ascending(times: Sequence[int | None]) -> bool:
    return None not in times and times == sorted(times)  # type: ignore[type-var]


def where_present(group: pa.RecordBatch, timeline: str, name: str, unit: int) -> Present | None:
    if not group.column(name).null_count:
        return None
    pairs = zip(cells(group, timeline), cells(group, name), strict=True)
    times = [time for time, value in pairs if value is not None]
    on_it = [time * unit for time in times if time is not None]
    return Present(min(on_it, default=None), max(on_it, default=None), len(times))


def test_a_part_of_facts_has_them_with_nulls_where_a_row_is_deleted():
    store, timed = MemoryStore(), replace(KEYED, value=(Column("at", ColumnType.INT),), timelines=("at",))
    facts = [Fact((n,), None if n == 2 else (n * 10,), 5, 5, (0, "f", n)) for n in range(4)]
    (part,) = write(store, timed, of_facts(timed, facts), facts=True)
    assert part.timelines == (TimelineBounds(2, 0, 30, 1),)


@pytest.mark.parametrize(
    ("days", "expected"),
    [
        ([-1, None, 2_932_896], (TimelineBounds(2, -DAY, 2_932_896 * DAY, 1),)),
        ([(2**63 - 1) // DAY], (TimelineBounds(2, 106_751_991 * DAY, 106_751_991 * DAY, 0),)),
        ([0, (2**63 - 1) // DAY + 1], ()),
        ([-(2**31), 0], ()),
    ],
)
def test_dates_are_recorded_as_their_midnights_and_not_where_these_are_beyond_64_bits(
    days: list[int | None], expected: tuple[TimelineBounds, ...]
):
    store, timed = MemoryStore(), replace(SMALL, value=(Column("day", ColumnType.DATE, 2),), timelines=("day",))
    (part,) = write(store, timed, of_updates(timed, [Update((n,), (day,), n, n, 1) for n, day in enumerate(days)]))
    assert part.timelines == expected
    assert inspect_part(store, InspectTask(timed, part, False)).misbounded == ()
    assert sum(rows.num_rows for rows in read_groups(store, part)) == len(days)


WIDER: list[tuple[Any, Any, Any, tuple[int, int]]] = [
    (ColumnType.DATE, ColumnType.TIMESTAMP, [-1, None, 2], (-86_400_000_000, 172_800_000_000)),
    (ColumnType.BOOL, ColumnType.INT, [True, None, False], (0, 1)),
    (ColumnType.INT, DecimalType(12, 2), [-3, None, 4], (-300, 400)),
    (ColumnType.BOOL, DecimalType(12, 2), [True, None, True], (100, 100)),
    (MONEY, DecimalType(20, 4), [-5, None, 1_250], (-500, 125_000)),
    (ColumnType.DATE, ColumnType.DATE, [-1, None, 2], (-1, 2)),
    (MONEY, MONEY, [-5, None, 10**12 - 1], (-5, 10**12 - 1)),
]


@pytest.mark.parametrize(("stored", "asked", "values", "expected"), WIDER)
def test_bounds_of_row_groups_are_of_the_type_that_is_asked_for(
    stored: Any, asked: Any, values: list[Any], expected: tuple[int, int]
):
    store = MemoryStore()
    old, new = (replace(SMALL, value=(Column("x", of, 2),)) for of in (stored, asked))
    (part,) = write(store, old, of_updates(old, [Update((n,), (value,), n, n, 1) for n, value in enumerate(values)]))
    with OpenedPart(store, part) as opened:
        assert chunk_bounds(opened, updates_schema(new).field("x")) == [Bounds(*expected, 1)]


def test_a_column_is_found_by_its_id_and_one_that_came_later_is_null():
    store = MemoryStore()
    (part,) = write(store, AT, of_updates(AT, [Update((n,), (n, "w"), n, n, 1) for n in range(3)]), group_rows=2)
    renamed = replace(AT, value=(Column("when", ColumnType.INT, 2), Column("at", ColumnType.INT, 9)), timelines=("at",))
    with OpenedPart(store, part) as opened:
        assert chunk_bounds(opened, updates_schema(renamed).field("when")) == [Bounds(0, 1, 0), Bounds(2, 2, 0)]
        assert chunk_bounds(opened, updates_schema(renamed).field("at")) == [
            Bounds(None, None, 2),
            Bounds(None, None, 1),
        ]


def test_texts_and_floats_have_no_plain_bounds():
    store = MemoryStore()
    of = replace(SMALL, value=(Column("s", ColumnType.STRING), Column("f", ColumnType.FLOAT)))
    (part,) = write(store, of, of_updates(of, [Update((1,), ("a", 1.5), 1, 1, 1)]))
    with OpenedPart(store, part) as opened:
        assert [chunk_bounds(opened, updates_schema(of).field(name)) for name in "sf"] == [[None], [None]]


@pytest.mark.parametrize(
    "text", [b"{}", b"{", b"eJwr", b"\xff", b'{"timelines":[{"id":2,"ascends":"1","present":{}}]}']
)
def test_an_entry_that_is_none_is_corruption(text: bytes):
    with pytest.raises(Corruption, match=r"p\.parquet has a footer whose entry tidemark.chunks does not decode"):
        footer.decoded({footer.ENTRY: text}, 2, "p.parquet")


def misrecorded(store: MemoryStore, **record: int | None) -> Part:
    """A part of three row groups, its timeline at 0, 10, … 70, whose record says otherwise."""
    (part,) = write(store, AT, of_updates(AT, [Update((n,), (n * 10, "w"), n, n, 1) for n in range(8)]))
    return replace(part, timelines=(replace(part.timelines[0], **record),))  # type: ignore[arg-type]


@pytest.mark.parametrize("record", [{"last": 69}, {"first": 1}, {"first": None, "last": None, "nulls": 8}])
def test_bounds_that_are_too_narrow_are_found_by_a_read_that_meets_the_row(record: dict[str, int | None]):
    store = MemoryStore()
    part = misrecorded(store, **record)
    with pytest.raises(
        Corruption, match=rf"{part.file.key} holds timeline at at .* in row groups \d to \d, recorded were"
    ):
        list(read_groups(store, part, schema=updates_schema(AT)))
    with OpenedPart(store, part) as opened:
        rows = opened.encoded(range(3), updates_schema(AT)).combine_chunks().to_batches()[0]
        with pytest.raises(Corruption, match="some rows"):
            opened.decoded(rows, updates_schema(AT))
        others = opened.read([0, 1, 2], updates_schema(AT).remove(1))
        assert others.num_rows == 8, "a read of other columns does not look"
        assert opened.read([], updates_schema(AT)).num_rows == 0


def inspected(store: MemoryStore, part: Part) -> tuple[str, ...]:
    return inspect_part(store, InspectTask(AT, part, False)).misbounded


@pytest.mark.parametrize(
    ("record", "found"),
    [
        ({}, ()),
        ({"last": 69}, ("timeline at is recorded as 0 to 69, the rows have 0 to 70",)),
        ({"first": -1}, ("timeline at is recorded as -1 to 70, the rows have 0 to 70",)),
        ({"nulls": 1}, ("timeline at is recorded as 0 to 70, 1 null, the rows have 0 to 70",)),
        ({"id": 9}, ("it has no column 9 of a timeline, of which bounds are recorded",)),
    ],
)
def test_who_reads_every_row_counts_the_bounds_again(record: dict[str, int | None], found: tuple[str, ...]):
    store = MemoryStore()
    assert inspected(store, misrecorded(store, **record)) == found


def test_an_entry_that_says_otherwise_than_the_rows_is_found_by_its_row_group(monkeypatch: pytest.MonkeyPatch):
    store, true = MemoryStore(), footer.encoded
    of = replace(AT, timelines=("at",))
    some = of_updates(of, [Update((n,), (-n, None if n == 4 else "w"), n, n, 1) for n in range(8)])

    def encoded_wrongly(chunks: Sequence[TimelineChunks]) -> dict[str, str]:
        present = {3: (None, Present(-5, -4, 2), None)}
        return true([replace(chunks[0], ascends=(False, True, False), present=present)])

    monkeypatch.setattr(footer, "encoded", encoded_wrongly)
    (part,) = write(store, of, some)
    assert inspected(store, part) == (
        "row group 1 is recorded to ascend by timeline at, and does not",
        (
            "row group 1 is recorded to have values of column 3 at -5 to -4 in 2 rows of timeline at, "
            "the rows have them at -5 to -3 in 2 rows"
        ),
    )
    monkeypatch.setattr(footer, "encoded", lambda _: {})
    (bare,) = write(store, of, some)
    assert inspected(store, bare) == ("its footer does not say which row groups ascend by timeline at",)
    monkeypatch.setattr(footer, "encoded", lambda _: {"tidemark.chunks": "no"})
    (broken,) = write(store, of, some)
    assert "does not decode" in inspected(store, broken)[0]


def test_statistics_that_are_too_narrow_are_found_by_their_row_group(monkeypatch: pytest.MonkeyPatch):
    store = MemoryStore()
    part = misrecorded(store)
    monkeypatch.setattr(recount, "chunk_bounds", lambda *_: [Bounds(0, 20, 0), Bounds(30, 49, 0), None])
    assert inspected(store, part) == ("row group 1 has statistics of timeline at of 30 to 49, the rows have 30 to 50",)
