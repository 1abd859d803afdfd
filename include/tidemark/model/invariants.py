"""What must hold of states, of batches and of their rows: the name of each rule, and how its breach is reported.

The rules of a state are `Arrangement.violations` (arrangement.py), those of a batch its own (batch.py): both check
themselves on construction. What a change may make of a state is in admission.py. Each function yields what is broken,
in the order in which the rules are to be checked. What must hold of the rows of a batch, gates and `verify` find out
by reading them (arrow/kernels/inspect.py), and call it by the names that are here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum

from tidemark.errors import Corruption
from tidemark.model.frontier import EMPTY

Param = int | str


class Invariant(StrEnum):
    """What must hold, by the name that errors, gates and `verify` use."""

    BATCHES_NAMED_ONCE = "batches named once"
    SEQUENCES_ASCEND = "sequences ascend"
    SINCE_OF_THE_STATE = "since of the state"
    COMPLETE_IS_KNOWN = "what is complete is known"
    UPPER_BELOW_THE_SEAL = "upper below the seal"
    NEIGHBOURS_TOUCH = "neighbours touch"
    LEVELS_DO_NOT_RISE = "levels do not rise"
    TRACE_FROM_ZERO = "trace from 0"
    AHEAD_OF_THE_TRACE = "ahead of the trace"
    FULL_SNAPSHOTS_APPLY_ONCE = "full snapshots apply once"
    FULL_SNAPSHOTS_HAVE_ROWS = "full snapshots have their rows"
    CONSUMPTIONS_ASCEND = "consumptions ascend"
    CONSUMED_IS_CORRECTED = "what is consumed is corrected"

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
    MERGE_OF_NEIGHBOURS = "merge of neighbours"
    MERGE_KEEPS_SINCE = "merge keeps since"


@dataclass(frozen=True)
class Violation:
    """A rule that is broken: a message of one line, and the values that break it by name."""

    rule: Invariant
    message: str
    params: tuple[tuple[str, Param], ...]

    def error(self) -> Corruption:
        return Corruption(self.message, self.rule, self.params)


def check(violations: Iterable[Violation]) -> None:
    """Raise the first of what is broken as Corruption."""
    for violation in violations:
        raise violation.error()


def of_interval(what: str, lower: int, upper: int) -> Iterator[Violation]:
    """The half-open interval of a batch, of times or of sequence numbers."""
    if not 0 <= lower < upper:
        message = f"{what} [{shown(lower)}, {shown(upper)}) must satisfy 0 <= lower < upper"
        yield broken(Invariant.INTERVAL, message, lower=lower, upper=upper)


def shown(frontier: int) -> str:
    """A frontier for people; the empty one has no number."""
    return "empty" if frontier == EMPTY else str(frontier)


def not_empty(message: str) -> Violation:
    """That there are no rows where some must be."""
    return broken(Invariant.NOT_EMPTY, message, rows=0)


def broken(rule: Invariant, message: str, **params: Param) -> Violation:
    """A rule that is broken, the values by name."""
    return Violation(rule, message, tuple(params.items()))
