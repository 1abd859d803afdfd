"""Values of row expressions: their types, literals as constants of these, and which are taken for others exactly."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

from sqlglot import exp

from tidemark.definition.literals import LeftToSpark, is_text, literals, number, shown
from tidemark.model.collection import MAX_PRECISION, ColumnType, DecimalType, ValueType
from tidemark.model.condition.tree import And, Condition, Or
from tidemark.model.expression import Constant, Operand

TIMES = (ColumnType.DATE, ColumnType.TIMESTAMP)
DIGITS_OF_INTS = {8: 3, 16: 5, 32: 10, 64: 20}
"""How many Spark gives a whole number of so many bits beside a decimal."""


@dataclass(frozen=True)
class Value:
    """An operand and its type; of whole numbers, how many bits Spark has for it. None is the type of NULL."""

    operand: Operand
    type: ValueType | None
    bits: int = 64

    @property
    def constant(self) -> Constant | None:
        return self.operand if isinstance(self.operand, Constant) else None


def is_literal(node: exp.Expr) -> bool:
    """Whether a node is a value as it is written: a number with its sign, a text, a truth, or a text cast to a time."""
    node = node.unnest()
    if isinstance(node, exp.Neg):
        return isinstance(node.this.unnest(), exp.Literal) and not node.this.unnest().is_string
    if isinstance(node, exp.Cast):
        return is_text(node.this.unnest())
    return isinstance(node, exp.Literal | exp.Boolean)


def compared_numbers(op: str, left: int | Decimal, right: int | Decimal) -> Condition:
    """`1 = 1`, which is true of every row."""
    if not isinstance(left, int) or not isinstance(right, int):
        raise LeftToSpark("decimals are compared with each other")
    order = (left > right) - (left < right)
    answer = {"=": order == 0, "!=": order != 0, "<": order < 0, "<=": order <= 0, ">": order > 0, ">=": order >= 0}
    return And(()) if answer[op] else Or(())


def constant(node: exp.Expr) -> Value:
    match node:
        case exp.Null():
            return Value(Constant(None, ColumnType.BOOL), None)
        case exp.Boolean():
            return Value(Constant(bool(node.this), ColumnType.BOOL), ColumnType.BOOL)
        case exp.Literal() if node.is_string:
            return Value(Constant(node.name, ColumnType.STRING), ColumnType.STRING)
    value = number(node)
    if isinstance(value, int):
        if not -(2**63) <= value < 2**63:
            raise LeftToSpark(f"{value} is beyond 64 bits")
        return Value(Constant(value, ColumnType.INT), ColumnType.INT, 32 if -(2**31) <= value < 2**31 else 64)
    _, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int)
    scale = -exponent
    of = DecimalType(max(len(digits), scale, 1), scale)
    return Value(Constant(value, of), of)


def typed_literal(node: exp.Cast) -> Value:
    """DATE '2013-01-02' and TIMESTAMP '2013-01-02 03:04:05'."""
    of = {"DATE": ColumnType.DATE, "TIMESTAMPTZ": ColumnType.TIMESTAMP}.get(node.to.this.name)
    if of is None:
        raise LeftToSpark(f"{shown(node)}: a text is read")
    (value,) = literals(of, (node,))
    assert isinstance(value, int)
    return Value(Constant(value, of), of)


def constant_as(constant: Constant, of: ValueType) -> Constant:
    value, given = constant.value, constant.type
    if value is None or given == of:
        return Constant(value, of)
    whole = isinstance(value, int) and not isinstance(value, bool) and given is ColumnType.INT
    if of is ColumnType.FLOAT and (whole or isinstance(value, Decimal)):
        return Constant(Decimal(value), of)
    if isinstance(of, DecimalType) and (whole or isinstance(value, Decimal)):
        decimal = Decimal(value)
        _, digits, exponent = decimal.as_tuple()
        assert isinstance(exponent, int)
        if len(digits) + exponent <= of.whole_digits and -exponent <= of.scale:
            return Constant(decimal, of)
    raise LeftToSpark(f"{value!r} is taken for {of}")


def common(values: Sequence[Value]) -> Value:
    """The type that values of one column have, without an operand. Raises LeftToSpark where Spark would read one as
    what it is not."""
    typed = [one for one in values if one.type is not None]
    types = {one.type for one in typed}
    if not typed:
        raise LeftToSpark("all values are NULL")
    bits = max(one.bits for one in typed)
    if len(types) == 1:
        return Value("", typed[0].type, bits)
    if types == set(TIMES):
        return Value("", ColumnType.TIMESTAMP)
    if not all(is_number(of) for of in types):
        raise LeftToSpark(f"values have the types {' and '.join(sorted(map(str, types)))}")
    if ColumnType.FLOAT in types:
        return Value("", ColumnType.FLOAT)
    decimals = [
        one.type if isinstance(one.type, DecimalType) else DecimalType(DIGITS_OF_INTS[one.bits], 0) for one in typed
    ]
    scale = max(one.scale for one in decimals)
    digits = max(one.whole_digits for one in decimals) + scale
    if digits > MAX_PRECISION:
        raise LeftToSpark(f"values may have {digits} digits together, and Spark rounds beyond {MAX_PRECISION}")
    return Value("", DecimalType(digits, scale))


def is_number(of: ValueType | None) -> bool:
    return of in (ColumnType.INT, ColumnType.FLOAT) or isinstance(of, DecimalType)


def converts(given: ValueType | None, of: ValueType) -> bool:
    """Whether Spark takes values of a type for those of another by itself, exactly or as the float next to them."""
    if isinstance(of, DecimalType):
        if isinstance(given, DecimalType):
            return given.whole_digits <= of.whole_digits and given.scale <= of.scale
        return given is ColumnType.INT
    if of is ColumnType.FLOAT:
        return given is ColumnType.INT
    return given is ColumnType.DATE and of is ColumnType.TIMESTAMP


def casts(given: ValueType | None, of: ValueType) -> bool:
    """Whether a cast of one to the other is done without Spark, besides what is converted."""
    return (given, of) in ((ColumnType.TIMESTAMP, ColumnType.DATE), (ColumnType.INT, ColumnType.STRING))
