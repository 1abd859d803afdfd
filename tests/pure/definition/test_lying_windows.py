"""Sliding windows and sessions as they are compiled: which states an instant has, what is refused."""

from __future__ import annotations

import re

import pytest
import sqlglot

from tests.pure.definition.inputs import FLIGHTS
from tidemark.definition.explained import explained
from tidemark.definition.recipe import InSessions, Recipe, Slid
from tidemark.definition.state import Op, State
from tidemark.definition.windows.analysed import analysed_windows
from tidemark.errors import InvalidUsage
from tidemark.model.derived import Mode, Refresh
from tidemark.model.window.aggregate import Aggregate, Function
from tidemark.model.window.kind import Session, Sliding
from tidemark.model.window.windows import Late, Windows

SLID = Sliding(10)


def recipe(*aggregates: Aggregate, kind: Sliding | Session = SLID, refresh: Refresh = Refresh.AUTO) -> Recipe:
    return analysed_windows(Windows(("carrier",), "at", kind, aggregates, where="id > 1"), FLIGHTS, refresh)


def slid(*aggregates: Aggregate) -> Slid:
    rule = recipe(*aggregates).windowed
    assert isinstance(rule, Slid)
    return rule


def test_what_several_aggregates_need_is_one_state() -> None:
    rule = slid(
        Aggregate("mean", Function.AVG, "fare"),
        Aggregate("known", Function.COUNT, "fare"),
        Aggregate("total", Function.SUM, "fare"),
    )
    assert rule.states == (State("s0", Op.ADD), State("s1", Op.ADD))
    shown = [part.strip() for part in re.findall(r"(?:SUM|COUNT)\(`flights`.`fare`\) AS `s\d`", rule.cells)]
    assert shown == ["SUM(`flights`.`fare`) AS `s0`", "COUNT(`flights`.`fare`) AS `s1`"]
    assert rule.windows.startswith("SELECT k0 AS `carrier`, timestamp_micros(_start) AS window_start")


@pytest.mark.parametrize(
    ("aggregate", "ops"),
    [
        (Aggregate("a", Function.COUNT, where="Delay > 0"), [Op.ADD]),
        (Aggregate("a", Function.AVG, "Delay"), [Op.ADD, Op.ADD]),
        (Aggregate("a", Function.SUM, "miles"), [Op.CONCAT, Op.BIT_OR, *[Op.ADD] * 9]),
        (Aggregate("a", Function.MIN, "carrier"), [Op.MIN]),
        (Aggregate("a", Function.MAX, "miles"), [Op.MAX]),
        (Aggregate("a", Function.FIRST, "tags"), [Op.FIRST]),
        (Aggregate("a", Function.LAST, "tags", "id > 2"), [Op.LAST]),
        (Aggregate("a", Function.COLLECT, "id"), [Op.TEXT]),
        (Aggregate("a", Function.COUNT_DISTINCT, "id"), [Op.DISTINCT]),
        (Aggregate("a", Function.APPROX_DISTINCT, "miles"), [Op.DISTINCT]),
        (Aggregate("a", Function.APPROX_QUANTILE, "Delay", at=0.9), [Op.QUANTILE]),
    ],
)
def test_each_function_is_states_of_instants(aggregate: Aggregate, ops: list[Op]) -> None:
    assert [state.op for state in slid(aggregate).states] == ops


def test_an_average_that_could_not_be_rounded_as_sparks_is_refused() -> None:
    with pytest.raises(InvalidUsage, match=r"average of .* in sliding windows has more digits"):
        recipe(Aggregate("mean", Function.AVG, "CAST(fare AS decimal(30, 2))"))


def test_sessions_read_the_columns_they_need() -> None:
    rule = recipe(Aggregate("n", Function.COUNT, "Delay", "miles > 3"), kind=Session(5, max_length=9)).windowed
    assert isinstance(rule, InSessions)
    assert rule.columns == ("carrier", "Delay", "miles")
    assert "LEAST(MAX(`flights`.`_at`) + CAST(5 AS BIGINT), `flights`.`_start` + CAST(9 AS BIGINT))" in rule.windows


@pytest.mark.parametrize("kind", [SLID, Session(5)])
def test_columns_that_sums_would_hide_are_none_of_theirs(kind: Sliding | Session) -> None:
    """A count and an average of the rows at one instant would be added up from what is hidden."""
    found = recipe(Aggregate("n", Function.COUNT), Aggregate("mean", Function.AVG, "fare"), kind=kind)
    assert found.hidden == ()
    shown = sqlglot.parse_one(found.whole, dialect="spark").named_selects
    assert shown == ["carrier", "window_start", "window_end", "n", "mean"]


def test_what_they_read_is_told() -> None:
    count = Aggregate("n", Function.COUNT)
    assert explained(recipe(count), ["flights"])[:3] == (
        "mode: by key: sliding windows of the same carrier that start up to 10us before a changed row or just after",
        "reads: the changes of flights, and of the collection the windows of the same carrier",
        "reads of flights: the rows of the same carrier, and computes from those up to 10us around these windows",
    )
    told = explained(analysed_windows(Windows((), "at", Session(5), (count,)), FLIGHTS), ["flights"])
    assert told[0] == "mode: by key: the sessions that a changed row is in, connects or parts"


def test_they_are_computed_by_key_unless_all_is_asked_for() -> None:
    count = Aggregate("n", Function.COUNT)
    assert (recipe(count).mode, recipe(count).key) == (Mode.BY_KEY, ("carrier", "window_start", "window_end"))
    assert recipe(count, kind=Session(5)).mode is Mode.BY_KEY
    assert recipe(count, refresh=Refresh.WHOLE).mode is Mode.WHOLE
    with pytest.raises(InvalidUsage, match="late rows correct session windows however late"):
        analysed_windows(Windows((), "at", Session(5), (count,), late=Late.DISCARD), FLIGHTS)
