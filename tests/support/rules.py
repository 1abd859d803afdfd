"""Rules that no job asks for row by row or as a command, in plain Python: what vectors and tests hold the product to.

The product checks the rows of parts at scale (arrow/kernels/inspect.py); tests/pure/arrow/test_rules_agree.py shows
that both find the same. Each function yields what is broken, in the order in which the rules are to be checked.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum

from tidemark.model.arrangement import Arrangement
from tidemark.model.batch import Description
from tidemark.model.invariants import Invariant, Violation, broken, not_empty, of_interval, shown
from tidemark.model.update import Update, sort_key


class Asked(StrEnum):
    """Rules of what only vectors ask for."""

    SEQUENCE_CONTINUES = "sequence continues"
    RANGE = "range not reversed"


def of_unsealed_rows(sequence: tuple[int, int], rows: Sequence[Update]) -> Iterator[Violation]:
    """An unsealed batch and what it holds: rows as they came, in no order, zero diffs and repetitions among them."""
    yield from of_interval("sequence interval", *sequence)
    if not rows:
        yield not_empty(f"the unsealed batch of sequence interval {sequence} has no rows")


def of_trace_rows(description: Description, parts: Iterable[Iterable[Update]]) -> Iterator[Violation]:
    """The rows of a trace batch, part after part: parts may be empty, and their borders excuse nothing."""
    yield from of_interval("batch interval", description.lower, description.upper)
    before: Update | None = None
    for update in (update for part in parts for update in part):
        yield from _of_time(description, update.time)
        if before is not None:
            yield from _of_order(before, update)
        if update.diff == 0:
            yield broken(Invariant.NO_ZERO_DIFFS, f"{_named(update)} has diff 0", time=update.time, diff=0)
        before = update


def _of_time(description: Description, time: int) -> Iterator[Violation]:
    lower, upper, since = description.lower, description.upper, description.since
    if time < lower:
        message = f"{description} holds time {time}, before its lower {lower}"
        yield broken(Invariant.TIMES_FROM_LOWER, message, time=time, lower=lower)
    # Once since has passed the upper, rows that were forwarded stand at since itself.
    if since < upper <= time:
        message = f"{description} holds time {time}, at or after its upper {upper}"
        yield broken(Invariant.TIMES_TO_UPPER_OR_SINCE, message, time=time, upper=upper)
    elif upper <= since < time:
        message = f"{description} holds time {time}, after its since {since}"
        yield broken(Invariant.TIMES_TO_UPPER_OR_SINCE, message, time=time, since=since)


def _of_order(before: Update, update: Update) -> Iterator[Violation]:
    if sort_key(before) > sort_key(update):
        message = f"{_named(update)} comes after {_named(before)}"
        yield broken(Invariant.SORTED, message, before=_named(before), after=_named(update))
    elif sort_key(before) == sort_key(update):
        yield broken(Invariant.CONSOLIDATED, f"{_named(update)} is there twice", update=_named(update))


def _named(update: Update) -> str:
    return f"{update.key} {update.value} at {update.time}, {update.event_time}"


def of_seal(current: int, requested: int) -> Iterator[Violation]:
    """A seal asked for; the same again is fine."""
    if requested < current:
        message = f"seal cannot move back from {shown(current)} to {shown(requested)}"
        yield broken(Invariant.SEAL_ADVANCES, message, requested=requested, current=current)


def of_append(state: Arrangement, sequence: tuple[int, int], times: Sequence[int]) -> Iterator[Violation]:
    """A batch with rows of these times, to be appended to the unsealed ones. It may be below the seal: a write and a
    later seal may be committed as one. What the trace covers it must not touch, as reads would not see it."""
    if sequence[0] != state.sequence_upper:
        message = f"sequence interval {sequence} does not continue from {state.sequence_upper}"
        yield broken(Asked.SEQUENCE_CONTINUES, message, expected=state.sequence_upper, got=sequence[0])
    early = [time for time in times if time < state.trace_upper]
    if early:
        message = f"the batch holds time {early[0]}, but the trace is complete below {state.trace_upper}"
        yield broken(Invariant.ABOVE_THE_TRACE, message, time=early[0], trace_upper=state.trace_upper)
    if not times:
        yield not_empty("the batch to append has no rows")


def of_range(lower: int, upper: int) -> Iterator[Violation]:
    """Times `[lower, upper)` to read; an empty range is fine."""
    if upper < lower:
        message = f"the range [{shown(lower)}, {shown(upper)}) ends before it begins"
        yield broken(Asked.RANGE, message, lower=lower, upper=upper)
