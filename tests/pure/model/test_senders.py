"""Whose messages a declaration has: learned by the first ingest, kept over `init`, and not to be overtaken."""

from __future__ import annotations

from dataclasses import replace

import pytest

from support.relanded import relanded
from support.world import collection, interval
from tidemark.model.arrangement import Arrangement, Fence
from tidemark.model.change import Ingested, Redefined
from tidemark.model.collection import Collection, Envelope
from tidemark.model.evolution import evolved, started
from tidemark.model.only import table_of
from tidemark.model.transition import Applied, Stale, apply

pytestmark = pytest.mark.pure

A, B = (table_of({"source.db": "shop", "source.table": name}) for name in "ab")


def declared(only: str | None = None) -> Collection:
    current = collection(Envelope.DEBEZIUM)
    return relanded(current, source=replace(current.landed.source, only=only))


def ingested(table: str, server: str = "") -> Ingested:
    return Ingested(Fence("ingest", interval(0), table or "t", True), None, None, table=table, server=server)


def test_the_table_of_the_first_ingest_is_known_from_then_on_and_another_one_comes_too_late() -> None:
    state = Arrangement(started(declared()))
    assert state.collection.landed.source.table == ""
    learned = apply(apply(state, ingested("")).state, ingested(A, "mysql binlog"))  # type: ignore[union-attr]
    assert isinstance(learned, Applied)
    source = learned.state.collection.landed.source
    assert (source.table, source.server) == (A, "mysql binlog")
    assert isinstance(apply(learned.state, ingested(A)), Applied)
    late = apply(learned.state, ingested(B))
    assert isinstance(late, Stale)
    assert f"to two tables, {A}, and now {B}" in late.reason


@pytest.mark.parametrize("table", ["", A, None])
def test_init_keeps_what_was_learned_and_brings_in_another_condition(table: str | None) -> None:
    current = declared()
    current = relanded(current, source=replace(current.landed.source, table=table))
    for only in (None, A, B):
        assert evolved(current, declared(only)).landed.source == replace(current.landed.source, only=only)
    assert Redefined(evolved(current, declared(A))).words == "changed the declaration"
