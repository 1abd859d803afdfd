"""The words for how something was computed."""

from __future__ import annotations

from typing import Any

import pytest

from tests.pure.definition.inputs import FLIGHTS, INPUTS, recipe
from tidemark.definition.ways import Place, Way, kernel_of, ways_of
from tidemark.definition.windows.analysed import analysed_windows
from tidemark.model.derived import Refresh
from tidemark.model.window.aggregate import Aggregate, Function
from tidemark.model.window.kinds import Session, Sliding, Tumbling, WindowKind
from tidemark.model.window.windows import Late, Windows

pytestmark = pytest.mark.pure

COUNT = (Aggregate("n", Function.COUNT),)


@pytest.mark.parametrize(
    ("way", "words"),
    [
        (Way(Place.HERE, "group"), "by the group kernel, in this process"),
        (Way(Place.KEY_RANGES, "session"), "by the session kernel, by executors, each a range of keys"),
        (Way(Place.SHUFFLE, "sliding"), "by the sliding kernel, by executors, after a shuffle"),
        (Way(Place.QUERIES, "group"), "by Spark SQL"),
        (Way(Place.QUERIES, "session"), "by Spark SQL and the session kernel"),
        (Way(Place.PYTHON, ""), "by its function in Python, on executors"),
    ],
)
def test_words(way: Way, words: str) -> None:
    assert way.words == words


@pytest.mark.parametrize(
    ("kind", "by", "kernel", "first"),
    [
        (Tumbling(5), ("carrier",), "group", ["here", "key_ranges", "shuffle", "queries"]),
        (Tumbling(5), (), "group", ["here", "shuffle", "queries"]),
        (Sliding(5), ("carrier",), "sliding", ["here", "key_ranges", "shuffle", "queries"]),
        (Session(5), ("day",), "session", ["here", "shuffle", "queries"]),
        (Session(5), (), "session", ["here", "queries"]),
    ],
)
def test_places_follow_from_the_order_of_the_input(
    kind: WindowKind, by: tuple[str, ...], kernel: str, first: list[str]
) -> None:
    found = ways_of(analysed_windows(Windows(by, "at", kind, COUNT), FLIGHTS), [FLIGHTS])
    assert (found.kernel, [str(place) for place in found.first]) == (kernel, first)
    assert bool(found.why) is ("key_ranges" not in first)


@pytest.mark.parametrize(
    ("more", "refresh", "kernel", "first", "changes"),
    [
        ({"late": Late.DISCARD}, Refresh.AUTO, "group", ["here", "shuffle", "queries"], ["here", "queries"]),
        ({"late": Late.NEXT_WINDOW}, Refresh.WHOLE, "group", ["here", "shuffle", "queries"], ["queries"]),
        ({"where": "upper(carrier) = 'A'"}, Refresh.AUTO, "group", ["shuffle", "queries"], ["queries"]),
        ({"where": "upper(carrier) = 'A'", "late": Late.DISCARD}, Refresh.AUTO, "", ["queries"], ["queries"]),
    ],
)
def test_places_of_aligned_windows_follow_from_late_rows_and_expressions(
    more: dict[str, Any], refresh: Refresh, kernel: str, first: list[str], changes: list[str]
) -> None:
    """No kernel is named that computes nothing."""
    found = analysed_windows(Windows(("day",), "at", Tumbling(5), COUNT, **more), FLIGHTS, refresh)
    ways = ways_of(found, [FLIGHTS])
    assert (ways.kernel, ways.first, ways.changes) == (kernel, tuple(first), tuple(changes))
    assert ways.why


def test_what_no_kernel_computes_has_a_reason() -> None:
    for select, why in (
        ("SELECT id, carrier FROM flights WHERE id > 1", "each changed row is computed by itself"),
        ("SELECT count(*) AS n FROM flights", "it is computed whole"),
        ("SELECT carrier, max(Delay) AS m FROM flights GROUP BY carrier HAVING max(Delay) > 1", "it says HAVING"),
    ):
        assert kernel_of(recipe(select)) == ""
        assert ways_of(recipe(select), INPUTS).why[0] == why
