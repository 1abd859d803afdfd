"""What lands in a walk of the state machine: source rows, drawn each from one number, and days of files of them."""

from __future__ import annotations

from math import prod
from typing import Any

from hypothesis import strategies as st

from support.world import DAY

CELLS = {
    "k": (0, 1, 2, 3),
    "v": ("a", "b", None),
    "dt": tuple(range(DAY)),
    "lag": (0, 0, 0, 1, 3, 3, 8, 15, 30, -2, -12),
    "o": (0, 1, None),
    "gone": (False, False, False, True),
    "d": (0, 1, 2, -1, -2),
}


def as_cells(number: int) -> dict[str, Any]:
    """A source row from one number: drawn cell by cell, a few days of rows would use up an example."""
    cells = {}
    for name, choices in CELLS.items():
        number, at = divmod(number, len(choices))
        cells[name] = choices[at]
    return cells


row = st.integers(0, prod(len(choices) for choices in CELLS.values()) - 1).map(as_cells)
rows = st.lists(row, max_size=5)
some_rows = st.lists(row, min_size=1, max_size=3)
files = st.lists(rows, min_size=0, max_size=2)


def reaching_ahead(landed: list[list[dict[str, Any]]]) -> list[list[dict[str, Any]]]:
    """Files of a day that bring rows of a later one, too: once the day is drained, half of them can go."""
    contents = landed or [[as_cells(0)]]
    return [[*rows, *({**row, "dt": row["dt"] + DAY + 2, "lag": 0} for row in rows)] for rows in contents]
