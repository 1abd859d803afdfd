"""What `explain` says of a definition."""

from __future__ import annotations

from tests.pure.definition.inputs import recipe
from tidemark.definition.explained import explained


def told(select: str) -> str:
    return "\n".join(explained(recipe(select), ("flights", "carriers")))


def test_by_row() -> None:
    assert told("SELECT carrier, id FROM flights WHERE id > 1") == (
        "mode: by row: each changed row of flights becomes rows of its own, at its own times\n"
        "reads: the changes of flights, and nothing else\n"
        "columns: carrier, id\n"
        "key: carrier, id"
    )


def test_sums() -> None:
    assert told("SELECT carrier, avg(Delay) AS late FROM flights GROUP BY carrier") == (
        "mode: by key: sums of each carrier grow by what changed\n"
        "reads: the changes of flights, and of the collection the rows with a carrier that they have\n"
        "adds up: _rows, _part1, _part2\n"
        "columns: carrier, late\n"
        "hidden columns: _rows int, _part1 int, _part2 decimal(30, 0)\n"
        "key: carrier\n"
        "why: not by row: GROUP BY adds up rows of a group"
    )


def test_groups_and_joins() -> None:
    assert told("SELECT f.id, c.name, c.code FROM flights f JOIN carriers c ON f.tags = c.code") == (
        "mode: by key: what has a code that changed rows have is computed anew\n"
        "reads: the changes of flights and of carriers, and of the collection the rows with a code that they have\n"
        "reads of flights: all rows, to find those of changed values; they are in order of none of them\n"
        "reads of carriers: the rows with a code that changed rows have, with which its key begins\n"
        "columns: id, name, code\n"
        "key: none can be inferred; the file must say it\n"
        "why: not by row: a join brings rows of two tables together\n"
        "why: groups are recomputed, not added up: only what GROUP BY or DISTINCT brings together can be added up"
    )


def test_whole() -> None:
    assert told("SELECT count(*) AS n FROM flights, carriers") == (
        "mode: whole: all rows are computed, and those that differ from what is held are written\n"
        "reads: all rows of flights, carriers, and of the collection\n"
        "columns: n\n"
        "key: none can be inferred; the file must say it\n"
        "why: not by row: an aggregate adds up rows\n"
        "why: not by key: an aggregate without GROUP BY needs all rows"
    )
