"""Which parts of a read are its answer as they are, so that any reader of Parquet may give it, and nothing is merged.

A part is, where no other part of the read, and nothing that is unsealed, can hold one of its keys, and its own rows
need no sum. That is known from its record alone:

    as_of, net changes    all its rows have one instant, by which they are distinct in key and value; or a key holds
                          one value at most, and nothing in the part retracts one: then there is one row a key
    changes               each of its rows is a change, unless it is shown with other times than it has in the file, or
                          one value may have replaced another: then two rows must be seen together

A part of which only some keys are alone is merged with what it meets, whole: keys that came in order leave most parts
alone, keys at random leave no row group either.

An example. The trace holds keys 1 to 3 million in three parts, loaded at once; a day later the keys from 2.9 million on
have changed. The first two parts are answered with as they are, the third is merged with the day's.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

from tidemark.model.batch import Part
from tidemark.model.frontier import CompactionFunction
from tidemark.plan.kinds import plan_of
from tidemark.plan.read import ReadRequest, at_rest
from tidemark.plan.tasks import AtRest, KeyRange
from tidemark.plan.unsealed import PartsOf


def unmerged(
    request: ReadRequest, parts: PartsOf, *, times: bool, ranges: Sequence[KeyRange] = ()
) -> tuple[AtRest, AtRest]:
    """The parts of the trace, and of unsealed batches, whose rows within the request's bounds of times are rows of the
    answer as they are: no row elsewhere has one of their keys, or none that would be added to them.

    `times`: the answer shows the times of updates, as `changes` does; else it sums over them. With `ranges` of keys
    only what is wholly in one of them.
    """
    rest = at_rest(request, parts)
    # Only of the trace are whole batches consolidated; of the rest what each task of an ingest wrote is.
    together = {part.file.key: batch.id for batch in request.trace for part in parts[batch.id]}
    met = []
    for some, in_trace in zip(rest, (True, False), strict=True):
        for part in some.parts:
            is_answer = _is_answer(request, part, times, in_trace or part.consolidated)
            is_answer &= any(_inside(part, keys) for keys in ranges or [request.keys])
            met.append(_Met(part, together.get(part.file.key, part.file.key) if is_answer else None, times))
    plan = plan_of(request.collection.kind)
    if plan.resolves and not request.unsealed.is_empty:
        met += [_Met(part, None, times) for part in plan.cut_by(request.unsealed, parts)]
    crossed = _crossed(met)
    alone = {one.part.file.key for one in met if one.of is not None} - crossed
    trace, unsealed = (
        AtRest(tuple(part for part in some.parts if part.file.key in alone), some.after) for some in rest
    )
    return trace, unsealed


def in_a_bag(request: ReadRequest, parts: PartsOf) -> tuple[AtRest, AtRest]:
    """The parts of the trace, and of unsealed batches, whose rows need no sum where the answer is a bag of rows, equal
    ones among them as they come: they take nothing back, and nothing that does can hold one of their keys. Others may
    share keys with them, so this is more than `unmerged`."""
    rest = at_rest(request, parts)
    plan = plan_of(request.collection.kind)
    taking = [part for some in rest for part in some.parts if part.retractions]
    if plan.resolves and not request.unsealed.is_empty:
        taking += plan.cut_by(request.unsealed, parts)
    taking.sort(key=lambda part: part.first_key)
    firsts = [part.first_key for part in taking]
    reached = list(accumulate((part.last_key for part in taking), max))

    def stays(part: Part) -> bool:
        before = bisect_right(firsts, part.last_key)
        return not part.retractions and not (before and reached[before - 1] >= part.first_key)

    trace, unsealed = (AtRest(tuple(filter(stays, some.parts)), some.after) for some in rest)
    return trace, unsealed


@dataclass(frozen=True)
class _Met:
    """A part. If its own rows need not be added up, `of` names the whole that it is a piece of and that is
    consolidated: its trace batch, or the part itself; else None."""

    part: Part
    of: str | None
    times: bool

    def goes_with(self, other: _Met) -> bool:
        """Whether rows of both parts may be in the answer though these share a key: they are pieces of one consolidated
        whole, and the answer shows all that distinguishes rows there."""
        if self.of is None or self.of != other.of:
            return False
        return self.times or _instants(self.part) == _instants(other.part)


def _crossed(met: list[_Met]) -> set[str]:
    """The files of parts that share keys with others they do not go with."""
    crossed: set[str] = set()
    near: list[_Met] = []
    for one in sorted(met, key=lambda one: (one.part.first_key, one.part.last_key)):
        near = [other for other in near if other.part.last_key >= one.part.first_key]
        for other in near:
            if not one.goes_with(other):
                crossed |= {one.part.file.key, other.part.file.key}
        near.append(one)
    return crossed


def _is_answer(request: ReadRequest, part: Part, times: bool, consolidated: bool) -> bool:
    """Whether a part's rows are rows of the answer, were there no other parts."""
    collection = request.collection
    if collection.unseen or part.schema != collection.schema:
        return False
    one_value = collection.kind.one_value
    if one_value and part.retractions:
        return False
    if times:
        return consolidated and _stays(part, request.function)
    return one_value or (consolidated and _of_one_instant(part))


def _instants(part: Part) -> tuple[int, int, int, int]:
    return part.first_time, part.last_time, part.first_event_time, part.last_event_time


def _of_one_instant(part: Part) -> bool:
    return part.first_time == part.last_time and part.first_event_time == part.last_event_time


def _stays(part: Part, function: CompactionFunction) -> bool:
    """Whether forwarding leaves all times of a part where they are."""
    firsts = (part.first_time, part.first_event_time)
    if function.changes_nothing or min(firsts) >= function.since:
        return True
    return _of_one_instant(part) and all(function(time) == time for time in firsts)


def _inside(part: Part, keys: KeyRange) -> bool:
    return (keys.lower is None or part.first_key >= keys.lower) and (keys.upper is None or part.last_key < keys.upper)
