"""The graph of collections on the plugin's page: where boxes stand, what they say, and to whom."""

from __future__ import annotations

import re
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any

import pytest

from tests.dags.test_web import HOSTILE
from tests.support.graph import START, Graph
from tidemark.airflow.web.drawing import graph as drawing
from tidemark.airflow.web.drawing import short
from tidemark.airflow.web.layout import GAP_X, WIDTH, Edge, drawn
from tidemark.airflow.web.overview import describe, overview
from tidemark.airflow.web.page import STYLE, collection_page, overview_page


@pytest.fixture
def graph(locations: Path) -> Graph:
    """`flights` for two days, `carriers` for one, `delays` of both, `report` of that."""
    graph = Graph(locations / "root")
    graph.land("flights", 2)
    graph.land("carriers", 1)
    graph.derive("delays", "flights", "carriers")
    graph.correct("delays")
    graph.derive("report", "delays")
    graph.correct("report")
    return graph


def everyone(name: str) -> bool:
    return True


def test_boxes_never_overlap_and_inputs_stand_left_of_what_is_made_of_them() -> None:
    names = [f"c{at}" for at in range(30)]
    edges = [Edge(f"c{at // 2}", f"c{at}", 40) for at in range(2, 30)] + [Edge("c0", "c29", 58), Edge("c1", "c29", 76)]
    heights = {name: 50.0 + 18 * (at % 4) for at, name in enumerate(names)}
    found = drawn(heights, edges)
    for one, other in combinations(names, 2):
        (x, y), (to_x, to_y) = found.boxes[one], found.boxes[other]
        assert x != to_x or y + heights[one] < to_y or to_y + heights[other] < y
    for edge in edges:
        assert found.boxes[edge.source][0] + WIDTH + GAP_X <= found.boxes[edge.target][0]
        first, *_, last = found.lines[edge]
        assert first[0] == found.boxes[edge.source][0] + WIDTH
        assert last == (found.boxes[edge.target][0], found.boxes[edge.target][1] + edge.port)
        assert all(left[0] <= right[0] for left, right in pairwise(found.lines[edge]))
    assert all(x >= 0 and y >= 0 for x, y in found.boxes.values())
    assert max(y + heights[name] for name, (_, y) in found.boxes.items()) == found.height


def test_a_line_across_a_column_passes_between_its_boxes() -> None:
    edges = [Edge("a", "b", 40), Edge("b", "c", 40), Edge("a", "c", 58)]
    heights = dict.fromkeys("abc", 60.0)
    found = drawn(heights, edges)
    (_, start), (_, end) = found.lines[edges[2]][1:3]
    top = found.boxes["b"][1]
    assert start == end
    assert not top <= start <= top + heights["b"]


def test_the_same_collections_are_drawn_the_same_in_whatever_order_they_come() -> None:
    edges = [Edge("a", "b", 40), Edge("x", "b", 58), Edge("b", "c", 40), Edge("x", "c", 58)]
    heights = {"a": 50.0, "b": 70.0, "c": 70.0, "x": 50.0}
    one = drawn(heights, edges)
    other = drawn(dict(reversed(heights.items())), edges[::-1])
    assert (one.boxes, one.lines) == (other.boxes, other.lines)


def test_what_goes_round_is_drawn_all_the_same() -> None:
    assert set(drawn({"a": 50, "b": 50}, [Edge("a", "b", 40), Edge("b", "a", 40)]).boxes) == {"a", "b"}
    assert drawn({}, []).height == 0


def test_where_nothing_is_computed_there_is_no_graph(locations: Path) -> None:
    graph = Graph(locations / "root")
    graph.land("flights", 1)
    assert drawing(overview(str(graph.root), everyone).entries) == []


def test_a_box_says_how_far_it_is_and_how_far_its_inputs_were_consumed(graph: Graph) -> None:
    (picture,) = drawing(overview(str(graph.root), everyone).entries)
    texts = re.findall(r"<text[^>]*>([^<]*)</text>", picture)
    at = texts.index("delays")
    assert texts[at : at + 8] == [
        *("delays", "complete below", "2024-01-02", "waits for carriers"),
        *("▸ flights", "2024-01-02", "▸ carriers", "2024-01-02"),
    ]
    assert picture.count("<path ") == 3
    assert picture.count('class="lags"') == picture.count('class="behind"') == 1
    assert 'href="collections/delays"' in picture
    assert "waits: carriers is complete below 2024-01-02T00:00:00Z, flights below 2024-01-03T00:00:00Z" in picture


def test_what_is_derived_is_shown_from_where_its_inputs_begin(graph: Graph) -> None:
    """From 1970 on, what it holds would be a line at the right end of the page."""
    shown = {entry["collection"]: entry["start"] for entry in overview(str(graph.root), everyone).entries}
    assert set(shown.values()) == {START}
    hidden = describe(str(graph.root), "report", lambda name: name == "report")
    assert hidden is not None
    assert hidden["start"] == graph.state("report").since


def test_a_box_says_that_what_it_holds_has_ended(graph: Graph) -> None:
    """One that is behind the others for ever is not waited for."""
    entries = overview(str(graph.root), everyone).entries
    ended = [{**one, "end": one["complete_below"]} if one["collection"] == "carriers" else one for one in entries]
    texts = re.findall(r"<text[^>]*>([^<]*)</text>", drawing(ended)[0])
    at = texts.index("carriers")
    assert texts[at : at + 3] == ["carriers", "ended, complete below", "2024-01-02"]
    assert texts.count("ended, complete below") == 1


def test_the_page_of_the_graph_keeps_to_its_policy(graph: Graph, client: Any) -> None:
    answer = client.get("/")
    assert answer.status_code == 200
    assert "<svg" in answer.text
    assert " style=" not in answer.text
    assert "<script" not in answer.text
    assert "unsafe" not in answer.headers["Content-Security-Policy"]
    assert STYLE in answer.text


def test_who_may_not_read_an_input_sees_its_name_and_what_was_consumed_of_it_alone(graph: Graph) -> None:
    entries = overview(str(graph.root), lambda name: name != "carriers").entries
    delays = next(entry for entry in entries if entry["collection"] == "delays")
    (hidden,) = [one for one in delays["follows"]["inputs"] if one["name"] == "carriers"]
    assert (hidden["status"], hidden["readable"], hidden["complete_below"]) == ("hidden", 0, 0)
    assert delays["follows"]["why"] == ""
    (picture,) = drawing(entries)
    assert "not on this page" in picture
    assert "collections/carriers" not in picture
    page = overview_page("/root", entries).html
    assert "complete below 2024-01-03<" in page  # of flights, which may be read
    alone = describe(str(graph.root), "delays", lambda name: name == "delays")
    assert "2024-01-03" not in collection_page("delays", alone).html


def test_an_input_that_is_broken_or_gone_is_a_box_and_no_error(graph: Graph) -> None:
    for version in (path for path in (graph.root / "carriers" / "versions").rglob("*") if path.is_file()):
        version.write_bytes(b"{")
    entries = overview(str(graph.root), everyone).entries
    assert {entry["collection"] for entry in entries if "error" in entry} == {"carriers"}
    (picture,) = drawing(entries)
    assert "cannot be read" in picture


def test_names_and_times_that_are_long_are_cut_and_none_is_markup() -> None:
    entry = {
        **{"collection": HOSTILE, "complete_below": 1, "seal": 2, "waiting_for": None, "quarantine": []},
        **{"complete_below_text": HOSTILE, "seal_text": "2024-01-01T00:00:00.000001Z"},
        "follows": {
            **{"waits_for": HOSTILE, "why": HOSTILE, "last": HOSTILE},
            "inputs": [{"name": "n" * 200, "status": "lags", "consumed_text": HOSTILE}],
        },
    }
    (picture,) = drawing([entry])
    assert "<script" not in picture
    assert "<meta" not in picture
    assert "n" * 16 not in re.sub(r"<title>.*?</title>", "", picture)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("2024-01-02T00:00:00Z", "2024-01-02"),
        ("2024-01-02T06:00:00Z", "2024-01-02T06:00:00"),
        ("2024-01-02T00:00:00.000001Z", "2024-01-02"),
        ("2024-01-02T06:00:00.000012Z", "2024-01-02T06:00:00"),
        ("2024-01-02T06:00:00.5Z", "2024-01-02T06:00:00"),
    ],
)
def test_a_time_is_shown_shortly(text: str, shown: str) -> None:
    assert short(text) == shown
