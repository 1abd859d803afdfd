"""What may be asked of a state, and what may be made of it: the rules of commands, as a state has its own.

Every function yields what is broken, in the order in which the rules are to be checked.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from tidemark.model.arrangement import Arrangement
from tidemark.model.batch import Description
from tidemark.model.frontier import CompactionFunction
from tidemark.model.invariants import Invariant, Violation, broken, not_empty, shown


def of_seal(current: int, requested: int) -> Iterator[Violation]:
    """A seal asked for; the same again is fine."""
    if requested < current:
        message = f"seal cannot move back from {shown(current)} to {shown(requested)}"
        yield broken(Invariant.SEAL_ADVANCES, message, requested=requested, current=current)


def of_since(current: CompactionFunction, requested: CompactionFunction) -> Iterator[Violation]:
    """What compaction may forward henceforth; the same again is fine, a since beyond the seal and the empty one too."""
    if not requested.absorbs(current):
        message = f"since cannot move back: {current} was allowed, {requested} asked for"
        yield broken(Invariant.SINCE_ADVANCES, message, requested=requested.since, current=current.since)


def of_write(seal: int, first_time: int) -> Iterator[Violation]:
    """Rows that are not late, to be written to a collection: no time is below its seal."""
    if first_time < seal:
        message = f"the seal {shown(seal)} has passed the batch's first time {first_time}"
        yield broken(Invariant.ABOVE_THE_SEAL, message, time=first_time, seal=seal)


def of_append(state: Arrangement, sequence: tuple[int, int], times: Sequence[int]) -> Iterator[Violation]:
    """A batch with rows of these times, to be appended to the unsealed ones. It may lie below the seal: a write and a
    later seal may be committed as one. What the trace covers it must not touch, as reads would not see it."""
    if sequence[0] != state.sequence_upper:
        message = f"sequence interval {sequence} does not continue from {state.sequence_upper}"
        yield broken(Invariant.SEQUENCE_CONTINUES, message, expected=state.sequence_upper, got=sequence[0])
    early = [time for time in times if time < state.trace_upper]
    if early:
        message = f"the batch holds time {early[0]}, but the trace is complete below {state.trace_upper}"
        yield broken(Invariant.ABOVE_THE_TRACE, message, time=early[0], trace_upper=state.trace_upper)
    if not times:
        yield not_empty("the batch to append has no rows")


def of_trace_append(state: Arrangement, description: Description) -> Iterator[Violation]:
    """A batch to be appended to the trace: it begins where the trace ends."""
    if description.lower != state.trace_upper:
        message = f"the trace upper moved from {description.lower} to {state.trace_upper}"
        yield broken(Invariant.NEIGHBOURS_TOUCH, message, upper=state.trace_upper, lower=description.lower)


def of_range(lower: int, upper: int) -> Iterator[Violation]:
    """Times `[lower, upper)` to read; an empty range is fine."""
    if upper < lower:
        message = f"the range [{shown(lower)}, {shown(upper)}) ends before it begins"
        yield broken(Invariant.RANGE, message, lower=lower, upper=upper)


def of_merge(inputs: Sequence[Description], function: CompactionFunction) -> Iterator[Violation]:
    """Batches to be merged into one, oldest first: neighbours, none of them forwarded further than the result."""
    for older, newer in pairwise(inputs):
        if older.upper != newer.lower:
            message = f"cannot merge {older} and {newer}: {older.upper} is not {newer.lower}"
            yield broken(Invariant.MERGE_OF_NEIGHBOURS, message, upper=older.upper, lower=newer.lower)
    for held in inputs:
        if not function.absorbs(held.function):
            message = f"cannot merge {held} into {function}: {held.function} was forwarded already"
            yield broken(Invariant.MERGE_KEEPS_SINCE, message, requested=function.since, input_since=held.since)
