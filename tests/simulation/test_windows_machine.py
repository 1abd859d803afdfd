"""The machine of derived collections, of windows: whatever happens, at every frontier that was recorded they hold the
windows that are closed, of the rows as they were consumed by then.

    tumbled     of tides: the least and the greatest of each window, recomputed
    hopped      of tides: counts and sums, which grow; a grace
    cumulated   of tides: of all rows, there at once (early)
    overnight   of tides: over the ends of intervals; its definition changes
    nested      of hopped: windows of windows, which come when those close

Rows happen (`k`) before, in and after the interval that they come in, and days ahead.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any, ClassVar

import pytest

from simulation.plain_definitions import windows_of
from simulation.script import row
from simulation.test_derived_machine import Machine
from support.budget import budget
from support.world import DAY
from tidemark.model.collection import Collection
from tidemark.model.window.aggregate import Aggregate, Function
from tidemark.model.window.kinds import Cumulate, Hopping, Tumbling
from tidemark.model.window.windows import Windows

SEEDS, STEPS = budget(ci=(1, 25), deep=(8, 150))
COUNT = Aggregate("n", Function.COUNT)
TOTAL = Aggregate("total", Function.SUM, "k")
EXTREMES = (Aggregate("least", Function.MIN, "k"), Aggregate("most", Function.LAST, "k"))
OVERNIGHT = Windows(("v",), "k", Tumbling(DAY, DAY // 2), (COUNT,))
DECLARED = (
    windows_of("tumbled", Windows(("v",), "k", Tumbling(7, 3), EXTREMES)),
    windows_of("hopped", Windows(("v",), "k", Hopping(20, 7), (COUNT, TOTAL), grace=12)),
    windows_of("cumulated", Windows((), "k", Cumulate(20, 5), (COUNT,), early=True)),
    windows_of("overnight", OVERNIGHT),
    windows_of("nested", Windows((), "window_start", Tumbling(30), (Aggregate("n", Function.SUM, "n"),)), "hopped"),
)


class WindowMachine(Machine):
    derived: ClassVar[Mapping[str, Collection]] = {one.name: one for one in DECLARED}
    others: ClassVar[Mapping[str, Sequence[Collection]]] = {
        "overnight": [
            windows_of("overnight", OVERNIGHT),
            windows_of("overnight", replace(OVERNIGHT, grace=25)),
            windows_of("overnight", replace(OVERNIGHT, early=True)),
        ]
    }

    def __init__(self, folder: Path, seed: int) -> None:
        self.sealed: dict[str, int] = {}
        super().__init__(folder, seed)

    def rows(self, day: int, many: int) -> list[dict[str, Any]]:
        at = [day * DAY + self.chance.choice([-40, -7, 0, 3, 5, 9, 12, 25, 60]) for _ in range(many)]
        return [
            row(
                k,
                self.chance.choice(["a", "a", "b", "c", None]),
                day * DAY + self.chance.randrange(DAY) + self.chance.choice([0, 0, 20]),
            )
            for k in at
        ]

    def taken_out(self) -> None:
        """As before; it is noted of what frontier was sealed by then: below that nothing is written any more."""
        before = {name: self.sea.worlds[name].state for name in self.derived}
        super().taken_out()
        for name, was in before.items():
            if len(self.sea.worlds[name].state.consumptions) < len(was.consumptions) and was.seal:
                self.sealed[name] = max(self.sealed.get(name, 0), was.seal)

    def record(self, name: str) -> None:
        """As before; and between two frontiers nothing is read but what is there at one of them, above what was sealed
        when its batch was taken out."""
        super().record(name)
        state = self.sea.worlds[name].state
        for before, after in pairwise(state.consumptions[-3:]):
            if state.function.keeps(before.upper - 1) and before.upper >= self.sealed.get(name, 0):
                there = self.sea.rows_as_of(name, before.upper - 1) | self.sea.rows_as_of(name, after.upper - 1)
                for time in range(before.upper, after.upper):
                    assert self.sea.rows_as_of(name, time) <= there, (name, before.upper, time)


@pytest.mark.parametrize("seed", range(SEEDS))
def test_whatever_happens_closed_windows_are_there_and_right_at_every_frontier(tmp_path: Path, seed: int) -> None:
    machine = WindowMachine(tmp_path, seed)
    for _ in range(STEPS):
        machine.step()
    for name in machine.derived:
        machine.ran(name)
    assert machine.happened["repaired"] == 0
    assert machine.happened["applied"] > 5
    assert machine.happened["ahead"] > 0
    if os.environ.get("SHOW"):
        print(machine.happened)
