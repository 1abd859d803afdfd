"""The place of rows that are in order by several columns, or of messages in the order of their connector."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidemark.arrow.decode import debezium_files
from tidemark.arrow.decode.content import BadFile, Content, Seen
from tidemark.arrow.decode.debezium_files import TOMBSTONE
from tidemark.arrow.decode.only import Only
from tidemark.arrow.decode.typed import place, refusal
from tidemark.arrow.rows.arrays import bools_of, first_true, of_values, scalar_of
from tidemark.arrow.rows.columns import Bools, Ints, values
from tidemark.arrow.rows.places import Field, NoPlace, binlog_base, places
from tidemark.errors import listed
from tidemark.model.collection import Collection, Column, ColumnType
from tidemark.model.place import RULES, Rule, another_server, two_servers

CONNECTOR, SNAPSHOT = "source.connector", "source.snapshot"
_INCREMENTAL = "incremental"
_OTHER_ORDER = (
    "before the collection has rows, declare the fields that put messages in order, order_by: [source.lsn], or that "
    "nothing does but file and line, order_by: []"
)

_Columns = Mapping[str, pa.Array]


def fields_of(collection: Collection, columns: _Columns) -> list[Field]:
    """The fields that a collection lists, most significant first."""
    return [Field.of(name, columns[name]) for name in collection.landed.source.order_columns]


def placed(
    content: Content,
    collection: Collection,
    fields: Sequence[Field],
    rows: Ints,
    *,
    ranks: Bools | None = None,
    last: Bools | None = None,
) -> pa.BinaryArray:
    """The places of the rows of a block, whose numbers are `rows`. Raises BadFile."""
    try:
        return places(fields, ranks, last)
    except NoPlace as no:
        raise refusal(content, collection.landed.source.format, no.name, no.reason, int(rows[no.index])) from None


@dataclass(frozen=True)
class Order:
    """The order of the messages of one file, as its first message names the connector."""

    content: Content
    collection: Collection
    connector: str
    rule: Rule
    has_snapshot: bool

    @classmethod
    def of_file(cls, content: Content, collection: Collection) -> Order | None:
        """None if all messages are null, or left out. Raises BadFile for a connector whose order is not known."""
        only = Only.of(replace(content, seen=Seen()), collection)
        source = debezium_files.first_source(content, collection.landed.source.format, only)
        if source is None:
            return None
        connector = str(source.get("connector"))
        rule = RULES.get(connector)
        if rule is None:
            says = "names no connector" if connector == "None" else f"has the connector {connector}"
            with_order = f"those with an order are {listed(RULES)}"
            raise BadFile(content.path, f"order_by is connector, and a message {says}; {with_order}; {_OTHER_ORDER}")
        return cls(content, collection, connector, rule, not isinstance(source.get("snapshot"), bool))

    @property
    def columns(self) -> tuple[Column, ...]:
        """What is read of a message for its place."""
        texts = [CONNECTOR, *([SNAPSHOT] if self.has_snapshot else [])]
        server = [Column(self.rule.server, ColumnType.INT)] if self.rule.server else []
        return (*(Column(name, ColumnType.STRING) for name in texts), *self.rule.columns, *server)

    def places(self, columns: _Columns, op: pa.Array, rows: Ints) -> pa.BinaryArray:
        """The places of the messages of a block, whose numbers are `rows`. Raises BadFile."""
        is_message = bools_of(pc.not_equal(op, scalar_of(TOMBSTONE, op.type)))
        reads = bools_of(pc.equal(op, scalar_of("r", op.type)))
        self._check_connector(columns[CONNECTOR], is_message, rows)
        lost = is_message & ~reads & np.asarray(values(columns[self.rule.needed].is_null()), np.bool_)
        if lost.any():
            problem = f"is null, and puts messages of {self.connector} in order"
            raise self._refusal(self.rule.needed, problem, rows[int(lost.argmax())])
        self._check_server(columns, rows)
        if self.rule.unplaced:
            nulls = [np.asarray(values(columns[name].is_null()), np.bool_) for name in self.rule.fields[0]]
            if np.logical_and.reduce([is_message, ~reads, *nulls]).any():
                self.content.seen.notes.add(self.rule.unplaced)
        incremental = np.zeros(len(op), np.bool_)
        if self.has_snapshot and reads.any():
            same = pc.equal(columns[SNAPSHOT], scalar_of(_INCREMENTAL, pa.string()))
            incremental = reads & bools_of(pc.fill_null(same, scalar_of(False, pa.bool_())))
        fields = [self._field(names, columns) for names in self.rule.fields]
        last = incremental if incremental.any() else None
        return placed(self.content, self.collection, fields, rows, ranks=~reads | incremental, last=last)

    def _field(self, names: Sequence[str], columns: _Columns) -> Field:
        instead = self._field(names[1:], columns) if names[1:] else None
        return Field.of(names[0], columns[names[0]], instead)

    def _check_connector(self, connectors: pa.Array, is_message: Bools, rows: Ints) -> None:
        same = [name for name, rule in RULES.items() if rule is self.rule]
        others = is_message & ~bools_of(pc.is_in(connectors, value_set=of_values(same, pa.string())))
        if others.any():
            at = int(others.argmax())
            problem = f"is {connectors[at].as_py()}, and the file's first message has {self.connector}"
            raise self._refusal(CONNECTOR, problem, rows[at])

    def _check_server(self, columns: _Columns, rows: Ints) -> None:
        """Raise BadFile for a message of another server than those before it, in the file or among all so far."""
        for server, at in self._servers(columns):
            for before in (self.collection.landed.source.server, *self.content.seen.servers):
                if another_server(before, server):
                    where = place(self.content, self.collection.landed.source.format, int(rows[at]))
                    raise BadFile(self.content.path, f"{where}: {two_servers(server, before)}")
            self.content.seen.servers.add(server)

    def _servers(self, columns: _Columns) -> list[tuple[str, int]]:
        """What is known of the servers of some messages, each with a message of it."""
        if not self.rule.server:
            return [(self.rule.family, 0)]
        files, ids = columns[self.rule.needed], columns[self.rule.server]
        servers: list[tuple[str, int]] = []
        for name in files.unique().drop_null().to_pylist():
            of_file = pc.equal(files, scalar_of(name, files.type))
            server = f"{self.rule.family} {binlog_base(name)}"
            servers.append((server, first_true(of_file)))
            for number in ids.filter(of_file).unique().drop_null().to_pylist():
                same = pc.and_(of_file, pc.equal(ids, scalar_of(number, ids.type)))
                servers += [(f"{server} {number}", first_true(same))] if number else []
        return servers

    def _refusal(self, name: str, problem: str, row: np.int64) -> BadFile:
        return refusal(self.content, self.collection.landed.source.format, name, problem, int(row))
