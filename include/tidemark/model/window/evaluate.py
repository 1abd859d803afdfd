"""Rows of windows, computed in plain Python: what every other way to compute them must agree with."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from decimal import ROUND_HALF_UP, Decimal, localcontext
from fractions import Fraction
from typing import Any

from tidemark.errors import InvalidUsage
from tidemark.model.window.aggregate import Aggregate, Function
from tidemark.model.window.contents import Rule, contents
from tidemark.model.window.happened import Contents, Happened, Key
from tidemark.model.window.kinds import Window
from tidemark.model.window.quantile import discrete_quantile
from tidemark.model.window.windows import Windows

Of = Callable[[Aggregate, Any], Any]
"""What an aggregate takes from a row: the value of its expression, None where that is null."""
Where = Callable[[Aggregate, Any], bool]
"""Whether a row counts in an aggregate."""
Point = tuple[int, Any]
"""When a value is from, and the value."""
WindowRow = tuple[Key, Window, tuple[Any, ...]]

_PRECISION = 38
_MORE_DIGITS_OF_AN_AVERAGE = 4


def window_rows(
    windows: Windows, rows: Iterable[Happened], value_of: Of, where: Where = lambda aggregate, value: True
) -> list[WindowRow]:
    """The rows of all windows: key, window and the values of the aggregates, in their order. `rows` are those for
    which the definition's own `where` holds. Whether a window is closed does not matter here."""
    by_window = contents(Rule.of(windows), rows)
    return [
        (key, window, evaluate(windows.aggregates, by_window[key, window], value_of, where))
        for key, window in by_window
    ]


def evaluate(aggregates: Sequence[Aggregate], content: Contents, value_of: Of, where: Where) -> tuple[Any, ...]:
    """The values of aggregates over what a window holds."""
    return tuple(_evaluate(aggregate, content, value_of, where) for aggregate in aggregates)


def _evaluate(aggregate: Aggregate, content: Contents, value_of: Of, where: Where) -> Any:
    counted = [((value, at), count) for (value, at), count in content.items() if where(aggregate, value)]
    if aggregate.function is Function.COUNT and not aggregate.of:
        return sum(count for _, count in counted)
    points: Counter[Point] = Counter()
    for (value, at), count in counted:
        if (argument := value_of(aggregate, value)) is not None:
            points[at, argument] += count
    return FUNCTIONS[aggregate.function](aggregate, points)


def _count(aggregate: Aggregate, points: Counter[Point]) -> int:
    return sum(points.values())


def _sum(aggregate: Aggregate, points: Counter[Point]) -> Any:
    """Exact; of floats the one nearest to it. What cancelled leaves 0, what was never there None."""
    if not any(points.values()):
        return None
    values = [(value, count) for (_, value), count in points.items() if count]
    if any(isinstance(value, float) for value, _ in values):
        return _float_sum(values)
    if any(isinstance(value, Decimal) for value, _ in values):
        with localcontext(prec=4 * _PRECISION):
            return sum((value * count for value, count in values), Decimal(0))
    return sum(value * count for value, count in values)


def _float_sum(values: Sequence[tuple[Any, int]]) -> float:
    unbounded = {value if count > 0 else -value for value, count in values if not math.isfinite(value)}
    if unbounded:
        return unbounded.pop() if len(unbounded) == 1 else math.nan
    exact = sum((Fraction(value) * count for value, count in values), Fraction(0))
    try:
        return float(exact)
    except OverflowError:
        return math.inf if exact > 0 else -math.inf


def _avg(aggregate: Aggregate, points: Counter[Point]) -> Any:
    """The sum, rounded to a float, by the count; of decimals exact, and rounded half up to four more digits."""
    total, count = _sum(aggregate, points), _count(aggregate, points)
    if total is None or not count:
        return None
    if not isinstance(total, Decimal):
        return float(total) / count
    scale = max(-int(value.as_tuple().exponent) for _, value in points)
    with localcontext(prec=4 * _PRECISION):
        return (total / count).quantize(Decimal(1).scaleb(-scale - _MORE_DIGITS_OF_AN_AVERAGE), ROUND_HALF_UP)


def _there(points: Counter[Point]) -> list[Point]:
    """The values that are there, as often as they are, in order of time and value. Raises InvalidUsage where one was
    retracted that is not there: its place in an order is not known."""
    if negative := next((point for point, count in points.items() if count < 0), None):
        raise InvalidUsage(f"{negative[1]!r} at {negative[0]} is there {points[negative]} times")
    return sorted(points.elements(), key=lambda point: (point[0], ordered(point[1])))


def ordered(value: Any) -> tuple[bool, Any]:
    """Values in the order Spark has them: NaN is the largest of floats."""
    return isinstance(value, float) and math.isnan(value), value


def _values(points: Counter[Point]) -> list[Any]:
    return sorted((value for _, value in _there(points)), key=ordered)


def _first(aggregate: Aggregate, points: Counter[Point]) -> Any:
    ascending = _there(points)
    return ascending[0][1] if ascending else None


def _last(aggregate: Aggregate, points: Counter[Point]) -> Any:
    ascending = _there(points)
    return ascending[-1][1] if ascending else None


def _min(aggregate: Aggregate, points: Counter[Point]) -> Any:
    ascending = _values(points)
    return ascending[0] if ascending else None


def _max(aggregate: Aggregate, points: Counter[Point]) -> Any:
    ascending = _values(points)
    return ascending[-1] if ascending else None


def _collect(aggregate: Aggregate, points: Counter[Point]) -> str:
    """A JSON array; decimals are numbers in plain digits."""
    return f"[{','.join(_json(value) for _, value in _there(points))}]"


def _json(value: Any) -> str:
    if isinstance(value, Decimal):
        return f"{value:f}"
    if isinstance(value, float) and not math.isfinite(value):
        return json.dumps("NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity")
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _distinct(aggregate: Aggregate, points: Counter[Point]) -> int:
    """Exact, for the sketch too: that estimates it."""
    return len({ordered(value) if value == value else None for value in _values(points)})


def _quantile(aggregate: Aggregate, points: Counter[Point]) -> float | None:
    assert aggregate.at is not None, "an aggregate of quantiles says at which"
    return discrete_quantile([float(value) for value in _values(points)], aggregate.at)


FUNCTIONS: dict[Function, Callable[[Aggregate, Counter[Point]], Any]] = {
    Function.COUNT: _count,
    Function.SUM: _sum,
    Function.MIN: _min,
    Function.MAX: _max,
    Function.AVG: _avg,
    Function.FIRST: _first,
    Function.LAST: _last,
    Function.COLLECT: _collect,
    Function.COUNT_DISTINCT: _distinct,
    Function.APPROX_DISTINCT: _distinct,
    Function.APPROX_QUANTILE: _quantile,
}
