"""What may be asked of a state, and what may be made of it: the rules of commands, as a state has its own.

Every function yields what is broken, in the order in which the rules are to be checked.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from tidemark.model.arrangement import Arrangement
from tidemark.model.batch import Description
from tidemark.model.frontier import CompactionFunction
from tidemark.model.invariants import Invariant, Violation, broken, shown


def of_since(current: CompactionFunction, requested: CompactionFunction) -> Iterator[Violation]:
    """What compaction may forward henceforth; the same again is fine, a since beyond the seal and the empty one too."""
    if not requested.absorbs(current):
        message = f"since cannot move back: {current} was allowed, {requested} asked for"
        yield broken(Invariant.SINCE_ADVANCES, message, requested=requested.since, current=current.since)


def of_write(seal: int, first_time: int) -> Iterator[Violation]:
    """Rows to be written to a collection: none is learned below its seal, where what was learned is final."""
    if first_time < seal:
        message = f"the seal {shown(seal)} has passed the batch's first time {first_time}"
        yield broken(Invariant.ABOVE_THE_SEAL, message, time=first_time, seal=seal)


def of_trace_append(state: Arrangement, description: Description) -> Iterator[Violation]:
    """A batch to be appended to the trace: it begins where the trace ends."""
    if description.lower != state.trace_upper:
        message = f"the trace upper moved from {description.lower} to {state.trace_upper}"
        yield broken(Invariant.NEIGHBOURS_TOUCH, message, upper=state.trace_upper, lower=description.lower)


def of_merge(inputs: Sequence[Description], function: CompactionFunction) -> Iterator[Violation]:
    """Batches to be merged into one, oldest first: neighbours, none of them forwarded further than the result."""
    for older, newer in pairwise(inputs):
        if older.upper != newer.lower:
            message = f"cannot merge {older} and {newer}: {older.upper} is not {newer.lower}"
            yield broken(Invariant.MERGE_OF_NEIGHBOURS, message, upper=older.upper, lower=newer.lower)
    for input_ in inputs:
        if not function.absorbs(input_.function):
            message = f"cannot merge {input_} into {function}: {input_.function} was forwarded already"
            yield broken(Invariant.MERGE_KEEPS_SINCE, message, requested=function.since, input_since=input_.since)
