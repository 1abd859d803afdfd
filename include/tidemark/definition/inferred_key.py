"""The key of a definition's rows, where its text says one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from sqlglot import exp

from tidemark.definition.dialect import text_of
from tidemark.definition.recipe import InputShape
from tidemark.definition.relations import output_names, output_types


def inferred_key(query: exp.Query, columns: Sequence[str], shapes: Mapping[str, InputShape]) -> tuple[str, ...] | None:
    """The columns (of a resolved query, called so) that rows are to be ordered and found by: those of the inputs' keys,
    or those that rows are grouped by. None where they are not all among the columns. One may be a float, which no key
    holds: who declares the collection refuses it by its name."""
    places = _places(query, shapes)
    return tuple(columns[at] for at in places) if places else None


def _places(query: exp.Expr, shapes: Mapping[str, InputShape]) -> list[int] | None:
    """Where among a query's columns its key is."""
    if isinstance(query, exp.Subquery):
        return _places(query.this, shapes)
    if isinstance(query, exp.Union) and not query.args.get("distinct"):
        left, right = _places(query.this, shapes), _places(query.expression, shapes)
        return left if left == right else None
    if isinstance(query, exp.SetOperation):
        return list(range(len(output_types(query, shapes))))
    assert isinstance(query, exp.Select)
    if query.args.get("distinct"):
        return list(range(len(output_types(query, shapes))))
    shown: dict[str, int] = {}
    at = 0
    for one in query.selects:
        shown.setdefault(text_of(one.unalias()), at)
        at += len(one.aliases) if isinstance(one, exp.Aliases) else 1
    if (group := query.args.get("group")) is not None:
        keys = [text_of(key) for key in group.expressions if key.find(exp.Column)]
        return [shown[key] for key in keys] if keys and all(key in shown for key in keys) else None
    places: list[int] = []
    for source in _key_sources(query, shapes):
        key = _key_of(source, shapes)
        if key is None or any(text_of(column) not in shown for column in key):
            return None
        places.extend(at for column in key if (at := shown[text_of(column)]) not in places)
    return places


def _key_sources(select: exp.Select, shapes: Mapping[str, InputShape]) -> Iterator[exp.Expr]:
    """The tables of a join whose keys together are that of its rows: of one that has a row for each of another's, or
    that is joined by its whole key, none."""
    from_ = select.args.get("from_")
    if from_ is None:
        return
    found = [from_.this]
    for join in select.args.get("joins") or []:
        kind, side = str(join.args.get("kind") or ""), str(join.args.get("side") or "")
        if isinstance(join.this, exp.Lateral):
            continue
        if side == "FULL":
            found.append(exp.Null())
        elif side == "RIGHT":
            found = [join.this]
        elif side != "LEFT" and kind not in ("SEMI", "ANTI") and not _joined_by_key(join, shapes):
            found.append(join.this)
    yield from found


def _joined_by_key(join: exp.Join, shapes: Mapping[str, InputShape]) -> bool:
    on = join.args.get("on")
    key = _key_of(join.this, shapes)
    if on is None or not key:
        return False
    equal = {text_of(side) for one in on.flatten() if isinstance(one, exp.EQ) for side in (one.this, one.expression)}
    if isinstance(on, exp.EQ):
        equal = {text_of(on.this), text_of(on.expression)}
    return all(text_of(column) in equal for column in key)


def _key_of(source: exp.Expr, shapes: Mapping[str, InputShape]) -> list[exp.Expr] | None:
    """The columns of a table that are its key."""
    called = source.alias_or_name
    if isinstance(source, exp.Table) and source.name in shapes:
        return [exp.column(name, called) for name in shapes[source.name].key]
    if isinstance(source, exp.Subquery) and (places := _places(source.this, shapes)):
        names = output_names(source)
        return [exp.column(names[at], called) for at in places]
    return None
