"""Messages of databases, and the law that makes plain facts of them (fact.py): a transaction is one change of a key.

A message says more than what a key's value became: which row it put there, and which it took away, perhaps without its
values; and the row that it put there may lack columns that the database did not log. So a key's history is a list of
*points* in order, each a function of the row before it. What belongs to one transaction is one point, at the place of
its last message; every other message is a point of its own. The history as known at T is the fold of the points of
what is known at T, and what is new in it since the instant before are plain facts, said (+1) or retracted (-1).

Of one point, where b is the row before it: rows that messages put there are added to b, and what they take away is
removed, in two passes. First each image that has all values removes a row that is equal to it and is there by then.
Then what is left removes, in order, a row of the transaction that is equal to values that are only guessed; else b, if
that is still there; else, unless it has all values, the oldest row there is. An image with values that removed no equal
row is counted as *unmatched*. The last row left is the value.

An example. `UPDATE people SET id = id + 1` moves the rows of 1 and 2: of the key 2 it says that the row of 1 was put
there, and then that the row of 2 was taken away. Either order leaves what came:

    >>> def message(effect, row, at):
    ...     return Message(("k",), (row,), effect, "tx 9", 7, 1, (at,))
    >>> net(("two",), [message(Effect.PUT, "one", 3), message(Effect.TAKE, "two", 4)])
    Net(row=('one',), unmatched=0)
    >>> net(("two",), [message(Effect.TAKE, "two", 3), message(Effect.PUT, "one", 4)])
    Net(row=('one',), unmatched=0)

A row of a snapshot says the time at which it was read, which may be later than that of changes that follow it in the
log: it was there at the latest when the first of these happened, and counts from then on (`in_log_order`). Where such a
change is forgotten since, the row would count from its own time again. So a known row that the stored updates do not
have is *spent*: it counts no more.

And what is put there and taken away in one transaction leaves what was there before:

    >>> net(None, [message(Effect.PUT, "brief", 3), message(Effect.TAKE, "brief", 4)])
    Net(row=None, unmatched=0)
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from itertools import groupby
from typing import Any

from tidemark.model.fact import Fact

Cells = tuple[Any, ...]
Place = tuple[int, tuple[Any, ...]]
Stored = tuple[int, Cells, int]
"""An update of a key: when it happened, the row, and the diff."""


class Missing(Enum):
    """What stands for a value that the database did not log."""

    HOLE = "hole"


HOLE = Missing.HOLE
_BEFORE = -1
"""The number of the row before a point, where its messages are numbered from 0."""


class Effect(Enum):
    """What a message does to its key.

    It puts a row there; puts one in the place of the row that is there; takes away the row with these values; or the
    row that is there, whose values are not known, or only guessed.
    """

    PUT = "put"
    REPLACE = "replace"
    TAKE = "take"
    TAKE_ANY = "take any"

    @property
    def takes(self) -> bool:
        """Whether it leaves no row of its own."""
        return self in (Effect.TAKE, Effect.TAKE_ANY)


@dataclass(frozen=True)
class Message:
    """A fact as a message says it (fact.py). `order` is total; its first field is the place in the database's log.

    Attributes:
        is_read: Whether it is a row of a snapshot.
    """

    key: Cells
    row: Cells
    effect: Effect
    transaction: str | None
    time: int
    event_time: int
    order: tuple[Any, ...]
    diff: int = 1
    is_read: bool = False

    @property
    def place(self) -> Place:
        """Where it is in its key's history, if it is a point of its own."""
        return self.event_time, self.order


@dataclass(frozen=True)
class Net:
    """What a point leaves: a row or none, and how many whole images removed no row that is equal to them."""

    row: Cells | None
    unmatched: int


@dataclass(frozen=True)
class Point:
    """A point of a history: its place, the row from then on, the newest of what makes it, and what was unmatched."""

    place: Place
    row: Cells | None
    last: Message
    unmatched: int


def net(before: Cells | None, messages: Sequence[Message]) -> Net:
    """What the messages of one point, in order, leave of the row before it."""
    rows: dict[int, Cells] = {} if before is None else {_BEFORE: before}
    rows |= {at: message.row for at, message in enumerate(messages) if not message.effect.takes}
    removed_at: dict[int, int] = {}  # of each row the message that removes it
    removals = [at for at, message in enumerate(messages) if message.effect is not Effect.PUT]
    for at in removals:
        equal = _equal(rows, removed_at, messages[at].row, at) if messages[at].effect is Effect.TAKE else []
        if equal:
            removed_at[equal[-1]] = at
    pending = [at for at in removals if at not in removed_at.values()]
    for at in pending:
        effect = messages[at].effect
        oldest = _present(rows, removed_at, at)[:1]
        if effect is Effect.TAKE:
            oldest = [number for number in oldest if number == _BEFORE]
        elif effect is Effect.TAKE_ANY:
            guessed = _equal(rows, removed_at, messages[at].row, at)
            oldest = [number for number in guessed if number != _BEFORE][-1:] or oldest
        for number in oldest:
            removed_at[number] = at
    filled = _filled(rows, removed_at, messages)
    last = max((number for number in rows if number not in removed_at), default=None)
    unmatched = sum(messages[at].effect is Effect.TAKE for at in pending)
    return Net(None if last is None else filled[last], unmatched)


def _present(rows: dict[int, Cells], removed_at: dict[int, int], at: int) -> list[int]:
    """The rows that are there before a message, oldest first, and that nothing removes so far."""
    return [number for number in rows if number < at and number not in removed_at]


def _equal(rows: dict[int, Cells], removed_at: dict[int, int], image: Cells, at: int) -> list[int]:
    """Those of them that are equal to an image, as far as both have values."""
    present = _present(rows, removed_at, at)
    pairs = {number: zip(image, rows[number], strict=True) for number in present}
    return [number for number in present if all(HOLE in pair or pair[0] == pair[1] for pair in pairs[number])]


def _filled(rows: dict[int, Cells], removed_at: dict[int, int], messages: Sequence[Message]) -> dict[int, Cells]:
    """The rows with what they lack from the row that they replace, or else from the one before them.

    A row that only came to its key was somewhere else before, so that what it lacks is not known.
    """
    filled: dict[int, Cells] = {}
    for number, row in rows.items():
        is_put = number >= 0 and messages[number].effect is Effect.PUT
        remover = number - 1 if is_put else number
        if is_put and not (number and _is_update(messages[remover], messages[number])):
            filled[number] = row
            continue
        replaced = [other for other, at in removed_at.items() if at == remover]
        older = replaced or [other for other in filled if other not in removed_at] or list(filled)
        filled[number] = fill(row, filled[max(older)] if older else None)
    return filled


def _is_update(image: Message, put: Message) -> bool:
    """Whether two messages are the images of one update."""
    return image.effect.takes and image.order[:1] == put.order[:1]


def fill(row: Cells, before: Cells | None) -> Cells:
    """A row with what it lacks from another one; without one it lacks it still."""
    if before is None or HOLE not in row:
        return row
    return tuple(old if cell is HOLE else cell for cell, old in zip(row, before, strict=True))


def history(base: Cells | None, messages: Iterable[Message]) -> list[Point]:
    """The points of one key, in order, after the row `base`. All messages are said, none is retracted."""
    transactions: dict[object, list[Message]] = {}
    for number, message in enumerate(sorted(in_log_order(messages), key=lambda message: message.place)):
        transactions.setdefault(number if message.transaction is None else message.transaction, []).append(message)
    points, row = list[Point](), base
    for group in sorted(transactions.values(), key=lambda group: group[-1].place):
        answer = net(row, _delivered_once(group))
        row = answer.row
        points.append(Point(group[-1].place, row, max(group, key=lambda message: message.time), answer.unmatched))
    return points


def in_log_order(messages: Iterable[Message]) -> list[Message]:
    """The messages of one key, rows of snapshots at the latest at the time of what follows them in the log."""
    messages = list(messages)
    if not any(message.is_read for message in messages):
        return messages
    placed, least = list[Message](), max(message.event_time for message in messages)
    by_log = sorted(messages, key=_log_place, reverse=True)
    for _, group in groupby(by_log, key=_log_place):
        at_place = [replace(each, event_time=min(each.event_time, least)) if each.is_read else each for each in group]
        placed += at_place
        least = min(least, *(message.event_time for message in at_place))
    return placed


def _log_place(message: Message) -> Any:
    return message.order[0]


def spent(base: Cells | None, older: Sequence[Message], stored: Sequence[Stored]) -> list[Message]:
    """The known rows of snapshots that are not in the history that is stored, as what they came before is forgotten.

    Args:
        base: The row at the horizon.
        older: What is known of the key from the horizon on.
        stored: The updates of the key behind the horizon.
    """
    left, gone = list(older), list[Message]()
    while any(message.is_read for message in left):
        points = history(base, left)
        now = {point.place[0]: point.row for point in points}
        reads = [point.last for point in points if point.last.is_read]
        wrong = (m for m in reads if _nulls(now[m.event_time]) != _stored_at(base, stored, m.event_time))
        if (read := next(wrong, None)) is None:
            break
        gone += [message for message in left if message.is_read and _again(message, read)]
        left = [message for message in left if message not in gone]
    return gone


def _nulls(row: Cells | None) -> Cells | None:
    """A row as it is stored: with null for what it lacks."""
    return row and tuple(None if cell is HOLE else cell for cell in row)


def _again(message: Message, read: Message) -> bool:
    """Whether two messages are one row of a snapshot, delivered twice."""
    return (message.row, _log_place(message)) == (read.row, _log_place(read))


def _stored_at(base: Cells | None, stored: Sequence[Stored], event_time: int) -> Cells | None:
    counts = Counter([] if base is None else [base])
    for happened, row, diff in stored:
        counts[row] += diff if happened <= event_time else 0
    return next((row for row, count in counts.items() if count > 0), None)


def _delivered_once(group: Sequence[Message]) -> list[Message]:
    """The messages of a transaction, each place in the log once for what is put there and once for what is taken.

    Of two deliveries of an update one may have come with its before-image, and the other not: that one replaces
    whatever is there, and would take away another row beside the image. And an image is taken away before its row is
    put, also where the two are of different deliveries.
    """
    if len(group) == 1:
        return list(group)
    places: dict[object, dict[bool, Message]] = {}
    for number, message in enumerate(group):
        log = message.order[0] if message.order else None
        at_place = places.setdefault(number if log is None else (log,), {})
        other = at_place.setdefault(message.effect.takes, message)
        if other.effect is Effect.REPLACE and message.effect is Effect.PUT:
            at_place[False] = message
    return [at_place[takes] for at_place in places.values() for takes in (True, False) if takes in at_place]


def plain(
    base: Cells | None, older: Iterable[Message], new: Iterable[Message], stored: Sequence[Stored] | None = None
) -> tuple[list[Fact], list[Fact], int]:
    """What new messages change, as plain facts.

    Args:
        base: The row before all of them.
        older: What is known of the key.
        stored: The updates of the key behind `base`, by which known rows of snapshots are spent; None: none are.

    Returns:
        The facts that say what was so before; those by which new messages change it, at each time that some are
        learned; and how many images of points with new messages are unmatched in the end.
    """
    said: dict[tuple[object, ...], list[Message]] = {}
    older, new = list(older), list(new)
    gone = [] if stored is None else spent(base, older, stored)
    older, new = ([m for m in each if not any(m.is_read and _again(m, g) for g in gone)] for each in (older, new))
    _add(said, older)
    points = history(base, _said(said))
    before = {(point.place, point.row): point for point in points}
    facts = [_fact(point, point.last.time, 1) for point in points]
    changes: list[Fact] = []
    learned_first = None
    for time, learned in groupby(sorted(new, key=lambda message: message.time), key=lambda message: message.time):
        learned_first = time if learned_first is None else learned_first
        _add(said, learned)
        points = history(base, _said(said))
        after = {(point.place, point.row): point for point in points}
        changes += [_fact(point, time, -1) for at, point in before.items() if at not in after]
        changes += [_fact(point, time, +1) for at, point in after.items() if at not in before]
        before = after
    is_new = [point for point in points if learned_first is not None and point.last.time >= learned_first]
    return facts, changes, sum(point.unmatched for point in is_new)


def _add(said: dict[tuple[object, ...], list[Message]], messages: Iterable[Message]) -> None:
    for message in messages:
        identity = message.place, message.row, message.effect, message.transaction
        said.setdefault(identity, []).append(message)


def _said(said: dict[tuple[object, ...], list[Message]]) -> list[Message]:
    """The messages that were said oftener than they were retracted."""
    return [messages[0] for messages in said.values() if sum(message.diff for message in messages) > 0]


def _fact(point: Point, time: int, diff: int) -> Fact:
    event_time, order = point.place
    return Fact(point.last.key, point.row, time, event_time, order, diff)
