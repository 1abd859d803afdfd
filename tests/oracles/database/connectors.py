"""The log of a database as the messages of each connector, by its documentation (Debezium 3).

A changed key is reported as a delete and an insert with one `source`; where the key of messages is not that of the
table, as an update. PostgreSQL has whole before-images with REPLICA IDENTITY FULL only; with DEFAULT they have the key,
and nulls, or zeros of the type for columns that are not null.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from random import Random
from typing import Any

from tests.oracles.database.database import Change, Entry, Row, Snapshot, Transaction
from tests.oracles.database.kinds import Kind, Kinds

UNAVAILABLE = "__debezium_unavailable_value"
Message = dict[str, Any]


@dataclass
class Connector:
    """How one connector writes messages; those that differ override parts of it.

    Attributes:
        has_statement_times: Whether `source.ts_ms` is the time of the statement, not that of the commit.
        may_collide: Whether the database lets two rows have one key within a transaction.
        lacks_values: Whether values that an update does not change may be missing.
        refused: What a reader must say, who can take no more: messages that are in no order, or have two meanings.
    """

    dice: Random
    kinds: Kinds
    has_statement_times = False
    may_collide = True
    lacks_values = False
    name = ""
    table: dict[str, str] = field(default_factory=lambda: {"db": "shop", "table": "people"})
    refused: str | None = None

    def __post_init__(self) -> None:
        self._says_transactions = self.dice.random() < 0.5
        self._moves_are_updates = self.dice.random() < 0.3
        # Booleans are of releases before 1.6, which had no incremental snapshots.
        self._last = self.dice.choice(("last", "true", *([] if Kind.INCREMENTAL in self.kinds else [True])))
        self._no_snapshot = "false" if isinstance(self._last, str) else False

    def messages(self, entry: Entry) -> list[Message]:
        """What the connector writes of an entry of the log."""
        self.begin(entry)
        if isinstance(entry, Snapshot):
            snapshot = "incremental" if entry.incremental else self._last
            source = self.source(entry, None) | {"snapshot": snapshot}
            return [self._message("r", None, asdict(row), {**source, "ts_ms": entry.at}) for row in entry.rows]
        messages = [message for change in entry.changes for message in self._changed(entry, change)]
        for number, message in enumerate(messages, 1) if self._says_transactions else ():
            order = {"total_order": number, "data_collection_order": number}
            message["transaction"] = {"id": self.transaction_id(entry), **order}
        return messages

    @property
    def has_images(self) -> bool:
        """Whether deletes have values of the row that is gone."""
        return True

    @property
    def names_transactions(self) -> bool:
        """Whether messages say which transaction they are of."""
        return True

    def begin(self, entry: Entry) -> None:
        """Go on in the log."""

    def time(self, transaction: Transaction, change: Change) -> int:
        """What the connector says of when a change was made (ms)."""
        return change.at if self.has_statement_times and Kind.LONG in self.kinds else transaction.at

    def source(self, entry: Entry, change: Change | None) -> dict[str, Any]:
        """Where a change is in the log, or, without one, where a snapshot is."""
        raise NotImplementedError

    def transaction_id(self, transaction: Transaction) -> str:
        return str(transaction.number)

    def before_image(self, row: Row, op: str) -> Message | None:
        return asdict(row)

    def _changed(self, transaction: Transaction, change: Change) -> Iterator[Message]:
        source = self.source(transaction, change) | {
            "snapshot": self._no_snapshot,
            "ts_ms": self.time(transaction, change),
        }
        before, after = change.before, self._after_image(change)
        if change.before is None:
            yield self._message("c", None, after, source)
        elif after is None:
            yield self._message("d", self.before_image(change.before, "d"), None, source)
        elif change.before.id == after["id"]:
            yield self._message("u", self.before_image(change.before, "u"), after, source)
        elif self._moves_are_updates:
            yield self._message("u", self.before_image(change.before, "d"), after, source)
        else:
            yield self._message("d", self.before_image(before, "d"), None, source)
            yield self._message("c", None, after, source)

    def _after_image(self, change: Change) -> Message | None:
        if change.after is None:
            return None
        image = asdict(change.after)
        lacks = self.lacks_values and Kind.UNAVAILABLE in self.kinds and change.before is not None
        if lacks and change.before.story == change.after.story:
            image["story"] = UNAVAILABLE
        return image

    def _message(self, op: str, before: Message | None, after: Message | None, source: Message) -> Message:
        source = {"version": "3.2.0.Final", "connector": self.name, "name": "shop", **source, **self.table}
        return {"before": before, "after": after, "source": source, "op": op, "ts_ms": source["ts_ms"] + 5}


class PostgreSQL(Connector):
    """Commits one after the other, with the log positions (LSN) of changes that were made side by side."""

    name = "postgresql"
    lacks_values = True

    def __post_init__(self) -> None:
        super().__post_init__()
        self.table = {**self.table, "schema": "public"}
        self._is_full = Kind.UNAVAILABLE not in self.kinds and self.dice.random() < 0.5
        self._commit: int | None = None
        self._last_commit: int | None = None

    @property
    def has_images(self) -> bool:
        return self._is_full

    def begin(self, entry: Entry) -> None:
        self._commit, self._last_commit = entry.position, self._commit
        changes = () if isinstance(entry, Snapshot) or self._is_full else entry.changes
        if any(
            change.after_a_move for change in changes
        ):  # which row is deleted, of which the key is all that is said?
            self.refused = "REPLICA IDENTITY FULL"

    def source(self, entry: Entry, change: Change | None) -> dict[str, Any]:
        commit = "null" if self._last_commit is None else f'"{self._last_commit}"'
        lsn = change.position if change else entry.position - 1
        number = entry.number if isinstance(entry, Transaction) else 1
        return {"sequence": f'[{commit},"{lsn}"]', "txId": number, "lsn": lsn, "xmin": None}

    def transaction_id(self, transaction: Transaction) -> str:
        return f"{transaction.number}:{transaction.changes[0].position}"

    def before_image(self, row: Row, op: str) -> Message | None:
        if self._is_full:
            return asdict(row)
        return {"id": row.id, "city": None, "stock": 0, "story": ""} if op == "d" else None


class MySQL(Connector):
    """Transactions one after the other in binlog files, each file from its beginning."""

    name = "mysql"
    may_collide = False

    def __post_init__(self) -> None:
        super().__post_init__()
        self._has_gtids = self.dice.random() < 0.5
        self.has_statement_times = not self._has_gtids
        self._server, self._file, self._pos = 223344, self.dice.choice((3, 999_998)), 157
        self._place: dict[int, tuple[int, int]] = {}
        self._fails_after = self.dice.randrange(4, 9) if Kind.FAILOVER in self.kinds else -1

    @property
    def names_transactions(self) -> bool:
        return self._has_gtids or self._says_transactions

    def begin(self, entry: Entry) -> None:
        self._fails_after -= 1
        if self._fails_after == 0:
            self._server, self._file, self._pos = 223345, 1, 157
            self.refused = "after a failover .* another name, from a new snapshot on"
        elif self.dice.random() < 0.2:
            self._file, self._pos = self._file + 1, 157
        row = 0
        self._place = {}
        for change in entry.changes if isinstance(entry, Transaction) else ():
            row = row + 1 if row < 2 and self._place and self.dice.random() < 0.3 else 0
            self._pos += 0 if row else self.dice.randrange(60, 400)
            self._place[change.position] = (self._pos, row)
        self._pos += 31

    def source(self, entry: Entry, change: Change | None) -> dict[str, Any]:
        pos, row = self._place[change.position] if change else (self._pos - 31, 0)
        name = f"{self.name}-bin.{self._file:06}"
        is_read = isinstance(entry, Snapshot) and not entry.incremental
        server, gtid = (0, None) if is_read else (self._server, self._gtid(entry))
        return {"server_id": server, "gtid": gtid, "file": name, "pos": pos, "row": row, "thread": None, "query": None}

    def transaction_id(self, transaction: Transaction) -> str:
        return self._gtid(transaction) or f"file={self.name}-bin.{self._file:06},pos={self._pos}"

    def _gtid(self, entry: Entry) -> str | None:
        return f"36dbb3a6-5dbb-11ee-8c99-0242ac120002:{entry.position}" if self._has_gtids else None


class MariaDB(MySQL):
    """The same log, with other names."""

    name = "mariadb"

    def _gtid(self, entry: Entry) -> str | None:
        return f"0-{self._server}-{entry.position}" if self._has_gtids else None


class SQLServer(Connector):
    """Tables of changes, which are put in order by the commit and by the change."""

    name = "sqlserver"

    def __post_init__(self) -> None:
        super().__post_init__()
        self.table = {**self.table, "schema": "dbo"}

    def source(self, entry: Entry, change: Change | None) -> dict[str, Any]:
        is_update = change and change.before and change.after and change.before.id == change.after.id
        return {
            "change_lsn": _lsn(change.position) if change else None,
            "commit_lsn": _lsn(entry.position),
            "event_serial_no": (2 if is_update else 1) if change else None,
        }

    def transaction_id(self, transaction: Transaction) -> str:
        return _lsn(transaction.position)


class Db2(SQLServer):
    """The same without numbers of events."""

    name = "db2"

    def source(self, entry: Entry, change: Change | None) -> dict[str, Any]:
        return {name: value for name, value in super().source(entry, change).items() if name != "event_serial_no"}


class Oracle(Connector):
    """System change numbers (SCN), of which several changes may have one."""

    name = "oracle"
    has_statement_times = True
    lacks_values = True

    def __post_init__(self) -> None:
        super().__post_init__()
        self.table = {**self.table, "schema": "SHOP"}

    def source(self, entry: Entry, change: Change | None) -> dict[str, Any]:
        position = change.position if change else entry.position
        is_change = isinstance(entry, Transaction) or entry.incremental
        return {
            "txId": f"5.6.{entry.number}" if isinstance(entry, Transaction) else None,
            "scn": _scn(position // 400 * 400),
            "commit_scn": _scn(entry.position) if is_change else None,
            "rs_id": f" 0x{position >> 8:06x}.{position:08x}.0010 " if is_change else None,
            "ssn": 0,
        }

    def transaction_id(self, transaction: Transaction) -> str:
        return f"5.6.{transaction.number}"

    def before_image(self, row: Row, op: str) -> Message | None:
        return asdict(row) | ({"story": UNAVAILABLE} if Kind.UNAVAILABLE in self.kinds else {})


def _lsn(position: int) -> str:
    return f"00000027:{position >> 4:08x}:{position & 15:04x}"


def _scn(position: int) -> str:
    """A text of a number; in a life their lengths differ."""
    return str(99_999_999_999_959_000 + position)


CONNECTORS = {connector.name: connector for connector in (PostgreSQL, MySQL, MariaDB, SQLServer, Db2, Oracle)}
