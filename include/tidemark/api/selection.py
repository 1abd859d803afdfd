"""Which columns and rows of a collection are asked for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from tidemark.api.conditions import ALL, NOTHING, Conditions, Where, check_columns, conditions_of
from tidemark.api.keys import keys_within, spans_within
from tidemark.arrow.view import View
from tidemark.errors import InvalidUsage
from tidemark.model.chunk.law import Span
from tidemark.model.collection import Collection, ValueType
from tidemark.model.condition.tree import Condition
from tidemark.plan.tasks import KeyRange


@dataclass(frozen=True)
class Selection:
    """The columns and rows of a collection that are asked for, as the caller said it."""

    collection: Collection
    columns: tuple[str, ...] | None
    where: Where | Sequence[Where] | None
    beside: Mapping[str, ValueType]
    """What conditions may look at beside the columns."""
    also: Condition = ALL
    """What else is asked of the rows, whose literals are as the columns hold them."""

    @cached_property
    def conditions(self) -> Conditions:
        return conditions_of(self.collection, self.where, self.beside).and_also(self.also)

    @property
    def shown(self) -> tuple[str, ...]:
        """The columns of the collection in the answer."""
        return self.columns or tuple(column.name for column in self.collection.columns)

    @property
    def view(self) -> View:
        looked_at = self.conditions.columns
        own = tuple(name for name in looked_at if name not in self.beside)
        return View(self.shown, own, self.conditions.fitting if looked_at else None)

    @property
    def keys(self) -> KeyRange:
        """The range that holds the keys of all rows that fit."""
        return keys_within(self.collection, self.conditions)

    @property
    def spans(self) -> tuple[Span, ...]:
        """The spans that hold the values of all rows that fit, beside the range of keys."""
        return spans_within(self.collection, self.conditions, self.collection.columns)

    @property
    def key_spans(self) -> tuple[Span, ...]:
        """Those of key columns: for who looks at all rows of a key."""
        return spans_within(self.collection, self.conditions, self.collection.key)

    def words(self) -> list[str]:
        return [f"where {self.where!r}"] if self.where else []


def selection(
    collection: Collection,
    columns: Sequence[str] | None,
    where: Any,
    beside: Mapping[str, ValueType] = NOTHING,
    also: Condition = ALL,
) -> Selection:
    """What a caller asks for, and what is asked for besides; conditions may look at what the answer has `beside` the
    columns.

    Raises InvalidUsage for columns that are none, with the nearest, or named twice."""
    if not (columns is None or isinstance(columns, str | list | tuple)):
        raise InvalidUsage(f"columns is {columns!r} ({type(columns).__name__}); write a list of names, in their order")
    chosen = None if columns is None else (columns,) if isinstance(columns, str) else tuple(columns)
    if chosen is not None:
        if not chosen:
            raise InvalidUsage("columns is empty; name some, or leave it out for all")
        check_columns(collection, chosen, "columns")
        if len(set(chosen)) < len(chosen):
            raise InvalidUsage(f"columns names some twice: {', '.join(chosen)}")
    found = Selection(collection, chosen, where, beside, also)
    assert found.conditions is not None  # refused now, not when it is read
    return found
