"""Rows as a projection has them (model/expression.py): steps are computed batch by batch, and a condition filters.

A value that a step cannot compute exactly is null, and marked; marks go where values go. What is marked at the end, of
a row that counts, is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tidemark.arrow.kernels.aggregates.instants import DAY, micros_of
from tidemark.arrow.kernels.aggregates.sums import Overflowed
from tidemark.arrow.kernels.aggregates.values import ordered
from tidemark.arrow.rows.arrays import bools_of, of_numbers, scalar_of
from tidemark.arrow.rows.columns import Bools, Ints, contiguous, valid, values
from tidemark.arrow.rows.condition import evaluated, holds
from tidemark.arrow.rows.schema import arrow_type
from tidemark.model.collection import MAX_PRECISION, ColumnType, DecimalType
from tidemark.model.condition.tree import And, Condition, Not, Or, columns
from tidemark.model.expression import (
    Arithmetic,
    Choice,
    Constant,
    Converted,
    FirstKnown,
    Length,
    Matches,
    Negated,
    Operand,
    Order,
    Projection,
    Step,
    TimePart,
    Truth,
    looks_at,
)

_MOST_PRODUCT = 2.0**62
"""Products of whole numbers that are below, computed as floats, fit into 64 bits, however these are rounded."""
_FIRST_YEAR, _LAST_YEAR = -62_135_596_800_000_000, 253_402_300_799_999_999
"""The years 1 to 9999, in microseconds: of these all calendars say the same."""
_Numbers = npt.NDArray[Any]


def projected(rows: pa.RecordBatch, rule: Projection | None) -> pa.RecordBatch:
    """The rows that a projection keeps, with its columns besides their own. Raises Overflowed where one of them has a
    value that is not computed exactly."""
    if rule is None:
        return rows
    tested = columns(rule.where)
    every = _Computed(rows)
    every.add(rule, rule.needed_for(tested))
    every.check(every.wrong_in(rule.where))
    keep = holds(rule.where, every.batch)
    filtered = _Computed(rows if keep.true_count == rows.num_rows else rows.filter(keep))
    filtered.add(rule, rule.steps)
    for name in rule.steps:
        filtered.check(filtered.wrong(name) if name in rule.shown else None)
    return filtered.batch.select([*rows.schema.names, *rule.shown])


class _Computed:
    """A batch to which columns are added, and where these could not be computed."""

    def __init__(self, rows: pa.RecordBatch) -> None:
        self.batch = rows
        self._wrong: dict[str, Bools] = {}

    def add(self, rule: Projection, names: Iterable[str]) -> None:
        """Add the columns of some steps, in order."""
        for name in names:
            step = rule.steps[name]
            column, wrong = _COMPUTE[type(step)](step, self)
            if not isinstance(step, Truth | Choice | FirstKnown):  # these say themselves what they take
                wrong = _either(wrong, *(self.wrong(operand) for operand in looks_at(step)))
            if wrong is not None and wrong.any():
                self._wrong[name] = wrong
            self.batch = self.batch.append_column(name, column)

    def check(self, wrong: Bools | None) -> None:
        """Raise Overflowed if something is wrong."""
        if wrong is not None and wrong.any():
            raise Overflowed("a value of an expression is beyond its type, or divided by zero")

    def column(self, operand: Operand) -> pa.Array:
        """The values of an operand."""
        if isinstance(operand, str):
            return contiguous(self.batch.column(operand))
        return pa.repeat(_scalar(operand), self.batch.num_rows)

    def wrong(self, operand: Operand) -> Bools | None:
        """Where an operand could not be computed; None: nowhere."""
        return self._wrong.get(operand) if isinstance(operand, str) else None

    def wrong_in(self, condition: Condition) -> Bools | None:
        """Where a condition asks for what could not be computed: AND asks no further where it is false already, OR
        where it is true."""
        if not self._wrong:
            return None
        match condition:
            case And(conditions) | Or(conditions):
                settled, open_ = isinstance(condition, Or), np.ones(self.batch.num_rows, bool)
                wrong: Bools | None = None
                for child in conditions:
                    wrong = _either(wrong, _both(open_, self.wrong_in(child)))
                    answer = evaluated(child, self.batch)
                    open_ &= ~bools_of(pc.equal(answer, settled).fill_null(False))
                return wrong
            case Not(inner):
                return self.wrong_in(inner)
        return _either(*(self.wrong(name) for name in columns(condition)))


_Answer = tuple[pa.Array, Bools | None]


def _arithmetic(step: Arithmetic, at: _Computed) -> _Answer:
    left, right = at.column(step.left), at.column(step.right)
    if isinstance(step.type, DecimalType):
        return _DECIMALS[step.op](left, right).cast(arrow_type(step.type)), None
    missing = _missing(left, right)
    first, second = values(left), values(right)
    if step.type is ColumnType.FLOAT:
        numbers, wrong = _floats(step.op, first.astype(np.float64), second.astype(np.float64))
    else:
        numbers, wrong = _whole(step.op, first.astype(np.int64), second.astype(np.int64))
        wrong = wrong | _beyond(numbers, step.bits)
    return _known(numbers, wrong, missing)


def _whole(op: str, left: Ints, right: Ints) -> tuple[Ints, Bools]:
    """Whole numbers, and where what comes out is beyond 64 bits."""
    with np.errstate(all="ignore"):
        match op:
            case "+":
                result = left + right
                return result, ((left ^ result) & (right ^ result)) < 0
            case "-":
                result = left - right
                return result, ((left ^ right) & (left ^ result)) < 0
            case "*":
                return left * right, np.abs(left.astype(np.float64) * right.astype(np.float64)) >= _MOST_PRODUCT
        zero = right == 0
        by = np.where(zero | (right == -1), 1, right)
        if op == "%":
            return np.where(right == -1, 0, np.fmod(left, by)), zero
        quotient = (left - np.fmod(left, by)) // by
        return np.where(right == -1, -left, quotient), zero | ((right == -1) & (left == np.iinfo(np.int64).min))


def _floats(op: str, left: _Numbers, right: _Numbers) -> tuple[_Numbers, Bools]:
    """Floats, and where one is divided by zero."""
    with np.errstate(all="ignore"):
        match op:
            case "+":
                return left + right, np.zeros(len(left), bool)
            case "-":
                return left - right, np.zeros(len(left), bool)
            case "*":
                return left * right, np.zeros(len(left), bool)
            case "/":
                return left / right, right == 0
        return np.fmod(left, right), right == 0


def _negated(step: Negated, at: _Computed) -> _Answer:
    column = at.column(step.of)
    if isinstance(step.type, DecimalType):
        return pc.negate(column), None
    numbers, missing = values(column), _missing(column)
    if step.type is ColumnType.FLOAT:
        return of_numbers(-numbers, missing), None
    with np.errstate(all="ignore"):
        negated = -numbers
    return _known(negated, _beyond(negated, step.bits) | (numbers == np.iinfo(np.int64).min), missing)


def _converted(step: Converted, at: _Computed) -> _Answer:
    column, target = at.column(step.of), arrow_type(step.type)
    if isinstance(step.type, DecimalType):
        return _as_decimals(column, step.type)
    missing = _missing(column)
    match step.type:
        case ColumnType.INT:
            return _known(values(column), _beyond(values(column), step.bits), missing)
        case ColumnType.FLOAT:
            return of_numbers(values(column).astype(np.float64), missing), None
        case ColumnType.TIMESTAMP:
            return of_numbers(micros_of(column), missing).cast(target), None
        case ColumnType.DATE:
            return of_numbers((values(column) // DAY).astype(np.int32), missing).cast(target), None
    return column.cast(target), None


def _as_decimals(column: pa.Array, decimal_type: DecimalType) -> _Answer:
    if pa.types.is_decimal(column.type):
        return column.cast(arrow_type(decimal_type)), None
    numbers, missing = values(column), _missing(column)
    beyond = 10 ** min(decimal_type.whole_digits, 18)
    wrong = (
        np.zeros(len(numbers), bool) if decimal_type.whole_digits > 18 else (numbers <= -beyond) | (numbers >= beyond)
    )
    fitting, wrong = _known(np.where(wrong, 0, numbers), wrong, missing)
    # Arrow asks for as many digits as any whole number may have.
    units = fitting.cast(pa.decimal128(MAX_PRECISION, 0)).cast(pa.decimal256(76, decimal_type.scale))
    return units.cast(arrow_type(decimal_type)), wrong


def _time_part(step: TimePart, at: _Computed) -> _Answer:
    column = at.column(step.of)
    micros, missing = micros_of(column), _missing(column)
    wrong = (micros < _FIRST_YEAR) | (micros > _LAST_YEAR)
    if step.part in _OF_DAYS:
        days = of_numbers(np.where(wrong, 0, micros // DAY).astype(np.int32)).cast(pa.date32())
        part = values(_OF_DAYS[step.part](days).cast(pa.int64()))
    else:
        every, many = _OF_TIMES[step.part]
        part = micros // every % many
    return _known(part, wrong, missing)


def _length(step: Length, at: _Computed) -> _Answer:
    return pc.utf8_length(at.column(step.of)).cast(pa.int64()), None


def _order(step: Order, at: _Computed) -> _Answer:
    left, right = at.column(step.left), at.column(step.right)
    if pa.types.is_string(left.type) or pa.types.is_decimal(left.type):
        above, below = pc.greater(left, right).cast(pa.int64()), pc.less(left, right).cast(pa.int64())
        return pc.subtract(above, below), None
    first, second = ordered(left)[0], ordered(right)[0]
    return of_numbers((first > second).astype(np.int64) - (first < second), _missing(left, right)), None


def _matches(step: Matches, at: _Computed) -> _Answer:
    return _MATCHES[step.place](at.column(step.of), step.text), None


def _truth(step: Truth, at: _Computed) -> _Answer:
    return evaluated(step.condition, at.batch), at.wrong_in(step.condition)


def _choice(step: Choice, at: _Computed) -> _Answer:
    open_ = np.ones(at.batch.num_rows, bool)
    wrong: Bools | None = None
    taken, results = [], []
    for condition, value in step.cases:
        wrong = _either(wrong, _both(open_, at.wrong_in(condition)))
        met = holds(condition, at.batch)
        taken.append(met)
        results.append(at.column(value))
        wrong = _either(wrong, _both(open_ & bools_of(met), at.wrong(value)))
        open_ &= ~bools_of(met)
    wrong = _either(wrong, _both(open_, at.wrong(step.otherwise)))
    otherwise = at.column(step.otherwise)
    if not taken:
        return otherwise, wrong
    which = pa.StructArray.from_arrays(taken, [str(number) for number in range(len(taken))])
    return pc.case_when(which, *results, otherwise), wrong


def _first_known(step: FirstKnown, at: _Computed) -> _Answer:
    open_ = np.ones(at.batch.num_rows, bool)
    wrong: Bools | None = None
    operands = []
    for value in step.of:
        column = at.column(value)
        operands.append(column)
        wrong = _either(wrong, _both(open_, at.wrong(value)))
        open_ &= bools_of(column.is_null())
    return pc.coalesce(*operands), wrong


def _scalar(constant: Constant) -> pa.Scalar:
    value: Any = constant.value
    if value is not None and constant.type is ColumnType.FLOAT:
        value = float(value)
    return scalar_of(value, arrow_type(constant.type))


def _known(numbers: _Numbers, wrong: Bools, missing: Bools | None) -> _Answer:
    """Numbers as a column, null where they are missing or wrong; and where they are wrong."""
    if missing is not None:
        wrong = wrong & ~missing
    return of_numbers(numbers, _either(wrong, missing)), wrong


def _beyond(numbers: Ints, bits: int) -> Bools:
    most = 1 << (bits - 1)
    return np.zeros(len(numbers), bool) if bits == 64 else (numbers < -most) | (numbers >= most)


def _missing(*arrays: pa.Array) -> Bools | None:
    validities = [valid(column) for column in arrays]
    return _either(*(None if validity is None else ~validity for validity in validities))


def _either(*masks: Bools | None) -> Bools | None:
    combined: Bools | None = None
    for mask in masks:
        if mask is not None:
            combined = mask if combined is None else combined | mask
    return combined


def _both(first: Bools, second: Bools | None) -> Bools | None:
    return None if second is None else first & second


_DECIMALS: dict[str, Callable[..., pa.Array]] = {"+": pc.add, "-": pc.subtract, "*": pc.multiply}
_OF_DAYS: dict[str, Callable[..., pa.Array]] = {
    "year": pc.year,
    "quarter": pc.quarter,
    "month": pc.month,
    "day": pc.day,
}
_OF_TIMES = {"hour": (3_600_000_000, 24), "minute": (60_000_000, 60), "second": (1_000_000, 60)}
"""How many microseconds each takes, and how many there are."""
_MATCHES: dict[str, Callable[..., pa.Array]] = {
    "start": pc.starts_with,
    "end": pc.ends_with,
    "anywhere": pc.match_substring,
}
_COMPUTE: dict[type[Step], Callable[[Any, _Computed], _Answer]] = {
    Arithmetic: _arithmetic,
    Negated: _negated,
    Converted: _converted,
    TimePart: _time_part,
    Length: _length,
    Order: _order,
    Matches: _matches,
    Truth: _truth,
    Choice: _choice,
    FirstKnown: _first_known,
}
