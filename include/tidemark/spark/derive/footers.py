"""What a computation knows from the footers of parts before any row is read: the driver looks at a few of them in less
time than a job of Spark's takes."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from tidemark.arrow.parts.bounds import bounds_by_part, none_has_null
from tidemark.arrow.rows.columns import Ints
from tidemark.arrow.rows.fields import field_id
from tidemark.arrow.rows.schema import updates_schema
from tidemark.definition.computation import DAY, Computation, Input
from tidemark.model.batch import Part
from tidemark.model.chunk.law import Span
from tidemark.plan.ranges import ranges_of_groups
from tidemark.plan.read import ReadRequest, at_rest, plan_as_of, plan_changes, plan_updates
from tidemark.plan.tasks import KeyRange
from tidemark.spark.derive.touched import MOST_RANGES, NOTHING
from tidemark.storage import ObjectStore, open_store
from tidemark.storage.sidecars import parts_table

MOST_FOOTERS = 256
"""Parts whose footers are looked at, several at once."""


def holds_nothing(computation: Computation) -> bool:
    """Whether the collection itself has no update, by the records of its parts."""
    return _parts(open_store(computation.url), plan_updates(computation.state)) == []


def none_is_null(given: Input, name: str) -> bool:
    """Whether the footers say that a column is null in no row that is looked at, of what changed or of all; False too
    where they do not say it, or where many parts would have to."""
    upto, field = given.upper - 1, updates_schema(given.state.collection).field(name)
    if not field.nullable:
        return True
    before = given.previous
    request = plan_as_of(given.state, upto) if before is None else plan_changes(given.state, before - 1, upto)
    store = open_store(given.url)
    parts = _parts(store, request)
    if parts is None or len(parts) > MOST_FOOTERS:
        return False
    return none_has_null(store, parts, pa.schema([field]))


def ranges_when(given: Input, on: str, first: Ints, last: Ints, *, gone: bool = False) -> Sequence[KeyRange]:
    """The ranges of keys outside which no row of an input has a value of its column `on` in spans [first, last], both
    of which ascend; none: all keys. Spans are in microseconds, as windows are. With `gone` rows that are not there any
    more are rows, too."""
    store, field = open_store(given.url), updates_schema(given.state.collection).field(on)
    request = (plan_updates if gone else plan_as_of)(given.state, given.upper - 1)
    parts = _parts(store, request)
    if parts is None or len(parts) > MOST_FOOTERS:
        return ()
    unit = DAY if pa.types.is_date(field.type) else 1
    span = Span(field_id(field) or 0, tuple(zip((-(-first // unit)).tolist(), (last // unit).tolist(), strict=True)))
    known = bounds_by_part(store, parts, field)
    met = [[at for at, bounds in enumerate(chunks) if span.meets(bounds)] for chunks in known]
    ranges = ranges_of_groups(list(zip(parts, met, strict=True)))
    return (ranges or (NOTHING,)) if len(ranges) <= MOST_RANGES else ()


def _parts(store: ObjectStore, request: ReadRequest) -> list[Part] | None:
    """The parts of a read; None where it has rows that must be resolved first, or that are only there unsealed."""
    request, parts = parts_table.opened_read(store, request)
    if not request.unsealed.is_empty:
        return None
    return [part for some in at_rest(request, parts) for part in some.parts]
