"""Probes: rows of a table each of which asks for the latest row of a key at a time, in order of the key.

A table comes from outside, so its columns are checked and brought to the types of the collection's columns, exactly or
not at all. Probes with a null in the key or in a time ask for nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidemark.arrow.rows.arrays import of_numbers, of_values
from tidemark.arrow.rows.columns import Ints, contiguous, values
from tidemark.arrow.rows.order import sort, starts
from tidemark.errors import InvalidUsage, listed
from tidemark.model import canonical_json
from tidemark.model.canonical_json import NotJson
from tidemark.model.nearest import similar

_INSTANT = pa.timestamp("us", "UTC")


@dataclass(frozen=True)
class Wanted:
    """A column that a table of probes must have: what it is called there, what for, and of which type."""

    name: str
    what: str
    type: pa.DataType
    of_json: bool = False


@dataclass(frozen=True)
class Asking:
    """Which columns of a table say what: of the `key`, in its order, of the time `upto` which is asked for, and of the
    time at which what is asked was `known` (None: none does)."""

    key: tuple[Wanted, ...]
    upto: Wanted
    known: Wanted | None = None

    @property
    def columns(self) -> tuple[Wanted, ...]:
        """All of them."""
        return (*self.key, self.upto, *(() if self.known is None else (self.known,)))


@dataclass(frozen=True)
class Probes:
    """Probes without nulls, in order of their `keys` and times; `number` says which row of the table each is."""

    keys: pa.RecordBatch
    upto: Ints
    known: Ints | None
    number: Ints

    def __len__(self) -> int:
        return len(self.number)

    @cached_property
    def firsts(self) -> Ints:
        """Where each key begins, and behind the last one where all end."""
        return np.append(np.flatnonzero(starts(self.keys, self.keys.schema.names)), len(self))

    @cached_property
    def distinct(self) -> pa.RecordBatch:
        """Each key once."""
        return self.keys.take(of_numbers(self.firsts[:-1]))


def probes_of(table: pa.Table, asking: Asking) -> Probes:
    """The probes of a table. Raises InvalidUsage for a column that is missing, or of another type."""
    check_schema(table.schema, asking)
    keys = keys_in(table, asking)
    columns = [*keys.columns, _times(table.column(asking.upto.name), asking.upto)]
    columns += [] if asking.known is None else [_times(table.column(asking.known.name), asking.known)]
    columns.append(of_numbers(np.arange(table.num_rows)))
    # Numbered, as a key column may have any name.
    whole = pa.RecordBatch.from_arrays(columns, [f"{at}" for at in range(len(columns))])
    placed = sort(_without_nulls(whole), whole.schema.names[: keys.num_columns + 1])
    sorted_keys = pa.RecordBatch.from_arrays(placed.columns[: keys.num_columns], keys.schema.names)
    upto, *known, number = (np.asarray(values(column), np.int64) for column in placed.columns[keys.num_columns :])
    return Probes(sorted_keys, upto, known[0] if known else None, number)


def keys_in(table: pa.Table | pa.RecordBatch, asking: Asking) -> pa.RecordBatch:
    """The keys of a table that was checked, nulls among them, under the names of the key and in its types."""
    columns = [_exact(table.column(wanted.name), wanted) for wanted in asking.key]
    return pa.RecordBatch.from_arrays(columns, [wanted.name for wanted in asking.key])


def check_schema(schema: pa.Schema, asking: Asking) -> None:
    """Raise InvalidUsage for a column that a table of probes lacks, has twice, or has in another type."""
    for wanted in asking.columns:
        times = schema.names.count(wanted.name)
        if not times:
            near = similar(wanted.name, schema.names)
            there = f"did you mean {near!r}?" if near else f"there are {listed(schema.names)}"
            raise InvalidUsage(f"at: the table has no column {wanted.name!r} for {wanted.what}; {there}")
        if times > 1:
            raise InvalidUsage(f"at: the table has {times} columns {wanted.name!r}; name each once")
        of = schema.field(wanted.name).type
        if not _is_kind_of(of.value_type if pa.types.is_dictionary(of) else of, wanted.type):
            raise InvalidUsage(
                f"at: column {wanted.name} of the table is of type {of}; {wanted.what} is {wanted.type}: cast it"
            )


def _is_kind_of(of: pa.DataType, wanted: pa.DataType) -> bool:
    """Whether values of a type can be those of the one wanted, without a guess."""
    types = pa.types
    if types.is_null(of):
        return True
    if types.is_timestamp(wanted):
        return bool(types.is_timestamp(of) or types.is_date(of))
    if types.is_decimal(wanted):
        return bool(types.is_decimal(of) or types.is_integer(of))
    if types.is_string(wanted):
        return bool(types.is_string(of) or types.is_large_string(of) or types.is_string_view(of))
    if types.is_binary(wanted):
        return _is_binary(of)
    like = {pa.int64(): types.is_integer, pa.date32(): types.is_date, pa.bool_(): types.is_boolean}
    return bool(like[wanted](of))


def _is_binary(of: pa.DataType) -> bool:
    kinds = (pa.types.is_binary, pa.types.is_large_binary, pa.types.is_binary_view, pa.types.is_fixed_size_binary)
    return any(kind(of) for kind in kinds)


def _exact(column: pa.ChunkedArray | pa.Array, wanted: Wanted) -> pa.Array:
    """A column in the type wanted. InvalidUsage where a value of it is none of that type."""
    try:
        plain = _plain(column)
        if wanted.of_json:
            return _canonical(plain.cast(pa.string()))
        if pa.types.is_timestamp(wanted.type):
            return _instants(plain)
        return plain.cast(wanted.type)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, NotJson) as error:
        said = (str(error).splitlines() or [""])[0]
        raise InvalidUsage(
            f"at: column {wanted.name} of the table has a value that {wanted.what}, {wanted.type}, cannot have: {said}"
        ) from None


def _times(column: pa.ChunkedArray, wanted: Wanted) -> pa.Array:
    """A column of times as whole numbers. What is finer than a microsecond is cut off: no row has a time between."""
    plain = _plain(column)
    if pa.types.is_timestamp(plain.type) and plain.type.unit == "ns":
        counted = plain.cast(pa.int64())
        plain = of_numbers(values(counted) // 1000, values(counted.is_null())).cast(_INSTANT)
    exact = _exact(plain, wanted)
    return exact.cast(pa.int32()).cast(pa.int64()) if pa.types.is_date32(exact.type) else exact.cast(pa.int64())


def _plain(column: pa.ChunkedArray | pa.Array) -> pa.Array:
    """A column as one array, without a dictionary."""
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    return contiguous(column)


def _instants(column: pa.Array) -> pa.Array:
    """Times, of which those without a zone are UTC."""
    if pa.types.is_timestamp(column.type) and column.type.tz is not None:
        return column.cast(_INSTANT)
    return column.cast(pa.timestamp("us")).cast(pa.int64()).cast(_INSTANT)


def _canonical(column: pa.Array) -> pa.Array:
    """JSON as collections have it."""
    texts = column.dictionary_encode()
    written = [None if text is None else canonical_json.canonical(text) for text in texts.dictionary.to_pylist()]
    return of_values(written, pa.string()).take(texts.indices)


def _without_nulls(rows: pa.RecordBatch) -> pa.RecordBatch:
    nulls = [column for column in rows.columns if column.null_count]
    if not nulls:
        return rows
    there = pc.is_valid(nulls[0])
    for column in nulls[1:]:
        there = pc.and_(there, pc.is_valid(column))
    return rows.filter(there)
