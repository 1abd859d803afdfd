"""Refuses texts that Spark takes for the time at which it runs: 'now', 'today', 'tomorrow' and 'yesterday' where a date
or a timestamp is meant, whether they are cast, compared with one, or given to a function of dates."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from sqlglot import exp

from tidemark.definition.dated import has_no_date
from tidemark.definition.dialect import place
from tidemark.definition.functions import name_of
from tidemark.definition.recipe import InputShape
from tidemark.definition.refusal import refused
from tidemark.definition.relations import types_of
from tidemark.definition.types import type_of

_SPECIAL = re.compile(r"\s*(now|today|tomorrow|yesterday)(\s.*)?", re.IGNORECASE | re.DOTALL)
"""A zone may follow."""
_TEXT = frozenset({"concat", "concat_ws", "contains", "endswith", "instr", "locate", "replace", "startswith"})
"""Functions in which such a text stays one."""


def check_clock(query: exp.Query, shapes: Mapping[str, InputShape]) -> None:
    """Raise InvalidUsage for such a text in a resolved query, unless it is surely compared with texts, or shown."""
    for select in query.find_all(exp.Select):
        special = [
            one
            for one in select.find_all(exp.Literal)
            if one.is_string and one.parent_select is select and (_SPECIAL.fullmatch(one.name) or has_no_date(one.name))
        ]
        types = types_of(select, shapes) if special else {}
        for one in special:
            if _SPECIAL.fullmatch(one.name) is None:
                if _is_timestamp(one, types):
                    raise refused(
                        f"holds '{one.name}'{place(one)}, a time of day, to which Spark adds the day on which it runs "
                        "where a timestamp is meant; write it with a date"
                    )
            elif not _stays_text(one, types):
                raise refused(
                    f"holds '{one.name}'{place(one)}, which Spark takes for the time at which it runs where a date is "
                    "meant; take a time from a column, or CAST what it is compared with as string"
                )


def _stays_text(literal: exp.Literal, types: Mapping[tuple[str, str], str]) -> bool:
    above: exp.Expr | None = literal.parent
    while isinstance(above, exp.Paren):
        above = above.parent
    if above is None or isinstance(above, exp.Select | exp.Alias | exp.DPipe | exp.Like | exp.ILike):
        return True
    if isinstance(above, exp.Cast):
        return type_of(above, types) in ("string", "binary")
    if name_of(above) in _TEXT:
        return True
    return any(type_of(one, types) == "string" for one in _beside(literal, above))


def _is_timestamp(literal: exp.Literal, types: Mapping[tuple[str, str], str]) -> bool:
    """Whether a text is surely taken for a timestamp: it is cast to one, or is beside one. What is not sure here,
    Spark's analysis shows."""
    above: exp.Expr | None = literal.parent
    while isinstance(above, exp.Paren):
        above = above.parent
    if above is None or isinstance(above, exp.Select | exp.Alias | exp.DPipe | exp.Like | exp.ILike):
        return False
    if isinstance(above, exp.Cast) or (isinstance(above, exp.Func) and len(above.expressions) == 1):
        return type_of(above, types) == "timestamp" or name_of(above).endswith("to_timestamp")
    return any(type_of(one, types) == "timestamp" for one in _beside(literal, above))


def _beside(literal: exp.Literal, above: exp.Expr) -> Iterator[exp.Expr]:
    """What is beside a text: the other sides of a comparison, the other arguments of a function."""
    if isinstance(above, exp.If) and isinstance(above.parent, exp.Case):
        around = above.parent
        given = [around.this] if above.this is literal else [one.args["true"] for one in around.args["ifs"]]
        yield from (one for one in given if one is not None and one is not literal)
        return
    yield from (one for one in above.iter_expressions() if literal not in list(one.walk()) and not _is_text(one))


def _is_text(node: exp.Expr) -> bool:
    return isinstance(node, exp.Literal) and node.is_string
