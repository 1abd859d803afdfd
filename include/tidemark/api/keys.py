"""Which keys and values can fit a condition, so that a read opens no others."""

from __future__ import annotations

from collections.abc import Iterable

from tidemark.api.conditions import Conditions
from tidemark.arrow.parts.chunks import spannable
from tidemark.arrow.rows.schema import arrow_type
from tidemark.model.chunk.law import Span
from tidemark.model.collection import Collection, Column, Layout
from tidemark.model.condition.bounds import ValueRange
from tidemark.model.key import NULL, Bound, Key, key_scalar
from tidemark.plan.ranges import behind, successor
from tidemark.plan.tasks import KeyRange

NO_KEYS = KeyRange((), ())
"""Every key comes after the empty one."""


def keys_within(collection: Collection, conditions: Conditions) -> KeyRange:
    """A range of keys that holds all rows which fit the conditions.

    Values of the first key columns, and after them a range of the next: with the key (day, id), `day = '2024-01-01' AND
    id > 7` is one range; `id > 7` alone is none. It may hold other keys too, since rows are filtered all the same. With
    a layout a range of keys is one of buckets.
    """
    if collection.layout is not None:
        return _buckets_within(collection.layout, conditions.bounds(collection.column(collection.layout.by)))
    prefix: Key = ()
    for column in collection.key:
        span = conditions.bounds(column)
        if span.is_empty:
            return NO_KEYS
        if span.nulls and not span.values:
            prefix = (*prefix, NULL)
            continue
        if span.lower is not None and span.lower == span.upper and not span.nulls:
            prefix = (*prefix, key_scalar(span.lower))
            continue
        # Null comes before all values.
        lower: Bound | None = None if span.lower is None or span.nulls else (*prefix, key_scalar(span.lower))
        upper: Bound | None = None if span.upper is None else (*prefix, successor(key_scalar(span.upper)))
        return KeyRange(lower or (prefix or None), upper or behind(prefix))
    return KeyRange(prefix, behind(prefix))


def is_one_key(collection: Collection, conditions: Conditions) -> bool:
    """Whether the rows that fit the conditions have one key at most."""
    spans = (conditions.bounds(column) for column in collection.key)
    return all(
        not span.values or (span.lower is not None and span.lower == span.upper and not span.nulls) for span in spans
    )


def _buckets_within(layout: Layout, span: ValueRange) -> KeyRange:
    """The range of buckets that holds all values of a span. Null is in the least bucket."""
    if span.is_empty:
        return NO_KEYS
    if not span.values:
        return KeyRange(None, behind((layout.bucket(None),)))
    lower, upper = _number(span.lower), _number(span.upper)
    first = None if lower is None or span.nulls else (layout.bucket(lower),)
    return KeyRange(first, None if upper is None else behind((layout.bucket(upper),)))


def spans_within(collection: Collection, conditions: Conditions, columns: Iterable[Column]) -> tuple[Span, ...]:
    """The spans of some columns that hold all rows which fit the conditions, in order of the columns; of the first key
    column none, which `keys_within` looks at unless there is a layout. They may hold other rows, too."""
    first = None if collection.layout else collection.key[0]
    looked_at = set(conditions.columns)
    asked = (column for column in columns if column.name in looked_at and column != first)
    known = ((column, conditions.bounds(column)) for column in asked if spannable(arrow_type(column.type)))
    return tuple(
        Span.of(column, ((_number(span.lower), _number(span.upper)),) if span.values else ())
        for column, span in known
        if not span.nulls
    )


def _number(end: object) -> int | None:
    """The end of a span of whole numbers."""
    assert end is None or isinstance(end, int)
    return end
