"""How columns may change, as text: evolution.txt. And what holds of any change that is accepted."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import datadriven
from support.relanded import relanded
from support.world import collection
from tidemark.errors import InvalidUsage
from tidemark.model.arrangement import Arrangement
from tidemark.model.change import Redefined
from tidemark.model.collection import (
    Collection,
    Column,
    ColumnType,
    DecimalType,
    Envelope,
    Source,
    ValueType,
    parse_type,
)
from tidemark.model.decimals import NoDecimal, units
from tidemark.model.derived import Definition, Derived
from tidemark.model.evolution import bounds_of, differences, evolved, started, widens
from tidemark.model.interval import Interval, IntervalSet
from tidemark.model.layout import Layout
from tidemark.model.ordering import newly_ordered
from tidemark.model.records import Totals
from tidemark.model.transition import Applied, apply
from tidemark.model.transition.declarations import redeclared
from tidemark.storage.documents.codec import decode, encode


def with_rows(declared: Collection) -> Arrangement:
    return Arrangement(declared, totals=Totals(rows_ingested=1))


class Columns:
    """Commands upon one collection: `declare` it, and `evolve` it to what a file lists, or be refused.

    A line is a value column: its name, its type, and perhaps `was` and its old name. Words change other fields.
    """

    def __init__(self) -> None:
        self.current: Collection | None = None

    def __call__(self, case: datadriven.Case) -> str:
        asked = self.asked(case)
        if case.command == "declare":
            self.current = started(asked)
            return _described(self.current)
        assert self.current is not None
        try:
            new = evolved(self.current, asked)
        except InvalidUsage as refusal:
            return f"refused: {refusal}"
        if new == self.current:
            return "nothing changed"
        assert apply(with_rows(self.current), Redefined(new)) == Applied(with_rows(new))
        report = "\n".join(differences(self.current, new)) or "columns stay"
        self.current = new
        return f"{report}\n{_described(new)}"

    def asked(self, case: datadriven.Case) -> Collection:
        lines = [line.split() for line in case.input.splitlines()]
        words = dict(case.words)
        envelope = Envelope(words.pop("envelope", "upsert"))
        order_by = words.pop("order_by", None)
        several = tuple(order_by.split(",")) if order_by and "," in order_by else order_by
        source = Source("*", collection().landed.source.format, envelope, order_by=several)
        key = words.pop("key", "k:int").split(":")
        declared = replace(
            collection(envelope, **{name: int(word) if name == "start" else word for name, word in words.items()}),
            key=(Column(key[0], ColumnType(key[1])),),
            value=tuple(Column(name, parse_type(of)) for name, of, *_ in lines),
        )
        declared = relanded(declared, source=source, inputs=())
        return replace(declared, renames=tuple((line[3], line[0]) for line in lines if len(line) > 2))


def _described(declared: Collection) -> str:
    value = [f"{column.id} {column.name} {column.type}" for column in declared.value]
    dropped = [f"{column.id} {column.name} {column.type} dropped" for column in declared.dropped]
    return "\n".join([f"schema {declared.schema}", *(value + dropped)])


def test_text():
    datadriven.run(Path(__file__).parent / "evolution.txt", Columns())


TYPES = (*ColumnType, *(DecimalType(p, s) for p, s in ((1, 1), (5, 0), (5, 2), (7, 2), (21, 2), (38, 0), (38, 19))))
WIDENINGS = [(narrow, wide) for narrow in TYPES for wide in TYPES if widens(narrow, wide)]


def test_types_get_wider_in_these_ways_only():
    assert [f"{narrow} {wide}" for narrow, wide in WIDENINGS] == [
        "bool int",
        "bool float",
        *(f"bool {of}" for of in TYPES[9:]),
        "int float",
        *(f"int {of}" for of in TYPES[9:]),
        "date timestamp",
        "decimal(1, 1) decimal(5, 2)",
        "decimal(1, 1) decimal(7, 2)",
        "decimal(1, 1) decimal(21, 2)",
        "decimal(1, 1) decimal(38, 19)",
        "decimal(5, 0) decimal(7, 2)",
        "decimal(5, 0) decimal(21, 2)",
        "decimal(5, 0) decimal(38, 0)",
        "decimal(5, 0) decimal(38, 19)",
        "decimal(5, 2) decimal(7, 2)",
        "decimal(5, 2) decimal(21, 2)",
        "decimal(5, 2) decimal(38, 19)",
        "decimal(7, 2) decimal(21, 2)",
        "decimal(7, 2) decimal(38, 19)",
        "decimal(21, 2) decimal(38, 19)",
    ]


def test_what_got_wider_twice_could_have_done_so_at_once():
    """A part may be as old as the first of several declarations."""
    twice = [(one, last) for one, other in WIDENINGS for last in TYPES if widens(other, last)]
    assert len(twice) == 40
    assert set(twice) <= set(WIDENINGS)


@pytest.mark.parametrize(("narrow", "wide"), WIDENINGS, ids=str)
def test_a_widening_keeps_values_distinct_and_in_order(narrow: ValueType, wide: ValueType):
    """At the bounds it is exact still, beyond them it is not."""
    bounds = bounds_of(narrow, wide)
    if bounds is None:
        assert narrow is not ColumnType.INT or (isinstance(wide, DecimalType) and wide.whole_digits >= len(str(2**63)))
        return
    low, high = bounds
    if isinstance(wide, DecimalType):
        assert units(high, wide) == -units(low, wide)
        for beyond in (high + 1, low - 1):
            with pytest.raises(NoDecimal):
                units(beyond, wide)
    elif wide is ColumnType.FLOAT:
        assert all(float(x - 1) < float(x) for x in (high, low + 1)), "each value has a float of its own"
        assert (float(high), float(low)) == (float(high + 1), float(low - 1))
    else:
        day = 86_400_000_000
        assert (low - 1) * day < -(2**63) <= low * day
        assert high * day < 2**63 <= (high + 1) * day


WITHOUT_A = evolved(
    collection(value=(Column("a", ColumnType.INT), Column("b", ColumnType.INT)), inputs=()),
    collection(value=(Column("b", ColumnType.INT),), inputs=()),
)
"""`a`, number 2, was dropped."""


@pytest.mark.parametrize(
    ("value", "dropped", "says"),
    [
        ((("b", 3),), (), "column a of tides, number 2, is neither kept nor dropped"),
        ((("b", 4),), (("a", 2),), "column b of tides, number 3, is neither kept nor dropped"),
        ((("b", 3), ("a", 2)), (), "column a of tides, number 2, is neither kept nor dropped"),
        ((("b", 3), ("c", 1)), (("a", 2),), "collection tides numbers columns twice"),
        ((("b", 3), ("c", 3)), (("a", 2),), "collection tides numbers columns twice"),
    ],
)
def test_a_redefinition_that_rows_cannot_follow_is_not_applied(
    value: tuple[tuple[str, int], ...], dropped: tuple[tuple[str, int], ...], says: str
):
    """Whoever made it: what `evolved` gives is checked again where it is applied."""

    def columns(some: tuple[tuple[str, int], ...]) -> tuple[Column, ...]:
        return tuple(Column(name, ColumnType.INT, number) for name, number in some)

    with pytest.raises(InvalidUsage, match=says):
        apply(with_rows(WITHOUT_A), Redefined(replace(WITHOUT_A, value=columns(value), dropped=columns(dropped))))


def test_a_declaration_from_before_columns_had_numbers_gets_them():
    declared = collection(Envelope.UPSERT)
    document = json.loads(encode(declared))
    for column in (*document["key"], *document["value"], *document["origin"]["inputs"]):
        del column["id"]
    del document["dropped"], document["schema"], document["renames"]
    assert decode(json.dumps(document).encode(), Collection, name="declaration") == declared
    assert [column.id for column in declared.columns] == [1, 2]


VALUE = st.lists(st.sampled_from("abcd"), unique=True).flatmap(
    lambda names: st.tuples(*(st.builds(Column, st.just(name), st.sampled_from(TYPES)) for name in names))
)


@given(st.lists(VALUE, min_size=1, max_size=6))
def test_a_number_is_of_one_column_for_ever(declared: list[tuple[Column, ...]]):
    """Whatever files follow each other: no number becomes that of another column, and no column becomes narrower."""
    current, seen = collection(value=declared[0], inputs=()), {}
    for value in declared:
        try:
            new = evolved(current, replace(current, value=value, dropped=()))
        except InvalidUsage:
            continue
        assert {(c.name, c.type) for c in new.value} == {(c.name, c.type) for c in value}
        for column in new.stored_value:
            name, of = seen.setdefault(column.id, (column.name, column.type))
            assert column.name == name
            assert of == column.type or widens(of, column.type)
            seen[column.id] = (name, column.type)
        assert {column.id for column in current.stored_value} <= {column.id for column in new.stored_value}
        assert new.schema == current.schema + (
            new.stored_value != current.stored_value or new.dropped != current.dropped
        )
        current = new


def test_names_from_before_they_were_reserved_stay_and_may_be_left():
    """Such a collection is read and redefined as ever; a rename frees it."""
    columns = (Column("diff", ColumnType.INT), Column("K", ColumnType.INT))
    old = collection(value=columns, inputs=())
    assert evolved(decode(encode(old), Collection, name="declaration"), replace(old, live_batches=5)).value == old.value
    renamed = (Column("diff_value", ColumnType.INT), Column("K", ColumnType.INT))
    freed = evolved(old, replace(old, value=renamed, renames=(("diff", "diff_value"),)))
    assert [(column.name, column.id) for column in freed.value] == [("diff_value", 2), ("K", 3)]
    with pytest.raises(InvalidUsage, match="diff is reserved"):
        evolved(freed, old)
    with pytest.raises(InvalidUsage, match="column diff is reserved"):
        started(old)


DERIVED = Derived(("moons",), Definition("SELECT k, v FROM moons"))
FIELDS: dict[str, dict[str, Any]] = {
    "key": {"key": (Column("id", ColumnType.STRING),)},
    "type": {"value": (Column("v", ColumnType.INT),)},
    "envelope": {"envelope": Envelope.SNAPSHOT},
    "event_time": {"event_time": False},
    "layout": {"value": (Column("at", ColumnType.INT),), "timelines": ("at",), "layout": Layout("at", 10)},
    "start": {"start": 10},
    "origin": {"origin": DERIVED},
}


@pytest.mark.parametrize("field", FIELDS)
def test_without_rows_a_declaration_changes_in_every_field(field: str):
    """Where intervals were ingested, be it without rows, they are still to be those of the collection."""
    current, other = collection(), replace(collection(**FIELDS[field]), renames=(("never", "v"),))
    fresh = Arrangement(current)
    new = redeclared(fresh, other)
    assert replace(new, schema=0) == replace(newly_ordered(other, current), renames=())
    assert apply(fresh, Redefined(new)) == Applied(Arrangement(new))
    begun = replace(fresh, ingested=IntervalSet((Interval(0, 10),)))
    for state in [with_rows(current), *([begun] if field in ("start", "origin") else [])]:
        with pytest.raises(InvalidUsage, match="cannot change"):
            redeclared(state, other)
        with pytest.raises(InvalidUsage, match=r"cannot change|neither kept nor dropped"):
            apply(state, Redefined(new))
    if field not in ("start", "origin"):
        assert redeclared(begun, other) == new
