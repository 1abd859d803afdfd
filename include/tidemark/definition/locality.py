"""By key: which of a query's columns say from which rows of its inputs a row of it comes, and from which it cannot.

A *block* is a SELECT over one input, up to its WHERE. A column of a query is *local* if for every block of it there is
an expression, such that the query's rows with a value in that column depend only on those of each block's rows for
which the expression has that value. Several local columns are so together. Then, if input rows change, only rows of the
query with the values that these have can differ, and they can be computed from the blocks' rows with these values.

    an input's column          is itself
    an expression              of local columns is local, and a filter leaves them be
    GROUP BY                   leaves the keys, and what is computed of them
    a join                     leaves what it says to be equal on both sides, as the side shows it that has all rows
    a window                   leaves what rows are partitioned by
    DISTINCT, UNION, EXCEPT    leave what is local on both sides
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from sqlglot import exp

from tidemark.definition.dialect import shown, text_of
from tidemark.definition.functions import is_aggregate, is_generator, own_aggregates, windowed
from tidemark.definition.recipe import InputShape
from tidemark.definition.relations import output_names, output_types, types_of
from tidemark.definition.resolve import names_of
from tidemark.definition.rows import not_by_row
from tidemark.definition.types import UNKNOWN, type_of
from tidemark.definition.used import used_columns


class NotLocal(Exception):
    """A query of which no column is local; the message says why, to people."""


@dataclass(frozen=True, eq=False)
class Block:
    """A SELECT (a node of the query's tree) over rows of one input."""

    input: str
    select: exp.Select


Keys = Mapping[Block, exp.Expr]
"""For each block below, the expression of its rows that a column is the value of."""


@dataclass(frozen=True)
class Located:
    """The blocks of a query, and its local columns by name."""

    blocks: tuple[Block, ...]
    columns: Mapping[str, Keys]


@dataclass
class _Rows:
    """Rows on their way through a SELECT: which expressions are local, by their text; and why others are not."""

    blocks: tuple[Block, ...]
    local: dict[str, Keys]
    why: list[str] = field(default_factory=list)

    def keys_of(self, node: exp.Expr) -> Keys | None:
        """The keys that an expression is, if it is computed of local ones."""
        if any(is_generator(part) or isinstance(part, exp.Query) for part in node.walk()):
            return None
        found = {block: _written(node, self.local, block) for block in self.blocks}
        keys = {block: one for block, one in found.items() if one is not None and one.find(exp.Column)}
        return keys if keys and len(keys) == len(self.blocks) else None

    def not_shown(self) -> str:
        by = ", ".join(list(self.local)[:3]).replace("`", "")
        return f"no column of it distinguishes rows; add one of {by}" if by else "it shows no column"

    def keep(self, nodes: list[exp.Expr], why: str) -> None:
        """Of what is local keep these expressions."""
        self.local = {text_of(node): keys for node in nodes if (keys := self.keys_of(node)) is not None}
        if not self.local:
            self.why.append(why)


def located(query: exp.Expr, shapes: Mapping[str, InputShape]) -> Located:
    """The local columns of a resolved query, whose joined tables `wrapped` has made subqueries. Raises NotLocal."""
    if isinstance(query, exp.Subquery):
        return located(query.this, shapes)
    if isinstance(query, exp.SetOperation):
        return _of_set(query, shapes)
    assert isinstance(query, exp.Select)
    if query.args.get("limit") or query.args.get("offset"):
        raise NotLocal("LIMIT keeps rows by their order among all others")
    rows = _read(query, shapes)
    _grouped(query, rows)
    _windowed(query, rows)
    columns = {}
    for name, one in zip(names_of(query), _unnested(query), strict=True):
        if one is not None and (keys := rows.keys_of(one)) is not None:
            columns[name] = keys
    if not columns:
        raise NotLocal(rows.why[0] if rows.why else rows.not_shown())
    return Located(rows.blocks, columns)


def wrapped(query: exp.Query, shapes: Mapping[str, InputShape]) -> exp.Query:
    """The query with every input of a join as a subquery of its own, which can be restricted: it has those of the
    input's columns that the query looks at."""
    query = query.copy()
    used = used_columns(query, shapes.values())
    for select in list(query.find_all(exp.Select)):
        joins = [join for join in select.args.get("joins") or [] if not isinstance(join.this, exp.Lateral)]
        if not joins or select.args.get("from_") is None:
            continue
        for source in [select.args["from_"].this, *(join.this for join in joins)]:
            if isinstance(source, exp.Table) and source.name in shapes:
                called = source.alias_or_name
                names = used[source.name] or shapes[source.name].key
                columns = [exp.alias_(exp.column(name, called), name) for name in names]
                inner = exp.select(*columns).from_(exp.alias_(exp.to_table(source.name), called, table=True))
                source.replace(exp.Subquery(this=inner, alias=exp.TableAlias(this=exp.to_identifier(called))))
    return query


def _written(node: exp.Expr, local: Mapping[str, Keys], block: Block) -> exp.Expr | None:
    """The expression over the block's rows, each local part replaced by what it is there; None if some part is not."""
    if (keys := local.get(text_of(node))) is not None:
        return exp.paren(keys[block].copy()) if not isinstance(keys[block], exp.Column) else keys[block].copy()
    if isinstance(node, exp.Column) or (is_aggregate(node) or isinstance(node, exp.Window)):
        return None
    new = node.copy()
    for old, part in zip(node.iter_expressions(), list(new.iter_expressions()), strict=True):
        written = _written(old, local, block)
        if written is None:
            return None
        part.replace(written)
    return new


def _read(select: exp.Select, shapes: Mapping[str, InputShape]) -> _Rows:
    """FROM, its joins and WHERE."""
    parts = [*select.selects, *(select.args.get(name) for name in ("where", "having", "group"))]
    if any(part.find(exp.Query) for part in parts if part is not None):
        raise NotLocal("a subquery in an expression reads other rows")
    from_ = select.args.get("from_")
    if from_ is None:
        raise NotLocal("a SELECT without FROM gives a row of no input")
    joins = [join for join in select.args.get("joins") or [] if not isinstance(join.this, exp.Lateral)]
    if not joins:
        return _single(select, from_.this, shapes)
    rows = _source(from_.this, shapes)
    types = types_of(select, shapes)
    inner = all(_side(join) in ("", "INNER", "CROSS") for join in joins)
    where = _conjuncts(select.args["where"].this) if inner and select.args.get("where") else []
    for join in joins:
        if join.args.get("using"):
            raise NotLocal("a join with USING could not be written out")
        on = join.args.get("on")
        rows = _joined(rows, _source(join.this, shapes), _side(join), [*(_conjuncts(on) if on else []), *where], types)
    return rows


def _single(select: exp.Select, source: exp.Expr, shapes: Mapping[str, InputShape]) -> _Rows:
    by_row = source.this if isinstance(source, exp.Subquery) else None
    if isinstance(source, exp.Table) and source.name in shapes:
        block = Block(source.name, select)
    elif by_row is not None and not_by_row(by_row) is None:
        block = Block(next(by_row.find_all(exp.Table)).name, select)
    else:
        return _source(source, shapes)
    columns = [exp.column(name, table) for table, name in types_of(select, shapes)]
    return _Rows((block,), {text_of(column): {block: column} for column in columns})


def _source(source: exp.Expr, shapes: Mapping[str, InputShape]) -> _Rows:
    if not isinstance(source, exp.Subquery) or not isinstance(source.this, exp.Query):
        raise NotLocal("rows that are made (VALUES, range) come of no input")
    inner = located(source.this, shapes)
    renamed = dict(zip(names_of(source.this), output_names(source), strict=False))
    local = {text_of(exp.column(renamed[name], source.alias)): keys for name, keys in inner.columns.items()}
    return _Rows(inner.blocks, local)


def _side(join: exp.Join) -> str:
    kind, side = str(join.args.get("kind") or ""), str(join.args.get("side") or "")
    return kind if kind in ("SEMI", "ANTI") else side or kind.replace("OUTER", "")


def _conjuncts(node: exp.Expr) -> list[exp.Expr]:
    return [one.unnest() for one in node.unnest().flatten()] if isinstance(node.unnest(), exp.And) else [node.unnest()]


def _joined(
    left: _Rows, right: _Rows, side: str, conditions: list[exp.Expr], types: Mapping[tuple[str, str], str]
) -> _Rows:
    """Rows of a join: local is what it says to be equal, on the side of which every row is there."""
    rows = _Rows((*left.blocks, *right.blocks), {}, [])
    for condition in conditions:
        if not isinstance(condition, exp.EQ | exp.NullSafeEQ):
            continue
        for one, other in ((condition.this, condition.expression), (condition.expression, condition.this)):
            mine, its = left.keys_of(one), right.keys_of(other)
            if mine is None or its is None:
                continue
            if (of := type_of(one, types)) == UNKNOWN or of != type_of(other, types):
                pair = f"{shown(one)} with {shown(other)}"
                rows.why.append(f"the join compares {pair}, whose types differ or are not known; CAST both")
                continue
            keys = {**mine, **its}
            both = exp.func("COALESCE", one.copy(), other.copy())
            complete = {
                "LEFT": [one, both], "SEMI": [one], "ANTI": [one], "RIGHT": [other, both], "FULL": [both],
                "": [one, other, both], "INNER": [one, other, both], "CROSS": [one, other, both],
            }.get(side, [])  # fmt: skip
            rows.local.update((text_of(node), keys) for node in complete)
            if side in ("RIGHT", "FULL", "", "INNER", "CROSS"):
                swapped = exp.func("COALESCE", other.copy(), one.copy())
                rows.local[text_of(swapped)] = keys
    if not rows.local:
        rows.why.append(
            "a join without an equation of both sides' columns (ON a.x = b.y) compares each row with all others"
        )
    return rows


def _grouped(select: exp.Select, rows: _Rows) -> None:
    group = select.args.get("group")
    if group is None:
        if any(own_aggregates(one) for one in [*select.selects, select.args.get("having")] if one is not None):
            raise NotLocal("an aggregate without GROUP BY needs all rows")
        return
    if group.find(exp.Rollup, exp.Cube, exp.GroupingSets):
        raise NotLocal("ROLLUP, CUBE and GROUPING SETS have groups of all rows")
    rows.keep(group.expressions, "what it groups by is not what one input row says alone")


def _windowed(select: exp.Select, rows: _Rows) -> None:
    for one in select.selects:
        for window in one.find_all(exp.Window):
            rows.keep(list(window.args.get("partition_by") or []), "a window without PARTITION BY compares all rows")


def _unnested(select: exp.Select) -> list[exp.Expr | None]:
    """A select's columns as expressions, as many as their names; None for those that a generator makes."""
    found: list[exp.Expr | None] = []
    for one in select.selects:
        if isinstance(one, exp.Aliases):
            found.extend([None] * len(one.aliases))
        else:
            node = one.unalias()
            aggregate = any(is_aggregate(part) and windowed(part) is None for part in node.walk())
            found.append(None if aggregate or node.find(exp.Window) else node)
    return found


def _of_set(query: exp.SetOperation, shapes: Mapping[str, InputShape]) -> Located:
    if query.args.get("limit") or query.args.get("offset"):
        raise NotLocal("LIMIT keeps rows by their order among all others")
    left, right = located(query.this, shapes), located(query.expression, shapes)
    names, others = names_of(query.this), names_of(query.expression)
    columns = {
        name: {**left.columns[name], **right.columns[other]}
        for name, other, of in zip(names, others, output_types(query, shapes), strict=False)
        if name in left.columns and other in right.columns and of != UNKNOWN
    }
    if not columns:
        raise NotLocal(
            f"no column says on both sides of {type(query).__name__.upper()} which input rows a row comes from"
        )
    return Located((*left.blocks, *right.blocks), columns)
