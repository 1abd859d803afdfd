"""A table of a database under random transactions, and its log: what happened, whatever a connector says of it.

Several transactions are open at once. Each locks the keys that it touches, so that no two change one row at a time.
What a transaction changed counts from its commit on, and leaves no trace if it is rolled back.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from random import Random

from tests.oracles.database.kinds import Kind, Kinds

KEYS = range(1, 8)
CITIES = (None, "", "Faro", "Porto", "Évora")


@dataclass(frozen=True)
class Row:
    """A row of the table. `city` may be null; `story` is long: an update that keeps it may not log it."""

    id: int
    city: str | None
    stock: int
    story: str


@dataclass(frozen=True)
class Change:
    """What became of one row: where and when (ms) the log has it. `before` is None for an insert, `after` for a delete.

    Attributes:
        after_a_move: Whether it deletes a row that came to its key in the same transaction.
    """

    before: Row | None
    after: Row | None
    position: int
    at: int
    after_a_move: bool = False

    @property
    def rows(self) -> tuple[tuple[int, Row | None], ...]:
        """What its keys became."""
        left = () if self.before is None else ((self.before.id, None),)
        return (*left, *(() if self.after is None else ((self.after.id, self.after),)))


@dataclass(frozen=True)
class Transaction:
    """What was committed at once; `position` and `at` (ms) are those of the commit, `rows` what keys became by it."""

    number: int
    changes: tuple[Change, ...]
    position: int
    at: int
    rows: Mapping[int, Row | None]


@dataclass(frozen=True)
class Snapshot:
    """Rows that the connector read when the log was at `position`; `at` is the time (ms) that it says."""

    rows: tuple[Row, ...]
    position: int
    at: int
    incremental: bool


Entry = Transaction | Snapshot
Rows = dict[int, Row]


@dataclass
class _Open:
    """A transaction before its end: what it made of the keys that it locked."""

    number: int
    changes: list[Change] = field(default_factory=list)
    rows: dict[int, Row | None] = field(default_factory=dict)
    moved: set[int] = field(default_factory=set)


class Database:
    """A table with its log.

    Attributes:
        rows: What is committed.
        log: What a connector reads, in the order of commits.
    """

    def __init__(self, dice: Random, kinds: Kinds, *, may_collide: bool) -> None:
        self._dice, self._kinds, self._may_collide = dice, kinds, may_collide
        self.rows: Rows = {}
        self.log: list[Entry] = []
        self._open: list[_Open] = []
        self._now, self._position, self._number = 0, 40_000, 700

    def live(self, commits: int) -> None:
        """Run transactions until so many more are committed."""
        until = len(self.log) + commits
        while len(self.log) < until:
            self._now += self._dice.choice((0, 0, 0, 1, 2, 7))
            if self._open and self._dice.random() < 0.3:
                self._end(self._open.pop(self._dice.randrange(len(self._open))))
            elif len(self._open) < 3 and self._dice.random() < 0.3:
                self._number += 1
                self._open.append(_Open(self._number))
            elif self._open:
                self._statement(self._dice.choice(self._open))

    def snapshot(self, *, incremental: bool) -> None:
        """Let the connector read all rows, or some while changes go on."""
        rows = [row for row in self.rows.values() if not incremental or self._dice.random() < 0.6]
        lag = self._dice.randrange(30) if Kind.LAG in self._kinds else 0
        self.log.append(Snapshot(tuple(rows), self._next_position(), self._now + lag, incremental))

    def forget(self) -> None:
        """Begin the log: what was committed so far is in the table only."""
        self.log.clear()

    def _next_position(self) -> int:
        self._position += self._dice.randrange(1, 60)
        return self._position

    def _end(self, transaction: _Open) -> None:
        if self._dice.random() < 0.15 or not transaction.changes:
            return
        for key, row in transaction.rows.items():
            self.rows.pop(key, None)
            if row is not None:
                self.rows[key] = row
        changes = tuple(transaction.changes)
        rows = dict(transaction.rows)
        self.log.append(Transaction(transaction.number, changes, self._next_position(), self._now, rows))

    def _statement(self, transaction: _Open) -> None:
        locked = {key for other in self._open if other is not transaction for key in other.rows}
        touched = set() if Kind.REPEATS in self._kinds else set(transaction.rows)
        keys = [key for key in KEYS if key not in locked | touched]
        rows = {key: row for key in keys if (row := transaction.rows.get(key, self.rows.get(key))) is not None}
        free = [key for key in keys if key not in rows]
        kind = self._dice.randrange(10)
        if kind < 3 and free:
            key = self._dice.choice(free)
            self._change(transaction, None, self._new_row(key))
        elif kind < 6 and rows:
            row = self._dice.choice(list(rows.values()))
            self._change(transaction, row, self._new_row(row.id, row))
        elif kind == 6 and rows:
            row = self._dice.choice(list(rows.values()))
            if row.id not in transaction.moved or Kind.LONE_DELETES in self._kinds:
                self._change(transaction, row, None)
        elif kind == 7 and rows and free and Kind.MOVES in self._kinds:
            row, key = self._dice.choice(list(rows.values())), self._dice.choice(free)
            self._change(transaction, row, self._moved(row, key))
        elif kind == 8 and len(rows) > 1 and self._may_collide and Kind.COLLISIONS in self._kinds:
            self._shift(transaction, self._dice.sample(list(rows.values()), self._dice.randrange(2, len(rows) + 1)))

    def _shift(self, transaction: _Open, rows: list[Row]) -> None:
        """Give each row the key of the next, in any order of rows: two rows swap theirs, more go round."""
        moves = [(row, following.id) for row, following in zip(rows, [*rows[1:], rows[0]], strict=True)]
        self._dice.shuffle(moves)
        after = {key: self._moved(row, key) for row, key in moves}
        for row, key in moves:
            self._change(transaction, row, after[key])
        transaction.rows |= after
        transaction.moved |= set(after)

    def _moved(self, row: Row, key: int) -> Row:
        changed = self._new_row(key, row)
        if Kind.UNAVAILABLE in self._kinds and Kind.UNAVAILABLE_MOVES not in self._kinds:
            return Row(key, changed.city, changed.stock, f"{changed.story}, of {key}")
        return changed

    def _change(self, transaction: _Open, before: Row | None, after: Row | None) -> None:
        was_moved = before is not None and before.id in transaction.moved
        lone = was_moved and after is None
        transaction.changes.append(Change(before, after, self._next_position(), self._now, lone))
        if before is not None:
            transaction.rows[before.id] = None
            transaction.moved.discard(before.id)
        if after is not None:
            transaction.rows[after.id] = after
            if was_moved or (before is not None and before.id != after.id):
                transaction.moved.add(after.id)

    def _new_row(self, key: int, before: Row | None = None) -> Row:
        """A row of few values, so that equal ones come again; of `before` each column is kept half of the time."""
        city, stock = self._dice.choice(CITIES), self._dice.randrange(3)
        story = f"story {self._dice.randrange(4)}"
        if before is not None:
            city = self._dice.choice((city, before.city))
            stock = self._dice.choice((stock, before.stock))
            story = self._dice.choice((story, before.story))
        return Row(key, city, stock, story)
