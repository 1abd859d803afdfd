"""How a table gets the rows of a collection: from records of parts alone."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from support.world import collection
from tests.support.drawn import ref, trace_batch
from tidemark.errors import InvalidUsage, Uncertified
from tidemark.model.arrangement import Arrangement, Certificate
from tidemark.model.batch import Part
from tidemark.model.collection import Gate
from tidemark.model.publication import Destination, Publication, TableFormat
from tidemark.plan.publish import (
    Mark,
    TableHead,
    Way,
    by_copy,
    changes_since,
    check_head,
    frontier_of,
    holds,
    mark_of,
    marked,
    nameable,
    only_adds,
    rows_of,
)
from tidemark.plan.read import plan_as_of

ICE = Destination(TableFormat.ICEBERG, "db.t")
DELTA = Destination(TableFormat.DELTA, "/t")
STATE = replace(
    Arrangement(collection(), incarnation="i1"),
    complete_below=20,
    seal=20,
    trace=(trace_batch(["a", "[0][10][0]", "5", "0"]), trace_batch(["b", "[10][20][0]", "5", "0"])),
)


def part(name: str, keys: tuple[int, int], times: tuple[int, int], **more: Any) -> Part:
    bounds = {"first_time": times[0], "last_time": times[1], "first_event_time": times[0], "last_event_time": times[1]}
    return Part(ref(name), 5, 0, (((keys[0],), 5),), (keys[1],), **bounds, **more)


def named(*parts: Part, state: Arrangement = STATE) -> tuple[list[str], bool]:
    found, is_all = nameable(plan_as_of(state), {"a": parts[:1], "b": parts[1:]})
    return [each.file.key for each in found], is_all


A, B = part("a1", (0, 50), (0, 9)), part("b1", (40, 90), (10, 19))


def test_parts_whose_keys_meet_are_rows_as_they_are() -> None:
    assert named(A, B) == (["a1", "b1"], True)


@pytest.mark.parametrize(
    ("second", "found"),
    [
        (part("b1", (40, 90), (10, 19), retractions=1), []),
        (part("b1", (51, 90), (10, 19), retractions=1), ["a1"]),
        (part("b1", (40, 90), (10, 19), schema=1), ["a1"]),
    ],
    ids=["what meets a retraction is merged", "what does not is named", "other columns are copied"],
)
def test_what_is_not_named(second: Part, found: list[str]) -> None:
    assert named(A, second) == (found, False)


def test_a_part_that_reaches_beyond_the_seal_is_not_named() -> None:
    ahead = part("b1", (40, 90), (10, 25))
    assert named(A, ahead) == (["a1"], False)


@pytest.mark.parametrize(
    ("destination", "one_value", "adds", "new", "way"),
    [
        (ICE, False, True, 30, Way.APPEND),
        (ICE, False, True, 31, Way.WHOLE),
        (ICE, True, False, 1, Way.WHOLE),
        (DELTA, True, False, 30, Way.MERGE),
        (DELTA, True, False, 31, Way.WHOLE),
        (DELTA, False, False, 1, Way.WHOLE),
        (DELTA, True, True, 0, Way.APPEND),
    ],
)
def test_how_rows_are_copied(destination: Destination, one_value: bool, adds: bool, new: int, way: Way) -> None:
    assert by_copy(destination, one_value, adds, new, 100) is way


MARK = mark_of(STATE, 7, ("p2", "p1"))


def test_a_mark_comes_back_as_it_went() -> None:
    assert marked(MARK.properties) == MARK == Mark("tides", "i1", 20, 20, 7, 0, ("p1", "p2"))
    assert marked({"tidemark.collection": "tides"}) is None
    assert marked(MARK.properties | {"tidemark.seal": "soon"}) is None


def test_the_frontier_is_what_is_drained_and_certified() -> None:
    suite = STATE.collection.suite(Gate.TRACE)
    certified = replace(STATE, certificates=tuple(Certificate(each, suite) for each in "ab"))
    assert frontier_of(replace(certified, seal=30)) == 20, "what is sealed alone can be taken out again"
    assert frontier_of(replace(certified, since=20)) == 0, "history was merged past it"
    assert frontier_of(Arrangement(collection())) == 0
    with pytest.raises(Uncertified, match="trace batch b is not certified; run the trace gate"):
        frontier_of(replace(certified, certificates=certified.certificates[:1]))


def test_what_changed_since() -> None:
    assert holds(STATE, MARK)
    assert not holds(STATE, replace(MARK, seal=10))
    assert not holds(STATE, replace(MARK, schema=1))
    since = changes_since(STATE, replace(MARK, seal=10))
    assert since is not None
    assert (since.after, since.upto) == (9, 19)
    parts = {"b": (B,)}
    assert only_adds(since, parts)
    assert rows_of(since, parts) == 5
    assert not only_adds(since, {"b": (replace(B, retractions=1),)})
    assert changes_since(replace(STATE, since=15), replace(MARK, seal=10)) is None, "merged past it"
    assert changes_since(STATE, replace(MARK, schema=1)) is None
    assert changes_since(STATE, replace(MARK, seal=30)) is None
    assert changes_since(STATE, None) is None


HEAD = TableHead("5", 5, MARK, ("tides", "i1"), None, (MARK,))
PUBLISHED = Publication(TableFormat.ICEBERG, "db.t", snapshot="5", sequence=5)


@pytest.mark.parametrize(
    ("publication", "head", "said", "again"),
    [
        (None, None, None, None),
        (PUBLISHED, HEAD, None, None),
        (None, HEAD, None, None),
        (PUBLISHED, None, "is gone, where tides was published as 5", None),
        (PUBLISHED, replace(HEAD, changed_by="snapshot 6"), "it has snapshot 6, and tides was published as 5", None),
        (PUBLISHED, replace(HEAD, owner=("tides", "i0")), "contains an earlier collection", None),
        (PUBLISHED, replace(HEAD, owner=None), "Tidemark did not make it", "Tidemark did not make it"),
        (PUBLISHED, replace(HEAD, owner=("ebbs", "i1")), "holds the collection ebbs", "holds the collection ebbs"),
        (replace(PUBLISHED, table="db.u"), HEAD, "its file says db.t; first run", "its file says db.t; first run"),
    ],
)
def test_a_table_that_is_not_what_was_published(
    publication: Any, head: Any, said: str | None, again: str | None
) -> None:
    for asked, expected in ((False, said), (True, again)):
        if expected is None:
            check_head(STATE, publication, "db.t", head, asked)
            continue
        with pytest.raises(InvalidUsage, match=expected):
            check_head(STATE, publication, "db.t", head, asked)
