"""Pins: added while their batch is live, dropped only by who knows the last attempt; and what can be declared."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.support.drawn import declared, ref, trace_batch
from tidemark.errors import InvalidUsage
from tidemark.model.arrangement import Arrangement
from tidemark.model.change import Change
from tidemark.model.publication import (
    Destination,
    Publication,
    Published,
    Publishing,
    TableFormat,
    Unpublished,
    of_format,
    pin_of,
)
from tidemark.model.transition import AlreadyApplied, Applied, Stale, apply

ICE = TableFormat.ICEBERG
A, B, C = (pin_of(ref(name)) for name in "abc")
STATE = replace(
    Arrangement(declared({})),
    complete_below=20,
    seal=20,
    trace=(trace_batch(["a", "[0][10][0]", "5", "0"]), trace_batch(["b", "[10][20][0]", "5", "0"])),
)


def after(state: Arrangement, *changes: Change) -> Arrangement:
    for change in changes:
        outcome = apply(state, change)
        assert isinstance(outcome, Applied), outcome
        assert isinstance(apply(outcome.state, change), AlreadyApplied), "the second time it is a no-op"
        state = outcome.state
    return state


def compacted(state: Arrangement) -> Arrangement:
    """A and B merged into C."""
    return replace(state, trace=(trace_batch(["c", "[0][20][0]", "9", "1"]),))


def pins(state: Arrangement) -> list[str]:
    publication = of_format(state.publications, ICE)
    return [] if publication is None else [pin.name for pin in publication.pins]


def published(attempt: str, snapshot: str, *keeps: str) -> Published:
    return Published(ICE, "db.t", attempt, snapshot, int(snapshot), 7, 20, keeps)


def test_the_worked_example() -> None:
    state = after(STATE, Publishing(ICE, "db.t", "1", (A,)), published("1", "1", "a"))
    state = after(compacted(state), Publishing(ICE, "db.t", "2", (C,)))
    assert pins(state) == ["a", "c"]
    assert {"a", "c"} <= {each.key for each in state.objects()}, "the collector keeps what no batch names"
    state = after(state, published("2", "2", "a", "c"), published("2", "3", "c"))
    assert pins(state) == ["c"]
    assert "a" not in {each.key for each in state.objects()}
    assert after(state, Unpublished(ICE)).publications == ()


def test_a_batch_that_was_replaced_is_not_pinned() -> None:
    state = compacted(after(STATE, Publishing(ICE, "db.t", "1", (A,))))
    stale = apply(state, Publishing(ICE, "db.t", "2", (A, B)))
    assert stale == Stale("the batch of b was replaced meanwhile")
    assert isinstance(apply(state, Publishing(ICE, "db.t", "2", (A,))), Applied), "what is pinned stays so"


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (published("1", "5", "a"), "another attempt publishes to iceberg table db.t"),
        (published("2", "5", "a", "c"), "c is not pinned"),
        (replace(published("2", "5"), table="db.u"), "the collection is published to iceberg table db.t, not to db.u"),
    ],
)
def test_pins_are_dropped_by_who_knows_the_last_attempt(change: Published, why: str) -> None:
    state = after(STATE, Publishing(ICE, "db.t", "1", (A,)), Publishing(ICE, "db.t", "2", (B,)))
    assert apply(state, change) == Stale(why)


def test_of_an_older_snapshot_nothing_is_taken() -> None:
    state = after(STATE, Publishing(ICE, "db.t", "1", (A, B)), published("1", "5", "a", "b"))
    assert isinstance(apply(state, published("1", "4", "a")), AlreadyApplied)
    again = after(state, Publishing(ICE, "db.t", "2", afresh=True))
    assert of_format(again.publications, ICE) == Publication(ICE, "db.t", "2", pins=(A, B))
    assert pins(after(again, published("2", "1", "b"))) == ["b"], "in a table that is made again sequences begin again"


@pytest.mark.parametrize("table", ["flights", "db.", "db.my-table", "db..t", "db." + "t" * 300, "db.1t", "db.t; drop"])
def test_a_table_that_cannot_be_named(table: str) -> None:
    with pytest.raises(InvalidUsage, match="is no identifier; write a namespace"):
        Destination(ICE, table)


def test_a_reserved_word() -> None:
    with pytest.raises(InvalidUsage, match=r"table db\.Order has the name Order, a reserved word"):
        Destination(ICE, "db.Order")


@pytest.mark.parametrize(
    "prop",
    [
        ("s3.secret-access-key", "x"),
        ("token", "x"),
        ("credential", "id:secret"),
        ("uri", "postgresql+psycopg2://me:pw@db/catalog"),
    ],
)
def test_no_secret_is_stored(prop: tuple[str, str]) -> None:
    with pytest.raises(InvalidUsage, match=r"is a secret, and would be stored .* PYICEBERG_CATALOG__NAME__"):
        Destination(ICE, "db.t", (prop,))
    Destination(ICE, "db.t", (("uri", "http://catalog:8181"), ("type", "rest")))
