"""A condition on one row, as a tree: whatever a user writes a condition in becomes this, and this alone is evaluated.

The logic is SQL's, three-valued: a comparison with null is unknown, and only what is true holds. Numbers are exact: 0.1
beside a decimal is a tenth; beside a float it is the double nearest to it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import date, datetime
from decimal import Decimal

from tidemark.errors import InvalidUsage
from tidemark.model import canonical_json, encoded_bytes
from tidemark.model.collection import ColumnType, DecimalType, ValueType
from tidemark.model.instant import from_datetime

Literal = bool | int | Decimal | str | bytes
"""What a column is compared with. Decimal("NaN") is the float that is no number: `=` finds these, as everywhere in
Tidemark an undefined float equals another."""
_EPOCH_DAY = date(1970, 1, 1)


@dataclass(frozen=True)
class Compare:
    """`column op literal`; op is one of = != < <= > >=."""

    column: str
    op: str
    literal: Literal


@dataclass(frozen=True)
class IsNull:
    column: str


@dataclass(frozen=True)
class In:
    """Whether a column is one of some literals: of none, it is not."""

    column: str
    literals: tuple[Literal, ...]


@dataclass(frozen=True)
class Not:
    inner: Condition


@dataclass(frozen=True)
class And:
    """All of some conditions: of none, true."""

    conditions: tuple[Condition, ...]


@dataclass(frozen=True)
class Or:
    """Any of some conditions: of none, false."""

    conditions: tuple[Condition, ...]


Condition = Compare | IsNull | In | Not | And | Or


def columns(condition: Condition) -> tuple[str, ...]:
    """The columns a condition looks at, each once, in order of appearance."""
    return tuple(dict.fromkeys(leaf.column for leaf in leaves(condition)))


def leaves(condition: Condition) -> Iterator[Compare | IsNull | In]:
    """What a condition says of single columns, in order of appearance."""
    match condition:
        case Not(inner):
            yield from leaves(inner)
        case And(conditions) | Or(conditions):
            for one in conditions:
                yield from leaves(one)
        case _:
            yield condition


def literals_of(leaf: Compare | IsNull | In) -> tuple[Literal, ...]:
    """What a column is compared with."""
    match leaf:
        case Compare(_, _, literal):
            return (literal,)
        case In(_, literals):
            return literals
        case IsNull():
            return ()


def check_types(condition: Condition, type_of: Callable[[str], ValueType], of: str = "delete_when") -> None:
    """Raise InvalidUsage if a column is compared with a literal its type does not know."""
    for leaf in leaves(condition):
        if isinstance(leaf, IsNull):
            continue
        column_type = type_of(leaf.column)
        for literal in literals_of(leaf):
            if not _fits(literal, column_type):
                hint = "a number" if isinstance(column_type, DecimalType) else _HINTS[column_type]
                shown = str(literal) if isinstance(literal, Decimal) else repr(literal)
                raise InvalidUsage(
                    f"{of} compares column {leaf.column}, of type {column_type}, with {shown}; write {hint}"
                )
        if column_type is ColumnType.JSON and isinstance(leaf, Compare) and leaf.op not in ("=", "!="):
            raise InvalidUsage(f"{of} orders column {leaf.column}, which is json and in no order; write = or !=, or IN")
        if column_type is ColumnType.BOOL and isinstance(leaf, Compare) and leaf.op not in ("=", "!="):
            raise InvalidUsage(f"{of} orders column {leaf.column}, of type bool; write {leaf.column} = TRUE or FALSE")


def bound(condition: Condition, type_of: Callable[[str], ValueType]) -> Condition:
    """The condition with its texts as the columns hold them: times in microseconds and dates in days since the epoch,
    bytes, and canonical JSON. `check_types` holds of it."""
    match condition:
        case Not(inner):
            return Not(bound(inner, type_of))
        case And(conditions) | Or(conditions):
            return type(condition)(tuple(bound(one, type_of) for one in conditions))
        case Compare():
            return replace(condition, literal=typed_literal(condition.literal, type_of(condition.column)))
        case In():
            of = type_of(condition.column)
            return replace(condition, literals=tuple(typed_literal(one, of) for one in condition.literals))
        case IsNull():
            return condition


def typed_literal(literal: Literal, of: ValueType) -> Literal:
    """A literal as a column of that type holds it. Raises ValueError for a text that is none of its values."""
    if not isinstance(literal, str) or of not in _READ:
        return literal
    return _READ[of](literal)


_HINTS = {
    ColumnType.BOOL: "TRUE or FALSE",
    ColumnType.INT: "a number",
    ColumnType.FLOAT: "a number",
    ColumnType.STRING: "a text in single quotes",
    ColumnType.DATE: "'2013-01-02'",
    ColumnType.TIMESTAMP: "'2013-01-02T03:04:05Z'",
    ColumnType.BYTES: "the base64 of bytes in single quotes, such as '/wA='",
    ColumnType.JSON: """JSON in single quotes, such as '{"a": 1}'""",
}
_READ: dict[ValueType, Callable[[str], Literal]] = {
    ColumnType.DATE: lambda text: (date.fromisoformat(text) - _EPOCH_DAY).days,
    ColumnType.TIMESTAMP: lambda text: from_datetime(datetime.fromisoformat(text)),
    ColumnType.BYTES: encoded_bytes.decoded,
    ColumnType.JSON: canonical_json.canonical,
}
"""How texts are read that stand for values which are none."""


def _fits(literal: Literal, column_type: ValueType) -> bool:
    if column_type is ColumnType.BOOL:
        return isinstance(literal, bool)
    if column_type in (ColumnType.INT, ColumnType.FLOAT) or isinstance(column_type, DecimalType):
        return isinstance(literal, int | Decimal) and not isinstance(literal, bool)
    try:
        typed_literal(literal, column_type)
    except ValueError:
        return False
    return isinstance(literal, str)
