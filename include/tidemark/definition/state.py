"""States: what is kept of the rows at one instant, so that those of a window are told from its instants' states."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Op(StrEnum):
    """How states of instants make one of a window. Null is the state of no rows, but in lists, which are empty then.

    op        the state of an instant       that of a window
    add       a whole number or a decimal   their exact sum, of the same type; one that does not fit is refused
    min max   a value of any column type    the least, the greatest in Spark's order: NaN above all, -0.0 as 0.0
    bit_or    a whole number                the bits that are in any
    first     a value                       that of the first instant that has one
    last      a value                       that of the last instant that has one
    text      a text                        all of them in order of time, a comma between two
    concat    a list                        their elements, in order of time
    distinct  a list of values              how many different ones there are, a whole number
    quantile  a list of numbers             the least of them that a share of `at` of them does not exceed
    """

    ADD = "add"
    MIN = "min"
    MAX = "max"
    BIT_OR = "bit_or"
    FIRST = "first"
    LAST = "last"
    TEXT = "text"
    CONCAT = "concat"
    DISTINCT = "distinct"
    QUANTILE = "quantile"


@dataclass(frozen=True)
class State:
    """A column of states: its name, how they are put together, and for quantiles at which share."""

    name: str
    op: Op
    at: float = 0.5
