"""What a declaration of windows says of single rows: the conditions, and the arguments of aggregates."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from sqlglot import exp

from tidemark.definition.clock import check_clock
from tidemark.definition.dated import dated
from tidemark.definition.dialect import text_of
from tidemark.definition.functions import is_generator
from tidemark.definition.order import check_order
from tidemark.definition.parse import parsed, tokens_of
from tidemark.definition.recipe import InputShape
from tidemark.definition.relations import output_types
from tidemark.definition.resolve import resolved
from tidemark.definition.rows import not_by_row
from tidemark.definition.sizes import within_sizes
from tidemark.errors import InvalidUsage, plain_line

_PLACE = re.compile(r" \(line \d+(, column \d+)?(?=[,)])")
_ANY = "input"


@dataclass(frozen=True)
class RowExpression:
    """An expression of a row, as SQL in which each column says that it is the input's, and its type (UNKNOWN where that
    is not sure)."""

    sql: str
    type: str


def in_rows_that_count(of: RowExpression, where: RowExpression | None) -> str:
    """An expression that is evaluated only in rows in which a condition holds, and is null in others."""
    return of.sql if where is None else f"CASE WHEN {where.sql} THEN {of.sql} END"


def check_expression(text: str, called: str) -> None:
    """Raise InvalidUsage, beginning with what the expression is `called`, unless it is one of a single row that gives
    the same every time, as far as that can be known without the input's columns."""
    _read(text, called, _ANY)


def size_of(text: str, called: str) -> int:
    """How many words, names, values and signs an expression has. Raises InvalidUsage if it is too large by itself."""
    try:
        return len(tokens_of(text))
    except InvalidUsage as error:
        raise _of(called, error) from None


def is_null(text: str) -> bool:
    """Whether an expression is the word NULL, and nothing else."""
    return isinstance(_read(text, "", _ANY).selects[0].unnest(), exp.Null)


def row_expression(text: str, called: str, shape: InputShape, shapes: Mapping[str, InputShape]) -> RowExpression:
    """An expression over rows of an input. Raises InvalidUsage as `check_expression`, and for columns that are none of
    the input's."""
    query = _read(text, called, shape.name)
    with_name = exp.alias_(query.selects[0].copy(), "x")
    query.set("expressions", [with_name])
    try:
        found = resolved(query, shapes).query
        check_order(found, shapes)
        check_clock(found, shapes)
        dated(within_sizes(found, shapes), shapes)
    except InvalidUsage as error:
        raise _of(called, error) from None
    return RowExpression(text_of(found.selects[0].unalias()), output_types(found, shapes)[0])


def _read(text: str, called: str, table: str) -> exp.Select:
    try:
        query = parsed(f"SELECT {text}\nFROM `{table}`")
    except InvalidUsage as error:
        raise _of(called, error) from None
    shown = plain_line(text, 80)
    if not isinstance(query, exp.Select) or not _is_single(query, table):
        raise InvalidUsage(f"{called}: {shown!r} is no single expression; write one, as delay > 15")
    if (why := not_by_row(query)) or any(is_generator(part) for part in query.selects[0].walk()):
        raise InvalidUsage(f"{called}: {shown!r} is not a value of one row: {why or 'it makes several of one'}")
    return query


def _is_single(query: exp.Select, table: str) -> bool:
    """Whether a select is one expression from the table, and nothing else."""
    said = {part for part, clause in query.args.items() if clause}
    from_ = query.args.get("from_")
    source = from_.this if isinstance(from_, exp.From) else None
    if not isinstance(source, exp.Table) or source.name != table:
        return False
    plain = not any(clause for part, clause in source.args.items() if part != "this")
    single = len(query.selects) == 1 and not isinstance(query.selects[0], exp.Alias | exp.Aliases | exp.Star)
    return said <= {"expressions", "from_"} and plain and single


def _of(called: str, error: InvalidUsage) -> InvalidUsage:
    """A refusal of a select as one of an expression."""
    said = _PLACE.sub(" (", str(error).removeprefix("the select ")).replace(" ()", "").replace(" (, at", " (at")
    return InvalidUsage(f"{called}: {said}")
