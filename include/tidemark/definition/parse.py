"""The text of a definition, read: one query over its inputs, in which nothing is that could not be computed again.

What is refused here needs no knowledge of the inputs, so that a declaration is refused where it is parsed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.tokenizer_core import Token

from tidemark.definition.dialect import DefinitionSql, place, shown
from tidemark.definition.functions import GENERATORS, UNIT_FIRST, name_of, why_refused
from tidemark.definition.recipe import TOUCHED
from tidemark.definition.refusal import refused
from tidemark.definition.written_out import without_ctes
from tidemark.errors import plain_line
from tidemark.model.collection import NAME

MAX_TEXT = 100_000
"""Characters of a definition."""
MAX_TOKENS = 20_000
"""Words, names, values and signs of a definition: to read so many takes some 0.2 CPU seconds."""
ROW_SOURCES = frozenset({*GENERATORS, "range"})
"""Functions that may be in the place of a table."""
_OF_A_CLASS = re.compile(r"Required keyword: .* missing for <class .*>")
"""How sqlglot reports an operator without its operand."""


def inputs_of(select: str) -> tuple[str, ...]:
    """The collections that a definition reads, in the order in which it names them.

    Raises InvalidUsage for a text that is no definition: not one query, no input, or what depends on more than inputs.
    """
    return named_inputs(parsed(select))


def parsed(select: str) -> exp.Query:
    """The query of a text, its common table expressions written out as subqueries. Raises InvalidUsage, also for a text
    that is too large, before it was worked through."""
    try:
        return _parsed(select)
    except RecursionError:
        raise refused("is nested too deeply; make a derived collection of a part of it") from None


def tokens_of(text: str) -> list[Token]:
    """The words, names, values and signs of a text. Raises InvalidUsage for a text that is none, or too long."""
    if len(text) > MAX_TEXT:
        raise refused(f"has {len(text):,} characters; it may have {MAX_TEXT:,}")
    try:
        tokens = DefinitionSql().tokenize(text)
    except SqlglotError as error:
        raise refused(f"cannot be read: {_complaint(error)}") from None
    if len(tokens) > MAX_TOKENS:
        raise refused(
            f"has {len(tokens):,} words, names, values and signs; it may have {MAX_TOKENS:,}: make a derived "
            "collection of a part of it, or put a long list of values into a collection and join it"
        )
    return tokens


def _parsed(select: str) -> exp.Query:
    query = _one_query(select)
    for node in list(query.walk()):
        _check(node)
        if (
            name_of(node) in UNIT_FIRST
            and len(node.expressions) == 3
            and isinstance(unit := node.expressions[0], exp.Column)
        ):
            unit.replace(exp.var(unit.name))  # DAY is no column
    for node in list(query.find_all(exp.Subquery)):
        _without_parentheses(node)
    return without_ctes(query)


def named_inputs(query: exp.Query) -> tuple[str, ...]:
    """The inputs of a query without common table expressions, in the order of the text."""
    found = dict.fromkeys(table.name.lower() for table in tables_of(query))
    if not found:
        raise refused("reads no collection; name one after FROM")
    for name in found:
        if not NAME.fullmatch(name):
            raise refused(f"reads {plain_line(name, 80)!r}, which cannot be the name of a collection")
    return tuple(found)


def tables_of(query: exp.Expr) -> Iterator[exp.Table]:
    """The tables of a query that are inputs, one for each place where an input is named."""
    return (table for table in query.find_all(exp.Table, bfs=False) if isinstance(table.this, exp.Identifier))


def _one_query(select: str) -> exp.Query:
    tokens = tokens_of(select)
    if "${" in select:
        raise refused("holds ${…}, which Spark would replace by a setting; write the value")
    try:
        statements = [one for one in DefinitionSql().parser().parse(tokens, select) if one is not None]
    except SqlglotError as error:
        raise refused(f"cannot be read: {_complaint(error)}") from None
    if len(statements) != 1:
        raise refused(f"holds {len(statements)} statements; write one SELECT")
    return _query(statements[0])


def _query(node: exp.Expr) -> exp.Query:
    while isinstance(node, exp.Subquery) and not node.args.get("alias") and not node.args.get("with_"):
        node = node.this
    if isinstance(node, exp.Select | exp.SetOperation):
        return node
    what = "an expression" if isinstance(node, exp.Condition) else f"a {type(node).__name__.upper()}"
    raise refused(f"is {what}, no query; write one SELECT")


def _complaint(error: SqlglotError) -> str:
    problems = getattr(error, "errors", None)
    if not problems:
        return plain_line(str(error), 200)
    first = problems[0]
    near = plain_line(str(first.get("highlight") or ""), 40)
    said = _OF_A_CLASS.sub("something is missing", str(first.get("description") or ""))
    description = plain_line(said.rstrip("."), 200)
    return f"{description} (line {first.get('line')}, column {first.get('col')}, at {near!r})"


_REFUSED_NODES: tuple[tuple[type[exp.Expr], str], ...] = (
    (
        exp.TableSample,
        "takes a sample (TABLESAMPLE), which differs each time; filter by xxhash64(key) % 10 = 0 instead",
    ),
    (exp.QueryTransform, "runs a script (TRANSFORM … USING); write a python definition"),
    (exp.Pivot, "uses PIVOT or UNPIVOT; write the columns: sum(CASE WHEN … END) AS …, or stack(…)"),
    (exp.MatchRecognize, "uses MATCH_RECOGNIZE; use window functions"),
    (exp.Placeholder, "has a parameter; write the value"),
    (exp.Parameter, "has a parameter; write the value"),
    (exp.SessionParameter, "reads a session's variable; write the value"),
    (exp.Lock, "locks rows (FOR UPDATE); leave that out"),
    (exp.Into, "writes (INTO); leave that out"),
    (exp.DML, "writes; write one SELECT"),
    (exp.Create, "writes; write one SELECT"),
    (exp.Command, "is a command; write one SELECT"),
)
_CLOCK_NODES: dict[type[exp.Expr], str] = {
    exp.CurrentDate: "current_date",
    exp.CurrentDatetime: "current_timestamp",
    exp.CurrentTimestamp: "current_timestamp",
    exp.CurrentTime: "current_time",
    exp.CurrentUser: "current_user",
    exp.CurrentRole: "current_user",
    exp.SessionUser: "session_user",
    exp.Localtime: "localtime",
    exp.Localtimestamp: "localtimestamp",
}


def _check(node: exp.Expr) -> None:
    for kind, why in _REFUSED_NODES:
        if isinstance(node, kind):
            raise refused(f"{why}{place(node)}")
    name = _CLOCK_NODES.get(type(node)) or name_of(node)
    if why := why_refused(name):
        raise refused(f"calls {name}, which {why}{place(node)}")
    if name in ("unix_timestamp", "to_unix_timestamp") and not node.expressions:
        raise refused(f"calls {name}(), which is the time at which it runs; give it a column{place(node)}")
    if isinstance(node, exp.Table):
        _check_table(node)
    elif isinstance(node, exp.Star) and not isinstance(_around(node), exp.Select) and name_of(_around(node)) != "count":
        raise refused(f"has a * as an argument{place(node)}; write the columns")
    elif isinstance(node, exp.Star) and isinstance(node.parent, exp.Column) and name_of(_around(node)) == "count":
        raise refused(
            f"counts {shown(node.parent)}{place(node)}; write count(*), or the columns that are not to be null"
        )
    elif isinstance(node, exp.Distinct) and node.args.get("on"):
        raise refused(f"has DISTINCT ON, which Spark does not; write QUALIFY row_number() OVER (…) = 1{place(node)}")
    elif isinstance(node, exp.TableAlias) and node.name.lower() == TOUCHED:
        raise refused(f"calls a table {TOUCHED}, which is Tidemark's; call it otherwise{place(node)}")
    elif isinstance(node, exp.Join) and str(node.args.get("method") or "").upper() == "NATURAL":
        raise refused(f"has a NATURAL JOIN, which changes with the columns of its inputs; write USING (…){place(node)}")
    elif isinstance(node, exp.With) and node.args.get("recursive"):
        raise refused(f"is recursive (WITH RECURSIVE); write a python definition{place(node)}")
    elif isinstance(node, exp.Lateral) and not node.args.get("view") and not isinstance(node.this, exp.Func):
        raise refused(f"joins a LATERAL subquery; write a JOIN, or LATERAL VIEW explode(…){place(node)}")


def _around(star: exp.Star) -> exp.Expr:
    """What a star, or a table's star, is in."""
    above = star.parent.parent if isinstance(star.parent, exp.Column) else star.parent
    return above if above is not None else star


def _without_parentheses(node: exp.Subquery) -> None:
    """A table in parentheses as that table."""
    if not isinstance(table := node.this, exp.Table):
        return
    if table.args.get("joins") or table.args.get("laterals"):
        raise refused(f"has a join in parentheses{place(node)}; write it as a subquery: (SELECT … FROM … JOIN …)")
    if node.args.get("alias"):
        table.set("alias", node.args["alias"])
    node.replace(table)


def _check_table(table: exp.Table) -> None:
    if table.args.get("db") or table.args.get("catalog"):
        raise refused(
            f"reads {plain_line(shown(table), 80)}, a file or another database's table; an input is the name of a "
            f"collection{place(table)}"
        )
    if table.args.get("version") or table.args.get("when"):
        raise refused(f"reads {table.name} as of a version; each run says how far inputs are read{place(table)}")
    if not isinstance(table.this, exp.Identifier) and (name := name_of(table.this)) not in ROW_SOURCES:
        raise refused(f"reads the table function {name or shown(table.this)}, which may read files{place(table)}")
