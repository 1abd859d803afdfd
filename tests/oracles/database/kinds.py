"""What can happen in the life of a database and on the way of its messages: a life is made of some of these."""

from __future__ import annotations

from enum import Enum, auto


class Kind(Enum):
    """Something that happens in a life; inserts, updates, deletes, rollbacks and interleaved commits always do.

    Attributes:
        SNAPSHOT: The table has rows before the connector starts, which reads them first.
        INCREMENTAL: Some rows are read again while changes go on.
        REPEATS: A transaction changes a row several times, also from nothing to nothing.
        MOVES: Keys of rows change to keys that are free.
        COLLISIONS: Rows swap and shift keys, so that two rows have one key within a transaction.
        LONE_DELETES: A row moves to another key and is deleted in the same transaction.
        UNAVAILABLE: Values that an update does not change are missing.
        UNAVAILABLE_MOVES: They are missing where the key of a row changes, too.
        LONG: Statements have times of their own, where the connector reports these.
        LAG: Rows that are read have a later time than changes that come after them in the log.
        FAILOVER: Another server takes over, and begins its log.
        CUT: Files end within transactions.
        AGAIN: The connector starts again, and repeats messages.
        LATE: Files land in later intervals than their messages belong to.
    """

    SNAPSHOT = auto()
    INCREMENTAL = auto()
    REPEATS = auto()
    MOVES = auto()
    COLLISIONS = auto()
    LONE_DELETES = auto()
    UNAVAILABLE = auto()
    UNAVAILABLE_MOVES = auto()
    LONG = auto()
    LAG = auto()
    FAILOVER = auto()
    CUT = auto()
    AGAIN = auto()
    LATE = auto()


Kinds = frozenset[Kind]
EXERCISED: Kinds = frozenset(Kind) - {Kind.FAILOVER}
"""What random lives have; what happens in others is asserted by name, or not taken yet."""
