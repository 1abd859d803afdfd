"""Transactions as one change: the law against a database that is simulated here, and by cases made by hand."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.budget import laws
from tidemark.model.fact import resolve
from tidemark.model.transaction import HOLE, Cells, Effect, Message, Net, history, net, plain, spent

pytestmark = pytest.mark.pure

PUT, REPLACE, TAKE, TAKE_ANY = Effect.PUT, Effect.REPLACE, Effect.TAKE, Effect.TAKE_ANY
A, B, C = ("a", 1), ("b", 2), ("c", 3)
LOST = (None, None)
"""The image of a delete that has only the key."""

CASES: dict[str, tuple[Cells | None, list[tuple[Effect, Cells]], Cells | None, int]] = {
    "put and taken away: what was there": (B, [(PUT, A), (TAKE, A)], B, 0),
    "put and taken away: nothing was there": (None, [(PUT, A), (TAKE, A)], None, 0),
    "taken away and put again": (A, [(TAKE, A), (PUT, A)], A, 0),
    "taken away and put again, never heard of before": (None, [(TAKE, A), (PUT, A)], A, 1),
    "another put in its place": (A, [(TAKE, A), (PUT, B)], B, 0),
    "a row moves in, then the one before moves out": (B, [(PUT, A), (TAKE, B)], A, 0),
    "the same, and what was before was never heard of": (None, [(PUT, A), (TAKE, B)], A, 1),
    "the same, and the image is not what is stored": (C, [(PUT, A), (TAKE, B)], A, 1),
    "only the key: the row before goes first": (B, [(PUT, A), (TAKE_ANY, LOST)], A, 0),
    "only the key: without one the row that was put there": (None, [(PUT, A), (TAKE_ANY, LOST)], None, 0),
    "only the key: taken away and put": (B, [(TAKE_ANY, LOST), (PUT, A)], A, 0),
    "only the key, guessed": (B, [(PUT, A), (TAKE_ANY, A)], B, 0),
    "guessed, and it is the row before": (A, [(PUT, B), (TAKE_ANY, A)], B, 0),
    "put and replaced": (None, [(PUT, A), (REPLACE, B)], B, 0),
    "replaced again and again": (A, [(REPLACE, B), (REPLACE, C), (REPLACE, A)], A, 0),
    "put, replaced, taken away": (None, [(PUT, A), (REPLACE, B), (TAKE_ANY, LOST)], None, 0),
    "replaced, then taken away": (A, [(REPLACE, B), (TAKE, B)], None, 0),
    "moves in, is replaced, then the one before moves out": (B, [(PUT, A), (REPLACE, C), (TAKE, B)], C, 0),
    "the one before is replaced and moves out": (B, [(PUT, A), (REPLACE, C), (TAKE, C)], A, 0),
    "chain of three": (B, [(PUT, A), (TAKE, B), (PUT, C), (TAKE, A)], C, 0),
    "a delete of what is stored": (A, [(TAKE, A)], None, 0),
    "a delete of something else": (A, [(TAKE, B)], None, 1),
    "a delete of nothing": (None, [(TAKE, B)], None, 1),
    "half a transaction: the newest row": (A, [(PUT, B)], B, 0),
    "a hole": (A, [(REPLACE, ("x", HOLE))], ("x", 1), 0),
    "a hole behind a row of the transaction": (A, [(REPLACE, B), (REPLACE, ("x", HOLE))], ("x", 2), 0),
    "a hole in the row that moves in beside another one": (A, [(PUT, B), (TAKE, A), (REPLACE, (HOLE, 7))], ("b", 7), 0),
    "a hole in an image is no difference": (A, [(TAKE, (HOLE, 1))], None, 0),
    "a hole in a row that came from another key": (A, [(TAKE, A), (PUT, ("x", HOLE))], ("x", HOLE), 0),
    "a hole behind nothing": (None, [(PUT, ("x", HOLE))], ("x", HOLE), 0),
}


def messages_of(said: list[tuple[Effect, Cells]]) -> list[Message]:
    return [Message(("k",), row, effect, "tx", 5, 5, (at, "f", at)) for at, (effect, row) in enumerate(said)]


@pytest.mark.parametrize("case", CASES)
def test_what_a_transaction_leaves(case: str) -> None:
    before, said, row, unmatched = CASES[case]
    assert net(before, messages_of(said)) == Net(row, unmatched)
    if HOLE not in (row or ()):
        redelivered = [replace(message, order=(message.order[0], "g", 0)) for message in messages_of(said)]
        assert [point.row for point in history(before, [*messages_of(said), *redelivered])] == [row]


def read(row: Cells, event_time: int, log: int, learned: int = 1) -> Message:
    return Message(("k",), row, PUT, None, learned, event_time, (log, "f", log), is_read=True)


def test_a_row_of_a_snapshot_loses_to_what_follows_it_in_the_log_and_is_spent_with_it() -> None:
    """However they are learned; and once the change is forgotten, what is stored says that the row is gone."""
    change = Message(("k",), B, REPLACE, "tx", 1, 5, (7, "f", 7))
    for messages in ([read(A, 9, 3), change], [read(A, 9, 3, 2), change], [read(A, 9, 3), replace(change, time=2)]):
        assert [point.row for point in history(None, messages)] == [A, B]
        said = [update for update in resolve(None, [], plain(None, [], messages)[1]) if update.time < 9]
        assert {update.value: update.diff for update in said if update.event_time <= 5 and update.value == B} == {B: 1}
    assert [point.row for point in history(None, [read(A, 9, 8), change])] == [B, A]
    assert spent(B, [read(A, 9, 3)], []) == [read(A, 9, 3)]
    assert spent(B, [read(A, 9, 3)], [(9, B, -1), (9, A, 1)]) == []
    later = Message(("k",), C, REPLACE, "tx 2", 3, 10, (9, "f", 9))
    again = replace(read(A, 9, 3, 3), order=(3, "g", 0))
    assert [fact.value for fact in plain(B, [read(A, 9, 3)], [later, again], [])[1]] == [C]


@dataclass
class Database:
    """A table whose keys are unique when a transaction ends, not before; and the messages of each change of a key.

    Attributes:
        is_full: Whether before-images have all values. If not, no two rows have a key at any time.
    """

    is_full: bool
    rows: dict[int, tuple[int, Cells]] = field(default_factory=dict)
    log: list[Message] = field(default_factory=list)
    states: list[tuple[int, dict[int, Cells]]] = field(default_factory=list)

    def say(self, key: int, row: Cells, effect: Effect, transaction: int, at: int) -> None:
        order = (len(self.log) if at < 0 else at, "f", len(self.log))
        self.log.append(Message((key,), row, effect, f"{transaction}", 0, transaction // 2, order))


@st.composite
def lives(draw: st.DrawFn) -> Database:
    """Few keys and values, so that all that can happen to a key does.

    Each change is drawn, and undone if its transaction ends with two rows of one key.
    """
    keys, cells = st.integers(1, 3), st.tuples(st.sampled_from("ab"), st.integers(1, 2))
    made, rowid = Database(draw(st.booleans())), 0
    for transaction in range(draw(st.integers(1, 5))):
        rows, log = dict(made.rows), len(made.log)
        moved: set[int] = set()
        for _ in range(draw(st.integers(1, 4))):
            kind = draw(st.sampled_from(["insert", "update", "update", "move", "move", "delete"]))
            key, row = draw(keys), draw(cells)
            has = {old for old, _ in made.rows.values()}
            if kind == "insert":
                if made.is_full or key not in has:
                    made.say(key, row, PUT, transaction, -1)
                    rowid += 1
                    made.rows[rowid] = key, row
                continue
            if not made.rows:
                continue
            number = draw(st.sampled_from(sorted(made.rows)))
            old, image = made.rows[number]
            if kind == "delete" and (made.is_full or old not in moved):
                made.say(old, image if made.is_full else LOST, TAKE if made.is_full else TAKE_ANY, transaction, -1)
                del made.rows[number]
            if kind == "move" and old != key and (made.is_full or key not in has):
                row = draw(st.sampled_from([image, row]))
                place = len(made.log)
                made.say(old, image if made.is_full else row, TAKE if made.is_full else TAKE_ANY, transaction, place)
                made.say(key, row, PUT, transaction, place)
                made.rows[number] = key, row
                moved.add(key)
            if kind == "update":
                holes = [
                    HOLE if draw(st.booleans()) and new == cell else new for new, cell in zip(row, image, strict=True)
                ]
                if made.is_full:
                    made.say(old, image, TAKE, transaction, len(made.log))
                    made.say(old, row, PUT, transaction, len(made.log) - 1)
                else:
                    made.say(old, tuple(holes), REPLACE, transaction, -1)
                made.rows[number] = old, row
        if len({key for key, _ in made.rows.values()}) < len(made.rows):
            made.rows = rows
            del made.log[log:]
        made.states.append((transaction // 2, dict(made.rows.values())))
    return made


def _comparable(row: Cells | None) -> Cells | None:
    """A row as the law compares it; what is never filled is seen in the end."""
    return row and tuple(
        "zz" if cell is HOLE and at == 0 else 99 if cell is HOLE else cell for at, cell in enumerate(row)
    )


@laws
@given(lives(), st.data())
def test_the_history_is_the_databases_however_its_messages_come(made: Database, data: st.DataObject) -> None:
    """Learned at any times, in any order, delivered twice, and some also withdrawn again."""
    times = st.integers(1, 4)
    learned = [replace(message, time=data.draw(times)) for message in made.log]
    again = [
        replace(message, time=data.draw(times), order=(message.order[0], "g", *message.order[2:]))
        for message in made.log
        if data.draw(st.booleans())
    ]
    wrong = [replace(message, transaction="other", order=(99, "h", 0)) for message in again[::2]]
    wrong += [replace(message, time=message.time + 1, diff=-1) for message in wrong]
    everything = data.draw(st.permutations([*learned, *again, *wrong]))
    for key in (1, 2, 3):
        own = [message for message in everything if message.key == (key,)]
        facts, changes, _ = plain(None, [], own)
        updates = resolve(None, facts, [replace(fact, value=_comparable(fact.value)) for fact in changes])
        for event_time, _ in made.states:
            later = [state for at, state in made.states if at == event_time]
            sums: dict[Cells, int] = {}
            for update in updates:
                if update.event_time <= event_time:
                    sums[update.value] = sums.get(update.value, 0) + update.diff
            rows_left = [row for row, count in sums.items() if count]
            assert rows_left == ([later[-1][key]] if key in later[-1] else [])


@laws
@given(lives(), st.data())
def test_any_cut_between_known_and_new_gives_the_same_updates(made: Database, data: st.DataObject) -> None:
    """What is known when a drain begins, and what comes with it: the sums are those of one drain."""
    log = [replace(message, key=(1,), time=data.draw(st.integers(1, 4))) for message in made.log]
    log = [message for message in log if HOLE not in message.row]
    cut = data.draw(st.integers(0, 5))
    at_once = resolve(None, [], plain(None, [], log)[1])
    older = [message for message in log if message.time < cut]
    facts, changes, _ = plain(None, older, [message for message in log if message.time >= cut])
    first = resolve(None, [], plain(None, [], older)[1])
    assert sorted(first + resolve(None, facts, changes), key=repr) == sorted(at_once, key=repr)
