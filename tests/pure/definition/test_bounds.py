"""A text costs what it has, not what it stands for: whatever a definition holds, it is refused or read within bounds.

What is counted is deterministic: tokens, and nodes that are looked at. CPU seconds are asked with a wide margin, and of
the better of two tries.
"""

from __future__ import annotations

import pytest
from sqlglot import exp

from tests.pure.definition.inputs import FLIGHTS, recipe
from tidemark.definition.parse import _one_query, inputs_of, parsed, tables_of
from tidemark.definition.windows.checked import check_expressions
from tidemark.definition.written_out import MAX_NESTED, MAX_NODES, Measuring
from tidemark.errors import InvalidUsage
from tidemark.model.window.aggregate import Aggregate, Function
from tidemark.model.window.kinds import Tumbling
from tidemark.model.window.windows import Windows

pytestmark = pytest.mark.pure

"""CPU seconds, where 0.2 are aimed at: the bug took 103."""
SUM = " + ".join(["a"] * 800)


def doubling(times: int) -> str:
    more = (f"c{at} AS (SELECT l.a FROM c{at - 1} l JOIN c{at - 1} r ON l.a = r.a)" for at in range(1, times))
    return f"WITH {', '.join(['c0 AS (SELECT a FROM t)', *more])} SELECT a FROM c{times - 1}"


def chain(times: int) -> str:
    more = (f"c{at} AS (SELECT a FROM c{at - 1})" for at in range(1, times))
    return f"WITH {', '.join(['c0 AS (SELECT a FROM t)', *more])} SELECT a FROM c{times - 1}"


def nested_with(times: int) -> str:
    query = "SELECT a FROM t"
    for _ in range(times):
        query = f"WITH c AS ({query}) SELECT l.a FROM c l JOIN c r ON l.a = r.a"
    return query


REFUSED = {
    "a large expression, 1,500 times": (
        f"WITH c AS (SELECT {SUM} AS x FROM t) SELECT 1 AS y FROM {', '.join(['c'] * 1500)}",
        "too large once its WITH is written out",
    ),
    "each names the one before twice": (doubling(100), "too large once its WITH is written out"),
    "WITH within WITH": (nested_with(60), "too large once its WITH is written out"),
    "each names the one before once": (chain(2000), f"and {MAX_NESTED} are allowed"),
    "subqueries in FROM": ("SELECT a FROM " + "(SELECT a FROM " * 60 + "t" + ")" * 60, "61 SELECTs nested"),
    "300 subqueries": ("SELECT a FROM " + "(SELECT a FROM " * 300 + "t" + ")" * 300, "nested too deeply"),
    "parentheses": ("SELECT " + "(" * 5000 + "a" + ")" * 5000 + " AS x FROM t", "nested too deeply"),
    "CASE": ("SELECT " + "CASE WHEN a THEN " * 1000 + "b" + " END" * 1000 + " AS x FROM t", "nested too deeply"),
    "calls without end": ("SELECT " + "f(" * 9000, "nested too deeply"),
    "10,000 ANDs": ("SELECT a FROM t WHERE " + " AND ".join(["a>1"] * 10_000), "it may have 20,000"),
    "5,000 of them": ("WITH " + ", ".join(f"c{at} AS (SELECT 1 AS a)" for at in range(3000)), "it may have 20,000"),
    "an IN list": ("SELECT a FROM t WHERE a IN (" + ",".join(map(str, range(16_000))) + ")", "32,008 words"),
    "columns": ("SELECT " + "a," * 49_000 + "a FROM t", "98,004 words"),
    "tables": ("SELECT 1 AS x FROM " + ",".join(["t"] * 40_000), "80,004 words"),
    "statements": (";" * 19_000 + "SELECT 1", "reads no collection"),
}
TAKEN = {
    "a long name": "SELECT " + "a" * 99_000 + " AS x FROM t",
    "a long text": "SELECT '" + "''" * 49_000 + "' AS x FROM t",
    "ANDs": "SELECT a FROM t WHERE " + " AND ".join(["a>1"] * 4_900),
    "comments": "/* x */" * 12_000 + "SELECT a FROM t",
    "hints": "SELECT /*+ " + "BROADCAST(t), " * 5_000 + "*/ a FROM t",
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_too_large_or_too_deep_is_refused_in_one_short_line(case: str) -> None:
    select, message = REFUSED[case]
    with pytest.raises(InvalidUsage) as refusal:
        inputs_of(select)
    assert message in str(refusal.value)
    assert str(refusal.value).startswith("the select ")
    assert len(str(refusal.value)) < 300


@pytest.mark.parametrize("case", TAKEN)
def test_what_is_long_and_plain_is_taken(case: str) -> None:
    assert inputs_of(TAKEN[case]) == ("t",)


@pytest.mark.parametrize("select", [REFUSED["a large expression, 1,500 times"][0], doubling(100), nested_with(60)])
def test_a_query_is_measured_before_anything_of_it_is_written_out(select: str) -> None:
    query = _one_query(select)
    nodes = sum(1 for _ in query.walk())
    measuring = Measuring()
    with pytest.raises(InvalidUsage):
        measuring.extent(query, {})
    assert measuring.visited <= nodes  # each node of the text once, and nothing else


@pytest.mark.parametrize(
    "select", [doubling(8), chain(40), nested_with(6), "WITH c(x) AS (SELECT a FROM t) SELECT 1 FROM c d, t"]
)
def test_what_is_measured_is_what_is_written(select: str) -> None:
    extent = Measuring().extent(_one_query(select), {})
    written = parsed(select)
    nodes = sum(1 for _ in written.walk())
    assert abs(extent.nodes - nodes) <= 4 + nodes / 5  # an alias may take the place of another
    assert extent.nested == max(_selects_around(one) for one in tables_of(written))


def test_the_bound_of_nodes_is_one_of_what_is_written() -> None:
    size = Measuring().extent(_one_query(doubling(10)), {}).nodes
    assert MAX_NODES / 2 < size * 4 < MAX_NODES * 2  # so that the next two are on either side of it
    large = next(times for times in range(10, 20) if size * 2 ** (times - 10) > MAX_NODES)
    assert inputs_of(doubling(large - 1)) == ("t",)
    with pytest.raises(InvalidUsage, match="too large"):
        inputs_of(doubling(large + 1))


def test_a_query_that_is_not_named_is_not_written_out() -> None:
    assert inputs_of(f"WITH unused AS (SELECT x FROM other), {doubling(5)[5:]}") == ("t",)


def test_names_are_looked_up_as_before() -> None:
    inner = "(WITH b AS (SELECT x FROM a) SELECT x FROM b)"
    assert inputs_of(f"WITH a AS (SELECT x FROM t) SELECT x FROM {inner} i JOIN b ON true") == ("t", "b")
    assert inputs_of("WITH a AS (SELECT x FROM a) SELECT l.x FROM a l JOIN (SELECT x FROM A) r ON l.x = r.x") == ("a",)


def test_what_cannot_be_written_again_is_refused_when_it_is_analysed() -> None:
    with pytest.raises(InvalidUsage, match="nested too deeply"):
        recipe("SELECT Delay" + "::int" * 900 + " AS x FROM flights")


def test_expressions_of_windows_are_bounded_together() -> None:
    def windows(*texts: str, where: str = "") -> Windows:
        aggregates = tuple(Aggregate(f"a{at}", Function.MAX, text) for at, text in enumerate(texts))
        return Windows(by=(), on="at", kind=Tumbling(10), aggregates=aggregates, where=where)

    large = " + ".join(["Delay"] * 3000)
    check_expressions(windows(large, large, large))
    with pytest.raises(InvalidUsage, match=r"aggregates\.a3: with this expression, those .* have 23,996 words"):
        check_expressions(windows(large, large, large, large))
    with pytest.raises(InvalidUsage, match=r"windows\.where: has 20,001 words"):
        check_expressions(windows("Delay", where="a," * 10_000 + "a"))
    with pytest.raises(InvalidUsage, match=r"windows\.where: is too large once its WITH is written out"):
        check_expressions(windows("Delay", where=f"Delay IN ({doubling(100)})"))
    assert FLIGHTS.columns[2].name == "Delay"


def _selects_around(node: exp.Expr) -> int:
    count, above = 0, node.parent
    while above is not None:
        count, above = count + isinstance(above, exp.Select), above.parent
    return count
