"""A query, resolved: every column says which table it belongs to, and stars, ordinals, names of outputs in GROUP BY and
named windows are written out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.optimizer.qualify import qualify
from sqlglot.optimizer.scope import Scope, traverse_scope

from tidemark.definition.dialect import DefinitionSql, place, shown
from tidemark.definition.functions import is_generator, own_aggregates, with_filter
from tidemark.definition.parse import named_inputs
from tidemark.definition.recipe import InputShape
from tidemark.definition.refusal import refused
from tidemark.errors import InvalidUsage, plain_line
from tidemark.model import column_names
from tidemark.model.collection import COLUMN_NAME, ColumnType, ValueType
from tidemark.model.nearest import nearest

_SQL_TYPES = {
    ColumnType.BOOL: "boolean",
    ColumnType.INT: "bigint",
    ColumnType.FLOAT: "double",
    ColumnType.STRING: "string",
    ColumnType.DATE: "date",
    ColumnType.TIMESTAMP: "timestamp",
    ColumnType.BYTES: "binary",
    ColumnType.JSON: "string",
}

QUALIFIED = "_qualified"


@dataclass(frozen=True)
class Resolved:
    """A query of resolved columns, and the names of its own columns as they are to be called."""

    query: exp.Query
    columns: tuple[str, ...]


def sql_type(of: ValueType) -> str:
    """What Spark calls the type of a column."""
    return _SQL_TYPES[of] if isinstance(of, ColumnType) else str(of)


def resolved(query: exp.Query, shapes: Mapping[str, InputShape]) -> Resolved:
    """The query of `parse.parsed` over inputs of these shapes. Raises InvalidUsage for a name that is none of theirs,
    or of more than one, and for columns that a collection cannot have."""
    for name in named_inputs(query):
        if name not in shapes:
            raise refused(f"reads {name}, which `from` does not name{nearest(name, tuple(shapes))}")
    _check_named(query)
    aliases = {one.alias.lower(): one.alias for one in _leftmost(query).selects if isinstance(one, exp.Alias)}
    _spell_alike(query, shapes)
    _write_using_out(query)
    schema: dict[str, object] = {
        name: {one.name: sql_type(one.type) for one in shape.columns} for name, shape in shapes.items()
    }
    try:
        whole = qualify(
            query, dialect=DefinitionSql, schema=schema, validate_qualify_columns=False, quote_identifiers=False
        )
    except SqlglotError as error:
        raise _unresolved(str(error), shapes) from None
    assert isinstance(whole, exp.Select | exp.SetOperation)
    for scope in traverse_scope(whole):
        _check_columns(scope, shapes)
    for select in list(whole.find_all(exp.Select)):
        _write_group_by_all_out(select)
        _write_windows_out(select)
        if select.args.get("qualify"):
            whole = _with_qualify_written_out(whole, select)
    for both in whole.find_all(exp.SetOperation):
        if len(names_of(both.this)) != len(names_of(both.expression)):
            raise refused(
                f"brings {len(names_of(both.this))} and {len(names_of(both.expression))} columns together with "
                f"{type(both).__name__.upper()}; both sides need as many"
            )
    names = tuple(aliases.get(name.lower(), name) for name in names_of(whole))
    _check_names(names)
    return Resolved(whole, names)


def names_of(query: exp.Query) -> list[str]:
    """What the columns of a resolved query are called. Raises InvalidUsage if one is a star."""
    names: list[str] = []
    for one in _leftmost(query).selects:
        if one.find(exp.Star) and (isinstance(one, exp.Star) or isinstance(one.this, exp.Star)):
            raise refused(f"has a * of something whose columns are not known{place(one)}; write the columns")
        if isinstance(one, exp.Aliases):
            names.extend(part.name for part in one.aliases)
        else:
            names.append(one.alias_or_name)
    return names


def _leftmost(query: exp.Expr) -> exp.Select:
    while not isinstance(query, exp.Select):
        query = query.this
    return query


def _check_named(query: exp.Query) -> None:
    """Every column of the result, and of a table within, has a name of its owner's."""
    within = (one.this for one in query.find_all(exp.Subquery) if isinstance(one.parent, exp.From | exp.Join))
    for part in (query, *within):
        if not isinstance(part, exp.Query):
            continue
        for one in _leftmost(part).selects:
            if isinstance(one, exp.Alias | exp.Aliases | exp.Column | exp.Star | exp.Dot):
                continue
            raise refused(f"does not name the column {plain_line(shown(one), 80)}{place(one)}; add AS and a name")


def _check_names(names: Sequence[str]) -> None:
    seen: dict[str, str] = {}
    for name in names:
        if name.startswith("_"):
            raise refused(f"calls a column {name}; names that start with _ are Tidemark's, call it {name.lstrip('_')}")
        if not COLUMN_NAME.fullmatch(name):
            text = plain_line(name, 80)
            raise refused(f"calls a column {text!r}; a name must match {COLUMN_NAME.pattern}: give it one with AS")
        if name.lower() in seen:
            raise refused(f"gives two columns called {name}; name the columns, and call one of them otherwise with AS")
        seen[name.lower()] = name
    if wrong := column_names.problem(names):
        raise refused(f"gives columns that cannot be: {wrong[1]}")


def spelled_alike(shapes: Sequence[InputShape]) -> dict[str, InputShape]:
    """Inputs by name, in which no two names differ in case only, which to Spark are one."""
    spelled = _spellings(shapes)
    return {
        shape.name: replace(
            shape,
            columns=tuple(replace(column, name=spelled[column.name.lower()]) for column in shape.columns),
            key=tuple(spelled[name.lower()] for name in shape.key),
        )
        for shape in shapes
    }


def _spellings(shapes: Sequence[InputShape]) -> dict[str, str]:
    spelled = {shape.name: shape.name for shape in shapes}
    for shape in shapes:
        for column in shape.columns:
            spelled.setdefault(column.name.lower(), column.name)
    return spelled


def _spell_alike(query: exp.Query, shapes: Mapping[str, InputShape]) -> None:
    """Names are spelled as the inputs do, or as at first."""
    spelled = _spellings(list(shapes.values()))
    for one in query.find_all(exp.Identifier):
        one.set("this", spelled.setdefault(one.this.lower(), one.this))


def _write_using_out(query: exp.Query) -> None:
    """USING of a semi or anti join as ON, because only the left table's column can be shown."""
    for select in query.find_all(exp.Select):
        for join in select.args.get("joins") or []:
            using = join.args.get("using")
            if not using or str(join.args.get("kind") or "") not in ("SEMI", "ANTI"):
                continue
            if len(select.args["joins"]) > 1:
                raise refused(f"has a semi or anti join with USING beside other joins; write ON{place(join)}")
            left, right = select.args["from_"].this.alias_or_name, join.this.alias_or_name
            if not left or not right:
                raise refused(f"has a semi or anti join of a table without a name; give it one with AS{place(join)}")
            pairs = [exp.EQ(this=exp.column(one.name, left), expression=exp.column(one.name, right)) for one in using]
            join.set("using", None)
            join.set("on", exp.and_(*pairs))


def _unresolved(message: str, shapes: Mapping[str, InputShape]) -> InvalidUsage:
    unknown = message.removeprefix("Unknown column: ")
    if unknown == message:
        return refused(f"cannot be resolved: {plain_line(message, 200)}")
    every = tuple(dict.fromkeys(column.name for shape in shapes.values() for column in shape.columns))
    return refused(
        f"names the column {plain_line(unknown, 80)}, which its table does not have{nearest(unknown, every)}"
    )


def _check_columns(scope: Scope, shapes: Mapping[str, InputShape]) -> None:
    known = {name: set(_columns_of(source, shapes)) for name, source in scope.sources.items()}
    if isinstance(scope.expression, exp.SetOperation):  # its ORDER BY names its own columns
        known[""] = set(names_of(scope.expression))
    for column in scope.columns:
        if isinstance(column.this, exp.Star):
            continue
        table, name = column.table, column.name
        if table in known and (not known[table] or name in known[table]):
            continue
        if table and table not in known and _outer_has(scope, table):
            continue
        owners = [source for source, columns in known.items() if name in columns]
        where = f"{name}{place(column)}"
        if not table and len(owners) > 1:
            raise refused(f"names the column {where}, which {' and '.join(owners)} both have; write {owners[0]}.{name}")
        if name.startswith("_"):
            raise refused(f"names the column {where}; those that start with _ are Tidemark's, and cannot be used")
        if table and table not in known:
            raise refused(f"names {table}.{where}, but no table there is called {table}{nearest(table, tuple(known))}")
        every = tuple(dict.fromkeys(one for columns in known.values() for one in sorted(columns)))
        what = f"the column {table}.{where}" if table else f"the column {where}"
        raise refused(f"names {what}, which no table there has{nearest(name, every)}")


def _outer_has(scope: Scope, table: str) -> bool:
    above = scope.parent
    while above is not None:
        if table in above.sources:
            return True
        above = above.parent
    return False


def _columns_of(source: object, shapes: Mapping[str, InputShape]) -> Iterator[str]:
    """The columns that a source of a scope has; none if that is not known."""
    if isinstance(source, exp.Table) and source.name in shapes:
        yield from (column.name for column in shapes[source.name].columns)
    elif isinstance(source, Scope):
        node = source.expression
        if isinstance(node, exp.Query):
            yield from (name for name in names_of(node) if name)
        elif isinstance(node, exp.Expr):
            alias = node.args.get("alias")
            yield from (column.name for column in (alias.args.get("columns") if alias else None) or [])


def _write_group_by_all_out(select: exp.Select) -> None:
    group = select.args.get("group")
    if group is None:
        return
    if group.args.get("all"):
        group.set("all", None)
        keys = [one.unalias() for one in select.selects if not own_aggregates(one)]
        for one in select.selects:
            if own_aggregates(one) and _bare_columns(one):
                raise refused(
                    f"groups by ALL, beside {plain_line(shown(one), 80)}, which mixes sums and columns{place(one)}; "
                    "name the columns to group by"
                )
        if any(is_generator(part) for key in keys for part in key.walk()):
            raise refused("groups by a column that makes rows (explode); make them in a subquery or a LATERAL VIEW")
        group.set("expressions", [key.copy() for key in keys])
        if not keys:
            select.set("group", None)
    for key in group.expressions:
        if isinstance(key, exp.Literal):  # a number alone would be the place of a column
            key.replace(exp.cast(key.copy(), "string" if key.is_string else "int"))


def _with_qualify_written_out(whole: exp.Query, select: exp.Select) -> exp.Query:
    """QUALIFY as the WHERE of a query over the select."""
    if any(select.args.get(part) for part in ("limit", "offset", "distinct")):
        raise refused(f"has QUALIFY beside LIMIT or DISTINCT{place(select)}; put one of them into a subquery")
    outer = exp.select(*(exp.alias_(exp.column(name, QUALIFIED), name) for name in names_of(select)))
    inner = select.copy()
    inner.set("order", None)
    inner.set("qualify", None)
    inner.select(exp.alias_(select.args["qualify"].this.copy(), QUALIFIED), copy=False)
    outer = outer.from_(inner.subquery(QUALIFIED)).where(exp.column(QUALIFIED, QUALIFIED))
    if select is whole:
        return outer
    select.replace(outer)
    return whole


def _bare_columns(node: exp.Expr) -> bool:
    """Whether an expression with aggregates names columns outside of them."""
    inside = {id(column) for one in own_aggregates(node) for column in with_filter(one).find_all(exp.Column)}
    return any(id(column) not in inside for column in node.find_all(exp.Column))


def _write_windows_out(select: exp.Select) -> None:
    named = {one.name: one for one in select.args.get("windows") or []}
    if not named:
        return
    for window in list(select.find_all(exp.Window)):
        name = window.args.get("alias")
        if window.parent_select is select and isinstance(name, exp.Identifier) and window.arg_key != "windows":
            if name.name not in named:
                raise refused(f"has a window {name.name}, which WINDOW does not define{place(window)}")
            for part in ("partition_by", "order", "spec"):
                if (clause := named[name.name].args.get(part)) and not window.args.get(part):
                    window.set(part, [one.copy() for one in clause] if isinstance(clause, list) else clause.copy())
            window.set("alias", None)
    select.set("windows", None)
