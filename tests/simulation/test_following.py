"""Columns of an input change: what becomes of all that is derived from it, and that it is what its definition says."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from simulation.plain_definitions import ALL, GREAT, TEXTS, TOTALS, derived
from simulation.script import row
from simulation.sea import Sea
from tidemark.config.collection_file import parse
from tidemark.config.derived_file import DerivedFile
from tidemark.errors import InvalidUsage
from tidemark.jobs.queries.consequences import check_unbroken, consequences
from tidemark.jobs.steps.init import declare_collection
from tidemark.model.collection import Collection, Column, parse_type
from tidemark.model.evolution import evolved

RENAMED = ("v string", "x int")
DERIVED = {"all": ALL, "texts": TEXTS, "totals": TOTALS, "great": GREAT}


@pytest.fixture
def sea(tmp_path: Path) -> Sea:
    """`tides`, two collections of its rows, one of its groups, and one derived from that in turn."""
    made = Sea(tmp_path)
    made.landed("tides", value=columns("v string", "w int"))
    for name, select in DERIVED.items():
        made.add(derived(name, select))
    made.ingest("tides", 0, ("a", [row(1, "a", 1, w=2), row(2, "a", 2, w=3), row(3, "b", 3, w=1)]))
    for name in DERIVED:
        made.correct(name)
    return made


def columns(*described: str) -> tuple[Column, ...]:
    return tuple(
        Column(name, parse_type(type_name)) for name, _, type_name in (each.partition(" ") for each in described)
    )


def asked(sea: Sea, *value: str, renames: Sequence[tuple[str, str]] = ()) -> Collection:
    current = sea.worlds["tides"].state.collection
    return evolved(current, replace(current, value=columns(*value), renames=tuple(renames)))


def brought_in(sea: Sea, *value: str, renames: Sequence[tuple[str, str]] = ()) -> None:
    new = asked(sea, *value, renames=renames)
    sea.run("tides", lambda job: declare_collection(job, replace(new, renames=tuple(renames))))


WRITE = "tides calls w x now, write x for it in the definition, and x AS w where it is a column of the result"
GONE = "tides has no w any more, leave it out of the definition"


@pytest.mark.parametrize(
    ("value", "renames", "expected"),
    [
        (("v string", "w int"), (), dict.fromkeys(DERIVED, "same")),
        (
            ("v string", "w decimal(12, 2)"),
            (),
            {
                "all": "follows by itself, its next run computes all of it: widened w from int to decimal(12, 2)",
                "texts": "follows by itself, its next run computes all of it: same columns",
                "totals": "follows by itself, its next run computes all of it: "
                "widened total from int to decimal(22, 2); widened most from int to decimal(12, 2)",
                "great": "follows by itself, its next run computes all of it: widened total from int to decimal(22, 2)",
            },
        ),
        (
            ("v string", "w int", "x int"),
            (),
            {
                "all": "follows by itself, its next run computes all of it: added x int",
                "texts": "same",
                "totals": "same",
                "great": "same",
            },
        ),
        (
            RENAMED,
            (("w", "x"),),
            {
                "all": "needs an edit: write columns: {x: {was: w}} in its file",
                "texts": f"needs an edit: {WRITE}",
                "totals": f"needs an edit: {WRITE}",
                "great": "stays as it is until totals is edited",
            },
        ),
        (
            ("v string",),
            (),
            {
                "all": "follows by itself, its next run computes all of it: dropped w int",
                "texts": f"needs an edit: {GONE}",
                "totals": f"needs an edit: {GONE}",
                "great": "stays as it is until totals is edited",
            },
        ),
    ],
    ids=["nothing", "widened", "added", "renamed", "dropped"],
)
def test_what_becomes_of_each(
    sea: Sea, value: tuple[str, ...], renames: tuple[tuple[str, str], ...], expected: dict[str, str]
) -> None:
    job = sea.joined(sea.worlds["tides"].job())
    derived = consequences(job, asked(sea, *value, renames=renames), {})
    assert {each.collection: each.words for each in derived} == expected
    if any("edit: " in words for words in expected.values()):
        with pytest.raises(InvalidUsage, match=r"this change of tides breaks .* --break-derived"):
            check_unbroken("tides", derived)
    else:
        check_unbroken("tides", derived)


def test_an_edit_that_was_made_already_breaks_nothing(sea: Sea, tmp_path: Path) -> None:
    texts = {
        "totals": "select: SELECT v, sum(x) AS total, max(x) AS most FROM tides GROUP BY v",
        "texts": "key: [k]\nselect: SELECT k, CAST(x AS string) AS t FROM tides",
        "all": "key: [k]\nselect: SELECT * FROM tides\ncolumns: {x: {was: w}}",
    }
    files = {}
    for name, text in texts.items():
        (tmp_path / f"{name}.yaml").write_text(f"name: {name}\nfrom: tides\n{text}\n")
        files[name] = parse(tmp_path / f"{name}.yaml")
        assert isinstance(files[name], DerivedFile)
    job = sea.joined(sea.worlds["tides"].job())
    derived = consequences(job, asked(sea, *RENAMED, renames=[("w", "x")]), files)  # type: ignore[arg-type]
    lines = {each.collection: each.words.partition(": ")[2] for each in derived}
    assert lines == {"all": "renamed w to x", "texts": "same columns", "totals": "same columns", "great": ""}
    check_unbroken("tides", derived)


def test_rows_stay_what_the_definitions_say_while_an_input_gets_wider(sea: Sea) -> None:
    """Also where only the values follow, as in a text of a number; and a second time nothing is computed whole."""
    brought_in(sea, "v string", "w decimal(12, 2)")
    sea.ingest("tides", 1, ("a", [row(4, "b", 11, w="0.25")]))
    whys = {name: sea.correct(name)["why"] for name in DERIVED}
    assert set(whys.values()) == {"columns of its inputs changed"} or whys["totals"] == "it is kept in other columns"
    types = {c.name: str(c.type) for name in ("all", "totals") for c in sea.worlds[name].state.collection.value}
    assert types == {"v": "string", "w": "decimal(12, 2)", "total": "decimal(22, 2)", "most": "decimal(12, 2)"}
    assert {row[1] for row in sea.rows_as_of("texts", 19)} == {"2.00", "3.00", "1.00", "0.25"}
    assert sum(sea.law(name) for name in DERIVED) == len(DERIVED)
    sea.ingest("tides", 2, ("a", [row(5, "a", 21, w="0.75")]))
    assert all(sea.correct(name)["mode"] != "whole" for name in DERIVED)
    assert sum(sea.law(name) for name in DERIVED) == 2 * len(DERIVED)


def test_rows_follow_columns_that_exchange_their_names(tmp_path: Path) -> None:
    sea = Sea(tmp_path)
    sea.landed("tides", value=columns("v string", "w int", "y int"))
    sea.add(derived("totals", TOTALS))
    sea.ingest("tides", 0, ("a", [row(1, "a", 1, w=2, y=70), row(2, "a", 2, w=3, y=80)]))
    sea.correct("totals")
    exchange = [("w", "y"), ("y", "w")]
    for _ in range(2):  # the file may keep saying so
        brought_in(sea, "v string", "w int", "y int", renames=exchange)
    sea.ingest("tides", 1, ("a", [row(3, "b", 11, w=90, y=4)]))
    assert sea.correct("totals")["why"] == "columns of its inputs changed"
    assert set(sea.rows_as_of("totals", 19)) == {("a", 150, 80), ("b", 90, 90)}
    assert sea.law("totals") == 1
