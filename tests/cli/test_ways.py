"""Which way each derived collection goes that ships, and each example of the how-tos: by which kernel, or by Spark SQL,
and where. A definition that leaves a kernel for Spark SQL costs about ten times as much, so it is noticed here."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Shell
from tests.cli.test_documented import COLLECTIONS, WHOLE
from tests.cli.test_documented import flights as flights
from tests.support.shipped import collection_files

SHIPPED = sorted(path for path in collection_files() if "\nfrom:" in path.read_text(encoding="utf-8"))
IN_ORDER = "flights is in order of time_hour, carrier, flight"
JOINED = (
    "all inputs but one are kept in memory; by executors where the key begins as that of the one does, "
    "and by Spark SQL where they are too large"
)
SHUFFLED = ["here", "shuffle", "queries"]
WAYS: dict[str, dict[str, Any]] = {
    "aircraft_days": {
        "kernel": "session",
        "first": SHUFFLED,
        "changes": ["here", "queries"],
        "why": [f"{IN_ORDER}, not of tailnum"],
    },
    "busy_half_hours": {
        "kernel": "sliding",
        "first": SHUFFLED,
        "changes": ["here", "queries"],
        "why": [f"{IN_ORDER}, not of origin"],
    },
    "delays_by_hour": {
        "kernel": "group",
        "first": SHUFFLED,
        "changes": ["here", "queries"],
        "why": [f"{IN_ORDER}, not of origin"],
    },
    "delays_by_carrier": {
        "kernel": "group",
        "first": SHUFFLED,
        "changes": ["here", "queries"],
        "why": [f"{IN_ORDER}, and not of what is grouped"],
    },
    "named_flights": {
        "kernel": "join",
        "first": ["here", "key_ranges", "queries"],
        "changes": ["here", "key_ranges", "queries"],
        "why": [JOINED],
    },
    "sales_by_store": {
        "kernel": "group",
        "first": SHUFFLED,
        "changes": ["here", "queries"],
        "why": ["sales is in order of sale, and not of what is grouped"],
    },
    "departures_by_hour": {
        "kernel": "group",
        "first": SHUFFLED,
        "changes": ["here", "queries"],
        "why": [f"{IN_ORDER}, not of origin"],
    },
}
"""By name; examples that are shipped collections are the same."""


def ways(shell: Shell, path: str) -> dict[str, Any]:
    found: dict[str, Any] = shell.json("explain", path)["ways"]
    return found


@pytest.mark.parametrize("file", SHIPPED, ids=lambda path: path.stem)
def test_a_shipped_collection_goes_the_way_it_is_to_go(flights: Shell, file: Path) -> None:
    assert ways(flights, flights.declared(file.read_text(encoding="utf-8"))) == WAYS[file.stem]


EXAMPLES = [block for _, block in WHOLE if "\nfrom:" in block]


@pytest.mark.parametrize("block", EXAMPLES, ids=lambda block: block.split()[1])
def test_an_example_goes_the_way_it_is_to_go(flights: Shell, block: str) -> None:
    assert ways(flights, flights.declared(block)) == WAYS[block.split()[1]]


def test_all_that_people_are_shown_is_computed_by_kernels() -> None:
    assert [name for name, way in WAYS.items() if not way["kernel"]] == []


def test_a_definition_says_why_it_is_left_to_spark(flights: Shell) -> None:
    text = (COLLECTIONS / "delays_by_hour.yaml").read_text(encoding="utf-8")
    edited = flights.declared(text.replace("where: status = 'arrived'", "where: upper(status) = 'ARRIVED'"))
    said = " ".join(flights.ok("explain", edited).out.split())
    rows = "Spark SQL gives the rows that the kernel takes: UPPER(status) is more than columns, comparisons, arithmetic"
    assert "computed by the group kernel, where it is cheapest for so many rows" in said
    assert "first: by executors, after a shuffle, else by Spark SQL" in said
    assert rows in said
    kernel = " ".join(flights.ok("explain", flights.declared(text)).out.split())
    assert "computed by the group kernel, where it is cheapest for so many rows" in kernel
    assert "first: in this process, else by executors, after a shuffle, else by Spark SQL" in kernel
