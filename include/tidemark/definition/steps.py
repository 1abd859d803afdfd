"""Expressions in Spark SQL over the rows of one input as steps and conditions that need no Spark, where both give the
same for every row (model/expression.py).

What is not exactly the same is left to Spark, with a word that says what it is: functions that are not listed here,
decimals that Spark would round, texts beside numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal

from sqlglot import exp

from tidemark.definition.functions import name_of
from tidemark.definition.literals import LeftToSpark, is_text, literals, number, shown
from tidemark.definition.step_values import (
    DIGITS_OF_INTS,
    TIMES,
    Value,
    casts,
    common,
    compared_numbers,
    constant,
    constant_as,
    converts,
    is_literal,
    is_number,
    typed_literal,
)
from tidemark.definition.types import decimal_digits
from tidemark.model.collection import MAX_PRECISION, ColumnType, DecimalType, ValueType
from tidemark.model.condition.tree import And, Compare, Condition, In, IsNull, Literal, Not, Or
from tidemark.model.expression import (
    Arithmetic,
    Choice,
    Constant,
    Converted,
    FirstKnown,
    Length,
    Matches,
    Negated,
    Order,
    Step,
    TimePart,
    Truth,
)

_OPERATORS: dict[type[exp.Expr], str] = {
    exp.EQ: "=",
    exp.NEQ: "!=",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
}
_TURNED = {"=": "=", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
"""`15 < delay` is `delay > 15`."""
_ARITHMETIC: dict[type[exp.Expr], str] = {
    exp.Add: "+",
    exp.Sub: "-",
    exp.Mul: "*",
    exp.Div: "/",
    exp.Mod: "%",
    exp.IntDiv: "div",
}
_NAN = Decimal("NaN")
_PARTS = {part: part for part in ("year", "quarter", "month", "day", "hour", "minute", "second")} | {
    "dayofmonth": "day"
}
_OF_DAYS = ("year", "quarter", "month", "day")
_CASTS = {
    "boolean": ColumnType.BOOL,
    "tinyint": ColumnType.INT,
    "smallint": ColumnType.INT,
    "int": ColumnType.INT,
    "bigint": ColumnType.INT,
    "double": ColumnType.FLOAT,
    "string": ColumnType.STRING,
    "date": ColumnType.DATE,
    "timestamp": ColumnType.TIMESTAMP,
}
_BITS = {"tinyint": 8, "smallint": 16, "int": 32}


def column_type(name: str) -> ValueType:
    """The type of a column that holds values of a type of Spark's. Raises LeftToSpark for one that is not known."""
    digits = decimal_digits(name)
    result = DecimalType(*digits) if digits else _CASTS.get(name)
    if result is None:
        raise LeftToSpark(f"an expression is of type {name or 'unknown'}")
    return result


@dataclass
class Steps:
    """The steps that expressions over columns of some types are split into, each once. They are called as `prefix`
    says, which is the beginning of no column."""

    types: Mapping[str, ValueType]
    prefix: str = "_x"
    _named: dict[Step, str] = field(default_factory=dict)
    _values: dict[str, Value] = field(default_factory=dict)

    @property
    def named(self) -> dict[str, Step]:
        """The steps by what they are called, in order."""
        return {name: step for step, name in self._named.items()}

    def type_of(self, name: str) -> ValueType:
        """The type of a column, or of a step."""
        return self._value_of(name).type or ColumnType.BOOL

    def column(self, node: exp.Expr) -> str:
        """The column that holds an expression. Raises LeftToSpark."""
        return self._as_column(self.value(node), node)

    def only(self, where: exp.Expr, argument: exp.Expr | None) -> str:
        """The column that holds an expression (None: true) where a condition is true, and null elsewhere. Raises
        LeftToSpark."""
        value = Value(Constant(True, ColumnType.BOOL), ColumnType.BOOL) if argument is None else self.value(argument)
        if value.type is None:
            raise LeftToSpark("an aggregate takes NULL")
        none = Constant(None, value.type)
        return self._step(Choice(((self.condition(where), value.operand),), none, value.type), value.type, value.bits)

    def condition(self, node: exp.Expr) -> Condition:
        """An expression as a condition. Raises LeftToSpark."""
        node = node.unnest()
        match node:
            case exp.And():
                return And(tuple(self.condition(operand) for operand in node.flatten()))
            case exp.Or():
                return Or(tuple(self.condition(operand) for operand in node.flatten()))
            case exp.Not():
                return Not(self.condition(node.this))
            case exp.Boolean():
                return And(()) if node.this else Or(())
            case exp.Is() if isinstance(node.expression, exp.Null):
                return IsNull(self.column(node.this))
            case exp.Is() if isinstance(node.expression, exp.Boolean):
                name = self.column(node.this)
                return And((Not(IsNull(name)), self._compared("=", node.this, node.expression)))
            case exp.In():
                return self._among(node)
            case exp.Between():
                above = self._compared(">=", node.this, node.args["low"])
                return And((above, self._compared("<=", node.this, node.args["high"])))
            case exp.NullSafeEQ():
                return self._same(node)
            case exp.NullSafeNEQ():
                return Not(self._same(node))
            case exp.Like():
                return self._like(node)
        if type(node) in _OPERATORS:
            return self._compared(_OPERATORS[type(node)], node.this, node.expression)
        value = None if isinstance(node, exp.Predicate) else self.value(node)
        if value is None or value.type is not ColumnType.BOOL:
            raise LeftToSpark(f"{shown(node)} is no condition of columns")
        return Compare(self._as_column(value, node), "=", True)

    def value(self, node: exp.Expr) -> Value:
        """An expression as an operand. Raises LeftToSpark."""
        node = node.unnest()
        match node:
            case exp.Column():
                return self._input_column(node)
            case exp.Literal() | exp.Boolean() | exp.Null():
                return constant(node)
            case exp.Neg():
                return self._negated(node)
            case exp.Cast():
                return self._cast(node)
            case exp.Case():
                return self._case(node)
            case exp.If():
                return self._choice([(node.this, node.args["true"])], node.args.get("false"))
            case exp.Predicate() | exp.And() | exp.Or() | exp.Not():
                return self._value(Truth(self.condition(node)), ColumnType.BOOL)
        if type(node) in _ARITHMETIC:
            return self._arithmetic(_ARITHMETIC[type(node)], self.value(node.this), self.value(node.expression), node)
        called = _CALLS.get(name_of(node))
        if called is None or not isinstance(node, exp.Anonymous):
            raise LeftToSpark(f"{shown(node)} is more than columns, comparisons, arithmetic, CASE and CAST")
        return called(self, node.expressions, node)

    def _step(self, step: Step, type_: ValueType, bits: int = 64) -> str:
        if step not in self._named:
            name = f"{self.prefix}{len(self._named)}"
            self._named[step] = name
            self._values[name] = Value(name, type_, bits)
        return self._named[step]

    def _value(self, step: Step, type_: ValueType, bits: int = 64) -> Value:
        return Value(self._step(step, type_, bits), type_, bits)

    def _value_of(self, name: str) -> Value:
        return self._values[name] if name in self._values else Value(name, self.types[name])

    def _as_column(self, value: Value, node: exp.Expr) -> str:
        if isinstance(value.operand, str):
            return value.operand
        if value.type is None:
            raise LeftToSpark(f"{shown(node)} has no type")
        return self._step(Choice((), value.operand, value.type), value.type, value.bits)

    def _input_column(self, node: exp.Column) -> Value:
        if node.args.get("db") or node.name not in self.types:
            raise LeftToSpark(f"{shown(node)} is no column as it is declared")
        return self._value_of(node.name)

    def _among(self, node: exp.In) -> Condition:
        if not node.expressions or any(node.args.get(part) for part in ("query", "unnest", "field")):
            raise LeftToSpark(f"{shown(node)} is no list of literals")
        type_ = self.type_of(name := self.column(node.this))
        # Spark's sets distinguish -0.0 from 0.0, and what texts become in a list of several types is its own affair.
        if type_ is ColumnType.FLOAT or (type_ in TIMES and any(map(is_text, node.expressions))):
            raise LeftToSpark(f"{shown(node)}: a list beside {type_}")
        return In(name, literals(type_, node.expressions))

    def _compared(self, op: str, left: exp.Expr, right: exp.Expr) -> Condition:
        left, right = left.unnest(), right.unnest()
        if is_literal(left) and not is_literal(right):
            left, right, op = right, left, _TURNED[op]
        if is_literal(left):
            return compared_numbers(op, number(left), number(right))
        if not is_literal(right):
            return Compare(self._order(self.value(left), self.value(right), op), op, 0)
        name = self.column(left)
        (literal,) = literals(self.type_of(name), (right,))
        return self._beside(name, op, literal)

    def _beside(self, name: str, op: str, literal: Literal) -> Condition:
        compared, type_ = Compare(name, op, literal), self.type_of(name)
        if type_ is ColumnType.BOOL and op not in ("=", "!="):
            raise LeftToSpark("booleans are ordered")
        if type_ is ColumnType.FLOAT and op in (">", ">="):
            return Or((compared, Compare(name, "=", _NAN)))  # to Spark it is greater than all others
        return compared

    def _order(self, left: Value, right: Value, op: str) -> str:
        """The column that says how two values compare."""
        if left.type != right.type or left.constant or right.constant:
            both = common([left, right])
            left, right = self._as(left, both), self._as(right, both)
        if left.type not in _COMPARED and not isinstance(left.type, DecimalType):
            raise LeftToSpark(f"values of type {left.type} are compared with each other")
        if left.type is ColumnType.BOOL and op not in ("=", "!="):
            raise LeftToSpark("booleans are ordered")
        return self._step(Order(left.operand, right.operand), ColumnType.INT, 32)

    def _same(self, node: exp.NullSafeEQ | exp.NullSafeNEQ) -> Condition:
        """`a <=> b`: both are null, or they are equal."""
        if isinstance(node.expression.unnest(), exp.Null):
            return IsNull(self.column(node.this))
        left, right = (self.column(side) for side in (node.this, node.expression))
        equal = self._compared("=", node.this, node.expression)
        both_equal = And((Not(IsNull(left)), Not(IsNull(right)), equal))
        return Or((And((IsNull(left), IsNull(right))), both_equal))

    def _like(self, node: exp.Like) -> Condition:
        """Only where the pattern is a text with % before or behind it."""
        pattern = node.expression.unnest()
        if not is_text(pattern) or any(sign in pattern.name for sign in "_\\"):
            raise LeftToSpark(f"{shown(node)}: a pattern with more than % at its ends")
        text, starts, ends = pattern.name, pattern.name.endswith("%"), pattern.name.startswith("%")
        inner = text.removeprefix("%").removesuffix("%")
        if "%" in inner or (not inner and (starts or ends)):
            raise LeftToSpark(f"{shown(node)}: a pattern with more than % at its ends")
        name = self.column(node.this)
        if self.type_of(name) is not ColumnType.STRING:
            raise LeftToSpark(f"{shown(node)}: no text")
        if not starts and not ends:
            condition: Condition = Compare(name, "=", inner)
        else:
            place = "anywhere" if starts and ends else "start" if starts else "end"
            condition = Compare(self._step(Matches(name, place, inner), ColumnType.BOOL), "=", True)
        return Not(condition) if node.args.get("negate") else condition

    def _negated(self, node: exp.Neg) -> Value:
        if is_literal(node):
            return constant(node)
        value = self.value(node.this)
        if value.type not in (ColumnType.INT, ColumnType.FLOAT) and not isinstance(value.type, DecimalType):
            raise LeftToSpark(f"{shown(node)} is no number")
        assert value.type is not None
        return self._value(Negated(value.operand, value.type, value.bits), value.type, value.bits)

    def _arithmetic(self, op: str, left: Value, right: Value, node: exp.Expr) -> Value:
        types = {left.type, right.type}
        if None in types or not all(is_number(type_) for type_ in types):
            raise LeftToSpark(f"{shown(node)} takes no numbers")
        if ColumnType.FLOAT in types:
            if op == "div":
                raise LeftToSpark(f"{shown(node)} takes floats")
            return self._floats(op, left, right)
        if any(isinstance(type_, DecimalType) for type_ in types):
            return self._decimals(op, left, right, node)
        if op == "/":
            return self._floats(op, left, right)
        bits = 64 if op == "div" else max(left.bits, right.bits, 32)
        return self._value(Arithmetic(op, left.operand, right.operand, ColumnType.INT, bits), ColumnType.INT, bits)

    def _floats(self, op: str, left: Value, right: Value) -> Value:
        first, second = (self._as(side, Value("", ColumnType.FLOAT)).operand for side in (left, right))
        return self._value(Arithmetic(op, first, second, ColumnType.FLOAT), ColumnType.FLOAT)

    def _decimals(self, op: str, left: Value, right: Value, node: exp.Expr) -> Value:
        """Sums and products of as many digits as they can have: where a decimal holds fewer, Spark rounds."""
        if op not in ("+", "-", "*"):
            raise LeftToSpark(f"{shown(node)}: Spark rounds quotients of decimals")
        first, second = self._as_decimal(left), self._as_decimal(right)
        mine, its = first.type, second.type
        assert isinstance(mine, DecimalType)
        assert isinstance(its, DecimalType)
        if op == "*":
            digits, scale = mine.precision + its.precision + 1, mine.scale + its.scale
        else:
            scale = max(mine.scale, its.scale)
            digits = max(mine.whole_digits, its.whole_digits) + scale + 1
        if digits > MAX_PRECISION:
            raise LeftToSpark(f"{shown(node)} may have {digits} digits, and Spark rounds beyond {MAX_PRECISION}")
        type_ = DecimalType(digits, scale)
        return self._value(Arithmetic(op, first.operand, second.operand, type_), type_)

    def _as_decimal(self, value: Value) -> Value:
        if isinstance(value.type, DecimalType):
            return value
        if value.constant is not None and isinstance(value.constant.value, int):
            digits = len(str(abs(value.constant.value)))
            return self._as(value, Value("", DecimalType(digits, 0)))
        return self._as(value, Value("", DecimalType(DIGITS_OF_INTS[value.bits], 0)))

    def _as(self, value: Value, wanted: Value) -> Value:
        """A value as one of another type, which holds it exactly, or is the float next to it."""
        type_ = wanted.type
        assert type_ is not None
        if value.type == type_:
            return Value(value.operand, type_, max(value.bits, wanted.bits))
        if value.constant is not None:
            return Value(constant_as(value.constant, type_), type_, wanted.bits)
        if not converts(value.type, type_):
            raise LeftToSpark(f"{value.type} is taken for {type_}")
        return self._value(Converted(value.operand, type_), type_, wanted.bits)

    def _cast(self, node: exp.Cast) -> Value:
        if node.args.get("safe"):
            raise LeftToSpark(f"{shown(node)} hides what fails")
        if is_text(node.this.unnest()):
            return typed_literal(node)
        name = node.to.sql(dialect="spark").lower().replace(" ", "")
        digits = decimal_digits(name.replace(",", ", ")) or ((10, 0) if name == "decimal" else None)
        target = DecimalType(*digits) if digits else _CASTS.get(name)
        if target is None:
            raise LeftToSpark(f"{shown(node)}: a cast to {name}")
        value, bits = self.value(node.this), _BITS.get(name, 64)
        if value.type is None:
            return Value(Constant(None, target), target, bits)
        if value.type == target and (target is not ColumnType.INT or value.bits <= bits):
            return Value(value.operand, target, bits)
        if value.constant is not None:
            value = Value(self._as_column(value, node), value.type, value.bits)
        if target is ColumnType.INT and value.type is ColumnType.INT:
            return self._value(Converted(value.operand, target, bits), target, bits)
        if not converts(value.type, target) and not casts(value.type, target):
            raise LeftToSpark(f"{shown(node)}: Spark rounds, or reads, {value.type} as {target}")
        return self._value(Converted(value.operand, target, bits), target, bits)

    def _case(self, node: exp.Case) -> Value:
        cases = [(branch.this, branch.args["true"]) for branch in node.args["ifs"]]
        if node.this is not None:
            cases = [(exp.EQ(this=node.this.copy(), expression=when.copy()), then) for when, then in cases]
        return self._choice(cases, node.args.get("default"))

    def _choice(self, cases: Sequence[tuple[exp.Expr, exp.Expr]], otherwise: exp.Expr | None) -> Value:
        conditions = [self.condition(when) for when, _ in cases]
        values = [self.value(then) for _, then in cases]
        values.append(Value(Constant(None, ColumnType.BOOL), None) if otherwise is None else self.value(otherwise))
        return self._chosen(conditions, values)

    def _chosen(self, conditions: Sequence[Condition], values: Sequence[Value]) -> Value:
        both = common(values)
        operands = [self._as(value, both).operand for value in values]
        assert both.type is not None
        step = Choice(tuple(zip(conditions, operands[:-1], strict=True)), operands[-1], both.type)
        return self._value(step, both.type, both.bits)

    def _coalesced(self, nodes: Sequence[exp.Expr], node: exp.Expr) -> Value:
        values = [self.value(child) for child in nodes]
        both = common(values)
        assert both.type is not None
        step = FirstKnown(tuple(self._as(value, both).operand for value in values), both.type)
        return self._value(step, both.type, both.bits)

    def _null_if(self, nodes: Sequence[exp.Expr], node: exp.Expr) -> Value:
        first, second = nodes
        value = self.value(first)
        return self._chosen([self._compared("=", first, second)], [Value(Constant(None, ColumnType.BOOL), None), value])

    def _time_part(self, nodes: Sequence[exp.Expr], node: exp.Expr) -> Value:
        part, (value,) = _PARTS[name_of(node)], [self.value(child) for child in nodes]
        of_days = part in _OF_DAYS and value.type is ColumnType.DATE
        if value.constant is not None or not (of_days or value.type is ColumnType.TIMESTAMP):
            raise LeftToSpark(f"{shown(node)}: {value.type} is taken for a time")
        return self._value(TimePart(value.operand, part), ColumnType.INT, 32)

    def _day(self, nodes: Sequence[exp.Expr], node: exp.Expr) -> Value:
        value = self.value(nodes[0])
        if len(nodes) != 1 or value.constant is not None or value.type not in TIMES:
            raise LeftToSpark(f"{shown(node)}: a text is read")
        return (
            self._as(value, Value("", ColumnType.DATE))
            if value.type is ColumnType.DATE
            else self._value(Converted(value.operand, ColumnType.DATE), ColumnType.DATE)
        )

    def _length(self, nodes: Sequence[exp.Expr], node: exp.Expr) -> Value:
        value = self.value(nodes[0])
        if len(nodes) != 1 or value.type is not ColumnType.STRING or value.constant is not None:
            raise LeftToSpark(f"{shown(node)}: no text")
        return self._value(Length(value.operand), ColumnType.INT, 32)

    def _absolute(self, nodes: Sequence[exp.Expr], node: exp.Expr) -> Value:
        value = self.value(nodes[0])
        if value.constant is not None or value.type is None or not is_number(value.type):
            raise LeftToSpark(f"{shown(node)} is no number")
        below = Compare(self._as_column(value, node), "<", 0)
        turned = self._value(Negated(value.operand, value.type, value.bits), value.type, value.bits)
        return self._chosen([below], [turned, value])

    def _modulo(self, nodes: Sequence[exp.Expr], node: exp.Expr) -> Value:
        left, right = (self.value(child) for child in nodes)
        return self._arithmetic("%", left, right, node)


_COMPARED = (
    ColumnType.INT,
    ColumnType.FLOAT,
    ColumnType.STRING,
    ColumnType.BOOL,
    ColumnType.DATE,
    ColumnType.TIMESTAMP,
)
_CALLS: dict[str, Callable[[Steps, Sequence[exp.Expr], exp.Expr], Value]] = {
    **dict.fromkeys(("coalesce", "ifnull", "nvl"), Steps._coalesced),
    **dict.fromkeys(("date", "to_date"), Steps._day),
    **dict.fromkeys(("length", "char_length", "character_length"), Steps._length),
    **dict.fromkeys(_PARTS, Steps._time_part),
    "abs": Steps._absolute,
    "mod": Steps._modulo,
    "nullif": Steps._null_if,
}
