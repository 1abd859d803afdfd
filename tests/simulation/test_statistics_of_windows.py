"""What statistics of windows are computed from: the input, as it was consumed for the windows that are asked for."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from simulation.plain_computer import PlainComputer
from simulation.plain_definitions import plain_of, windows_of
from simulation.rows_read import current_rows
from simulation.sea import Sea
from simulation.test_late_windows import HOUR, D, Days
from simulation.test_windows import COUNT, DAYS, OVERNIGHT, day
from support.world import DAY, collection
from tidemark.definition.computation import Computation
from tidemark.definition.windows.statistics import Statistics
from tidemark.errors import InvalidUsage
from tidemark.jobs.queries.window_statistics import consumption_of, statistics
from tidemark.jobs.steps.init import declare_collection
from tidemark.model.arrangement import Arrangement
from tidemark.model.change import CompactionAllowed
from tidemark.model.collection import Envelope
from tidemark.model.window.kinds import Hopping, Session, Sliding
from tidemark.model.window.windows import Late, Windows


@pytest.fixture
def sea(tmp_path: Path) -> Sea:
    made = Sea(tmp_path)
    made.landed("tides")
    return made


def test_statistics_are_of_the_input_as_it_was_consumed_for_the_windows_that_are_there(sea: Sea) -> None:
    """Late rows, and windows over the ends of days: what is there at any time was emitted at one frontier, and its
    input as of then has these rows."""
    sea.add(windows_of("w", OVERNIGHT))
    for number, at in enumerate([(3, 7, 14), (12, 4), (7, 22, 25), (24, 31)]):
        day(sea, number, *at)
    world, origin = sea.worlds["w"], sea.worlds["w"].state.collection.derived
    seen = set()
    for time in range(world.state.since, world.state.seal):
        consumption = consumption_of(world.state, sea.worlds["tides"].state.collection, time, open_too=False)
        rows = current_rows(sea.worlds["tides"].truth, sea.worlds["tides"].state, consumption.inputs[0].upper - 1)
        right = {tuple(row.values()) for row in plain_of(origin.definition).whole({"tides": rows})}
        assert set(sea.rows_as_of("w", time)) <= right, time
        seen.add(consumption.upper)
    assert len(seen) == 4
    asked: list[Any] = []
    sea.run("w", lambda job: asked.append(statistics(job, world.state, world.state.seal - 1, open_too=True)))
    assert [(one.upper, one.previous) for one in asked[0][0].inputs] == [
        (world.state.consumptions[-1].inputs[0].upper, None)
    ]


def _statistics(sea: Sea, state: Arrangement, time: int) -> tuple[Computation, Statistics]:
    found: list[tuple[Computation, Statistics]] = []
    sea.run("w", lambda job: found.append(statistics(job, state, time, open_too=False)))
    return found[0]


HOPPING = Windows((), "k", Hopping(8 * HOUR, 4 * HOUR), (COUNT,), late=Late.REEMIT, max_lateness=20 * HOUR)
FOR_A_WHILE = {
    "hopping": HOPPING,
    "slid": replace(HOPPING, kind=Sliding(9 * HOUR)),
    "met": replace(HOPPING, kind=Session(3 * HOUR)),
    "moving": replace(HOPPING, late=Late.NEXT_WINDOW, max_lateness=None),
}


@pytest.mark.parametrize("name", FOR_A_WHILE)
def test_of_windows_that_take_late_rows_for_a_while_they_are_judged_as_the_windows_are(
    tmp_path: Path, name: str
) -> None:
    """At each time by what had come then; and of what was merged since, in all windows of which it is still known."""
    sea = Sea(tmp_path)
    sea.add(replace(collection(Envelope.APPEND if name == "moving" else Envelope.UPDATES), name="tides"))
    sea.add(windows_of("w", FOR_A_WHILE[name]))
    days, computer = Days(sea), PlainComputer(sea.store, sea.worlds["w"].truth, sea.new_id)
    for number, at in enumerate([(1, 9, 22), (2, 23, 25, 40), (3, 21, 30, 50), (26, 45, 47, 73)]):
        days.day(number, *(hour * HOUR for hour in at))
        sea.correct("w")
    assert days.law() == 4
    state = sea.worlds["w"].state
    assert any(one.late for one in state.consumptions)

    def check(time: int) -> int:
        asked, how = _statistics(sea, state, time)
        assert (how.recipe.in_windows is None) == (how.recipe.windowed is not None)
        right = {tuple(row.values()) for row in computer._whole(asked)}
        names = [column.name for column in state.collection.columns]
        current = [dict(zip(names, row, strict=True)) for row in sea.rows_as_of("w", time)]
        frozen = [row for row in current if computer._stays(asked, row)]
        assert {tuple(row.values()) for row in current if row not in frozen} <= right, time
        return len(frozen)

    for time in (D - 1, 2 * D - 1, 2 * D + HOUR, 3 * D - 1, state.seal - 1):
        assert check(time) == 0, "nothing is merged yet"
    days.merged()
    unknown, total = check(state.seal - 1), len(sea.rows_as_of("w", state.seal - 1))
    if name in ("met", "moving"):
        assert unknown == 0, "the history of the input is kept from its beginning on"
    else:
        assert 0 < unknown < total, (unknown, total)


def test_statistics_are_refused_in_a_line_where_they_cannot_be_computed_any_more(sea: Sea) -> None:
    sea.add(windows_of("w", DAYS))
    for number in range(3):
        day(sea, number, number * DAY + 2)

    def ask(state: Any, time: int, *, open_too: bool = False) -> None:
        sea.run("w", lambda job: statistics(job, state, time, open_too=open_too))

    state, tides = sea.worlds["w"].state, sea.log("tides")
    with pytest.raises(InvalidUsage, match="nothing is recorded; the oldest still recorded is"):
        ask(replace(state, consumptions=state.consumptions[-1:]), DAY)
    with pytest.raises(InvalidUsage, match=r"sealed to .* only, so its open windows mix both"):
        ask(state, 2 * DAY - 1, open_too=True)
    tides.commit(tides.load(), CompactionAllowed(2 * DAY, (), 0))
    with pytest.raises(
        InvalidUsage, match=r"^statistics are read from tides as known at .*, and its history is merged"
    ):
        ask(state, DAY - 1)
    ask(state, 3 * DAY - 1)
    sea.run("w", lambda job: declare_collection(job, windows_of("w", OVERNIGHT)))
    with pytest.raises(InvalidUsage, match="were computed by another definition"):
        ask(sea.worlds["w"].state, 3 * DAY - 1)
