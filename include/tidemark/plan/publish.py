"""What must become of a published table so that it holds what the collection holds: decided from both frontiers and the
records of parts alone.

A table is a bag of rows, each as often as the collection holds it. So a part is rows of the table as it is, whatever
other parts hold, if each of its rows counts once and nothing takes one of them back:

    way         when                                                       what is written
    NOTHING     the table holds the collection up to this frontier         nothing
    NAME        all parts of the collection are rows as they are           the table names exactly these
    NAME_NEW    all parts of what changed since are                        the table names these, too
    APPEND      what changed since only adds rows, and few                 a copy of these rows
    MERGE       few keys changed, and a key has one value                  the rows of these keys are replaced
    WHOLE       else                                                       all rows: parts are named where they can be

What changed since can be asked only while the table's frontier is readable: not once history was merged past it. And
the columns of the table must be today's: after a change of columns it is written whole. An example: the table holds the
collection up to 20, which has since been sealed to 30 and drained; the trace is [0,20) [20,30), one part each, without
retractions: NAME. Then a compaction merges both and sums a row that was added twice: its part has a diff of 2, so as of
the next drain, to 40, the parts of [0,30) cannot be named, but that of [30,40) can: NAME_NEW.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from tidemark.errors import InvalidUsage, Uncertified
from tidemark.model.arrangement import Arrangement
from tidemark.model.batch import Part
from tidemark.model.collection import Gate
from tidemark.model.instant import format_instant
from tidemark.model.publication import Destination, Publication, TableFormat
from tidemark.plan.kinds import plan_of
from tidemark.plan.read import ReadRequest, at_rest, plan_changes
from tidemark.plan.unmerged import in_a_bag
from tidemark.plan.unsealed import PartsOf

PREFIX = "tidemark."
"""What the names of Tidemark's properties of a table begin with."""

_NUMBERS = ("seal", "complete_below", "version", "schema")


class Way(StrEnum):
    """How a table gets the rows of the collection."""

    NOTHING = "nothing"
    NAME = "name"
    NAME_NEW = "name new"
    APPEND = "append"
    MERGE = "merge"
    WHOLE = "whole"


@dataclass(frozen=True)
class Mark:
    """What a table says of itself: which collection it holds, known up to `seal`, in which columns. `names` are the
    pins of the parts that it names (Pin.name)."""

    collection: str
    incarnation: str
    seal: int
    complete_below: int
    version: int
    schema: int
    names: tuple[str, ...] = ()

    @property
    def properties(self) -> dict[str, str]:
        """As properties of a table. Times are microseconds, and `known_up_to` is the seal for people."""
        numbers = {name: str(getattr(self, name)) for name in _NUMBERS}
        said = {"collection": self.collection, "incarnation": self.incarnation, **numbers}
        said |= {"known_up_to": format_instant(self.seal), "names": ",".join(self.names)}
        return {PREFIX + name: value for name, value in said.items()}


def frontier_of(state: Arrangement) -> int:
    """Up to where a state is published: what was drained can no longer be taken out, so that the rows of a table follow
    from its frontier alone. 0 if nothing can be.

    Raises Uncertified where no gate has certified a batch of the trace.
    """
    if uncertified := [batch.id for batch in state.trace if not state.is_certified(batch)]:
        raise Uncertified(f"trace batch {uncertified[0]} is not certified; run the trace gate", Gate.TRACE)
    upper = state.trace_upper
    return upper if upper and state.function.keeps(upper - 1) else 0


def mark_of(state: Arrangement, version: int, names: Iterable[str] = ()) -> Mark:
    """What a table says that holds a state up to its frontier."""
    collection, upper = state.collection, state.trace_upper
    frontiers = (upper, min(state.complete_below, upper), version, collection.schema)
    return Mark(collection.name, state.incarnation, *frontiers, tuple(sorted(names)))


def marked(properties: Mapping[str, str]) -> Mark | None:
    """What a table's properties say; None if they are not Tidemark's."""
    try:
        names = tuple(name for name in properties.get(PREFIX + "names", "").split(",") if name)
        seal, complete, version, schema = (int(properties[PREFIX + name]) for name in _NUMBERS)
        collection, incarnation = (properties[PREFIX + name] for name in ("collection", "incarnation"))
        return Mark(collection, incarnation, seal, complete, version, schema, names)
    except (LookupError, ValueError):
        return None


@dataclass(frozen=True)
class TableHead:
    """A table as it is: its newest snapshot and the place of that in their order. `mark` is what that holds (None:
    nothing yet); `owner` names collection and incarnation if Tidemark made the table; `changed_by` says which snapshot
    somebody else has put in since the one that was recorded."""

    snapshot: str = ""
    sequence: int = 0
    mark: Mark | None = None
    owner: tuple[str, str] | None = None
    changed_by: str | None = None
    retained: tuple[Mark, ...] = ()

    @property
    def pins(self) -> set[str]:
        """What the retained snapshots name."""
        return {name for mark in self.retained for name in mark.names}


def check_head(
    state: Arrangement, previous: Publication | None, where: str, head: TableHead | None, again: bool
) -> None:
    """Raise InvalidUsage where a table is not what was published there: it must not be overwritten unasked. `again`
    writes it whole, but never a table that is not the collection's."""
    name = state.collection.name
    if previous is not None and previous.table != where:
        raise InvalidUsage(
            f"{name} is published to {previous.format} table {previous.table}, and its file says {where}; first run "
            f"`tidemark unpublish {name} --format {previous.format}`"
        )
    way = f"; `tidemark publish {name} --again` writes it whole"
    if head is None:
        if previous is not None and previous.snapshot and not again:
            raise InvalidUsage(f"table {where} is gone, where {name} was published as {previous.snapshot}{way}")
        return
    if head.owner is None or head.owner[0] != name:
        whose = "Tidemark did not make it" if head.owner is None else f"it holds the collection {head.owner[0]}"
        raise InvalidUsage(f"table {where} exists, and {whose}; publish {name} to another one")
    if again:
        return
    if head.owner[1] != state.incarnation:
        raise InvalidUsage(f"table {where} contains an earlier collection of that name {name}{way}")
    if head.changed_by is not None:
        was = previous.snapshot if previous is not None and previous.snapshot else "nothing"
        raise InvalidUsage(
            f"table {where} was changed by others: it has {head.changed_by}, and {name} was published as {was}{way}"
        )


def holds(state: Arrangement, mark: Mark | None) -> bool:
    """Whether a table that is marked so holds the collection up to its frontier."""
    return mark is not None and (mark.seal, mark.schema) == (state.trace_upper, state.collection.schema)


def changes_since(state: Arrangement, mark: Mark | None) -> ReadRequest | None:
    """The request for what changed since a table was written; None where that is not known, or not in its columns."""
    if mark is None or mark.schema != state.collection.schema or not 0 < mark.seal <= state.trace_upper:
        return None
    try:
        return plan_changes(state, mark.seal - 1, state.trace_upper - 1)
    except InvalidUsage:
        return None


def nameable(request: ReadRequest, parts: PartsOf) -> tuple[tuple[Part, ...], bool]:
    """The parts of a read that may be rows of the table as they are, and whether these are all there is to the answer.

    Whether each row of a part counts once is not in its record, but in its footer.
    """
    plan = plan_of(request.collection.kind)
    resolves = plan.resolves and not request.unsealed.is_empty and plan.cut_by(request.unsealed, parts)
    every = sum(len(some.parts) for some in at_rest(request, parts))
    bag = in_a_bag(request, parts)
    named = tuple(part for some in bag for part in some.parts if _as_it_is(request, part, some.after))
    return named, not resolves and len(named) == every


def _as_it_is(request: ReadRequest, part: Part, after: int) -> bool:
    inside = after < part.first_time and part.last_time <= request.upto and part.last_event_time <= request.event_upto
    return inside and part.schema == request.collection.schema


def only_adds(request: ReadRequest, parts: PartsOf) -> bool:
    """Whether changes add rows and take none back, by the records of their parts alone."""
    plan = plan_of(request.collection.kind)
    if plan.resolves and not request.unsealed.is_empty and plan.cut_by(request.unsealed, parts):
        return False
    return not any(part.retractions for some in at_rest(request, parts) for part in some.parts)


def rows_of(request: ReadRequest, parts: PartsOf) -> int:
    """How many rows a read opens, by the records of its parts."""
    return sum(part.rows for some in at_rest(request, parts) for part in some.parts)


def by_copy(destination: Destination, one_value: bool, adds: bool, new: int, total: int) -> Way:
    """How rows are copied into a table: `new` rows are opened for what changed, of `total` rows."""
    if new > destination.copy_above * max(total, 1):
        return Way.WHOLE
    if adds:
        return Way.APPEND
    return Way.MERGE if one_value and destination.format is TableFormat.DELTA else Way.WHOLE
