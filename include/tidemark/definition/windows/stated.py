"""Aggregates taken apart: each as states of cells, and as what is told of a session's states. An aggregate is first
written as that of any other definition, so that sums of floats are exact and types are Spark's; what is around a
function is computed of the session's state in its place: `sum(x) / count(x)` is two states that are added up, and then
divided."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from sqlglot import exp

from tidemark.definition.delta import quotient
from tidemark.definition.dialect import text_of
from tidemark.definition.functions import name_of, own_aggregates, with_filter
from tidemark.definition.parse import parsed
from tidemark.definition.recipe import CELLED, InputShape
from tidemark.definition.relations import types_of
from tidemark.definition.resolve import resolved, spelled_alike
from tidemark.definition.state import Op, State
from tidemark.definition.sums import distinct_of, exact
from tidemark.definition.types import FLOATS, decimal_digits, type_of
from tidemark.definition.windows.aggregates import aggregate_sql, on_a_grid
from tidemark.definition.windows.assigned import AT, END, START, typed
from tidemark.definition.windows.checked import Checked
from tidemark.definition.windows.expressions import RowExpression
from tidemark.errors import InvalidUsage
from tidemark.model.collection import Column, ColumnType
from tidemark.model.window.aggregate import Aggregate, Function
from tidemark.model.window.windows import WINDOW_END, WINDOW_START, Windows

_OPS = {
    "bit_or": Op.BIT_OR,
    "collect_list": Op.CONCAT,
    "count": Op.ADD,
    "max": Op.MAX,
    "min": Op.MIN,
    "sum": Op.ADD,
}
"""How states of functions are put together."""
_MOST_DIGITS = 22
"""Of a decimal, before and behind the point, of which an average is rounded as Spark does it."""


def stated(told: Checked, places: Sequence[str], more: Mapping[str, str]) -> tuple[tuple[State, ...], list[str], str]:
    """The aggregates taken apart: the states of cells, what is told of a window's states, and the query that gives the
    cells: rows that are equal in `by` and the columns `places`, with these, with `more` aggregates of AT, by what they
    are called, and the states. Raises InvalidUsage as `slid`."""
    windows, name = told.windows, told.input
    shapes = spelled_alike([with_micros(told.shape, *dict.fromkeys((AT, *places)))])
    own = [_Own.of(one, of, where) for one, of, where in told.aggregates]
    aggregates = [
        mine.sql if mine else aggregate_sql(one, of, where)
        for mine, (one, of, where) in zip(own, told.aggregates, strict=True)
    ]
    keys = [f"`{name}`.`{column}`" for column in (*windows.by, *places)]
    shown = ", ".join(f"{sql} AS a{at}" for at, sql in enumerate(aggregates))
    text = f"SELECT {shown} FROM `{name}` GROUP BY {', '.join(keys)}"
    query = exact(resolved(parsed(text), shapes).query, shapes)
    assert isinstance(query, exp.Select)
    apart = _Apart(types_of(query, shapes))
    finals = [
        mine.final(apart.state(node, mine.op, mine.at)) if mine else text_of(apart.final(node))
        for mine, node in zip(own, [one.unalias() for one in query.selects], strict=True)
    ]
    return apart.states, finals, _cells(query, keys, [*_keys(windows), *places], more, apart)


def _keys(windows: Windows) -> list[str]:
    return [f"k{at}" for at in range(len(windows.by))]


def with_micros(shape: InputShape, *names: str) -> InputShape:
    """An input that has times in microseconds besides its own columns."""
    return shape.with_columns(*(Column(name, ColumnType.INT) for name in names))


def _cells(
    query: exp.Select, columns: Sequence[str], names: Sequence[str], more: Mapping[str, str], apart: _Apart
) -> str:
    cells = query.copy()
    of = query.args["from_"].this.alias_or_name
    told = [*zip(columns, names, strict=True), *((sql.format(f"`{of}`.`{AT}`"), name) for name, sql in more.items())]
    shown: list[exp.Expr] = [exp.maybe_parse(f"{sql} AS `{name}`", dialect="spark") for sql, name in told]
    cells.set("expressions", [*shown, *(exp.alias_(node, name) for name, node in apart.cells.items())])
    return text_of(cells)


def windows_sql(told: Checked, finals: Sequence[str]) -> str:
    """The query that tells windows by their states."""
    shown = [f"{key} AS `{name}`" for key, name in zip(_keys(told.windows), told.windows.by, strict=True)]
    shown += [f"{typed(START, told.on)} AS {WINDOW_START}", f"{typed(END, told.on)} AS {WINDOW_END}"]
    shown += [f"{final} AS `{one.name}`" for (one, _, _), final in zip(told.aggregates, finals, strict=True)]
    return f"SELECT {', '.join(shown)} FROM {CELLED}"


@dataclass(frozen=True)
class _Own:
    """An aggregate of a window that is told otherwise of instants than it is of rows: its state of an instant."""

    sql: str
    op: Op
    text: str = "{}"
    at: float = 0.5

    def final(self, state: exp.Column) -> str:
        return self.text.format(text_of(state))

    @classmethod
    def of(cls, aggregate: Aggregate, of: RowExpression | None, where: RowExpression | None) -> _Own | None:
        if of is None:
            return None
        conditions = [f"({of.sql}) IS NOT NULL", *([f"({where.sql})"] if where else [])]
        filtered = f"FILTER (WHERE {' AND '.join(conditions)})"
        match aggregate.function:
            case Function.FIRST:
                return cls(f"min({of.sql}) {filtered}", Op.FIRST)
            case Function.LAST:
                return cls(f"max({of.sql}) {filtered}", Op.LAST)
            case Function.COLLECT:
                listed = f"to_json(sort_array(collect_list({of.sql}) {filtered}))"
                within = f"nullif(substring({listed}, 2, length({listed}) - 2), '')"
                return cls(within, Op.TEXT, "concat('[', coalesce({}, ''), ']')")
            case Function.COUNT_DISTINCT:
                return cls(f"collect_set({of.sql}) {filtered}", Op.DISTINCT)
            case Function.APPROX_DISTINCT:
                value = f"({of.sql}) + 0D" if of.type in FLOATS else of.sql
                return cls(f"collect_set(xxhash64({value})) {filtered}", Op.DISTINCT)
            case Function.APPROX_QUANTILE:
                assert aggregate.at is not None
                return cls(f"collect_list({on_a_grid(of.sql)}) {filtered}", Op.QUANTILE, at=aggregate.at)
        return None


@dataclass
class _Apart:
    """States, each once, however many aggregates are told by it."""

    types: Mapping[tuple[str, str], str]
    cells: dict[str, exp.Expr] = field(default_factory=dict)
    _found: dict[str, State] = field(default_factory=dict)

    @property
    def states(self) -> tuple[State, ...]:
        return tuple(self._found.values())

    def state(self, node: exp.Expr, op: Op, at: float = 0.5) -> exp.Column:
        """The column that holds the state whose cells are told by `node`."""
        text = f"{op} {at} {text_of(node)}"
        if text not in self._found:
            self._found[text] = State(f"s{len(self._found)}", op, at)
            self.cells[self._found[text].name] = node.copy()
        return exp.column(self._found[text].name)

    def final(self, node: exp.Expr) -> exp.Expr:
        """An expression of aggregates, of the states of a window."""
        whole = exp.paren(node.copy())
        for one in own_aggregates(whole):
            around = with_filter(one)
            if name_of(one) in ("avg", "mean"):
                around.replace(exp.paren(self._average(one, around)))
            else:
                around.replace(self.state(around, _OPS[name_of(one)]))
        return whole

    def _average(self, node: exp.Expr, around: exp.Expr) -> exp.Expr:
        """That of decimals: others are written as sums and counts by now."""
        of, _ = distinct_of(node)
        digits = decimal_digits(type_of(of, self.types))
        if digits is None or sum(digits) > _MOST_DIGITS:
            raise InvalidUsage(
                f"aggregates: the average of {of.sql()} in sliding windows has more digits than can be exact; "
                "CAST it as decimal(18, 2)"
            )
        total = self.state(_like(around, "SUM", of), Op.ADD)
        count = self.state(_like(around, "COUNT", of), Op.ADD)
        told = exp.EQ(this=count.copy(), expression=exp.Literal.number(0))
        return exp.case().when(told, exp.null()).else_(quotient(total, count, *digits))


def _like(around: exp.Expr, name: str, of: exp.Expr) -> exp.Expr:
    called = exp.Anonymous(this=name, expressions=[of.copy()])
    if not isinstance(around, exp.Filter):
        return called
    return exp.Filter(this=called, expression=around.expression.copy())
