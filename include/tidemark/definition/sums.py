"""Aggregates written so that they do not depend on the order of rows: sums and averages of floats, averages of whole
numbers, and which of 0.0 and -0.0 is the largest."""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp

from tidemark.definition.dialect import place, shown
from tidemark.definition.exact_sum import (
    EXACT_SUM,
    HIGHEST_BIT,
    INFINITY,
    LIMB_BITS,
    LIMBS,
    LOWEST_BIT,
    MINUS_INFINITY,
    NOT_A_NUMBER,
)
from tidemark.definition.functions import MOMENTS, is_aggregate, name_of, windowed, with_filter
from tidemark.definition.recipe import InputShape
from tidemark.definition.refusal import refused
from tidemark.definition.relations import types_of
from tidemark.definition.types import FLOATS, WHOLE_NUMBERS, is_number, type_of

BIG = "decimal(20, 0)"
"""What a whole number is added up as, for an average: no such sum is too large."""
_ORDERED = frozenset({"max", "min", "median", "percentile"})


def exact(query: exp.Query, shapes: Mapping[str, InputShape]) -> exp.Query:
    """A resolved query with its sums and averages written exactly. Raises InvalidUsage where they cannot be: in
    windows, of distinct floats, of what has no known type, and for aggregates that Spark has in floats only."""
    query = query.copy()
    for select in list(query.find_all(exp.Select)):
        types = types_of(select, shapes)
        for node in list(select.find_all(exp.Func)):
            if node.parent_select is select and is_aggregate(node):
                _written_exactly(node, types)
    return query


def distinct_of(node: exp.Expr) -> tuple[exp.Expr, bool]:
    """The argument of an aggregate that has one, and whether it is distinct."""
    one = node.expressions[0]
    return (one.expressions[0], True) if isinstance(one, exp.Distinct) else (one, False)


def is_big(node: exp.Expr) -> bool:
    """Whether an expression is another one as BIG."""
    return isinstance(node, exp.Cast) and bool(node.to == exp.DataType.build(BIG))


def _written_exactly(node: exp.Expr, types: Mapping[tuple[str, str], str]) -> None:
    name = name_of(node)
    if name in MOMENTS:
        raise refused(
            f"calls {shown(node)}{place(node)}, which Spark computes in floats in any order; compute it from sums of "
            "decimals: sum(x), sum(x * x) and count(x) of x as CAST(… AS decimal(18, 6))"
        )
    if name in _ORDERED and node.expressions:
        of, distinct = distinct_of(node)
        if type_of(of, types) in FLOATS:
            of.replace(exp.Add(this=exp.paren(of.copy()), expression=_double(0.0)))  # -0.0 becomes 0.0
        return
    if name not in ("sum", "avg", "mean"):
        return
    of, distinct = distinct_of(node)
    type_ = type_of(of, types)
    what = f"calls {shown(node)}{place(node)}"
    if not is_number(type_):
        raise refused(
            f"{what} of what is not known to be a number; write CAST({shown(of)} AS double), bigint or decimal(18, 6)"
        )
    if type_ in FLOATS and (distinct or windowed(node)):
        where = "of distinct floats" if distinct else "of floats in a window"
        raise refused(f"{what}, {where}, which depends on their order; write CAST({shown(of)} AS decimal(18, 6))")
    if type_ in FLOATS:
        _replace(node, _float_sum(node, of) if name == "sum" else _average(_float_sum(node, of), node))
    elif type_ in WHOLE_NUMBERS and name != "sum":
        total = _like(node, "SUM", exp.cast(of.copy(), BIG), distinct)
        _replace(node, _average(exp.cast(total, "double"), node))


def _replace(node: exp.Expr, new: exp.Expr) -> None:
    """A new expression for an aggregate, its FILTER and its window."""
    old = windowed(node) or with_filter(node)
    old.replace(exp.paren(new))


def _like(node: exp.Expr, name: str, of: exp.Expr, distinct: bool = False) -> exp.Expr:
    """Another aggregate with the FILTER and the window of this one."""
    new: exp.Expr = exp.Anonymous(this=name, expressions=[exp.Distinct(expressions=[of]) if distinct else of])
    if isinstance(filtered := with_filter(node), exp.Filter):
        new = exp.Filter(this=new, expression=filtered.expression.copy())
    if window := windowed(node):
        around = window.copy()
        around.set("this", new)
        new = around
    return new


def _average(total: exp.Expr, node: exp.Expr) -> exp.Expr:
    of, distinct = distinct_of(node)
    count = _like(node, "COUNT", of.copy(), distinct)
    return exp.Div(this=total, expression=exp.Anonymous(this="NULLIF", expressions=[count, exp.Literal.number(0)]))


def _float_sum(node: exp.Expr, of: exp.Expr) -> exp.Expr:
    value = exp.cast(of.copy(), "double")
    fits = exp.and_(
        exp.LT(this=_call("ABS", value), expression=_power(HIGHEST_BIT)),
        exp.EQ(this=exp.Mod(this=value.copy(), expression=_power(LOWEST_BIT)), expression=_double(0.0)),
    )
    fitting = (
        exp.case().when(value.copy().is_(exp.null()), exp.null()).when(fits.copy(), value.copy()).else_(_double(0.0))
    )
    limbs = [_like(node, "SUM", _limb(fitting, at)) for at in range(LIMBS)]
    finite = exp.LT(this=_call("ABS", value), expression=_infinity(""))
    rest = exp.case().when(exp.and_(finite, exp.not_(fits)), value.copy())
    special = (
        exp.case()
        .when(_call("ISNAN", value), exp.Literal.number(NOT_A_NUMBER))
        .when(exp.EQ(this=value.copy(), expression=_infinity("")), exp.Literal.number(INFINITY))
        .when(exp.EQ(this=value.copy(), expression=_infinity("-")), exp.Literal.number(MINUS_INFINITY))
    )
    return exp.Anonymous(
        this=EXACT_SUM,
        expressions=[
            exp.Anonymous(this="ARRAY", expressions=limbs),
            _like(node, "COLLECT_LIST", rest),
            _like(node, "BIT_OR", exp.cast(special, "bigint")),
        ],
    )


def _limb(value: exp.Expr, at: int) -> exp.Expr:
    """The bits of a float from one place up to another: remainders and products with powers of two are exact."""
    lowest = LOWEST_BIT + LIMB_BITS * at
    below = (
        exp.Mod(this=exp.paren(value.copy()), expression=_power(lowest + LIMB_BITS)) if at < LIMBS - 1 else value.copy()
    )
    return exp.cast(exp.Mul(this=exp.paren(below), expression=_power(-lowest)), "bigint")


def _call(name: str, of: exp.Expr) -> exp.Expr:
    return exp.Anonymous(this=name, expressions=[of.copy()])


def _power(bits: int) -> exp.Expr:
    return _double(2.0**bits)


def _double(value: float) -> exp.Expr:
    return exp.cast(exp.Literal.string(repr(value)), "double")


def _infinity(sign: str) -> exp.Expr:
    return exp.cast(exp.Literal.string(f"{sign}Infinity"), "double")
