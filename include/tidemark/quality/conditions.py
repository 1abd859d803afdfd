"""`row_condition`: which rows an expectation is about, as values that we evaluate ourselves.

Great Expectations would write a condition down as an expression of pandas or of Spark SQL, for an evaluator that can do
anything. Here a condition is a small tree of comparisons, checked when the collection file is read; what selects the
rows is one call of pandas or Spark for each comparison. A comparison with null is not true, as in SQL.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Any

from tidemark.errors import InvalidUsage
from tidemark.model.collection import Collection
from tidemark.quality.constants import Constant, constant_of
from tidemark.quality.refusal import nearest, shown

if TYPE_CHECKING:
    import pandas as pd

MOST_COMPARISONS = 100
DEEPEST = 8

_FIELDS: dict[str, tuple[str, ...]] = {
    "comparison": ("column", "operator", "parameter"),
    "nullity": ("column", "is_null"),
    "and": ("conditions",),
    "or": ("conditions",),
}
_COMPARISONS: dict[str, Callable[[Any, Any], Any]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_MEMBERSHIPS = ("IN", "NOT_IN")


@dataclass(frozen=True)
class Comparison:
    """A column beside a constant of its type; for IN and NOT_IN beside a tuple of them."""

    column: str
    operator: str
    parameter: Constant | tuple[Constant, ...]


@dataclass(frozen=True)
class Nullity:
    column: str
    is_null: bool


@dataclass(frozen=True)
class Combination:
    """All of the conditions (`and`), or any of them (`or`)."""

    type: str
    conditions: tuple[Condition, ...]


Condition = Comparison | Nullity | Combination


def parse_condition(collection: Collection, written: Any) -> Condition:
    """The condition as a collection file writes it. Raises InvalidUsage for anything but the four types of it."""
    parser = _Parser(collection)
    return parser.parse(written, 1)


class _Parser:
    def __init__(self, collection: Collection) -> None:
        self._collection = collection
        self._left = MOST_COMPARISONS

    def parse(self, written: Any, depth: int) -> Condition:
        if not isinstance(written, dict):
            raise InvalidUsage(
                "row_condition must be a mapping such as {type: nullity, column: ..., is_null: false}, "
                f"not {'a text' if isinstance(written, str) else shown(written)}"
            )
        kind = written.get("type")
        if not isinstance(kind, str) or kind not in _FIELDS:
            raise InvalidUsage(f"row_condition has no type {shown(kind)}; its types are {', '.join(_FIELDS)}")
        self._check_fields(written, kind)
        if kind in ("and", "or"):
            return self._combination(kind, written["conditions"], depth)
        self._left -= 1
        if self._left < 0:
            raise InvalidUsage(f"row_condition holds more than {MOST_COMPARISONS} comparisons")
        column = self._column(written["column"])
        if kind == "nullity":
            if not isinstance(written["is_null"], bool):
                raise InvalidUsage(f"row_condition: is_null is {shown(written['is_null'])}; it must be true or false")
            return Nullity(column, written["is_null"])
        return self._comparison(column, written["operator"], written["parameter"])

    def _check_fields(self, written: Mapping[Any, Any], kind: str) -> None:
        known = _FIELDS[kind]
        for name in written:
            if name not in ("type", *known):
                raise InvalidUsage(f"row_condition of type {kind} has no {shown(name)}{nearest(name, known)}")
        if missing := [name for name in known if name not in written]:
            raise InvalidUsage(f"row_condition of type {kind} needs {', '.join(missing)}")

    def _combination(self, kind: str, conditions: Any, depth: int) -> Combination:
        if depth >= DEEPEST:
            raise InvalidUsage(f"row_condition is nested more than {DEEPEST} deep")
        if not isinstance(conditions, list) or not conditions:
            raise InvalidUsage(f"row_condition of type {kind}: conditions must be a list of at least one")
        return Combination(kind, tuple(self.parse(one, depth + 1) for one in conditions))

    def _column(self, written: Any) -> str:
        """`column: status`, or `column: {name: status}` as Great Expectations writes it."""
        name = written.get("name") if isinstance(written, dict) and len(written) == 1 else written
        names = [column.name for column in self._collection.columns]
        if not isinstance(name, str) or name not in names:
            held_by = f"collection {self._collection.name}"
            raise InvalidUsage(f"row_condition: {held_by} has no column {shown(name)}{nearest(name, names)}")
        return name

    def _comparison(self, column: str, compared: Any, parameter: Any) -> Comparison:
        if not isinstance(compared, str) or compared not in (*_COMPARISONS, *_MEMBERSHIPS):
            known = ", ".join((*_COMPARISONS, *_MEMBERSHIPS))
            raise InvalidUsage(f"row_condition has no operator {shown(compared)}; its operators are {known}")
        try:
            if compared in _COMPARISONS:
                return Comparison(column, compared, constant_of(self._collection, column, parameter))
            if not isinstance(parameter, list):
                raise InvalidUsage(f"parameter of {compared} must be a list")
            values = tuple(constant_of(self._collection, column, value) for value in parameter)
            return Comparison(column, compared, values)
        except InvalidUsage as error:
            raise InvalidUsage(f"row_condition on {column}: {error}") from None


def pandas_mask(condition: Condition, frame: pd.DataFrame) -> pd.Series:
    """Which rows of the frame the condition holds for, as truths without nulls."""
    if isinstance(condition, Combination):
        combined = operator.and_ if condition.type == "and" else operator.or_
        return reduce(combined, (pandas_mask(one, frame) for one in condition.conditions))
    column = frame[condition.column]
    known = column.notna()
    if isinstance(condition, Nullity):
        return ~known if condition.is_null else known
    held = column[known]
    if condition.operator in _COMPARISONS:
        holds = _COMPARISONS[condition.operator](held, condition.parameter)
    else:
        holds = held.isin(condition.parameter) == (condition.operator == "IN")
    mask = known.copy()
    mask[known] = holds.astype(bool).to_numpy()
    return mask


def spark_column(condition: Condition, frame: Any) -> Any:
    """The condition as a column of the Spark frame, built call by call: no text is parsed."""
    if isinstance(condition, Combination):
        combined = operator.and_ if condition.type == "and" else operator.or_
        return reduce(combined, (spark_column(one, frame) for one in condition.conditions))
    column = frame[condition.column]
    if isinstance(condition, Nullity):
        return column.isNull() if condition.is_null else column.isNotNull()
    if condition.operator in _COMPARISONS:
        return _COMPARISONS[condition.operator](column, condition.parameter)
    among = column.isin(list(condition.parameter))  # type: ignore[arg-type]
    return among if condition.operator == "IN" else ~among
