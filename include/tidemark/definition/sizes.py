"""Functions that make a large value of a few bytes, as repeat('x', 2000000000): what would be too large for an executor
is refused in the text where it can be seen there, and else raises for the row, before anything is made.

Without that the JVM runs out of memory and ends, which looks the same as a machine that is too small.
"""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp

from tidemark.definition.dialect import DefinitionSql, place, shown, text_of
from tidemark.definition.functions import name_of
from tidemark.definition.recipe import InputShape
from tidemark.definition.refusal import refused
from tidemark.definition.relations import types_of
from tidemark.definition.types import WHOLE_NUMBERS, type_of
from tidemark.definition.written_out import MAX_NODES

MOST_ELEMENTS = 1_000_000
"""Characters that a text is filled up to, and elements that an array is made of, for one row."""
MOST_BYTES = 16 * 2**20
"""Bytes of a text that is repeated, for one row."""
_COUNTS = {"array_repeat": 1, "lpad": 1, "repeat": 1, "rpad": 1, "space": 0}
"""Which argument says how many."""


def within_sizes(query: exp.Query, shapes: Mapping[str, InputShape]) -> exp.Query:
    """The resolved query, in which each such function raises for a row of which it would make too much.

    Raises InvalidUsage for a count that is too large whatever the rows are, and for bounds of a sequence whose type is
    not known.
    """
    made = [one for one in query.find_all(exp.Func, bfs=False) if name_of(one) in _COUNTS or name_of(one) == "sequence"]
    for node in reversed(made):  # what is within another one first, as that is written twice
        if name_of(node) == "sequence":
            _sequence(node, shapes)
        elif len(node.expressions) > _COUNTS[name_of(node)]:
            _counted(node)
        if sum(1 for _ in node.walk()) > MAX_NODES:
            raise refused(f"nests {name_of(node)} in functions that make large values, too often{place(node)}")
    return query


def _counted(node: exp.Expr) -> None:
    """A function that is given a count."""
    name = name_of(node)
    count = node.expressions[_COUNTS[name]]
    literal = _whole_number(count)
    if literal is not None:
        if literal > MOST_ELEMENTS:
            raise refused(
                f"calls {shown(node)}{place(node)}: {name} makes {MOST_ELEMENTS:,} of a row at most; "
                "write a smaller count"
            )
        if name != "repeat":
            return
    if name != "repeat":
        _guard(count, f"{text_of(count)} > {MOST_ELEMENTS}", f"{name} would make more than {MOST_ELEMENTS} of a row")
        return
    of = node.expressions[0]
    if literal is None or not isinstance(of, exp.Literal) or literal * len(of.name.encode()) > MOST_BYTES:
        size = f"CAST({text_of(count)} AS bigint) * octet_length({text_of(of)})"
        _guard(count, f"{size} > {MOST_BYTES}", f"repeat would make a text of more than {MOST_BYTES} bytes")


def _sequence(node: exp.Expr, shapes: Mapping[str, InputShape]) -> None:
    """A sequence of whole numbers; one of dates is short by its type."""
    select = node.parent_select
    if not isinstance(select, exp.Select) or len(node.expressions) not in (2, 3):
        return
    types = types_of(select, shapes)
    first, last, *step = node.expressions
    of = {type_of(first, types), type_of(last, types)}
    if not of <= WHOLE_NUMBERS:
        if "" in of:
            raise refused(
                f"calls {shown(node)}{place(node)}, bounds of which the type is not known; write CAST(… AS bigint), "
                "date or timestamp around them"
            )
        return
    by = f"CAST({text_of(step[0])} AS decimal(20, 0))" if step else "1"
    distance = f"abs(CAST({text_of(last)} AS decimal(20, 0)) - CAST({text_of(first)} AS decimal(20, 0)))"
    start, end, width = _whole_number(first), _whole_number(last), _whole_number(step[0]) if step else 1
    if start is not None and end is not None and width is not None:
        if abs(end - start) > MOST_ELEMENTS * max(1, abs(width)):
            raise refused(
                f"calls {shown(node)}{place(node)}: a sequence has {MOST_ELEMENTS:,} elements at most; make it shorter"
            )
        return
    _guard(last, f"{distance} > {MOST_ELEMENTS} * abs({by})", f"sequence would make more than {MOST_ELEMENTS} of a row")


def _guard(argument: exp.Expr, condition: str, message: str) -> None:
    """Let an argument raise where a condition holds. What is raised is reported with the row."""
    sql = f"CASE WHEN {condition} THEN raise_error('{message}; filter such rows out') ELSE {text_of(argument)} END"
    (guarded,) = DefinitionSql().parse(sql)
    assert guarded is not None
    argument.replace(guarded)


def _whole_number(node: exp.Expr) -> int | None:
    """The whole number that an expression is, if it is one."""
    sign = 1
    while isinstance(node, exp.Paren | exp.Neg):
        sign = -sign if isinstance(node, exp.Neg) else sign
        node = node.this
    return sign * int(node.name) if isinstance(node, exp.Literal) and node.is_int else None
