"""Messages of transactions as facts: which transaction each is of, and what its images lack (model/transaction.py).

    c      puts the after-image there
    u      puts it in the place of what is there; where its key has other messages in the transaction, or may have had
           some in another file, its before-image is taken away in a fact of its own, if it has values
    u      with another key: takes the before-image away there, and puts the after-image here
    d      takes the before-image away; one that has only the key has the values of the `c` that follows it at the same
           place, as Debezium writes a row whose key changes, for a guess

A row of a snapshot is of no transaction. All facts of a transaction get the last of its event times in the file.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidemark.arrow.decode import debezium_files
from tidemark.arrow.decode.content import BadFile, Content, Seen
from tidemark.arrow.decode.only import Only
from tidemark.arrow.decode.typed import place
from tidemark.arrow.decode.unavailable import with_holes
from tidemark.arrow.rows.arrays import bools_of, of_bools, of_numbers, of_values, scalar_of
from tidemark.arrow.rows.columns import Bools, Ints, contiguous, one_batch, values
from tidemark.arrow.rows.lacks import BEFORE, ONLY_KEY, READ
from tidemark.arrow.rows.order import ranks
from tidemark.arrow.rows.schema import LACKS, ORDER, ROW, TRANSACTION
from tidemark.model.collection import Collection, Column, ColumnType

NAMES = ("source.txId", "source.commit_lsn", "transaction.id", "source.gtid")
"""The fields that name a transaction: the first that is there counts."""
COMMITS = ("postgresql", "sqlserver", "db2")
"""The connectors whose `source.ts_ms` is that of the commit, in all messages of a transaction."""

_Columns = Mapping[str, pa.Array]


@dataclass(frozen=True)
class Images:
    """The messages of a block, by column.

    Attributes:
        keys: The key that each is about.
        values: The values of before-images.
        has_before: Whether it has a before-image with a key.
        others: Its fields outside the images.
    """

    op: pa.Array
    keys: _Columns
    before: _Columns
    after: _Columns
    values: _Columns
    has_before: pa.Array
    others: _Columns


@dataclass(frozen=True)
class Said:
    """Facts of one kind.

    Attributes:
        messages: Of which messages of the block they are.
        deleted: Which take a row away.
        is_before: Whether they are before-images beside the facts of their messages.
    """

    messages: Ints
    columns: _Columns
    deleted: pa.Array
    is_before: bool

    @classmethod
    def some(
        cls, chosen: Bools, columns: _Columns, deleted: bool | Bools, *, lacks: pa.Array, is_before: bool = False
    ) -> Said:
        """Those of the chosen messages, for which it is said what they lack."""
        messages = np.flatnonzero(chosen)
        deleted = np.full(len(messages), deleted) if isinstance(deleted, bool) else deleted
        taken = {name: array.filter(of_bools(chosen)) for name, array in columns.items()}
        return cls(messages, {**taken, LACKS: lacks}, of_bools(deleted), is_before)


class Transactions:
    """Turns the messages of one file into facts that have their transaction.

    Attributes:
        columns: The fields that name it, as the first message has them.
    """

    def __init__(self, content: Content, collection: Collection) -> None:
        self._content, self._collection = content, collection
        only = Only.of(replace(content, seen=Seen()), collection)
        source = debezium_files.first_source(content, collection.landed.source.format, only) or {}
        is_postgresql = source.get("connector") == "postgresql"
        self.columns = tuple(
            Column(name, ColumnType.INT if _is_number(source, name, is_postgresql) else ColumnType.STRING)
            for name in NAMES
        )
        keys = {column.name for column in collection.key}
        self._keys = [column.name for column in collection.key]
        self._values = [column for column in collection.columns if column.name not in keys]
        event_time = collection.landed.event_time
        is_commit = source.get("connector") in COMMITS and (event_time or "").startswith("source.ts_")
        self._event_time = None if is_commit else event_time
        self._waiting: list[pa.RecordBatch] = []
        self._moves = _KeyOnlyMoves()

    def facts(self, images: Images, rows: Ints) -> Iterator[Said]:
        """What the messages of a block say, whose numbers are `rows`. Raises BadFile."""
        names = self._names(images)
        placeholder = self._collection.landed.source.placeholder
        after, lacks = with_holes(self._values, images.after, placeholder)
        before, hidden = with_holes(self._values, images.values, placeholder)
        images = replace(images, values=before)
        messages = _Messages.of(images, names, self._values)
        if (lone := self._moves.lone(messages, images, names, rows)) is not None:
            raise self._refusal(*lone)
        only_key = pc.if_else(of_bools(messages.whole), hidden, scalar_of(ONLY_KEY, pa.string()))
        others = {**images.others, TRANSACTION: names}
        if messages.moved.any():
            image = _chosen(messages.whole, images.values, after)
            missing = only_key.filter(of_bools(messages.moved))
            yield Said.some(messages.moved, {**images.before, **image, **others}, True, lacks=missing)
        repeated = messages.repeated(images, self._keys)
        if repeated.any():
            missing = hidden.filter(of_bools(repeated))
            yield Said.some(repeated, {**images.keys, **images.values, **others}, True, lacks=missing, is_before=True)
        image = _chosen(messages.whole, images.values, _guessed(after, messages.followed))
        columns = {**images.keys, **_chosen(messages.removes, image, after), **others}
        replaces = messages.updates & ~messages.moved & ~repeated
        taken = messages.puts | messages.removes
        is_read = pc.is_in(images.op, value_set=of_values(["r"], pa.string()))
        is_read = bools_of(pc.and_(is_read, images.others[ORDER].is_valid()))
        marked = _marked(_marked(lacks, replaces, BEFORE), is_read, READ)
        lacking_all = pc.if_else(of_bools(messages.removes), only_key, marked)
        yield Said.some(taken, columns, messages.removes[taken], lacks=lacking_all.filter(of_bools(taken)))

    def _names(self, images: Images) -> pa.Array:
        """For each message the name of its transaction; null for a snapshot's row, and where nothing says its place."""
        texts = [images.others[column.name].cast(pa.string()) for column in self.columns]
        nothing = pa.nulls(len(images.op), pa.string())
        is_read = pc.equal(images.op, scalar_of("r", images.op.type))
        without = pc.or_(is_read, images.others[ORDER].is_null())
        return pc.if_else(without, nothing, pc.coalesce(*texts))

    def with_event_times(self, facts: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """Facts with the last event time of their transaction; those of the last transaction wait for more of it."""
        if self._event_time is None or not facts.num_rows:
            yield facts
            return
        last = facts.column(TRANSACTION)[int(np.argmax(_message_numbers(facts)))].as_py()
        rows = one_batch(pa.Table.from_batches([*self._waiting, facts]))
        rows = self._settled(rows)
        waits = pc.equal(rows.column(TRANSACTION), scalar_of(last, pa.string())).fill_null(scalar_of(False, pa.bool_()))
        self._waiting = [rows.filter(waits)]
        yield rows.filter(pc.invert(waits))

    def _settled(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        encoded = contiguous(rows.column(TRANSACTION)).dictionary_encode()
        number = np.asarray(values(pc.fill_null(encoded.indices, -1).cast(pa.int64())), np.int64)
        column = contiguous(rows.column(self._event_time))
        times = np.array(values(column.cast(pa.int64())), np.int64)
        last = np.full(len(encoded.dictionary) + 1, np.iinfo(np.int64).min)
        np.maximum.at(last, number, times)
        settled = of_numbers(np.where(number < 0, times, last[number])).cast(column.type)
        at = rows.schema.get_field_index(self._event_time)
        return rows.set_column(at, rows.schema.field(at), settled)

    def end(self) -> Iterator[pa.RecordBatch]:
        """What waits once all blocks were read. Raises BadFile."""
        if (lone := self._moves.end()) is not None:
            raise self._refusal(*lone)
        yield from (rows for rows in self._waiting if rows.num_rows)

    def _refusal(self, key: tuple[Any, ...], row: int) -> BadFile:
        where = place(self._content, self._collection.landed.source.format, row)
        return BadFile(
            self._content.path,
            f"{where}: op d of key {key} has only the key, and a row came to it in the same transaction as its key "
            "changed: it may delete that row, or the one that was there; set REPLICA IDENTITY FULL at the source, so "
            "that before-images have all values",
        )


def _is_number(source: Mapping[str, Any], name: str, is_postgresql: bool) -> bool:
    value = source.get(name.removeprefix("source."))
    return name in NAMES[:2] and (isinstance(value, int) or (value is None and is_postgresql))


def _message_numbers(facts: pa.RecordBatch) -> Ints:
    rows = np.asarray(values(facts.column(ROW)), np.int64)
    return np.where(rows < 0, -1 - rows, rows)


@dataclass(frozen=True)
class _Messages:
    """What the messages of a block are.

    Attributes:
        transaction: A number for each transaction, -1 for none.
        moved: Updates whose before-image has another key.
        whole: Whether the before-image has values.
        followed: Of a delete with only the key the message that puts the row under another key; -1 for none.
    """

    puts: Bools
    removes: Bools
    updates: Bools
    transaction: Ints
    moved: Bools
    whole: Bools
    followed: Ints

    @classmethod
    def of(cls, images: Images, names: pa.Array, columns: Sequence[Column]) -> _Messages:
        puts, removes, updates, creates = (
            bools_of(pc.is_in(images.op, value_set=of_values(list(ops), pa.string()))) for ops in ("cru", "d", "u", "c")
        )
        transaction, has_before = _codes(names), bools_of(images.has_before)
        whole = np.zeros(len(puts), np.bool_)
        for column in columns:
            whole |= _says(images.values[column.name], column)
        whole &= has_before
        differs = np.zeros(len(puts), np.bool_)
        for name, array in images.before.items():
            differs |= bools_of(pc.not_equal(array, images.after[name]).fill_null(scalar_of(False, pa.bool_())))
        followed = np.full(len(puts), -1)
        order = np.flatnonzero(puts | removes)
        if (removes & ~whole).any():
            here, after = order[:-1], order[1:]
            at = _codes(images.others[ORDER])
            pair = removes[here] & ~whole[here] & creates[after] & (transaction[here] >= 0)
            pair &= (transaction[here] == transaction[after]) & (at[here] == at[after])
            followed[here[pair]] = after[pair]
        return cls(puts, removes, updates, transaction, updates & has_before & differs, whole, followed)

    def repeated(self, images: Images, keys: Sequence[str]) -> Bools:
        """Updates whose before-images are facts of their own, as they have values.

        Those of keys with other messages in their transaction, or of the first one, which may have begun before.
        """
        chosen = self.updates & ~self.moved & self.whole & (self.transaction >= 0)
        if not chosen.any():
            return chosen
        first = self.transaction[np.argmax(self.transaction >= 0)]
        begun = self.transaction == first
        transaction = np.concatenate([self.transaction, self.transaction[self.moved]])
        inside = transaction >= 0
        if len(np.unique(transaction[inside])) == np.count_nonzero(inside):
            return np.asarray(chosen & begun)
        left = {name: images.before[name].filter(of_bools(self.moved)) for name in keys}
        both = pa.table({name: pa.chunked_array([images.keys[name], left[name]]) for name in keys})
        pairs = ranks(both, keys) * (int(transaction.max()) + 1) + transaction
        pairs = np.where(inside, pairs, -1 - np.arange(len(pairs)))
        _, number, count = np.unique(pairs, return_inverse=True, return_counts=True)
        return np.asarray(chosen & (begun | (count[number] > 1)[: len(chosen)]))


class _KeyOnlyMoves:
    """Rows that came to a key in the transaction of now by messages that have only the key of what they replace."""

    def __init__(self) -> None:
        self._transaction: str | None = None
        self._came: set[tuple[Any, ...]] = set()
        self._last: tuple[str, Any, tuple[Any, ...], int] | None = None

    def lone(
        self, messages: _Messages, images: Images, names: pa.Array, rows: Ints
    ) -> tuple[tuple[Any, ...], int] | None:
        """The first key with a delete that could mean such a row or the one before it, and its message's number."""
        moves = messages.followed >= 0
        came = messages.moved & ~messages.whole
        came[messages.followed[moves]] = True
        alone = messages.removes & ~messages.whole & ~moves & (messages.transaction >= 0)
        every = np.flatnonzero(messages.puts | messages.removes)
        if len(every) and (answer := self._first(messages, images, names, int(every[0]), came)) is not None:
            return answer
        if not came.any() and not (alone.any() and self._came):
            self._forget(names, every)
            if not (len(every) and alone[every[-1]]):
                return None
        for at in np.flatnonzero(came | alone).tolist():
            transaction = names[at].as_py()
            if transaction != self._transaction:
                self._transaction, self._came = transaction, set()
            key = tuple(array[at].as_py() for array in images.keys.values())
            if came[at]:
                self._came.add(key)
            elif at == every[-1]:
                self._last = transaction, images.others[ORDER][at].as_py(), key, int(rows[at])
            elif key in self._came:
                return key, int(rows[at])
        self._forget(names, every)
        return None

    def _first(
        self, messages: _Messages, images: Images, names: pa.Array, at: int, came: Bools
    ) -> tuple[tuple[Any, ...], int] | None:
        """What is to be said of the last delete of the block before, now that the message after it is known."""
        if self._last is None:
            return None
        transaction, log_place, key, row = self._last
        self._last = None
        same = transaction == names[at].as_py() and log_place == images.others[ORDER][at].as_py()
        if same and messages.puts[at] and not messages.updates[at]:
            came[at] = True
            return None
        return (key, row) if key in self._came and transaction == self._transaction else None

    def _forget(self, names: pa.Array, every: Ints) -> None:
        if len(every) and names[int(every[-1])].as_py() != self._transaction:
            self._transaction, self._came = names[int(every[-1])].as_py(), set()

    def end(self) -> tuple[tuple[Any, ...], int] | None:
        """The same at the end of a file."""
        if self._last is None:
            return None
        transaction, _, key, row = self._last
        return (key, row) if key in self._came and transaction == self._transaction else None


def _codes(array: pa.Array) -> Ints:
    """A number for each distinct value, -1 for null."""
    encoded = contiguous(array).dictionary_encode()
    return np.asarray(values(pc.fill_null(encoded.indices, -1).cast(pa.int64())), np.int64)


_EMPTY: dict[Any, Any] = {
    ColumnType.BOOL: False,
    ColumnType.INT: 0,
    ColumnType.FLOAT: 0.0,
    ColumnType.STRING: "",
    ColumnType.BYTES: b"",
    ColumnType.JSON: "{}",
}
"""What PostgreSQL's connector writes where a before-image without values may not have null."""


def _says(array: pa.Array, column: Column) -> Bools:
    """Where an image has a value: neither null nor the zero of its type."""
    if column.type in _EMPTY:
        zero = scalar_of(_EMPTY[column.type], array.type)
    else:
        array, zero = _number(array), scalar_of(0, pa.int64())
    return bools_of(pc.not_equal(array, zero).fill_null(scalar_of(False, pa.bool_())))


def _number(array: pa.Array) -> pa.Array:
    """A date, time or decimal as whether it is not zero."""
    if pa.types.is_decimal(array.type):
        return pc.sign(array).cast(pa.int64())
    return array.cast(pa.int32()).cast(pa.int64()) if pa.types.is_date32(array.type) else array.cast(pa.int64())


def _chosen(where: Bools, columns: _Columns, others: _Columns) -> dict[str, pa.Array]:
    """The columns that both have, where chosen those of the first."""
    names = [name for name in columns if name in others]
    if not where.any():
        return {name: others[name] for name in names}
    return {name: pc.if_else(of_bools(where), columns[name], others[name]) for name in names}


def _guessed(after: _Columns, followed: Ints) -> dict[str, pa.Array]:
    """Of each message the after-image of the one that it is followed by, or nulls."""
    at = pa.array(np.maximum(followed, 0), mask=followed < 0)
    return {name: array.take(at) for name, array in after.items()}


def _marked(lacks: pa.Array, chosen: Bools, mark: str) -> pa.Array:
    """What `_lacks` has of messages, with a mark before that of some."""
    if not chosen.any():
        return lacks
    text = scalar_of(mark, pa.string())
    both = pc.if_else(lacks.is_null(), text, pc.binary_join_element_wise(text, lacks.fill_null(""), ","))
    return pc.if_else(of_bools(chosen), both, lacks)
