"""Which keys and values can fit a condition, so that a read opens no others."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from decimal import Decimal

import pyarrow as pa

from tidemark.api.conditions import Conditions
from tidemark.api.values import value_of
from tidemark.arrow.parts.chunks import spannable
from tidemark.arrow.rows.predicate import scalar
from tidemark.arrow.rows.schema import arrow_type, key_scalars
from tidemark.errors import InvalidUsage
from tidemark.model.chunk.law import Span
from tidemark.model.collection import Collection, Column, ColumnType, DecimalType
from tidemark.model.key import NULL, Bound, Key, KeyScalar
from tidemark.model.predicate import And, Compare, In, IsNull, Literal, Predicate
from tidemark.plan.ranges import behind, successor
from tidemark.plan.tasks import KeyRange


@dataclass(frozen=True)
class _Span:
    """`[lower, upper]` of a column's values, each included; None is unbounded, NULL the null."""

    lower: KeyScalar | None = None
    upper: KeyScalar | None = None


def keys_within(collection: Collection, conditions: Conditions) -> KeyRange:
    """A range of keys that holds all rows which fit the conditions.

    Values of the first key columns, and after them a range of the next: with the key (day, id), `day = '2024-01-01' AND
    id > 7` is one range; `id > 7` alone is none. It may hold other keys too, since rows are filtered all the same.
    """
    prefix: Key = ()
    for column in collection.key:
        span = _span(column, conditions)
        if span.lower is not None and span.lower == span.upper:
            prefix = (*prefix, span.lower)
            continue
        lower: Bound | None = None if span.lower is None else (*prefix, span.lower)
        upper: Bound | None = None if span.upper is None else (*prefix, successor(span.upper))
        return KeyRange(lower or (prefix or None), upper or behind(prefix))
    return KeyRange(prefix, behind(prefix))


def spans_within(collection: Collection, conditions: Conditions, columns: Iterable[Column]) -> tuple[Span, ...]:
    """The spans of some columns that hold all rows which fit the conditions, in order of the columns; of the first key
    column none, which `keys_within` looks at. They may hold other rows, too."""
    (first, *_) = collection.key
    looked_at = set(conditions.columns)
    asked = (column for column in columns if column.name in looked_at and column != first)
    spans = ((column, _span(column, conditions)) for column in asked if spannable(arrow_type(column.type)))
    return tuple(
        Span(column.id, ((_number(span.lower), _number(span.upper)),))
        for column, span in spans
        if span != _Span() and span.lower is not NULL
    )


def _number(end: KeyScalar | None) -> int | None:
    """The end of a span of whole numbers."""
    assert end is None or isinstance(end, int)
    return end


def _span(column: Column, conditions: Conditions) -> _Span:
    """Between which values all rows that fit have a column; more where nothing is known."""
    lowers: list[KeyScalar] = []
    uppers: list[KeyScalar] = []
    for values in _any_of(column, conditions):
        known = [value for value in values if value is not None]
        if known and len(known) == len(values):
            lowers.append(_least(known))
            uppers.append(_greatest(known))
    for op, literal in _compared(column, conditions):
        value = _plain(column, literal)
        if value is not None and op in ("=", ">", ">="):
            lowers.append(value)
        if value is not None and op in ("=", "<", "<="):
            uppers.append(value)
    return _Span(_greatest(lowers) if lowers else None, _least(uppers) if uppers else None)


def _least(values: list[KeyScalar]) -> KeyScalar:
    return min(values)


def _greatest(values: list[KeyScalar]) -> KeyScalar:
    return max(values)


def _any_of(column: Column, conditions: Conditions) -> Iterator[list[KeyScalar | None]]:
    """The values that a column has one of, for each condition that says so; None for what is no value of it."""
    for equal in conditions.equal:
        if equal.column == column.name:
            yield [_within_64_bits(column, value) for value in key_scalars(equal.values)]
    for leaf in _conjuncts(conditions.predicates):
        if isinstance(leaf, In) and leaf.column == column.name:
            yield [_plain(column, literal) for literal in leaf.literals]
        if isinstance(leaf, IsNull) and leaf.column == column.name:
            yield [NULL]


def _compared(column: Column, conditions: Conditions) -> Iterator[tuple[str, Literal]]:
    for leaf in _conjuncts(conditions.predicates):
        if isinstance(leaf, Compare) and leaf.column == column.name:
            yield leaf.op, leaf.literal


def _conjuncts(predicates: Iterable[Predicate]) -> Iterator[Predicate]:
    """The conditions that all must hold."""
    for predicate in predicates:
        if isinstance(predicate, And):
            yield from _conjuncts((predicate.left, predicate.right))
        else:
            yield predicate


def _plain(column: Column, literal: Literal) -> KeyScalar | None:
    """A literal as keys hold it; None where it is no value of the column, but lies between two or beyond all."""
    try:
        exact = int(literal) if isinstance(literal, Decimal) and column.type is ColumnType.INT else literal
        if exact != literal:
            return None
        of = arrow_type(column.type)
        value = value_of(column.name, exact, of) if _is_number(column) else scalar(of, exact)
        return _within_64_bits(column, key_scalars(pa.array([value]))[0])
    except InvalidUsage:
        return None


def _is_number(column: Column) -> bool:
    return column.type is ColumnType.INT or isinstance(column.type, DecimalType)


def _within_64_bits(column: Column, value: KeyScalar) -> KeyScalar | None:
    """A value whose successor a key of integers can be compared with; the last one has none."""
    return None if isinstance(value, int) and column.type is ColumnType.INT and value >= 2**63 - 1 else value
