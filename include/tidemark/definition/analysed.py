"""A definition and the shapes of its inputs, analysed: what an executor computes, in which mode, why in no cheaper."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sqlglot import exp

from tidemark.definition.dialect import text_of
from tidemark.definition.inferred_key import inferred_key
from tidemark.definition.keys import by_key
from tidemark.definition.locality import NotLocal
from tidemark.definition.order import check_order
from tidemark.definition.parse import parsed
from tidemark.definition.recipe import InputShape, Recipe
from tidemark.definition.refusal import refused
from tidemark.definition.resolve import Resolved, names_of, resolved
from tidemark.definition.rows import by_row, not_by_row
from tidemark.definition.sums import exact
from tidemark.model.derived import Mode, Refresh


def analysed(select: str, shapes: Sequence[InputShape], refresh: Refresh = Refresh.AUTO) -> Recipe:
    """What to compute for a select over inputs of these shapes.

    Raises InvalidUsage for what depends on more than its inputs' rows, for names that are none of theirs or of several,
    for columns that a collection cannot have; with `refresh` incremental, where only the whole can be computed.
    """
    try:
        return _analysed(select, {shape.name: shape for shape in shapes}, refresh)
    except RecursionError:
        raise refused("is nested too deeply; make a derived collection of a part of it") from None


def _analysed(select: str, shapes: Mapping[str, InputShape], refresh: Refresh) -> Recipe:
    found = resolved(parsed(select), shapes)
    check_order(found.query, shapes)
    query = _called(found)
    whole = exact(query, shapes)
    why: list[str] = []
    rows, keys = None, None
    if refresh is not Refresh.WHOLE:
        if (reason := not_by_row(whole)) is None:
            rows = by_row(whole)
        else:
            why.append(f"not by row: {reason}")
            try:
                keys = by_key(whole, dict(zip(names_of(whole), found.columns, strict=True)), shapes)
            except NotLocal as error:
                why.append(f"not by key: {error}")
    else:
        why.append("the collection's file says refresh: whole")
    mode = Mode.BY_ROW if rows else Mode.BY_KEY if keys else Mode.WHOLE
    if mode is Mode.WHOLE and refresh is Refresh.INCREMENTAL:
        raise refused(f"can only be computed whole, which refresh: incremental forbids ({'; '.join(why)})")
    return Recipe(
        mode=mode,
        why=tuple(why),
        columns=found.columns,
        key=inferred_key(query, found.columns, shapes),
        whole=text_of(whole),
        by_row=rows,
        by_key=keys,
    )


def _called(found: Resolved) -> exp.Query:
    """The query with its columns called as they are to be."""
    query = found.query
    left: exp.Expr = query
    while not isinstance(left, exp.Select):
        left = left.this
    names = iter(found.columns)
    for one in left.selects:
        if isinstance(one, exp.Aliases):
            one.set("expressions", [exp.to_identifier(next(names)) for _ in one.aliases])
        elif isinstance(one, exp.Alias):
            one.set("alias", exp.to_identifier(next(names)))
        else:
            one.replace(exp.alias_(one.copy(), next(names)))
    return query
