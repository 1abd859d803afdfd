"""`row_condition`: which rows an expectation is about, as values that we evaluate ourselves.

Great Expectations would write a condition down as an expression of pandas or of Spark SQL, for an evaluator that can do
anything. Here its mapping becomes a tree as any other condition (model/condition), checked when the collection file is
read; its literals are what the rows that are judged hold (constants.py). A comparison with null is not true, as in SQL.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from decimal import Decimal
from functools import reduce
from typing import TYPE_CHECKING, Any

from tidemark.errors import InvalidUsage
from tidemark.model.collection import MAX_PRECISION, Collection
from tidemark.model.condition.tree import (
    And,
    Compare,
    Condition,
    In,
    IsNull,
    Literal,
    Not,
    Or,
    columns,
    leaves,
    literals_of,
)
from tidemark.quality.constants import constant_of
from tidemark.quality.refusal import nearest, shown

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

MOST_COMPARISONS = 100
DEEPEST = 8

_FIELDS: dict[str, tuple[str, ...]] = {
    "comparison": ("column", "operator", "parameter"),
    "nullity": ("column", "is_null"),
    "and": ("conditions",),
    "or": ("conditions",),
}
_COMPARISONS = {"==": "=", "!=": "!=", "<": "<", "<=": "<=", ">": ">", ">=": ">="}
_COMPARED: dict[str, Callable[[Any, Any], Any]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_MEMBERSHIPS = ("IN", "NOT_IN")


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
            raise InvalidUsage(f"row_condition has more than {MOST_COMPARISONS} comparisons")
        column = self._column(written["column"])
        if kind == "nullity":
            if not isinstance(written["is_null"], bool):
                raise InvalidUsage(f"row_condition: is_null is {shown(written['is_null'])}; it must be true or false")
            return IsNull(column) if written["is_null"] else Not(IsNull(column))
        return self._comparison(column, written["operator"], written["parameter"])

    def _check_fields(self, written: Mapping[Any, Any], kind: str) -> None:
        known = _FIELDS[kind]
        for name in written:
            if name not in ("type", *known):
                raise InvalidUsage(f"row_condition of type {kind} has no {shown(name)}{nearest(name, known)}")
        if missing := [name for name in known if name not in written]:
            raise InvalidUsage(f"row_condition of type {kind} needs {', '.join(missing)}")

    def _combination(self, kind: str, conditions: Any, depth: int) -> And | Or:
        if depth >= DEEPEST:
            raise InvalidUsage(f"row_condition is nested more than {DEEPEST} deep")
        if not isinstance(conditions, list) or not conditions:
            raise InvalidUsage(f"row_condition of type {kind}: conditions must be a list of at least one")
        found = tuple(self.parse(one, depth + 1) for one in conditions)
        return And(found) if kind == "and" else Or(found)

    def _column(self, written: Any) -> str:
        """`column: status`, or `column: {name: status}` as Great Expectations writes it."""
        name = written.get("name") if isinstance(written, dict) and len(written) == 1 else written
        names = [column.name for column in self._collection.columns]
        if not isinstance(name, str) or name not in names:
            subject = f"collection {self._collection.name}"
            raise InvalidUsage(f"row_condition: {subject} has no column {shown(name)}{nearest(name, names)}")
        return name

    def _comparison(self, column: str, compared: Any, parameter: Any) -> Condition:
        if not isinstance(compared, str) or compared not in (*_COMPARISONS, *_MEMBERSHIPS):
            known = ", ".join((*_COMPARISONS, *_MEMBERSHIPS))
            raise InvalidUsage(f"row_condition has no operator {shown(compared)}; its operators are {known}")
        try:
            if compared in _COMPARISONS:
                return Compare(column, _COMPARISONS[compared], self._literal(column, parameter))
            if not isinstance(parameter, list):
                raise InvalidUsage(f"parameter of {compared} must be a list")
            among = In(column, tuple(self._literal(column, value) for value in parameter))
            return among if compared == "IN" else Not(among)
        except InvalidUsage as error:
            raise InvalidUsage(f"row_condition on {column}: {error}") from None

    def _literal(self, column: str, value: Any) -> Literal:
        """The value as the rows that are judged hold it, exactly."""
        literal = constant_of(self._collection, column, value)
        return Decimal(literal) if isinstance(literal, float) else literal


def pandas_mask(condition: Condition, frame: pd.DataFrame) -> pd.Series:
    """Which rows of the frame the condition holds for, as truths without nulls. It is evaluated as all conditions
    are."""
    import pandas as pd
    import pyarrow as pa

    from tidemark.arrow.rows.condition import holds

    names = columns(condition)
    batch = pa.RecordBatch.from_arrays([_arrow(frame[name], condition) for name in names], list(names))
    return pd.Series(holds(condition, batch).to_numpy(zero_copy_only=False), index=frame.index)


def _arrow(column: pd.Series, condition: Condition) -> pa.Array:
    """A column of the frame, to evaluate a condition on; decimals are whole numbers there, of more than 64 bits
    (rows.py)."""
    import pyarrow as pa

    if str(column.dtype) != "object":
        return pa.array(column, from_pandas=True)
    beside = [one for leaf in leaves(condition) if leaf.column == column.name for one in literals_of(leaf)]
    if any(isinstance(one, int) for one in [*column.dropna().iloc[:1], *beside]):
        units = [None if value is None else Decimal(value) for value in column]
        return pa.array(units, pa.decimal128(MAX_PRECISION, 0))
    return pa.array(column, pa.string(), from_pandas=True)


def spark_column(condition: Condition, frame: Any) -> Any:
    """The condition as a column of the Spark frame, built call by call: no text is parsed."""
    match condition:
        case And(conditions) | Or(conditions):
            combined = operator.and_ if isinstance(condition, And) else operator.or_
            return reduce(combined, (spark_column(one, frame) for one in conditions))
        case Not(inner):
            return ~spark_column(inner, frame)
        case IsNull(column):
            return frame[column].isNull()
        case In(column, literals):
            return frame[column].isin([_of_spark(one) for one in literals])
        case Compare(column, op, literal):
            return _COMPARED[op](frame[column], _of_spark(literal))


def _of_spark(literal: Literal) -> bool | int | float | str | bytes:
    return float(literal) if isinstance(literal, Decimal) else literal
