"""What must hold of states, of batches and their rows: each rule with a name, and both values where it is broken.

Every function yields what is broken, in the order in which the rules are to be checked. States and batches check
themselves on construction with these; gates and `verify` find the same at scale, and call it by the same names.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise
from typing import TYPE_CHECKING

from tidemark.errors import Corruption
from tidemark.model.frontier import EMPTY
from tidemark.model.update import Update, sort_key

if TYPE_CHECKING:
    from tidemark.model.arrangement import Arrangement
    from tidemark.model.batch import Description, TraceBatch, UnsealedBatch

Param = int | str


class Rule(StrEnum):
    """What must hold, by the name that errors, gates and `verify` use."""

    BATCHES_NAMED_ONCE = "batches named once"
    SEQUENCES_ASCEND = "sequences ascend"
    SINCE_OF_THE_STATE = "since of the state"
    UPPER_BELOW_THE_SEAL = "upper below the seal"
    NEIGHBOURS_TOUCH = "neighbours touch"
    LEVELS_DO_NOT_RISE = "levels do not rise"
    TRACE_FROM_ZERO = "trace from 0"
    DUMPS_ASCEND = "dumps ascend"
    DUMPS_HAVE_ROWS = "dumps have their rows"

    INTERVAL = "interval not empty"
    TIME_BOUNDS = "time bounds in order"
    NOT_EMPTY = "unsealed batch not empty"
    PARTS_FOR_ROWS = "parts for rows"

    TIMES_FROM_LOWER = "times from lower"
    TIMES_TO_UPPER_OR_SINCE = "times to upper or since"
    SORTED = "sorted"
    CONSOLIDATED = "consolidated"
    NO_ZERO_DIFFS = "no zero diffs"

    SEAL_ADVANCES = "seal only advances"
    SINCE_ADVANCES = "since only advances"
    ABOVE_THE_SEAL = "above the seal"
    ABOVE_THE_TRACE = "above the trace"
    SEQUENCE_CONTINUES = "sequence continues"
    RANGE = "range not reversed"
    MERGE_OF_NEIGHBOURS = "merge of neighbours"
    MERGE_KEEPS_SINCE = "merge keeps since"


@dataclass(frozen=True)
class Violation:
    """A rule that is broken: a message of one line, and the values that break it by name."""

    rule: Rule
    message: str
    params: tuple[tuple[str, Param], ...]

    def error(self) -> Corruption:
        return Corruption(self.message, self.rule, self.params)


def check(violations: Iterable[Violation]) -> None:
    """Raise the first of what is broken as Corruption."""
    for violation in violations:
        raise violation.error()


def of_state(state: Arrangement) -> Iterator[Violation]:
    """A state: its batches one by one have checked themselves."""
    ids = [batch.id for batch in state.batches]
    for name in sorted({name for name in ids if ids.count(name) > 1}) if len(ids) != len(set(ids)) else ():
        yield broken(Rule.BATCHES_NAMED_ONCE, f"a batch is named twice: {name}", batch=name)
    for left, right in pairwise(state.unsealed):
        if left.sequence[1] > right.sequence[0]:
            yield broken(
                Rule.SEQUENCES_ASCEND,
                f"unsealed sequence intervals overlap: {left.sequence} and {right.sequence}",
                upper=left.sequence[1],
                lower=right.sequence[0],
            )
    yield from _of_trace(state)
    yield from _of_dumps(state)


def _of_trace(state: Arrangement) -> Iterator[Violation]:
    for batch in state.trace:
        since, upper = batch.description.since, batch.description.upper
        if since > state.since:
            message = f"trace batch {batch} has since beyond the collection's {shown(state.since)}"
            yield broken(Rule.SINCE_OF_THE_STATE, message, batch_since=since, since=state.since)
        if upper > state.seal:
            message = f"trace batch {batch} reaches beyond the seal {shown(state.seal)}"
            yield broken(Rule.UPPER_BELOW_THE_SEAL, message, upper=upper, seal=state.seal)
    for older, newer in pairwise(state.trace):
        upper, lower = older.description.upper, newer.description.lower
        if upper != lower:
            message = f"trace has a gap or overlap at {upper}: {newer.description}"
            yield broken(Rule.NEIGHBOURS_TOUCH, message, upper=upper, lower=lower)
        if older.level < newer.level:
            message = f"trace level rises from {older} to {newer}"
            yield broken(Rule.LEVELS_DO_NOT_RISE, message, older=older.level, newer=newer.level)
    if state.trace and (lower := state.trace[0].description.lower) != 0:
        yield broken(Rule.TRACE_FROM_ZERO, f"the trace starts at {lower}, not at 0", lower=lower)


def _of_dumps(state: Arrangement) -> Iterator[Violation]:
    """Dumps that count, in order of time: no two are of one time, and each has its batch, unless it has no rows."""
    dumps = state.pending_dumps
    for older, newer in pairwise(dumps):
        if older.time == newer.time:
            message = f"dumps {older.batch} and {newer.batch} are both of {newer.time}"
            yield broken(Rule.DUMPS_ASCEND, message, older=older.time, newer=newer.time)
    unsealed = {batch.id for batch in state.unsealed} if dumps else set()
    for dump in dumps:
        if dump.rows and dump.batch not in unsealed:
            message = f"dump {dump.batch} of {dump.rows} rows has no unsealed batch"
            yield broken(Rule.DUMPS_HAVE_ROWS, message, dump=dump.batch, rows=dump.rows)


def of_interval(what: str, lower: int, upper: int) -> Iterator[Violation]:
    """The half-open interval of a batch, of times or of sequence numbers."""
    if not 0 <= lower < upper:
        message = f"{what} [{shown(lower)}, {shown(upper)}) must satisfy 0 <= lower < upper"
        yield broken(Rule.INTERVAL, message, lower=lower, upper=upper)


def of_unsealed_batch(batch: UnsealedBatch) -> Iterator[Violation]:
    """An unsealed batch as recorded."""
    yield from of_interval(f"sequence interval of unsealed batch {batch.id}", *batch.sequence)
    bounds = ((batch.first_time, batch.last_time), (batch.first_event_time, batch.last_event_time))
    for first, last in bounds:
        if first > last:
            message = f"unsealed batch {batch.id} has its time bounds reversed: {first} to {last}"
            yield broken(Rule.TIME_BOUNDS, message, first=first, last=last)
    if batch.rows < 1:
        yield not_empty(f"unsealed batch {batch.id} has {batch.rows} rows; an empty one is never recorded")


def of_unsealed_rows(sequence: tuple[int, int], rows: Sequence[Update]) -> Iterator[Violation]:
    """An unsealed batch and what it holds: rows as they came, in no order, zero diffs and repetitions among them."""
    yield from of_interval("sequence interval", *sequence)
    if not rows:
        yield not_empty(f"the unsealed batch of sequence interval {sequence} has no rows")


def of_trace_batch(batch: TraceBatch) -> Iterator[Violation]:
    """A trace batch as recorded; its description has checked itself."""
    if (batch.rows == 0) != (batch.parts is None):
        message = f"trace batch {batch.id} has {batch.rows} rows and parts {batch.parts}"
        yield broken(Rule.PARTS_FOR_ROWS, message, rows=batch.rows, parts=str(batch.parts))


def of_trace_rows(description: Description, parts: Iterable[Iterable[Update]]) -> Iterator[Violation]:
    """The rows of a trace batch, part after part: parts may be empty, and their borders excuse nothing."""
    yield from of_interval("batch interval", description.lower, description.upper)
    before: Update | None = None
    for update in (update for part in parts for update in part):
        yield from _of_time(description, update.time)
        if before is not None:
            yield from _of_order(before, update)
        if update.diff == 0:
            yield broken(Rule.NO_ZERO_DIFFS, f"{_named(update)} has diff 0", time=update.time, diff=0)
        before = update


def _of_time(description: Description, time: int) -> Iterator[Violation]:
    lower, upper, since = description.lower, description.upper, description.since
    if time < lower:
        message = f"{description} holds time {time}, before its lower {lower}"
        yield broken(Rule.TIMES_FROM_LOWER, message, time=time, lower=lower)
    # Once since has passed the upper, rows that were forwarded stand at since itself.
    if since < upper <= time:
        message = f"{description} holds time {time}, at or after its upper {upper}"
        yield broken(Rule.TIMES_TO_UPPER_OR_SINCE, message, time=time, upper=upper)
    elif upper <= since < time:
        message = f"{description} holds time {time}, after its since {since}"
        yield broken(Rule.TIMES_TO_UPPER_OR_SINCE, message, time=time, since=since)


def _of_order(before: Update, update: Update) -> Iterator[Violation]:
    if sort_key(before) > sort_key(update):
        message = f"{_named(update)} comes after {_named(before)}"
        yield broken(Rule.SORTED, message, before=_named(before), after=_named(update))
    elif sort_key(before) == sort_key(update):
        yield broken(Rule.CONSOLIDATED, f"{_named(update)} is there twice", update=_named(update))


def shown(frontier: int) -> str:
    """A frontier for people; the empty one has no number."""
    return "empty" if frontier == EMPTY else str(frontier)


def not_empty(message: str) -> Violation:
    """That there are no rows where some must be."""
    return broken(Rule.NOT_EMPTY, message, rows=0)


def broken(rule: Rule, message: str, **params: Param) -> Violation:
    """A rule that is broken, the values by name."""
    return Violation(rule, message, tuple(params.items()))


def _named(update: Update) -> str:
    return f"{update.key} {update.value} at {update.time}, {update.event_time}"
