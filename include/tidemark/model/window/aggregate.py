"""What is computed of the rows in a window."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from tidemark.errors import InvalidUsage


class Function(StrEnum):
    """Functions of the rows in a window. All but `count` leave nulls out.

    `first` and `last` are by when rows happened, of rows at one instant the smallest and the largest value; `collect`
    is a JSON array in that order. `approx_quantile` is within 1 % of a value that the rows hold; `approx_distinct` is
    the estimate of a sketch. No result depends on the order rows came in.
    """

    COUNT = "count"
    SUM = "sum"
    MIN = "min"
    MAX = "max"
    AVG = "avg"
    FIRST = "first"
    LAST = "last"
    COLLECT = "collect"
    COUNT_DISTINCT = "count_distinct"
    APPROX_DISTINCT = "approx_distinct"
    APPROX_QUANTILE = "approx_quantile"


@dataclass(frozen=True)
class Aggregate:
    """A column of a window's row: a function of the expression `of` (Spark SQL over a row of the input; empty: of the
    rows themselves, which only `count` can be), over the rows for which `where` holds. `at` is the quantile asked."""

    name: str
    function: Function
    of: str = ""
    where: str = ""
    at: float | None = None

    def __post_init__(self) -> None:
        if not self.of and self.function is not Function.COUNT:
            raise InvalidUsage(f"{self.name} is {self.function} of nothing; write {self.function}: a column")
        if (self.at is None) == (self.function is Function.APPROX_QUANTILE):
            raise InvalidUsage(f"{self.name}: approx_quantile, and no other function, says at which; write at: 0.9")
        if self.at is not None and not 0 <= self.at <= 1:
            raise InvalidUsage(f"{self.name}: at is {self.at}; a quantile is from 0 to 1")
