"""When each key of a table became what it is, as far as messages say so."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from tests.oracles.database.connectors import Connector, Message
from tests.oracles.database.database import Entry, Row, Rows, Snapshot
from tests.oracles.database.files import File


@dataclass(frozen=True)
class Became:
    """What a key became at a time (ms); `is_read` for a row of a snapshot."""

    key: int
    row: Row | None
    at: int
    is_read: bool = False


def history(
    connector: Connector, log: Sequence[Entry], said: Sequence[Sequence[Message]], files: Sequence[File]
) -> list[Became]:
    """What keys became, in the order of the log, of which `said` has the messages.

    A row that is read says when, and was there before what follows it in the log. What is known of when a transaction
    ended is the last time of its messages in a file that has one of the key's.
    """
    pairs = zip(log, said, strict=True)
    became = [each for entry, messages in pairs for each in _became(connector, entry, messages, files)]
    for number in reversed(range(len(became))):
        later = [each.at for each in became[number + 1 :] if each.key == became[number].key]
        if became[number].is_read:
            became[number] = replace(became[number], at=min(became[number].at, *later, became[number].at))
    return became


def _became(connector: Connector, entry: Entry, messages: Sequence[Message], files: Sequence[File]) -> Iterator[Became]:
    if isinstance(entry, Snapshot):
        yield from (Became(row.id, row, entry.at, is_read=True) for row in entry.rows)
    elif connector.names_transactions:
        last = _last_times(messages, files)
        yield from (Became(key, row, last[key]) for key, row in entry.rows.items())
    else:
        for change in entry.changes:
            yield from (Became(key, row, connector.time(entry, change)) for key, row in change.rows)


def _last_times(messages: Sequence[Message], files: Sequence[File]) -> dict[int, int]:
    own, last = {id(message) for message in messages}, dict[int, int]()
    for file in files:
        parts = [message for message in file.messages if id(message) in own]
        for key in {image["id"] for part in parts for image in (part["before"], part["after"]) if image}:
            last[key] = max(last.get(key, 0), *(part["source"]["ts_ms"] for part in parts), 0)
    return last


def table_at(became: Sequence[Became], at: int) -> Rows:
    """The table as of a time."""
    rows = {each.key: each.row for each in became if each.at <= at}
    return {key: row for key, row in rows.items() if row is not None}
