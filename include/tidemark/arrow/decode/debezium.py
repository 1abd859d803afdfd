"""What the change messages of Debezium say: one row for each key whose value a message reports (debezium_files.py).

    c, r, u    the key of the after-image has the value of the after-image
    u          whose before-image has another key: that key is deleted too, at the same place in source order
    d          the key of the before-image is deleted; without one, that of the message's key
    tombstone  says nothing that the delete before it did not say: skipped

Anything else is refused, with its place. A truncate does not say which keys are gone. Where transactions are one change
(in_transactions.py) rows also have their transaction and before-image, and what their after-image lacks as the database
did not log it. Elsewhere before-images are used for their keys only, so it does not matter whether a connector sends
them, as long as keys do not change and deletes carry theirs; and an after-image that is not whole is no value.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import reduce

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidemark.arrow.decode import debezium_files
from tidemark.arrow.decode.content import BadFile, Content
from tidemark.arrow.decode.debezium_files import TOMBSTONE, LogicalType
from tidemark.arrow.decode.in_transactions import Images, Transactions
from tidemark.arrow.decode.jsonlfile import Field
from tidemark.arrow.decode.messages import kind_of
from tidemark.arrow.decode.only import Only
from tidemark.arrow.decode.placed import Order, fields_of, placed
from tidemark.arrow.decode.strict import counting, precise
from tidemark.arrow.decode.tables import TableCheck
from tidemark.arrow.decode.typed import cells, check_values, epoch_unit, field_of, fitting, place, refusal, typed
from tidemark.arrow.decode.unavailable import encoded, unlogged
from tidemark.arrow.rows.arrays import bools_of, first_true, of_bools, of_numbers, of_values, scalar_of
from tidemark.arrow.rows.columns import Ints, one_batch
from tidemark.arrow.rows.schema import ORDER, ROW, transaction_fields
from tidemark.model.collection import Collection, Column, ColumnType, DecimalType, Format
from tidemark.model.only import OP, leave_out

_REFUSED = {
    "t": "op t truncates the table and does not say which keys it had; put deletes (op d) of them in its place, or "
    "start the table again from full snapshots (envelope snapshot)",
    "m": "op m is a message of the log, of no table; " + leave_out("op != 'm'"),
    None: "there is no op in the message",
}

_Columns = Mapping[str, pa.Array]


def decode(
    content: Content, collection: Collection, columns: Sequence[Column], schema: pa.Schema
) -> Iterator[pa.RecordBatch]:
    """The rows of a file in order: the columns, `_deleted`, and `_row`, the message's position. Raises BadFile."""
    source, only = collection.landed.source, Only.of(content, collection)
    table = TableCheck(content, collection)
    is_unchecked = only is not None  # rows of other tables, with other types, may come before the first that it takes
    try:
        facts = _Facts(content, collection, columns, schema, table)
        if only is None:
            _check_types(content, collection)
        for block, numbers in debezium_files.read_blocks(content, source.format, facts.fields, facts.optional, only):
            if is_unchecked and len(numbers):
                _check_types(content, collection, int(numbers[0]))
                is_unchecked = False
            yield from facts.of(block, numbers)
        yield from facts.end()
    except BadFile as bad:
        is_searched = source.format is Format.JSONL and not source.only
        keys = [column.name for column in collection.key]
        other = (debezium_files.document(content) or debezium_files.only_keys(content, keys)) if is_searched else None
        raise table.another() or other or bad from None


def _check_types(content: Content, collection: Collection, first: int = 0) -> None:
    """Raise BadFile where a message's own schema, the first from row `first` on, says that a number is another one."""
    if collection.landed.source.format is not Format.JSONL:
        return
    types = debezium_files.logical_types(content, first)
    for column in collection.columns:
        if column.name in types and (wrong := _misdeclared(collection, column, types[column.name])):
            raise BadFile(content.path, f"column {column.name} {wrong}")


def _misdeclared(collection: Collection, column: Column, logical: LogicalType) -> str | None:
    source, unit = collection.landed.source, epoch_unit(collection, column)
    if unit and logical.unit and unit != logical.unit:
        declared = counting(column.type, unit)
        return f"is declared {declared}, the messages' schema has {logical.name}; write unit: {logical.unit}"
    if not isinstance(column.type, DecimalType):
        return None
    is_precise = source.decimals_of(column.name) == "precise"
    if is_precise != logical.is_precise:
        declared = precise(column.type) if is_precise else f"{column.type} (decimals: string)"
        instead = "precise" if logical.is_precise else "string"
        return f"is declared {declared}, the messages' schema has {logical.name}; write decimals: {instead}"
    if is_precise and logical.scale not in (None, column.type.scale):
        of_schema = f"is declared {column.type}, the messages' schema has scale {logical.scale}"
        return f"{of_schema}; declare the scale of the source's column"
    return None


class _Facts:
    """Turns messages into facts, for one file."""

    def __init__(
        self,
        content: Content,
        collection: Collection,
        columns: Sequence[Column],
        schema: pa.Schema,
        table: TableCheck,
    ) -> None:
        self._content, self._collection, self._columns, self._schema = content, collection, columns, schema
        stored = {column.name for column in collection.columns}
        self._keys = [column for column in columns if column.name in {key.name for key in collection.key}]
        self._values = [column for column in columns if column.name in stored and column not in self._keys]
        self._others = [column for column in columns if column.name not in stored]
        self._order = Order.of_file(content, collection) if collection.landed.source.by_connector else None
        others = {column.name for column in self._others}
        self._table = table
        self._senders = [name for name in table.fields if name not in others]
        self._placing = [column for column in self._order.columns if column.name not in others] if self._order else []
        self._transactions = Transactions(content, collection) if collection.has_transactions else None
        placing = {*others, *(column.name for column in self._placing)}
        self._naming = [c for c in self._transactions.columns if c.name not in placing] if self._transactions else []

    @property
    def fields(self) -> list[Field]:
        """What is read of a message."""
        groups = (
            ("after.", (*self._keys, *self._values)),
            ("before.", (*self._keys, *self._values) if self._transactions else self._keys),
            ("key.", self._keys),
            ("", (*self._others, *self._placing, *self._naming)),
        )
        in_path = dict(self._collection.landed.source.from_paths)
        read = [
            field_of(self._collection, column, prefix)
            for prefix, columns in groups
            for column in columns
            if column.name not in in_path
        ]
        senders = [Field(name, ColumnType.STRING, "string") for name in self._senders]
        return [Field(OP, ColumnType.STRING, "string"), *read, *senders]

    @property
    def optional(self) -> list[str]:
        """What no message need have."""
        return [*(column.name for column in (*self._placing, *self._naming)), *self._senders]

    def of(self, block: pa.RecordBatch, rows: Ints) -> Iterator[pa.RecordBatch]:
        """What the messages of a block say, whose numbers are `rows`; of transactions that may go on once they end."""
        facts = self._facts(block, rows)
        settled = self._transactions.with_event_times(facts) if self._transactions else iter([facts])
        return (said for said in settled if said.num_rows)

    def end(self) -> Iterator[pa.RecordBatch]:
        """What is left once all blocks were read. Raises BadFile."""
        return iter(()) if self._transactions is None else self._transactions.end()

    def _facts(self, block: pa.RecordBatch, rows: Ints) -> pa.RecordBatch:
        self._table.see(block, rows)
        op = self._typed(block, "", [Column(OP, ColumnType.STRING)], rows)[OP]
        self._check_ops(op, rows)
        removed = _is(op, "d")
        upserts = pc.is_in(op, value_set=of_values(["c", "r", "u"], pa.string()))
        after = self._typed(block, "after.", (*self._keys, *self._values), rows)
        before = self._typed(block, "before.", self._keys, rows)
        own = self._typed(block, "key.", self._keys, rows)
        others = self._typed(block, "", (*self._others, *self._placing, *self._naming), rows)
        if self._collection.has_places:
            others = {**others, ORDER: self._places(others, op, rows)}
        elif self._collection.order_by:
            others = {**others, ORDER: others[self._collection.order_by]}
        self._check_keys(after, upserts, rows)
        has_before = _complete(before)
        self._check_deletes(pc.and_(removed, pc.invert(pc.or_(has_before, _complete(own)))), rows)

        keys = {name: pc.if_else(removed, pc.if_else(has_before, before[name], own[name]), after[name]) for name in own}
        if self._transactions is not None:
            images = Images(op, keys, before, after, self._images(block, rows), has_before, others)
            return self._in_transactions(self._transactions, images, rows)
        self._check_whole(after, upserts, rows)
        values = {c.name: pc.if_else(removed, pa.nulls(1, after[c.name].type)[0], after[c.name]) for c in self._values}
        facts = self._batch({**keys, **values, **others}, removed, rows).filter(pc.or_(upserts, removed))
        self._check_values(facts)
        moved = pc.and_(pc.and_(_is(op, "u"), has_before), _differ(before, after))
        if not pc.any(moved).as_py():
            return facts
        nulls = {column.name: pa.nulls(len(op), after[column.name].type) for column in self._values}
        always = of_bools(np.ones(len(op), np.bool_))
        left = self._batch({**before, **nulls, **others}, always, rows).filter(moved)
        return one_batch(pa.Table.from_batches([left, facts]))

    def _images(self, block: pa.RecordBatch, rows: Ints) -> dict[str, pa.Array]:
        """The values of before-images; of one with a value that does not fit its column, which is noted, none."""
        read = {column.name: self._cells(block, "before.", column) for column in self._values}
        fit = {column.name: fitting(self._collection, column, read[column.name]) for column in self._values}
        images = {name: values for name, (values, _) in fit.items()}
        wrong = {name: unfit for name, (_, unfit) in fit.items() if unfit.any()}
        if not wrong:
            return images
        unfit = np.logical_or.reduce([*wrong.values()])
        if not self._content.seen.images_unfit:
            at = int(np.argmax(unfit))
            column = next(column for column in self._values if column.name in wrong and wrong[column.name][at])
            self._content.seen.first_unfit = self._why(column, read[column.name][at : at + 1], rows[at : at + 1])
        self._content.seen.images_unfit += int(np.count_nonzero(unfit))
        return {name: pc.if_else(of_bools(unfit), pa.nulls(1, image.type)[0], image) for name, image in images.items()}

    def _why(self, column: Column, image: pa.Array, row: Ints) -> str:
        """Why a value does not fit its column."""
        try:
            typed(self._content, self._collection, column, image, row)
        except BadFile as bad:
            return str(bad)
        raise AssertionError(f"column {column.name} of row {row} fits alone")

    def _in_transactions(self, transactions: Transactions, images: Images, rows: Ints) -> pa.RecordBatch:
        batches = []
        for said in transactions.facts(images, rows):
            numbers = rows[said.messages]
            self._check_values(self._batch(said.columns, said.deleted, numbers))
            batches.append(self._batch(said.columns, said.deleted, -1 - numbers if said.is_before else numbers))
        return one_batch(pa.Table.from_batches(batches))

    def _places(self, others: _Columns, op: pa.Array, rows: Ints) -> pa.Array:
        if self._order is None and self._collection.landed.source.by_connector:
            return pa.nulls(len(op), pa.binary())
        if self._order is None:
            return placed(self._content, self._collection, fields_of(self._collection, others), rows)
        return self._order.places(others, op, rows)

    def _typed(self, block: pa.RecordBatch, prefix: str, columns: Sequence[Column], rows: Ints) -> dict[str, pa.Array]:
        return {
            column.name: typed(self._content, self._collection, column, self._cells(block, prefix, column), rows)
            for column in columns
        }

    def _cells(self, block: pa.RecordBatch, prefix: str, column: Column) -> pa.Array:
        """A column of a block before it is typed."""
        array = cells(self._content, self._collection, column, block, prefix)
        return encoded(column, array, self._collection.landed.source.placeholder)

    def _batch(self, columns: _Columns, deleted: pa.Array, rows: Ints) -> pa.RecordBatch:
        more = [columns[ORDER]] if self._collection.has_places else []
        more += [columns[field.name] for field in transaction_fields(self._collection)]
        arrays = [*(columns[column.name] for column in self._columns), deleted, *more, of_numbers(rows)]
        return pa.RecordBatch.from_arrays(arrays, schema=self._schema)

    def _check_ops(self, op: pa.Array, rows: Ints) -> None:
        known = pc.is_in(op, value_set=of_values(["c", "r", "u", "d", TOMBSTONE], pa.string()))
        if (at := first_true(pc.invert(known))) >= 0:
            found = op[at].as_py()
            problem = _REFUSED.get(found, f"op {found!r} is not one of c (create), r (read), u (update), d (delete)")
            if found is None:
                names = debezium_files.names_at(self._content, self._collection.landed.source.format, int(rows[at]))
                kind = kind_of(names)
                problem = kind.refusal if kind else problem
            raise self._refusal(problem, rows[at])

    def _check_keys(self, after: _Columns, upserts: pa.Array, rows: Ints) -> None:
        """Raise BadFile for a message that must have an after-image and has none."""
        at_rows = rows[bools_of(upserts)]
        nothing = reduce(pc.and_, (after[key.name].filter(upserts).is_null() for key in self._keys))
        if (at := first_true(nothing)) >= 0:
            raise self._refusal(f"an insert or update has an after-image with the key ({self._names})", at_rows[at])

    def _check_whole(self, after: _Columns, upserts: pa.Array, rows: Ints) -> None:
        """Raise BadFile for an after-image that lacks what the database did not log."""
        at_rows = rows[bools_of(upserts)]
        for column in self._values:
            source = self._collection.landed.source
            missing = unlogged(column, after[column.name].filter(upserts), source.placeholder)
            if missing.any():
                holds = f"holds {source.placeholder}: the after-image is not whole"
                problem = f"{holds}; set REPLICA IDENTITY FULL at the source"
                row = int(at_rows[np.argmax(missing)])
                raise refusal(self._content, source.format, column.name, problem, row)

    def _check_deletes(self, lost: pa.Array, rows: Ints) -> None:
        if (at := first_true(lost)) >= 0:
            problem = f"op d has the key ({self._names}) neither in a before-image nor in a message key"
            raise self._refusal(problem, rows[at])

    def _check_values(self, facts: pa.RecordBatch) -> None:
        for column in self._columns:
            check_values(self._content, self._collection, column, facts.column(column.name), facts.column(ROW))

    @property
    def _names(self) -> str:
        return ", ".join(key.name for key in self._keys)

    def _refusal(self, problem: str, row: int) -> BadFile:
        return BadFile(
            self._content.path, f"{place(self._content, self._collection.landed.source.format, int(row))}: {problem}"
        )


def _is(op: pa.Array, kind: str) -> pa.BooleanArray:
    """Which messages are of a kind."""
    return _or_false(pc.equal(op, scalar_of(kind, op.type)))


def _or_false(bools: pa.BooleanArray) -> pa.BooleanArray:
    return pc.fill_null(bools, scalar_of(False, pa.bool_()))


def _complete(columns: _Columns) -> pa.Array:
    """Where no column is null."""
    return reduce(pc.and_, (array.is_valid() for array in columns.values()))


def _differ(one: _Columns, other: _Columns) -> pa.Array:
    """Where the columns of `one` differ from those of the same names in `other`; False where either is null."""
    return reduce(pc.or_, (_or_false(pc.not_equal(array, other[name])) for name, array in one.items()))
