"""What a row becomes before anything is computed of it: columns that are computed of others, one after the other, and a
condition. Whatever a definition says of single rows becomes this, and the kernels see columns only.

An expression is split into *steps*. Each computes one column of columns that are there; a condition of the tree
of conditions (model/condition/tree.py) looks at columns, so that an operand of it which is none is a step before it.

    sum(CASE WHEN late - early > 15 THEN price * 2 ELSE 0 END), where date(at) = '2013-01-02'

    _x0 = date(at)                                    where   _x0 = 2013-01-02
    _x1 = late - early
    _x2 = price * 2
    _x3 = _x2 if _x1 > 15, else 0                     sum(_x3)

What a step cannot compute exactly for a row that counts (a sum that is beyond 64 bits, a division by zero) is an error
of all: Spark says then what comes of it. In a branch that is not taken, and of a row that does not count, it is none.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal

from tidemark.model.collection import ValueType
from tidemark.model.condition.tree import And, Condition, columns


@dataclass(frozen=True)
class Constant:
    """The same value for each row; None is null. Times and dates are whole numbers, as columns hold them; a float is
    what `float` makes of the number."""

    value: bool | int | Decimal | str | None
    type: ValueType


ALL = And(())
"""The condition that keeps all rows."""
Operand = str | Constant
"""A column, by its name, or a constant."""


@dataclass(frozen=True)
class Arithmetic:
    """`left op right`: op is one of + - * / % div. Both have the `type`, but for decimals, of which it is the exact
    type of the result, and for `/` of whole numbers, which is a float. What is beyond `bits` bits is an error, and so
    is a division by zero."""

    op: str
    left: Operand
    right: Operand
    type: ValueType
    bits: int = 64


@dataclass(frozen=True)
class Negated:
    """`-of`."""

    of: Operand
    type: ValueType
    bits: int = 64


@dataclass(frozen=True)
class Converted:
    """A value as one of another type that holds it exactly: a whole number as a decimal or the float next to it, a
    decimal as one with more digits, a date as the timestamp of its midnight in UTC, a timestamp as the date it is in
    there. A whole number that is beyond `bits` bits, or has too many digits for a decimal, is an error."""

    of: Operand
    type: ValueType
    bits: int = 64


@dataclass(frozen=True)
class TimePart:
    """A field of a date or a timestamp in UTC: year, quarter, month, day, hour, minute or second."""

    of: Operand
    part: str


@dataclass(frozen=True)
class Length:
    """How many characters a text has."""

    of: Operand


@dataclass(frozen=True)
class Order:
    """-1, 0 or 1, as the left value is less than, equal to or greater than the right one, which has the same type, or
    both are decimals; null where either is. A NaN equals itself and is greater than all floats."""

    left: Operand
    right: Operand


@dataclass(frozen=True)
class Matches:
    """Whether a text begins with, ends with or contains another: `place` is start, end or anywhere."""

    of: Operand
    place: str
    text: str


@dataclass(frozen=True)
class Truth:
    """A condition as a value: true, false, or null where it is unknown."""

    condition: Condition


@dataclass(frozen=True)
class Choice:
    """The value of the first case whose condition holds, else `otherwise`; all have the `type`."""

    cases: tuple[tuple[Condition, Operand], ...]
    otherwise: Operand
    type: ValueType


@dataclass(frozen=True)
class FirstKnown:
    """The first of some values of a `type` that is not null (COALESCE)."""

    of: tuple[Operand, ...]
    type: ValueType


Step = Arithmetic | Negated | Converted | TimePart | Length | Order | Matches | Truth | Choice | FirstKnown


@dataclass(frozen=True)
class Projection:
    """What rows become: those for which `where` is true, with the columns `shown`, which some of the `steps` give, and
    their types. A step looks at columns of the rows and of steps before it."""

    steps: Mapping[str, Step]
    shown: Mapping[str, ValueType]
    where: Condition = ALL

    def needed_for(self, names: Iterable[str]) -> list[str]:
        """The steps, in order, that some columns need, or that are these."""
        wanted = set(names)
        for name in reversed(list(self.steps)):
            if name in wanted:
                wanted.update(looks_at(self.steps[name]))
        return [name for name in self.steps if name in wanted]

    def sources(self, names: Iterable[str]) -> tuple[str, ...]:
        """The columns that rows must have, to be kept or left out and to have the columns `names` then."""
        wanted = [*columns(self.where), *names]
        found = dict.fromkeys(wanted)
        for step in self.needed_for(wanted):
            found.update(dict.fromkeys(looks_at(self.steps[step])))
        return tuple(name for name in found if name not in self.steps)


def looks_at(step: Step) -> Iterator[str]:
    """The columns that a step is computed of."""
    for operand in _operands(step):
        if isinstance(operand, str):
            yield operand
    match step:
        case Truth(condition):
            yield from columns(condition)
        case Choice(cases):
            for condition, _ in cases:
                yield from columns(condition)


def _operands(step: Step) -> tuple[Operand, ...]:
    match step:
        case Arithmetic() | Order():
            return step.left, step.right
        case Choice():
            return (*(value for _, value in step.cases), step.otherwise)
        case FirstKnown():
            return step.of
        case Truth():
            return ()
        case _:
            return (step.of,)
