"""What a filter of Arrow says of the columns, as a condition: so a read opens no chunks that it rules out.

DuckDB, polars and Arrow push a filter down as an expression, which Python cannot look into. But an expression can be
pickled, and what it is pickled as can be read: a batch of Arrow whose metadata are the expression in prefix order and
whose columns are its literals. An example, `(k == 5) and (s < "b")`:

    call and_kleene, call equal, field_ref k, literal 0, end equal, call less, field_ref s, literal 1, end less, end …

The condition is implied by the filter, and may be weaker: what is not understood counts as true. So it may be used to
leave out what cannot fit, and for nothing else: the filter itself is applied to the rows by Arrow. That also holds for
a version of Arrow that pickles in another way: then nothing is understood, and all is read.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING

import pyarrow as pa

from tidemark.api.conditions import ALL
from tidemark.arrow.rows.schema import plain_scalars
from tidemark.model.condition.tree import And, Compare, Condition, In, IsNull, Literal, Not, Or

if TYPE_CHECKING:
    import pyarrow.compute as pc

Columns = Mapping[str, pa.DataType]
"""The columns of which something may be said, with their types."""

_PAIR = re.compile(r"(literal|field_ref|nested_field_ref|call|options|end): '(.*)'")
_SAME = {"equal": "=", "not_equal": "!=", "less": "<", "less_equal": "<=", "greater": ">", "greater_equal": ">="}
_TURNED = {"=": "=", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
_MOST = 10_000
"""The values of an `is_in` that are looked at; of more, any row may fit."""


def implied(filter: pc.Expression | None, columns: Columns) -> Condition:
    """A condition that is true of every row for which the filter is."""
    if filter is None:
        return ALL
    try:
        return _implied(_parsed(filter), columns) or ALL
    except (_NotUnderstood, pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return ALL


def referenced(filter: pc.Expression | None) -> frozenset[str] | None:
    """The columns that a filter looks at; None if that cannot be seen: it may look at any."""
    if filter is None:
        return frozenset()
    try:
        return frozenset(_fields(_parsed(filter)))
    except (_NotUnderstood, pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return None


class _NotUnderstood(Exception):
    """The pickled form is another than is known here."""


@dataclass(frozen=True)
class _Field:
    name: str


@dataclass(frozen=True)
class _Value:
    scalar: pa.Scalar


@dataclass(frozen=True)
class _Call:
    function: str
    arguments: tuple[_Node, ...]
    options: pa.Scalar | None


_Node = _Field | _Value | _Call


def _parsed(filter: pc.Expression) -> _Node:
    reduced = filter.__reduce__()
    if not (isinstance(reduced, tuple) and len(reduced) == 2 and isinstance(reduced[1][0], pa.Buffer)):
        raise _NotUnderstood
    values = pa.ipc.open_file(reduced[1][0]).get_batch(0)
    # Its metadata have some names more than once, which `metadata`, a dict, does not show.
    text = values.schema.to_string(truncate_metadata=False, show_field_metadata=False)
    _, mark, listed = text.partition("-- schema metadata --\n")
    pairs = [_PAIR.fullmatch(line) for line in listed.splitlines()]
    if not mark or not all(pairs):
        raise _NotUnderstood
    words = iter([(pair[1], pair[2]) for pair in pairs if pair])
    node = _node(next(words), words, values)
    if next(words, None) is not None:
        raise _NotUnderstood
    return node


def _node(word: tuple[str, str], words: Iterator[tuple[str, str]], values: pa.RecordBatch) -> _Node:
    kind, text = word
    match kind:
        case "literal":
            return _Value(_literal_at(values, text))
        case "field_ref":
            return _Field(text)
        case "call":
            return _call(text, words, values)
    raise _NotUnderstood


def _call(function: str, words: Iterator[tuple[str, str]], values: pa.RecordBatch) -> _Call:
    arguments: list[_Node] = []
    options = None
    for word in words:
        if word == ("end", function):
            return _Call(function, tuple(arguments), options)
        if word[0] == "options":
            options = _literal_at(values, word[1])
        else:
            arguments.append(_node(word, words, values))
    raise _NotUnderstood


def _literal_at(values: pa.RecordBatch, text: str) -> pa.Scalar:
    if not text.isdecimal() or int(text) >= values.num_columns:
        raise _NotUnderstood
    return values.column(int(text))[0]


def _fields(node: _Node) -> Iterator[str]:
    match node:
        case _Field(name):
            yield name
        case _Call(_, arguments, _):
            for one in arguments:
                yield from _fields(one)


def _implied(node: _Node, columns: Columns) -> Condition | None:
    """What is true of a row for which the node is; None: nothing is known."""
    match node:
        case _Call("and_kleene" | "and", (one, other)):
            known = [found for found in (_implied(one, columns), _implied(other, columns)) if found is not None]
            return And(tuple(known)) if known else None
        case _Call("or_kleene" | "or", (one, other)):
            first, second = _implied(one, columns), _implied(other, columns)
            return None if first is None or second is None else Or((first, second))
        case _Call("if_else", (_, chosen, _Value(otherwise))) if not otherwise.is_valid:
            return _implied(chosen, columns)  # where it is null no row is taken
        case _Call("is_valid", (_Field(name),)) if name in columns:
            return Not(IsNull(name))
        case _Call("invert", (_Call("is_null", (_Field(name),)),)) if name in columns:
            return Not(IsNull(name))
        case _Call("is_null", (_Field(name),), options) if name in columns and not _counts_nan(options):
            return IsNull(name)
        case _Call("is_in", (_Field(name),), options) if name in columns and options is not None:
            return _any_of(name, columns[name], options)
        case _Call(function, (_Field(name), _Value(scalar))) if function in _SAME and name in columns:
            return _compared(name, _SAME[function], scalar, columns[name])
        case _Call(function, (_Value(scalar), _Field(name))) if function in _SAME and name in columns:
            return _compared(name, _TURNED[_SAME[function]], scalar, columns[name])
    return None


def _counts_nan(options: pa.Scalar | None) -> bool:
    return options is None or options.as_py().get("nan_is_null") is not False


def _any_of(name: str, of: pa.DataType, options: pa.Scalar) -> Condition | None:
    values = options["value_set"] if "value_set" in options.keys() else None  # noqa: SIM118 (a scalar is no dict)
    members = getattr(values, "values", None)
    if members is None or len(members) > _MOST:
        return None
    literals = [_plain(one, of) for one in members if one.is_valid]
    if None in literals:
        return None
    known = In(name, tuple(one for one in literals if one is not None))
    return Or((known, IsNull(name))) if members.null_count else known


def _compared(name: str, op: str, scalar: pa.Scalar, of: pa.DataType) -> Condition | None:
    if not scalar.is_valid:
        return Or(())
    literal = _plain(scalar, of)
    return None if literal is None else Compare(name, op, literal)


def _plain(scalar: pa.Scalar, of: pa.DataType) -> Literal | None:
    """A value as conditions have it, exactly; None for one of another kind than the column's. Of floats nothing is
    said: what Arrow takes for equal is not what the order of keys does."""
    kind = next((kind for kind, is_one in _KINDS.items() if is_one(of) and is_one(scalar.type)), None)
    match kind:
        case "number":
            number = scalar.as_py()
            return number if isinstance(number, int | Decimal) else None
        case "time" | "date":
            (plain,) = plain_scalars(pa.repeat(scalar.cast(of), 1))
            return plain if isinstance(plain, int) else None
        case "text":
            return str(scalar.as_py())
        case "bytes":
            return bytes(scalar.as_py())
        case "truth":
            return bool(scalar.as_py())
    return None


def _is_zoned_time(of: pa.DataType) -> bool:
    return bool(pa.types.is_timestamp(of)) and of.tz is not None


_KINDS: Mapping[str, Callable[[pa.DataType], bool]] = {
    "number": lambda of: pa.types.is_integer(of) or pa.types.is_decimal(of),
    "time": _is_zoned_time,
    "date": pa.types.is_date,
    "text": lambda of: pa.types.is_string(of) or pa.types.is_large_string(of) or pa.types.is_string_view(of),
    "bytes": lambda of: pa.types.is_binary(of) or pa.types.is_large_binary(of) or pa.types.is_binary_view(of),
    "truth": pa.types.is_boolean,
}
