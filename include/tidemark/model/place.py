"""Where connectors of Debezium say that a change is: the fields that put messages in order, most significant first.

A place is compared field by field, each as its type, nulls first. Some texts are compared as what they mean: the name
of a binlog file by its number, a number of any length, the hexadecimal numbers of an LSN.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from tidemark.model.column import Column, ColumnType

CONNECTOR = "connector"
"""The `order_by` of messages that are put in order by the fields of their connector."""
POSITION = "source.pos"
"""Where a change is within a binlog file: no order across files."""
NO_ORDER = f"{POSITION} alone puts messages in a wrong order, as positions begin again in each binlog file"
NO_COMMITS = (
    "messages have neither source.sequence nor source.commit_lsn, so that source.lsn alone puts those of one time in "
    "order, which is none across transactions; newer releases of Debezium write source.sequence"
)
OrderBy = str | tuple[str, ...] | None
"""A column; several, or none of them; CONNECTOR; None says nothing."""


class Text(StrEnum):
    """What a text is, if it is not compared by its characters."""

    BINLOG = "the name of a binlog file"
    NUMBER = "a whole number"
    LSN = "hexadecimal numbers"
    SEQUENCE = "a list of two numbers"


TEXTS = {
    "source.file": Text.BINLOG,
    "source.sequence": Text.SEQUENCE,
    "source.commit_scn": Text.NUMBER,
    "source.scn": Text.NUMBER,
    "source.rs_id": Text.LSN,
    "source.commit_lsn": Text.LSN,
    "source.change_lsn": Text.LSN,
}
"""The fields of messages that are texts, where they are not declared to be of another type."""


@dataclass(frozen=True)
class Rule:
    """How messages of a connector are in order.

    Attributes:
        family: Its name; one for connectors that read the same log.
        fields: The fields, most significant first. Of several in one place the first counts that is there.
        needed: The field that every change has.
        server: The field that says which server wrote the log, where there are several logs.
        unplaced: What to say of messages that have none of the first fields, and are taken all the same.
        numbers: The fields that are numbers, though elsewhere they are texts.
    """

    family: str
    fields: tuple[tuple[str, ...], ...]
    needed: str
    server: str | None = None
    numbers: tuple[str, ...] = ()
    unplaced: str = ""

    @property
    def columns(self) -> tuple[Column, ...]:
        """What is read of a message."""
        names = dict.fromkeys(name for field in self.fields for name in field)
        return tuple(Column(name, ColumnType.INT if name in self.numbers else field_type(name)) for name in names)


def field_type(name: str) -> ColumnType:
    """The type of a field that puts messages in order, where none is declared."""
    return ColumnType.STRING if name in TEXTS else ColumnType.INT


_BINLOG = Rule(
    "mysql", (("source.file",), (POSITION,), ("source.row",)), needed="source.file", server="source.server_id"
)
RULES = {
    "mysql": _BINLOG,
    "mariadb": _BINLOG,
    "postgresql": Rule(
        "postgresql",
        (("source.commit_lsn", "source.sequence"), ("source.lsn",), ("transaction.total_order",)),
        needed="source.lsn",
        numbers=("source.commit_lsn",),
        unplaced=NO_COMMITS,
    ),
    "sqlserver": Rule(
        "sqlserver",
        (("source.commit_lsn",), ("source.change_lsn",), ("source.event_serial_no",)),
        needed="source.commit_lsn",
    ),
    "db2": Rule("db2", (("source.commit_lsn",), ("source.change_lsn",)), needed="source.commit_lsn"),
    "oracle": Rule(
        "oracle",
        (("source.commit_scn", "source.scn"), ("source.scn",), ("source.rs_id",), ("source.ssn",)),
        needed="source.scn",
    ),
    "mongodb": Rule("mongodb", (("source.ts_ms",), ("source.ord",)), needed="source.ts_ms"),
}
"""The rules of the connectors, by the name that their messages have in `source.connector`."""


def another_server(left: str, right: str) -> bool:
    """Whether two servers are known to be different.

    The name of one is what is known of it: the family of the connector, the base of its binlog files, and its id, which
    rows of snapshots do not have. Of the empty one nothing is known.
    """
    if not (left and right):
        return False
    shorter, longer = sorted((left.split(), right.split()), key=len)
    return longer[: len(shorter)] != shorter


def two_servers(server: str, before: str) -> str:
    """Why messages of two servers cannot be in one collection, and what to do."""
    return (
        f"messages come from server {server!r} (connector, binlog, server_id), others from {before!r}: after a "
        "failover binlog files are counted again, so the two are in no order; take what follows into a collection of "
        "another name, from a new snapshot on"
    )


def by_connector(envelope: str, order_by: OrderBy) -> bool:
    """Whether messages are put in order by the fields of their connector; elsewhere `connector` is a column."""
    return envelope == "debezium" and order_by == CONNECTOR


def columns(envelope: str, order_by: OrderBy) -> tuple[str, ...]:
    """The columns that are named."""
    if isinstance(order_by, tuple):
        return order_by
    return (order_by,) if order_by and not by_connector(envelope, order_by) else ()


def described(order_by: OrderBy) -> str:
    """For people: as a collection file has it."""
    return f"[{', '.join(order_by)}]" if isinstance(order_by, tuple) else order_by or "nothing"
