"""Refuses what depends on the order of rows, which collections do not have: unless the text orders them, and no two
different rows alike."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import product

from sqlglot import exp

from tidemark.definition.dialect import place, shown, text_of
from tidemark.definition.functions import EXTREMES, FIRST_OF, LISTS, ORDERLESS_OF_LISTS, name_of, windowed
from tidemark.definition.recipe import InputShape
from tidemark.definition.refusal import refused
from tidemark.definition.relations import output_names, sources_of
from tidemark.definition.resolve import names_of

_MAX_KEYS = 64
"""Ways to distinguish rows that are looked at; of a join of many tables there may be any number."""
_BY_POSITION = frozenset({"row_number", "ntile", "lag", "lead", "nth_value", *FIRST_OF, *LISTS})
"""Window functions that distinguish rows of a partition by their order."""


def check_order(query: exp.Query, shapes: Mapping[str, InputShape]) -> None:
    """Raise InvalidUsage if the result of a resolved query depends on the order in which rows come."""
    for select in query.find_all(exp.Select):
        for node in _own(select):
            if isinstance(node, exp.Window):
                _check_window(node, select, shapes)
            elif windowed(node) is None:
                _check_aggregate(node)
    for inner in query.find_all(exp.Select, exp.SetOperation):
        if inner.args.get("limit") or inner.args.get("offset"):
            _check_limit(inner, shapes)


def _own(select: exp.Select) -> Iterator[exp.Expr]:
    """The nodes of a select, without those of queries in it."""
    for node in select.walk(prune=lambda node: node is not select and isinstance(node, exp.Query)):
        if node is not select and not isinstance(node, exp.Query):
            yield node


def _check_aggregate(node: exp.Expr) -> None:
    if (why := _depends_on_order(node, name_of(node))) is not None:
        raise refused(f"calls {shown(node)}{place(node)}{why}")


def _depends_on_order(node: exp.Expr, name: str) -> str | None:
    """How the result of a function depends on the order of rows, to end a sentence with; None if it does not. Called
    for every node of a query, so the text of a node is written only where it is refused."""
    if name in FIRST_OF:
        return ", but rows have no order; write max(x), or max(struct(time, x)).x for the last by a time"
    if name in EXTREMES:
        most, arguments = name[:3], [shown(argument) for argument in node.expressions]
        return (
            f", where several rows may be {most}imal; write {most}(named_struct('by', {arguments[-1]}, 'value', "
            f"{arguments[0]})).value"
        )
    if name in LISTS and not _orderless(node):
        return f", a list in no order; write sort_array({name}(…)), or max, min or count"
    if name == "mode" and not isinstance(node.parent, exp.WithinGroup) and len(node.expressions) < 2:
        return ", where several values may be as frequent; write mode(x, true), the least of them"
    if name in ("listagg", "string_agg"):
        return _unordered_list(node)
    return None


def _unordered_list(node: exp.Expr) -> str | None:
    within = node.parent
    value = node.expressions[0] if node.expressions else node
    if isinstance(value, exp.Distinct):
        value = value.expressions[0]
    order = within.expression if isinstance(within, exp.WithinGroup) else None
    if order is not None and text_of(value) in {text_of(term.this) for term in order.expressions}:
        return None
    return f" without an order of what it lists; add WITHIN GROUP (ORDER BY {shown(value)})"


def _orderless(node: exp.Expr) -> bool:
    above = node.parent
    while isinstance(above, exp.Paren | exp.Filter):
        above = above.parent
    if not isinstance(above, exp.Func) or name_of(above) not in ORDERLESS_OF_LISTS:
        return False
    return name_of(above) != "array_sort" or len(above.expressions) == 1


def _check_window(window: exp.Window, select: exp.Select, shapes: Mapping[str, InputShape]) -> None:
    called = window.this
    while isinstance(called, exp.Filter | exp.IgnoreNulls | exp.RespectNulls):
        called = called.this
    name = name_of(called)
    if name in EXTREMES or name in ("mode", "listagg", "string_agg"):
        _check_aggregate(called)
    spec = window.args.get("spec")
    by_rows = spec is not None and str(spec.args.get("kind") or "").upper() == "ROWS" and not _all_rows(spec)
    if name not in _BY_POSITION and not by_rows:
        return
    if name in LISTS and _orderless(window):
        return
    order = window.args.get("order")
    ordered_by = {text_of(term) for term in window.args.get("partition_by") or []}
    ordered_by |= {text_of(term.this) for term in (order.expressions if order is not None else [])}
    keys = _row_keys(select, shapes)
    if not any(key <= ordered_by for key in keys):
        what = f"{name} over ROWS" if by_rows and name not in _BY_POSITION else name
        raise refused(
            f"calls {what}{place(called)} in an order in which different rows may be alike; {_more(keys, ordered_by)}"
        )


def _all_rows(spec: exp.Expr) -> bool:
    sides = (str(spec.args.get("start") or "").upper(), str(spec.args.get("end") or "").upper())
    return sides == ("UNBOUNDED", "UNBOUNDED")


def _check_limit(query: exp.Query, shapes: Mapping[str, InputShape]) -> None:
    word = "LIMIT" if query.args.get("limit") else "OFFSET"
    order = query.args.get("order")
    ordered = [term.this for term in order.expressions] if order is not None else []
    if any(
        isinstance(term, exp.Column | exp.Var) and term.name.upper() == "ALL" and not term.args.get("table")
        for term in ordered
    ):
        return
    names = names_of(query)
    named = dict(zip(names, query.selects, strict=False)) if isinstance(query, exp.Select) else {}
    ordered_by = set()
    for term in ordered:
        ordered_by.add(text_of(term))
        if isinstance(term, exp.Column) and not term.table:
            ordered_by.add(text_of(exp.column(term.name)))
            if term.name in named:
                ordered_by.add(text_of(named[term.name].unalias()))
        ordered_by |= {
            text_of(exp.column(name)) for name, node in named.items() if text_of(node.unalias()) == text_of(term)
        }
    keys = [frozenset(text_of(exp.column(name)) for name in names)]
    if isinstance(query, exp.Select) and not query.args.get("distinct"):
        keys = [*_row_keys(query, shapes), *keys]
    if not any(key <= ordered_by for key in keys):
        what = f"has {word}{place(query.args[word.lower()])}"
        raise refused(f"{what} in an order in which different rows may be alike; {_more(keys, ordered_by)}")


def _more(keys: list[frozenset[str]], ordered_by: set[str]) -> str:
    missing = min((sorted(key - ordered_by) for key in keys), key=len, default=[])
    names = ", ".join(text.replace("`", "") for text in missing[:5])
    return f"add {names or 'all columns'} to its ORDER BY{', and so on' if len(missing) > 5 else ''}"


def _row_keys(select: exp.Select, shapes: Mapping[str, InputShape]) -> list[frozenset[str]]:
    """Sets of expressions that distinguish the rows from which a select's columns are computed: its groups, or the rows
    of its tables; rows that are alike in all columns need not be distinguished."""
    group = select.args.get("group")
    if group is not None:
        return [frozenset(text_of(key) for key in group.expressions)]
    choices = [_source_keys(source, shapes) for source in sources_of(select)]
    keys = []
    for chosen in product(*choices):
        keys.append(frozenset().union(*chosen))
        if len(keys) == _MAX_KEYS:
            break
    return keys


def _source_keys(source: exp.Expr, shapes: Mapping[str, InputShape]) -> list[frozenset[str]]:
    called = source.alias_or_name
    if isinstance(source, exp.Table) and source.name in shapes:
        shape = shapes[source.name]
        sets = [shape.key] if shape.one_value else []
        sets.append(tuple(column.name for column in shape.columns))
    elif isinstance(source, exp.Subquery) and isinstance(source.this, exp.Query):
        outside = dict(zip(names_of(source.this), output_names(source), strict=False))
        sets = [tuple(outside[name] for name in key) for key in _query_keys(source.this, shapes)]
    else:
        alias = source.args.get("alias")
        sets = [tuple(column.name for column in (alias.args.get("columns") if alias else None) or [])]
    return [frozenset(text_of(exp.column(name, called)) for name in key) for key in sets]


def _query_keys(query: exp.Expr, shapes: Mapping[str, InputShape]) -> list[tuple[str, ...]]:
    """Sets of a query's columns that distinguish its rows."""
    every = tuple(names_of(query)) if isinstance(query, exp.Query) else ()
    if not isinstance(query, exp.Select) or query.args.get("distinct"):
        return [every]
    if any(isinstance(column, exp.Aliases) for column in query.selects):
        return [every]
    called = {text_of(column.unalias()): name for name, column in zip(every, query.selects, strict=True)}
    keys = _row_keys(query, shapes)
    return [*(tuple(called[text] for text in key) for key in keys if all(text in called for text in key)), every]
