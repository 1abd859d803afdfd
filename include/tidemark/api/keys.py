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
from tidemark.arrow.rows.schema import arrow_type, plain_scalars
from tidemark.errors import InvalidUsage
from tidemark.model.chunk.law import Span
from tidemark.model.collection import Collection, Column, ColumnType, DecimalType
from tidemark.model.predicate import And, Compare, In, Literal, Predicate
from tidemark.model.update import Row, Scalar
from tidemark.plan.ranges import behind, successor
from tidemark.plan.tasks import KeyRange


@dataclass(frozen=True)
class _Span:
    """`[lower, upper]` of a column's values, each included; None is unbounded."""

    lower: Scalar = None
    upper: Scalar = None


def keys_within(collection: Collection, conditions: Conditions) -> KeyRange:
    """A range of keys that holds all rows which fit the conditions.

    Values of the first key columns, and after them a range of the next: with the key (day, id), `day = '2024-01-01' AND
    id > 7` is one range; `id > 7` alone is none. It may hold other keys too, since rows are filtered all the same.
    """
    prefix: Row = ()
    for column in collection.key:
        span = _span(column, conditions)
        if span.lower is not None and span.lower == span.upper:
            prefix = (*prefix, span.lower)
            continue
        lower = None if span.lower is None else (*prefix, span.lower)
        upper = None if span.upper is None else (*prefix, successor(span.upper))
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
        Span(column.id, ((span.lower, span.upper),))  # type: ignore[arg-type]
        for column, span in spans
        if span != _Span()
    )


def _span(column: Column, conditions: Conditions) -> _Span:
    """Between which values all rows that fit have a column; more where nothing is known."""
    lowers: list[Scalar] = []
    uppers: list[Scalar] = []
    for values in _any_of(column, conditions):
        if values and None not in values:
            lowers.append(min(values))  # type: ignore[type-var]
            uppers.append(max(values))  # type: ignore[type-var]
    for op, literal in _compared(column, conditions):
        value = _plain(column, literal)
        if value is not None and op in ("=", ">", ">="):
            lowers.append(value)
        if value is not None and op in ("=", "<", "<="):
            uppers.append(value)
    return _Span(max(lowers, default=None), min(uppers, default=None))  # type: ignore[type-var]


def _any_of(column: Column, conditions: Conditions) -> Iterator[list[Scalar]]:
    """The values that a column has one of, for each condition that says so."""
    for equal in conditions.equal:
        if equal.column == column.name:
            yield [_within_64_bits(column, value) for value in plain_scalars(equal.values)]
    for leaf in _conjuncts(conditions.predicates):
        if isinstance(leaf, In) and leaf.column == column.name:
            yield [_plain(column, literal) for literal in leaf.literals]


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


def _plain(column: Column, literal: Literal) -> Scalar:
    """A literal as keys hold it; None where it is no value of the column, but lies between two or beyond all."""
    try:
        exact = int(literal) if isinstance(literal, Decimal) and column.type is ColumnType.INT else literal
        if exact != literal:
            return None
        of = arrow_type(column.type)
        value = value_of(column.name, exact, of) if _is_number(column) else scalar(of, exact)
        return _within_64_bits(column, plain_scalars(pa.array([value]))[0])
    except InvalidUsage:
        return None


def _is_number(column: Column) -> bool:
    return column.type is ColumnType.INT or isinstance(column.type, DecimalType)


def _within_64_bits(column: Column, value: Scalar) -> Scalar:
    """A value whose successor a key of integers can be compared with; the last one has none."""
    return None if isinstance(value, int) and column.type is ColumnType.INT and value >= 2**63 - 1 else value
