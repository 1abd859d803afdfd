"""Resolving facts of transactions and such with holes, against the model's law over everything that was ever said."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.relanded import relanded
from tests.pure.arrow.samples import as_updates, batch, collection, of_updates, write
from tests.support.budget import laws
from tidemark.arrow.kernels.merge import Tally
from tidemark.arrow.kernels.resolve import updates_from
from tidemark.arrow.rows.lacks import BEFORE, ONLY_KEY, READ, lacking
from tidemark.arrow.rows.order import sort
from tidemark.arrow.rows.schema import facts_schema, sort_columns
from tidemark.errors import InvalidUsage
from tidemark.model.collection import Column, ColumnType, Envelope, Format, Source
from tidemark.model.fact import resolve
from tidemark.model.transaction import HOLE, Cells, Effect, Message, plain
from tidemark.model.update import Row, Update, consolidate, sort_key
from tidemark.plan.tasks import KeyRange, ResolveTask
from tidemark.storage.stores.memory import MemoryStore

pytestmark = pytest.mark.pure

WORDS = (Column("word", ColumnType.STRING, 2), Column("x", ColumnType.FLOAT, 3))
MESSAGES = relanded(
    collection(Envelope.UPSERT, key=(Column("number", ColumnType.INT, 1),), value=WORDS),
    source=Source("*", Format.JSONL, Envelope.DEBEZIUM, order_by="source.lsn", transactions=True),
    inputs=(Column("source.lsn", ColumnType.INT),),
)
MARKS = {Effect.REPLACE: BEFORE}
LAST, HORIZON = 8, 1
"""The horizon is below all that is remembered."""


@st.composite
def said(draw: st.DrawFn) -> list[Message]:
    """Messages of few keys, transactions and places; some delivered twice, some withdrawn later."""
    cells = st.tuples(st.sampled_from(["a", "b", None]), st.sampled_from([0.5, float("nan")]))
    messages: list[Message] = []
    in_order = draw(st.booleans())  # as most are: each transaction after the other, learned so, and once
    for row in range(draw(st.integers(0, 12))):
        transaction = str(row // 3) if in_order else draw(st.sampled_from([None, "7", "8", "9"]))
        effect = draw(st.sampled_from(Effect))
        word, x = draw(cells)
        image: Cells = (word, 0.25 if x != x else x)
        if not effect.takes and draw(st.integers(0, 3 if effect is Effect.REPLACE else 30)) == 0:
            image = (HOLE, image[1])
        happened = 3 if transaction == "7" else draw(st.integers(HORIZON + 1, 4))
        key, learned = (draw(st.integers(1, 2)),), draw(st.integers(2, LAST))
        if in_order:
            learned = happened = HORIZON + 1 + row // 3
        is_read = transaction is None and effect is Effect.PUT and draw(st.booleans())
        message = Message(key, image, effect, transaction, learned, happened, (row, "f", row), is_read=is_read)
        messages.append(message)
        if in_order:
            continue
        if draw(st.integers(0, 4)) == 0:
            messages.append(replace(messages[-1], time=draw(st.integers(2, LAST)), order=(row, "g", row)))
        if draw(st.integers(0, 4)) == 0:
            messages.append(replace(messages[-1], time=messages[-1].time + 1, diff=-1))
    return messages


bases = st.dictionaries(st.integers(1, 2), st.tuples(st.sampled_from("ab"), st.just(0.5)), min_size=2)


def in_model(base: dict[int, Row], older: list[Message], new: list[Message]) -> list[Update] | None:
    """What the law says of all keys; None where a row is not whole."""
    updates: list[Update] = []
    for key in (1, 2):
        own = [[message for message in messages if message.key == (key,)] for messages in (older, new)]
        facts, changes, _ = plain(base.get(key), *own)
        if own[1] and any(HOLE in (fact.value or ()) for fact in (*facts, *changes)):
            return None
        updates += resolve(base.get(key), facts, changes)
    return sorted(consolidate(updates), key=sort_key)


def parts_of(store: MemoryStore, messages: list[Message], batches: int):  # type: ignore[no-untyped-def]
    schema = facts_schema(MESSAGES)
    for at in range(batches):
        for sign in (+1, -1):
            rows = []
            for m in messages[at::batches]:
                if m.diff != sign:
                    continue
                row = tuple(None if cell is HOLE else cell for cell in m.row)
                ids = [column.id for column, cell in zip(WORDS, m.row, strict=True) if cell is HOLE]
                mark = READ if m.is_read else MARKS.get(m.effect, "")
                lacks = ONLY_KEY if m.effect is Effect.TAKE_ANY else lacking(ids, mark)
                rows.append(
                    (*m.key, *row, m.effect.takes, m.time, m.event_time, *m.order, m.transaction, lacks or None)
                )
            table = sort(batch(schema, rows), sort_columns(MESSAGES, facts=True))
            yield from write(store, MESSAGES, table, facts=True, retracted=sign < 0)


@laws
@given(said(), bases, st.integers(2, LAST), st.integers(1, 3), st.integers(1, 20))
def test_messages_resolve_as_the_law_has_it(
    messages: list[Message], base: dict[int, Row], lower: int, batches: int, buffered: int
) -> None:
    """Drains of what was learned below a time, and from then on, over a trace that has what was before all."""
    store, trace = MemoryStore(), [Update((key,), row, 0, HORIZON, 1) for key, row in base.items()]
    for since, upper in ((0, lower), (lower, LAST + 2)):
        facts = tuple(parts_of(store, [m for m in messages if m.time < upper], batches))
        parts = write(store, MESSAGES, of_updates(MESSAGES, trace))
        task = ResolveTask(MESSAGES, facts, parts, KeyRange(), since, upper, HORIZON, "out")
        tally = Tally()
        older = [m for m in messages if m.time < since]
        expected = in_model(base, older, [m for m in messages if since <= m.time < upper])
        updates = updates_from(store, task, tally, buffered_rows=buffered)
        if expected is None:
            with pytest.raises(InvalidUsage, match="lacks column word"):
                list(updates)
            return
        resolved = as_updates(MESSAGES, updates)
        assert sorted(resolved, key=sort_key) == expected
        trace += resolved


def test_what_lacks_a_column_that_no_row_before_it_has_is_refused() -> None:
    store = MemoryStore()
    lone = Message((1,), ("a", HOLE), Effect.REPLACE, "7", 2, 3, (1, "day/f.jsonl", 4))
    task = ResolveTask(MESSAGES, tuple(parts_of(store, [lone], 1)), (), KeyRange(), 0, 9, HORIZON, "out")
    with pytest.raises(InvalidUsage, match=r"day/f\.jsonl, row 5 lacks column x,.* snapshot, or .*optional: true"):
        list(updates_from(store, task, Tally()))
