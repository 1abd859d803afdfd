"""When each key of a table became what it is, as far as messages say so."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from tests.oracles.database.connectors import Connector, Message
from tests.oracles.database.database import Entry, Row, Rows, Snapshot, Transaction
from tests.oracles.database.files import File


@dataclass(frozen=True)
class Became:
    """What a key became at a time (ms); `is_read` for a row of a snapshot."""

    key: int
    row: Row | None
    at: int
    is_read: bool = False


def history(connector: Connector, log: Sequence[Entry], said: Sequence[Sequence[Message]]) -> list[Became]:
    """What keys became, in the order of the log, of which `said` has the messages.

    A row that is read says when, and was there before what follows it in the log.
    """
    became = [each for entry, messages in zip(log, said, strict=True) for each in _became(connector, entry, messages)]
    for number in reversed(range(len(became))):
        later = [each.at for each in became[number + 1 :] if each.key == became[number].key]
        if became[number].is_read:
            became[number] = replace(became[number], at=min(became[number].at, *later, became[number].at))
    return became


def _became(connector: Connector, entry: Entry, messages: Sequence[Message]) -> Iterator[Became]:
    if isinstance(entry, Snapshot):
        yield from (Became(row.id, row, entry.at, is_read=True) for row in entry.rows)
    elif connector.names_transactions:
        last = max(message["source"]["ts_ms"] for message in messages)
        rows = {key: row for change in entry.changes for key, row in change.rows}
        yield from (Became(key, row, last) for key, row in rows.items())
    else:
        for change in entry.changes:
            yield from (Became(key, row, connector.time(entry, change)) for key, row in change.rows)


def cuts_times(entries: Sequence[tuple[Entry, Sequence[Message]]], files: Sequence[File]) -> bool:
    """Whether a file has some messages of a transaction, and not the one with its last time."""
    for entry, messages in entries:
        if isinstance(entry, Transaction):
            last = max(message["source"]["ts_ms"] for message in messages)
            own = {id(message) for message in messages}
            times = [[m["source"]["ts_ms"] for m in file.messages if id(m) in own] for file in files]
            if any(max(each) < last for each in times if each):
                return True
    return False


def table_at(became: Sequence[Became], at: int) -> Rows:
    """The table as of a time."""
    rows = {each.key: each.row for each in became if each.at <= at}
    return {key: row for key, row in rows.items() if row is not None}
