"""What a declaration has that its file does not say: defaults of its day, and whose messages it has."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from tidemark.errors import InvalidUsage
from tidemark.model.collection import Collection, Envelope
from tidemark.model.place import CONNECTOR, NO_ORDER, POSITION, OrderBy


def newly_ordered(declared: Collection, current: Collection | None) -> Collection:
    """A declaration for a new collection, or for `current` without rows, with the defaults of today.

    A file with the bytes of another is refused. Messages are in the order of their connector, and of one table, which
    is not known yet; those of one transaction are one change, unless nothing but file and line puts them in order.

    Raises:
        InvalidUsage: What is declared is no order, and `current` does not have it.
    """
    if declared.is_derived:
        return declared
    source = declared.landed.source
    if source.adds_up and source.duplicate_files is None:
        return replace(declared, origin=replace(declared.landed, source=replace(source, duplicate_files="refuse")))
    if source.envelope is not Envelope.DEBEZIUM:
        return declared
    if declared.order_by == POSITION and (current is None or current.order_by != POSITION):
        raise InvalidUsage(f"order_by: {NO_ORDER}; write `order_by: connector`, or leave order_by out")
    source = replace(declared.landed.source, table="")
    order_by = CONNECTOR if source.order_by is None else source.order_by
    source = replace(source, order_by=order_by, transactions=bool(order_by))
    return replace(declared, origin=replace(declared.landed, source=source))


def as_ordered(current: Collection, declared: Collection) -> Collection:
    """A declaration with what `current` has, and its file need not say.

    That is the order, unless it names a column; the senders; and whether there are transactions.
    """
    if current.is_derived or declared.is_derived:
        return declared
    before, source = current.landed.source, declared.landed.source
    if source.order_by is None and not before.order_columns:
        source = replace(source, order_by=before.order_by)
    server = before.server if source.by_connector else ""
    repeated = source.duplicate_files or (before.duplicate_files if source.adds_up else None)
    source = replace(source, server=server, table=before.table, duplicate_files=repeated)
    source = replace(source, transactions=before.transactions)
    return replace(declared, origin=replace(declared.landed, source=source))


def with_order(declared: Collection, order_by: OrderBy) -> Collection:
    """The declaration with another order."""
    source = replace(declared.landed.source, order_by=order_by)
    return replace(declared, origin=replace(declared.landed, source=source))


def with_senders(declared: Collection, server: str, table: str) -> Collection:
    """The declaration once more is known of whose messages it has."""
    if declared.is_derived:
        return declared
    source = declared.landed.source
    source = replace(source, server=max(source.server, server, key=len), table=table or source.table)
    return replace(declared, origin=replace(declared.landed, source=source))


def with_names(order_by: OrderBy, renamed: Mapping[str, str]) -> OrderBy:
    """An order by the new names of its columns."""
    if isinstance(order_by, tuple):
        return tuple(renamed.get(name, name) for name in order_by)
    return renamed.get(order_by or "", order_by)
