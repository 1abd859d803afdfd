"""Rows of a collection that are read in some of their columns, and without such as do not fit: what a dataset reads."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from tidemark.api.conditions import ALL
from tidemark.api.keys import keys_within, spans_within
from tidemark.api.selection import selection
from tidemark.arrow.bag import Bag
from tidemark.arrow.read import as_of_schema
from tidemark.arrow.rows.schema import DIFF
from tidemark.arrow.runs import Keep
from tidemark.errors import TidemarkError
from tidemark.model.condition.tree import Condition
from tidemark.model.instant import MAX_TIME, format_instant
from tidemark.plan.read import ReadRequest, plan_as_of
from tidemark.storage.sidecars import asked_reads
from tidemark.storage.stores.store import Missing

if TYPE_CHECKING:
    from tidemark.api.pinned import Pinned
    from tidemark.arrow.explain import Explanation


class Rows(ABC):
    """Rows of a collection at one version. `schema` are their columns, `pruned_by` the names of those by which rows can
    be left out, `words` what was asked. `failure` is the last error of a read: who reads by way of others may ask
    for it, as some of them report its text only."""

    schema: pa.Schema
    pruned_by: Sequence[str]
    words: str

    def __init__(self, pinned: Pinned) -> None:
        self.pinned = pinned
        self.failure: Exception | None = None

    def batches(
        self, columns: Sequence[str], condition: Condition, keep: Keep | None = None
    ) -> Iterator[pa.RecordBatch]:
        """Read at least `columns` of at least the rows for which the condition is true and which `keep` leaves.

        `keep` looks at whole rows, and decides which of negative multiplicity are refused (None: all).
        """
        self.failure = None
        try:
            yield from self._batches(columns, condition, keep)
        except (Missing, TidemarkError) as error:
            self.failure = error
            try:
                self.pinned.check_kept(error)
            except TidemarkError as gone:
                self.failure = gone
                raise
            raise

    def in_columns(self, schema: pa.Schema, condition: Condition, keep: Keep | None = None) -> Iterator[pa.RecordBatch]:
        """The same rows in the columns of `schema`, which are some of them."""
        for rows in self.batches(schema.names, condition, keep):
            yield pa.RecordBatch.from_arrays([rows.column(name) for name in schema.names], schema=schema)

    @abstractmethod
    def explain(self, columns: Sequence[str], condition: Condition) -> Explanation:
        """What such a read opens, and why it skips the rest. Only footers are opened for it."""

    @abstractmethod
    def _batches(self, columns: Sequence[str], condition: Condition, keep: Keep | None) -> Iterator[pa.RecordBatch]: ...


class AsOfRows(Rows):
    """The rows of a collection: each repeated by its multiplicity, or with `_multiplicity`."""

    def __init__(
        self,
        pinned: Pinned,
        time: int | None = None,
        event_time: int | None = None,
        columns: Any = None,
        where: Any = None,
        multiplicity: bool = False,
    ) -> None:
        super().__init__(pinned)
        self._given = (time, event_time, columns, where, multiplicity)
        self._counted = multiplicity
        self._selection = selection(pinned.state.collection, columns, where)
        self.request = plan_as_of(pinned.state, time, event_time, self._selection.keys)
        schema = as_of_schema(pinned.state.collection, self._selection.shown)
        self.schema = plain_schema(schema if multiplicity else schema.remove(len(schema) - 1))
        self.pruned_by = self._selection.shown
        happened = "" if self.request.event_upto == MAX_TIME else f", happened by {format_instant(event_time or 0)}"
        self.words = f"{pinned.name} as known at {format_instant(self.request.upto)}{happened}"

    def explain(self, columns: Sequence[str], condition: Condition) -> Explanation:
        from tidemark.arrow.explain import explained

        bag = Bag(self.pinned.read_store(), self.narrowed(condition), self._read(columns))
        read = [*bag.names, DIFF] if self._counted else bag.columns
        return explained(bag.store, bag.request, read, self.words)

    def _read(self, columns: Sequence[str]) -> tuple[str, ...]:
        """The columns that are read for some that are asked for."""
        chosen = self._selection
        names = [*(name for name in columns if name in chosen.shown), *chosen.conditions.columns]
        return tuple(dict.fromkeys(names)) or chosen.shown[:1]

    def _batches(self, columns: Sequence[str], condition: Condition, keep: Keep | None) -> Iterator[pa.RecordBatch]:
        chosen = self._selection
        asked_reads.note(self.pinned.store, self.request)
        bag = Bag(self.pinned.read_store(), self.narrowed(condition), self._read(columns))
        fitting = chosen.conditions.fitting if chosen.conditions.columns else None

        def counting(rows: pa.RecordBatch) -> pa.RecordBatch:
            rows = fitting(rows) if fitting else rows
            return keep(rows) if keep else rows

        for rows in bag.counted() if self._counted else bag.rows(counting):
            yield fitting(rows) if fitting else rows

    def narrowed(self, condition: Condition) -> ReadRequest:
        """The request for the rows that fit a condition, too."""
        collection = self.pinned.state.collection
        both = replace(self._selection, also=condition).conditions
        spans = spans_within(collection, both, collection.columns)
        return replace(self.request, keys=keys_within(collection, both), spans=spans)

    def __reduce__(self) -> tuple[Any, ...]:
        return AsOfRows, (self.pinned, *self._given)


class AnswerRows(Rows):
    """The rows of an answer, which `ask` makes for rows of some keys: those that fit a condition on the columns
    `pruned_by` (None: those of the key)."""

    def __init__(self, pinned: Pinned, ask: Callable[[Condition], Any], pruned_by: Sequence[str] | None = None) -> None:
        super().__init__(pinned)
        self._ask = ask
        answer = ask(ALL)
        self.schema = plain_schema(answer.schema)
        key = tuple(column.name for column in pinned.state.collection.key)
        self.pruned_by = key if pruned_by is None else pruned_by
        self.words = answer.described

    def explain(self, columns: Sequence[str], condition: Condition) -> Explanation:
        found: Explanation = self._ask(condition).explain()
        return found

    def _batches(self, columns: Sequence[str], condition: Condition, keep: Keep | None) -> Iterator[pa.RecordBatch]:
        yield from self._ask(condition)

    def __reduce__(self) -> tuple[Any, ...]:
        return AnswerRows, (self.pinned, self._ask, self.pruned_by)


def plain_schema(schema: pa.Schema) -> pa.Schema:
    """The columns without what only our own files say of them."""
    return pa.schema([field.remove_metadata() for field in schema])
