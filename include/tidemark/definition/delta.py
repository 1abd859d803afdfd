"""Groups of counts, sums and averages, grown by what changed: nothing but the changes and the groups' rows is read.

Only where that is exact: sums of whole numbers and decimals. A group keeps, in hidden columns where none of its own
columns is the same, how many rows it has, and for each sum how many values it adds up and, for an average, the sum.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from tidemark.definition.dialect import text_of
from tidemark.definition.functions import is_aggregate, name_of, own_aggregates, with_filter
from tidemark.definition.keys import is_plain
from tidemark.definition.recipe import CURRENT, DELTA, DIFF, DeltaPlan, InputShape, MeanColumn, SumColumn
from tidemark.definition.relations import types_of
from tidemark.definition.rows import not_by_row, source_of_changes
from tidemark.definition.sums import BIG, distinct_of, is_big
from tidemark.definition.types import WHOLE_NUMBERS, decimal_digits, is_decimal, type_of
from tidemark.model.collection import Column, ColumnType, DecimalType
from tidemark.model.decimals import SUM_DIGITS

ROWS = "_rows"
"""The hidden column that counts a group's rows."""
_GROWN = "_grown"
_KEY = re.compile(r"k\d+", re.IGNORECASE)
"""What the keys of groups are called."""
_MAX_PRECISION, _MAX_DIGITS = 27, 22


class NoDelta(Exception):
    """A query whose groups must be recomputed; the message says why, to people."""


@dataclass(frozen=True)
class _Part:
    """A number that a group adds up: as it is written in the query, by how much a change adds to it, and its type."""

    whole: exp.Expr
    change: exp.Expr
    type: str


@dataclass(frozen=True)
class Delta:
    """What `ByKey` says of a delta; `query` is the resolved query with hidden columns behind its own: each with the
    aggregate that it is, or 0 where that is null."""

    query: exp.Select
    hidden: tuple[tuple[Column, exp.Expr], ...]
    delta: str
    sums: tuple[str, ...]
    grown: str
    delta_plan: DeltaPlan | None


def delta_of(query: exp.Query, grouped_by: Sequence[str], shapes: Mapping[str, InputShape]) -> Delta:
    """The delta of a resolved query, whose groups are distinguished by its columns `grouped_by`. Raises NoDelta."""
    if not isinstance(query, exp.Select):
        raise NoDelta(f"{type(query).__name__.upper()} compares rows with all others")
    select = distinct_as_groups(query.copy())
    _check(select)
    columns = {column.alias_or_name: column.unalias() for column in select.selects}
    keys = {text_of(columns[name]): f"k{at}" for at, name in enumerate(grouped_by)}
    if clash := next((name for name in columns if name not in grouped_by and _KEY.fullmatch(name)), None):
        raise NoDelta(f"a column is called {clash}, as a group's keys are where sums are added up")
    missing = [key for key in select.args["group"].expressions if key.find(exp.Column) and text_of(key) not in keys]
    if missing:
        raise NoDelta(f"it groups by {missing[0].sql()}, which is none of its columns")
    return _Growth(
        select, columns, keys, dict(zip(grouped_by, keys.values(), strict=True)), types_of(select, shapes)
    ).delta()


def distinct_as_groups(select: exp.Select) -> exp.Select:
    """DISTINCT as the GROUP BY that it is. Raises NoDelta where it compares groups."""
    if select.args.get("distinct") and not select.args.get("group"):
        if any(own_aggregates(column) or column.find(exp.Window) for column in select.selects):
            raise NoDelta("DISTINCT of sums compares groups with each other")
        select.set("distinct", None)
        keys = [column.unalias().copy() for column in select.selects if column.find(exp.Column)]
        select.set("group", exp.Group(expressions=keys))
    return select


def _check(select: exp.Select) -> None:
    if select.args.get("group") is None:
        raise NoDelta("only what GROUP BY or DISTINCT brings together can be added up")
    if select.args.get("having"):
        raise NoDelta("a group that HAVING leaves out is not kept, so nothing can be added to it")
    if select.args.get("distinct") or any(column.find(exp.Window) for column in select.selects):
        raise NoDelta("groups are compared with each other")
    source = select.copy()
    source.set("group", None)
    source.set("expressions", [exp.alias_(exp.Literal.number(1), "one")])
    if why := not_by_row(source):
        raise NoDelta(f"what it groups is not by row: {why}")


@dataclass
class _Growth:
    """The parts of a grouped select, and the queries that they make."""

    select: exp.Select
    shown: Mapping[str, exp.Expr]
    keys: Mapping[str, str]
    key_names: Mapping[str, str]
    types: Mapping[tuple[str, str], str]

    def __post_init__(self) -> None:
        self.parts: dict[str, _Part] = {}
        self.names: dict[str, str] = {}
        self.rows = self._part(_call("COUNT", exp.Star()), _diff(self.select), "bigint")

    def delta(self) -> Delta:
        finals = {name: self._final(node) for name, node in self.shown.items()}
        hidden = [name for name in self.names.values() if name.startswith("_")]
        ordered = sorted(self.names.items(), key=lambda item: item[1].startswith("_"))
        query = self.select.copy()
        for text, name in ordered:
            if name in hidden:
                query.select(exp.alias_(_from_zero(self.parts[text]), name), copy=False)
        parts = [(name, self.parts[text]) for text, name in ordered if name in hidden]
        columns = tuple((_column(name, part.type), part.whole) for name, part in parts)
        sums = tuple(name for _, name in ordered)
        return Delta(query, columns, self._changes(), sums, self._grown(finals, hidden), self._plain(hidden))

    def _plain(self, hidden: Sequence[str]) -> DeltaPlan | None:
        """The same without a query, where that is possible."""
        keys = [self.shown[name] for name in self.key_names]
        others = {name: node for name, node in self.shown.items() if name not in self.key_names}
        if not is_plain(self.select) or not all(isinstance(key, exp.Column) for key in keys):
            return None
        sums = [self._added(name, self.parts[text]) for text, name in self.names.items()]
        means = [self._mean(name, node) for name, node in others.items() if text_of(node) not in self.names]
        if None in sums or None in means:
            return None
        rest = tuple(filter(None, sums)), self.rows.name, tuple(filter(None, means))
        return DeltaPlan(tuple(key.name for key in keys), *rest)

    def _added(self, name: str, part: _Part) -> SumColumn | None:
        """How a part is added up, if it aggregates a column as it is."""
        if not isinstance(part.whole, exp.Func) or len(part.whole.expressions) != 1:
            return None
        (operand,), count = part.whole.expressions, name_of(part.whole) == "count"
        if count and isinstance(operand, exp.Star | exp.Literal):
            return SumColumn(name)
        hidden = name.startswith("_")
        operand = operand.this if hidden and not count and is_big(operand) else operand
        if not isinstance(operand, exp.Column):
            return None
        if count:
            return SumColumn(name, operand.name, count=True)
        values = None if hidden else self.names.get(text_of(_call("COUNT", operand.copy())))
        return SumColumn(name, operand.name, null_without=values, type=_column(name, part.type).type)

    def _mean(self, name: str, node: exp.Expr) -> MeanColumn | None:
        """How a mean is computed from sums, if it aggregates a column as it is."""
        if not isinstance(node, exp.Func) or name_of(node) not in ("avg", "mean"):
            return None
        operand = node.expressions[0]
        if not isinstance(operand, exp.Column):
            return None
        type_ = type_of(operand, self.types)
        digits = None if type_ in WHOLE_NUMBERS else decimal_digits(type_)
        total = self.names[text_of(_call("SUM", operand.copy() if digits else exp.cast(operand.copy(), BIG)))]
        result = DecimalType(digits[0] + 4, digits[1] + 4) if digits else ColumnType.FLOAT
        return MeanColumn(name, total, self.names[text_of(_call("COUNT", operand.copy()))], result)

    def _part(self, whole: exp.Expr, change: exp.Expr, type_: str) -> exp.Column:
        """The column of GROWN that holds a part: the group's own column that is the same, or a hidden one."""
        text = text_of(whole)
        if text not in self.parts:
            self.parts[text] = _Part(whole, change, type_)
            own = [name for name, node in self.shown.items() if text_of(node) == text]
            count = sum(name.startswith("_") for name in self.names.values())
            self.names[text] = own[0] if own else ROWS if not self.names else f"_part{count}"
        return exp.column(self.names[text], _GROWN)

    def _final(self, node: exp.Expr) -> exp.Expr:
        """A column of the query over GROWN."""
        if (key := self.keys.get(text_of(node))) is not None:
            return exp.column(key, _GROWN)
        if is_aggregate(node) and isinstance(node, exp.Func):
            return exp.paren(self._of_aggregate(node))
        if isinstance(node, exp.Filter):
            return self._final(node.this)
        if isinstance(node, exp.Column):
            raise NoDelta(f"{node.sql()} is neither grouped by nor added up")
        new = node.copy()
        for old, part in zip(node.iter_expressions(), list(new.iter_expressions()), strict=True):
            part.replace(self._final(old))
        return new

    def _of_aggregate(self, node: exp.Func) -> exp.Expr:
        name = name_of(node)
        if name == "count":
            return self._count(node)
        if name == "count_if":
            return self._counted(node, node.expressions[0])
        if name not in ("sum", "avg", "mean"):
            raise NoDelta(f"{name} of a group cannot be computed from its changes")
        operand, distinct = distinct_of(node)
        if distinct:
            raise NoDelta(f"{name} of distinct values cannot be computed from a group's changes")
        type_ = type_of(operand, self.types)
        if type_ not in WHOLE_NUMBERS and not is_decimal(type_):
            raise NoDelta(f"{name} of floats is never subtracted")
        count = self._counted(node, operand.copy().is_(exp.null()).not_(), as_count=operand)
        if name == "sum":
            return _unless_none(count, self._sum(node, operand, type_))
        return self._average(node, operand, type_, count)

    def _count(self, node: exp.Func) -> exp.Expr:
        if any(isinstance(argument, exp.Distinct) for argument in node.expressions):
            raise NoDelta("a count of distinct values cannot be computed from a group's changes")
        if all(isinstance(argument, exp.Star | exp.Literal) for argument in node.expressions):
            return self.rows if not isinstance(with_filter(node), exp.Filter) else self._counted(node, exp.true())
        not_null = exp.and_(*(argument.copy().is_(exp.null()).not_() for argument in node.expressions))
        return self._part(
            with_filter(node),
            self._change(node, exp.case().when(not_null, _diff(self.select)).else_(_zero())),
            "bigint",
        )

    def _counted(self, node: exp.Func, where: exp.Expr, as_count: exp.Expr | None = None) -> exp.Column:
        """How many rows of a group there are where something is true."""
        whole = with_filter(node) if as_count is None else _again(node, _call("COUNT", as_count.copy()))
        return self._part(
            whole, self._change(node, exp.case().when(where.copy(), _diff(self.select)).else_(_zero())), "bigint"
        )

    def _sum(self, node: exp.Func, operand: exp.Expr, type_: str) -> exp.Expr:
        if type_ in WHOLE_NUMBERS:
            change = exp.Mul(this=_diff(self.select), expression=exp.cast(operand.copy(), "bigint"))
            return self._part(_again(node, _call("SUM", operand.copy())), self._change(node, change), "bigint")
        digits = decimal_digits(type_)
        if digits is None or digits[0] > _MAX_PRECISION:
            raise NoDelta(f"the digits of {operand.sql()} are not known to be few enough; CAST it as decimal(18, 2)")
        return self._decimal(node, operand, digits, f"decimal({digits[0] + SUM_DIGITS}, {digits[1]})")

    def _decimal(self, node: exp.Func, operand: exp.Expr, digits: tuple[int, int], total: str) -> exp.Expr:
        """The sum of decimals: a diff has as many digits as the product can hold besides."""
        diff = exp.cast(_diff(self.select), f"decimal({min(37 - digits[0], 18)}, 0)")
        change = exp.Mul(this=diff, expression=operand.copy())
        return self._part(_again(node, _call("SUM", operand.copy())), self._change(node, change), total)

    def _average(self, node: exp.Func, operand: exp.Expr, type_: str, count: exp.Expr) -> exp.Expr:
        if type_ in WHOLE_NUMBERS:
            total = self._decimal(node, exp.cast(operand.copy(), BIG), (20, 0), "decimal(30, 0)")
            return exp.Div(this=exp.cast(total.copy(), "double"), expression=_call("NULLIF", count.copy(), _zero()))
        digits = decimal_digits(type_)
        if digits is None or sum(digits) > _MAX_DIGITS:
            raise NoDelta(f"the digits of {operand.sql()} are not known to be few enough; CAST it as decimal(18, 2)")
        return _unless_none(count, quotient(self._sum(node, operand, type_), count, *digits))

    def _change(self, node: exp.Func, change: exp.Expr) -> exp.Expr:
        filtered = with_filter(node)
        if not isinstance(filtered, exp.Filter):
            return change
        return exp.case().when(filtered.expression.this.copy(), change)

    def _changes(self) -> str:
        """How much the groups of changed rows grew."""
        changed = self.select.copy()
        source_of_changes(changed.args["from_"].this, (DIFF,))
        keys = [exp.alias_(self.shown[name].copy(), key) for name, key in self.key_names.items()]
        sums = []
        for text, name in self.names.items():
            part = self.parts[text]
            sums.append(exp.alias_(_from_zero(replace(part, whole=_call("SUM", part.change))), name))
        changed.set("expressions", [*keys, *sums])
        changed.set("group", exp.Group(expressions=[self.shown[name].copy() for name in self.key_names]))
        for part_ in ("order", "sort", "cluster", "distribute"):
            changed.set(part_, None)
        return text_of(changed)

    def _grown(self, finals: Mapping[str, exp.Expr], hidden: Sequence[str]) -> str:
        """The groups' rows as they are to be."""
        keys: list[exp.Expr] = [exp.alias_(exp.column(key, DELTA), key) for key in self.key_names.values()]
        for text, name in self.names.items():
            type_ = self.parts[text].type
            before = _call("COALESCE", exp.column(name, CURRENT), exp.cast(_zero(), type_))
            total = exp.cast(exp.Add(this=before, expression=exp.column(name, DELTA)), type_)
            keys.append(exp.alias_(total, name))
        same = [
            exp.NullSafeEQ(this=exp.column(name, CURRENT), expression=exp.column(key, DELTA))
            for name, key in self.key_names.items()
        ]
        inner = exp.select(*keys).from_(DELTA).join(CURRENT, on=exp.and_(*same), join_type="left")
        group = _call(
            "CONCAT_WS",
            exp.Literal.string(", "),
            *(
                _call("COALESCE", exp.cast(exp.column(key, _GROWN), "string"), exp.Literal.string("null"))
                for key in self.key_names.values()
            ),
        )
        wrong = _call("RAISE_ERROR", _call("CONCAT", exp.Literal.string("fewer rows than none in the group "), group))
        rows = exp.case().when(exp.LT(this=self.rows.copy(), expression=_zero()), exp.cast(wrong, "boolean"))
        columns = [exp.alias_(final, name) for name, final in finals.items()]
        columns += [exp.alias_(exp.column(name, _GROWN), name) for name in hidden]
        whole = exp.select(*columns).from_(inner.subquery(_GROWN))
        return text_of(whole.where(rows.else_(exp.GT(this=self.rows.copy(), expression=_zero()))))


def _call(name: str, *arguments: exp.Expr) -> exp.Expr:
    return exp.Anonymous(this=name, expressions=[*arguments])


def _from_zero(part: _Part) -> exp.Expr:
    """A part, as what is stored and added: that of no values is 0, where a sum of none is null."""
    return exp.cast(_call("COALESCE", part.whole.copy(), _zero()), part.type)


def _zero() -> exp.Expr:
    return exp.Literal.number(0)


def _diff(select: exp.Select) -> exp.Expr:
    return exp.column(DIFF, select.args["from_"].this.alias_or_name)


def _again(node: exp.Func, new: exp.Expr) -> exp.Expr:
    """Another aggregate with the FILTER of this one."""
    filtered = with_filter(node)
    return exp.Filter(this=new, expression=filtered.expression.copy()) if isinstance(filtered, exp.Filter) else new


def _unless_none(count: exp.Expr, value: exp.Expr) -> exp.Expr:
    return exp.case().when(exp.EQ(this=count.copy(), expression=_zero()), exp.null()).else_(value.copy())


def quotient(total: exp.Expr, count: exp.Expr, precision: int, scale: int) -> exp.Expr:
    """A sum of decimals divided by their count and rounded half up to four more digits, as Spark's avg does: it rounds
    a quotient of decimals twice, so whole numbers are divided."""
    many = exp.cast(count.copy(), BIG)
    power = exp.cast(exp.Literal.string(str(10 ** (scale + 4))), f"decimal({scale + 5}, 0)")
    units = exp.cast(exp.Mul(this=total.copy(), expression=power), "decimal(38, 0)")
    left = exp.paren(exp.Mod(this=units, expression=many))
    whole = exp.cast(
        exp.Div(this=exp.paren(exp.Sub(this=units.copy(), expression=left)), expression=many.copy()),
        f"decimal({precision + 5}, 0)",
    )
    half = exp.GTE(
        this=exp.Mul(this=_call("ABS", left.copy()), expression=exp.Literal.number(2)), expression=many.copy()
    )
    sign = (
        exp.case()
        .when(exp.LT(this=left.copy(), expression=_zero()), exp.Literal.number(-1))
        .else_(exp.Literal.number(1))
    )
    up = exp.cast(exp.case().when(half, sign).else_(_zero()), "decimal(1, 0)")
    rounded = exp.cast(exp.Add(this=whole, expression=up), f"decimal({precision + 5}, 0)")
    digit = exp.cast(exp.Literal.string(f"0.{'0' * (scale + 3)}1"), f"decimal({scale + 4}, {scale + 4})")
    return exp.cast(exp.Mul(this=rounded, expression=digit), f"decimal({precision + 4}, {scale + 4})")


def _column(name: str, type_: str) -> Column:
    digits = decimal_digits(type_)
    return Column(name, DecimalType(*digits) if digits else ColumnType.INT)
