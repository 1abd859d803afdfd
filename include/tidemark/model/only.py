"""Which rows of its files a source takes: those for which `only` is true, or, of messages, those of one table."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping

from tidemark.errors import InvalidUsage
from tidemark.model.collection import Collection, ColumnType, Envelope, ValueType
from tidemark.model.condition import text, tree
from tidemark.model.condition.tree import Condition, Literal

OP = "op"
TABLE_FIELDS = ("source.db", "source.schema", "source.table", "source.collection")
"""The fields of a message that say whose it is."""
NAMES_TABLE = frozenset(TABLE_FIELDS[2:])
ANY_MESSAGE = "op IS NOT NULL"
"""What is true of a change message, and of no heartbeat."""
_IMAGES = ("before", "after", "key")
_WHY_NOT = (
    "a row that no longer fits would stay as it was; take all rows, and write the condition into a derived collection: "
    "from: {name}, select: SELECT * FROM {name} WHERE ..."
)


def parsed(only: str) -> Condition:
    """The condition of a source. Raises InvalidUsage for a text that is none."""
    return text.parse(only, "only", dotted=True)


def fields(only: str | None) -> tuple[str, ...]:
    """The columns, or the fields of messages, that a condition looks at."""
    return tree.columns(parsed(only)) if only else ()


def condition_of(collection: Collection) -> Condition:
    """The condition of a collection that has one, its literals bound to the types of the fields."""
    return tree.bound(parsed(collection.landed.source.only or ""), collection.type_of)


def implied(only: str, name: str) -> ValueType:
    """The type of a field that is not declared: what the condition compares it with."""
    leaves = [leaf for leaf in tree.leaves(parsed(only)) if leaf.column == name]
    return next((_type_of(literal) for leaf in leaves for literal in tree.literals_of(leaf)), ColumnType.STRING)


def _type_of(literal: Literal) -> ColumnType:
    if isinstance(literal, bool):
        return ColumnType.BOOL
    if isinstance(literal, int):
        return ColumnType.INT
    return ColumnType.STRING if isinstance(literal, str) else ColumnType.FLOAT


def check_fields(only: str, envelope: str, collection: str, key: Iterable[str], value: Iterable[str]) -> None:
    """Check that no row of a key can fit a condition while another row of it does not.

    Raises:
        InvalidUsage: The condition is about values that can change.
    """
    for name in fields(only):
        in_message = envelope == Envelope.DEBEZIUM and (name in key or name.split(".")[0] in _IMAGES)
        keyed = envelope in (Envelope.DEBEZIUM, Envelope.UPSERT)
        if in_message or (keyed and name in value):
            what = "is in the images of messages" if in_message else "is a column of the value"
            raise InvalidUsage(f"only: {name} {what}, and can change: {_WHY_NOT.format(name=collection)}")


def table_of(message: Mapping[str, str | None]) -> str:
    """Whose a message is, by its TABLE_FIELDS: the condition that is true of its table. Empty if they name none."""
    if not any(message.get(name) for name in NAMES_TABLE):
        return ""
    quoted = {name: value.replace("'", "''") for name in TABLE_FIELDS if (value := message.get(name))}
    return " AND ".join(f"{name} = '{value}'" for name, value in quoted.items())


def line(only: str) -> str:
    """A condition as a line of a collection file."""
    return f"only: {json.dumps(only, ensure_ascii=False)}"


def leave_out(only: str) -> str:
    """What to do about rows that are to be left out."""
    return f"to leave such out write `{line(only)}` below source: and run init"


def two_tables(table: str, before: str) -> str:
    """Why messages of two tables are not taken, and what to write."""
    return (
        f"messages belong to two tables, {before}, and now {table}; to take the first alone write `{line(before)}` "
        "below source: and run init; for several that are one table in parts name them with IN (...)"
    )
