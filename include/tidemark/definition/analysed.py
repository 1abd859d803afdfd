"""A definition and the shapes of its inputs, analysed: what an executor computes, in which mode, why in no cheaper."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from sqlglot import exp
from sqlglot.errors import SqlglotError

from tidemark.definition.clock import check_clock
from tidemark.definition.dated import dated
from tidemark.definition.delta import Delta, NoDelta, delta_of
from tidemark.definition.dialect import text_of
from tidemark.definition.grouped import grouped_of
from tidemark.definition.inferred_key import inferred_key
from tidemark.definition.joined import join_plan, joined_changes
from tidemark.definition.keys import by_key
from tidemark.definition.literals import LeftToSpark
from tidemark.definition.locality import NotLocal
from tidemark.definition.order import check_order
from tidemark.definition.parse import parsed
from tidemark.definition.projected import over_projected_rows
from tidemark.definition.recipe import ByKey, InputShape, Recipe
from tidemark.definition.refusal import refused
from tidemark.definition.resolve import Resolved, resolved, spelled_alike
from tidemark.definition.rows import by_row, not_by_row
from tidemark.definition.sizes import within_sizes
from tidemark.definition.sums import exact
from tidemark.definition.used import used_columns
from tidemark.errors import InvalidUsage, plain_line
from tidemark.model.collection import Column
from tidemark.model.derived import Mode, Refresh, Validity


def analysed(
    select: str,
    shapes: Sequence[InputShape],
    refresh: Refresh = Refresh.AUTO,
    validity: Validity | None = None,
) -> Recipe:
    """What to compute for a select over inputs of these shapes.

    Raises InvalidUsage for what depends on more than its inputs' rows, for names that are none of theirs or of several,
    for columns that a collection cannot have; with `refresh` incremental, where only the whole can be computed; with
    `validity`, where rows do not come of one input row each, whose times they would be. What was analysed is known to
    the process: a text of some hundred characters takes up to a tenth of a CPU second.
    """
    return _once(select, tuple(shapes), refresh, validity)


@lru_cache(maxsize=64)
def _once(select: str, shapes: tuple[InputShape, ...], refresh: Refresh, validity: Validity | None) -> Recipe:
    spelled = spelled_alike(shapes)
    try:
        found = _analysed(select, spelled)
    except (RecursionError, SqlglotError) as error:  # what writes a deep query again may wrap the one in the other
        raise _unwritable(error) from None
    found = replace(found, used=_columns_as_declared(found.used or {}, shapes))
    if found.by_key is not None:
        rule = replace(found.by_key, clustered=_as_declared(found.by_key, shapes))
        if list(spelled.values()) != list(shapes):  # a query does not mind, who reads columns by their names would
            rule = replace(rule, delta_plan=None, columns={}, grouped=None)
            found = replace(found, projection=None, join=None, left_to_spark="names of columns are spelled in two ways")
        found = replace(found, by_key=rule)
    if validity is not None and found.by_row is None:
        raise refused(
            "has rows that come of several input rows, so they have no times of their own; leave valid_from, valid_to "
            f"and valid_for out, or say them of a collection of the rows ({found.why[0]})"
        )
    if found.mode is Mode.WHOLE and refresh is Refresh.INCREMENTAL:
        raise refused(f"can only be computed whole, which refresh: incremental forbids ({'; '.join(found.why)})")
    return found if refresh is not Refresh.WHOLE else _whole_only(found)


def _analysed(select: str, shapes: Mapping[str, InputShape]) -> Recipe:
    found = resolved(parsed(select), shapes)
    check_order(found.query, shapes)
    check_clock(found.query, shapes)
    used = used_columns(found.query, shapes.values())
    query = _called(replace(found, query=dated(within_sizes(found.query, shapes), shapes)))
    whole = exact(query, shapes)
    key = inferred_key(query, found.columns, shapes)
    recipe = Recipe(Mode.WHOLE, (), found.columns, key, text_of(whole), used=used)
    if (reason := not_by_row(whole)) is None:
        return replace(recipe, mode=Mode.BY_ROW, by_row=by_row(whole))
    keyed = _by_key(query, whole, found.columns, shapes)
    why = (f"not by row: {reason}", *keyed.why)
    if keyed.by_key is None:
        return _of_joins(query, replace(recipe, why=why, left_to_spark="it is computed whole"), shapes)
    recipe = replace(
        recipe, mode=Mode.BY_KEY, why=why, whole=text_of(keyed.whole), hidden=keyed.hidden, by_key=keyed.by_key
    )
    recipe = _without_queries(query, recipe, keyed.delta, shapes)
    return _of_joins(query, replace(recipe, joined=joined_changes(query, shapes) or ""), shapes)


def _of_joins(query: exp.Query, recipe: Recipe, shapes: Mapping[str, InputShape]) -> Recipe:
    """The recipe, which of a join also says how rows at hand are joined."""
    try:
        plan = join_plan(query, shapes)
    except RecursionError:
        return replace(recipe, left_to_spark="it is nested too deeply")
    except LeftToSpark as why:
        return replace(recipe, left_to_spark=str(why))
    return recipe if plan is None else replace(recipe, join=plan, left_to_spark="")


def _without_queries(query: exp.Query, recipe: Recipe, delta: Delta | None, shapes: Mapping[str, InputShape]) -> Recipe:
    """The recipe, which also says what it amounts to for projected rows, where these need no query, or why they do."""
    rule = recipe.by_key
    assert rule is not None
    try:
        select, shape, projection = over_projected_rows(query, shapes)
        seen, keys = {shape.name: shape}, rule
        if projection is not None:
            keys = by_key(exact(select, seen), recipe.columns, seen)
            delta = None if delta is None else delta_of(select, keys.key_columns, seen)
            if delta and (delta.sums, tuple(column for column, _ in delta.hidden)) != (rule.sums, recipe.hidden):
                raise LeftToSpark("projected rows need other hidden columns")
            if keys.key_columns != rule.key_columns:
                raise LeftToSpark("projected rows have another key")
    except RecursionError:
        return replace(recipe, left_to_spark="it is nested too deeply")
    except (NoDelta, NotLocal, LeftToSpark) as why:
        return replace(recipe, left_to_spark=str(why))
    delta_plan, grouped, left = delta.delta_plan if delta else None, None, ""
    try:
        grouped = grouped_of(delta.query if delta else select, keys.key_columns, seen, delta.hidden if delta else ())
    except LeftToSpark as why:
        left = str(why)
    if delta_plan is None and grouped is None:
        return replace(recipe, left_to_spark=left)
    rule = replace(rule, delta_plan=delta_plan, grouped=grouped, columns=keys.columns)
    return replace(recipe, by_key=rule, projection=projection, left_to_spark=left)


def _unwritable(error: Exception) -> InvalidUsage:
    """The refusal of a query that sqlglot read, and cannot resolve or write again."""
    if isinstance(error, RecursionError) or isinstance(error.__cause__ or error.__context__, RecursionError):
        return refused("is nested too deeply; make a derived collection of a part of it")
    return refused(f"cannot be resolved: {plain_line(str(error), 200)}")


def _whole_only(found: Recipe) -> Recipe:
    """The recipe of an owner who wants all computed each time: what is stored stays the same, so that the file may say
    otherwise later, and so do the ways to compute some of it, to check samples."""
    return replace(found, mode=Mode.WHOLE, why=("its file says refresh: whole",))


def _as_declared(rule: ByKey, shapes: Sequence[InputShape]) -> dict[str, tuple[tuple[str, str], ...]]:
    """The leading key columns that values are, as the inputs call them."""
    keys = {shape.name: shape.key for shape in shapes}
    return {
        name: tuple((keys[name][at], value) for at, (_, value) in enumerate(pairs))
        for name, pairs in rule.clustered.items()
    }


def _columns_as_declared(
    used: Mapping[str, tuple[str, ...]], shapes: Sequence[InputShape]
) -> dict[str, tuple[str, ...]]:
    """The columns that are used, as the inputs call them."""
    names = {name: {one.lower() for one in columns} for name, columns in used.items()}
    return {
        shape.name: tuple(one.name for one in shape.columns if one.name.lower() in names[shape.name])
        for shape in shapes
    }


@dataclass(frozen=True)
class _Keyed:
    whole: exp.Query
    by_key: ByKey | None
    hidden: tuple[Column, ...]
    why: tuple[str, ...]
    delta: Delta | None = None


def _by_key(query: exp.Query, whole: exp.Query, columns: Sequence[str], shapes: Mapping[str, InputShape]) -> _Keyed:
    try:
        keys = by_key(whole, columns, shapes)
    except NotLocal as error:
        return _Keyed(whole, None, (), (f"not by key: {error}",))
    try:
        delta = delta_of(query, keys.key_columns, shapes)
    except NoDelta as error:
        return _Keyed(whole, keys, (), (f"groups are recomputed, not added up: {error}",))
    whole = exact(delta.query, shapes)
    keys = by_key(whole, columns, shapes)
    keys = replace(keys, delta=delta.delta, sums=delta.sums, grown=delta.grown)
    return _Keyed(whole, keys, tuple(column for column, _ in delta.hidden), (), delta)


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
