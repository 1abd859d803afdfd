"""Windows that count a late row in the first one that is open when it comes, through all steps: whatever runs there
were, and whatever was merged meanwhile. The test looks at all windows there are to find the one that has a row.

Days are real ones, as in test_late_windows. A row happened at its `k`.
"""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from simulation.plain_definitions import BIG, derived, windows_of
from simulation.sea import Sea
from simulation.test_late_windows import COUNT, HOUR, LEAST, SPAN, D, Days, came
from support.budget import budget
from support.faulty import Fault, FaultyStore
from support.world import collection
from tidemark.errors import InvalidUsage
from tidemark.jobs.queries.definition import verify_definition
from tidemark.jobs.steps.correct import correct
from tidemark.jobs.steps.init import declare_collection
from tidemark.model.change import CompactionAllowed, HoldDropped
from tidemark.model.collection import Envelope
from tidemark.model.derived import Mode
from tidemark.model.retention import Retention
from tidemark.model.window.calendar import Unit
from tidemark.model.window.kinds import Calendar, Cumulate, Hopping, Tumbling
from tidemark.model.window.windows import Late, Windows

SEEDS, DAYS = budget(ci=(1, 7), deep=(36, 14))
QUARTERS = Windows((), "k", Tumbling(6 * HOUR), (COUNT,), late=Late.NEXT_WINDOW)
DECLARED = {
    "tumbling": Windows(("v",), "k", Tumbling(5 * HOUR, HOUR), (COUNT,), grace=3 * HOUR, late=Late.NEXT_WINDOW),
    "hopping": Windows((), "k", Hopping(40 * HOUR, 9 * HOUR), (COUNT, LEAST), late=Late.NEXT_WINDOW),
    "growing": Windows((), "k", Cumulate(2 * D, 12 * HOUR), (LEAST,), late=Late.NEXT_WINDOW, early=True),
    "weeks": Windows((), "k", Calendar(Unit.WEEK), (COUNT,), grace=HOUR, late=Late.NEXT_WINDOW),
}


def every(windows: Windows) -> Iterator[tuple[int, int]]:
    """All windows about the days that are looked at, by start and end."""
    match windows.kind:
        case Calendar():  # of weeks, which begin on Mondays; 1970 began on a Thursday
            step, lengths, offset = 7 * D, [7 * D], 4 * D
        case Cumulate() as kind:
            step, lengths, offset = kind.size, list(range(kind.step, kind.size + 1, kind.step)), kind.offset
        case Hopping() as kind:
            step, lengths, offset = kind.advance, [kind.size], kind.offset
        case Tumbling() as kind:
            step, lengths, offset = kind.size, [kind.size], kind.offset
        case _:
            raise AssertionError(windows.kind)
    for start in range(offset - 20 * D // step * step, 40 * D, step):
        for length in lengths:
            yield start, start + length


def counted(days: Days, windows: Windows, consumed: int, upper: int) -> Counter[tuple[Any, ...]]:
    """What is to be there below a frontier, by hand."""
    placed = defaultdict(list)
    there = list(every(windows))
    for ((k, v), time, _), diff in days.learned.items():
        if time >= consumed:
            continue
        own = [window for window in there if window[0] <= k < window[1]]
        still_open = [window for window in there if window[1] + windows.grace > came(time)]
        found = {window for window in own if window in still_open}
        for window in found if found >= {*own} else found | {min(still_open)}:
            placed[(v, *window) if windows.by else window] += [k] * diff
    of = {"n": len, "least": min}
    return Counter(
        (*key, *(of[one.name](rows) for one in windows.aggregates))
        for key, rows in placed.items()
        if windows.early or key[-1] + windows.grace <= upper
    )


def check(days: Days, name: str = "w") -> int:
    """Each frontier that is recorded; how many there were."""
    state = days.sea.worlds[name].state
    windows = state.collection.derived.definition.windows
    assert windows is not None
    for one in state.consumptions:
        wanted = counted(days, windows, one.inputs[0].upper, one.upper)
        assert days.sea.rows_as_of(name, one.upper - 1) == wanted, (name, one.upper)
    return len(state.consumptions)


@pytest.fixture
def days(tmp_path: Path) -> Days:
    sea = Sea(tmp_path)
    sea.add(collection())
    return Days(sea)


def test_a_late_row_counts_in_the_window_that_is_open_when_it_comes(days: Days) -> None:
    days.sea.add(windows_of("w", QUARTERS))
    days.day(0, HOUR)
    days.sea.correct("w")
    days.day(1, 2 * HOUR, 3 * HOUR, D + HOUR, D + 8 * HOUR)
    run = days.sea.correct("w")
    quarters = {(0, 6 * HOUR, 1), (D, D + 6 * HOUR, 3), (D + 6 * HOUR, D + 12 * HOUR, 1)}
    assert days.sea.rows_as_of("w", 2 * D - 1) == Counter(quarters)
    assert (run["mode"], run["late"]["rows_late_for_all"], run["late"]["window_updates_late"]) == ("by_key", 2, 2)
    assert check(days) == 2


def test_a_window_that_is_open_keeps_the_late_rows_of_the_runs_before(days: Days) -> None:
    """Days by three, computed again for each day's rows: the row that happened before came with the first of them."""
    windows = replace(QUARTERS, kind=Tumbling(3 * D), aggregates=(LEAST,), early=True)
    days.sea.add(windows_of("w", windows))
    for number in range(6):
        days.day(number, number * D, *([HOUR] if number == 3 else []))
        days.sea.correct("w")
        days.merged()
    assert days.sea.worlds["tides"].state.since == 0
    assert days.sea.asked[-1].mode is Mode.BY_KEY
    assert days.sea.asked[-1].inputs[0].judging.known_from == 3 * D, "no further back than for what is open"
    assert days.sea.rows_as_of("w", 6 * D - 1) == {(0, 3 * D, 0): 1, (3 * D, 6 * D, HOUR): 1}
    assert check(days) == 6


REFUSED = {
    "rows of tides may be retracted, as its envelope is updates": collection(Envelope.UPDATES),
    "rows of tides may be retracted, as its envelope is upsert": collection(Envelope.UPSERT),
    "rows of tides are retracted when a file is read again; remove reprocess_for": collection(reprocess_for=9),
    "tides keeps the newest complete time, and merges what is older; write retention: all": replace(
        collection(), retention=Retention("full_merge")
    ),
}


@pytest.mark.parametrize("why", REFUSED)
def test_inputs_that_take_rows_back_or_merge_are_refused(tmp_path: Path, why: str) -> None:
    sea = Sea(tmp_path)
    sea.add(REFUSED[why])
    sea.add(windows_of("w", QUARTERS))
    sea.ingest("tides", 0, days=SPAN)
    with pytest.raises(
        InvalidUsage, match=rf"windows\.late: next_window counts .*, and {why}.*, or write discard"
    ) as refused:
        correct(sea.joined(sea.worlds["w"].job()))
    assert "\n" not in str(refused.value)


def test_a_derived_input_is_refused_and_one_that_was_merged_all_the_same(days: Days) -> None:
    sea = days.sea
    sea.add(derived("big", BIG))
    sea.add(windows_of("w", QUARTERS))
    sea.add(windows_of("of_big", QUARTERS, "big"))
    days.day(0, HOUR)
    sea.correct("big")
    with pytest.raises(InvalidUsage, match="when they came, and big is derived, and merged"):
        correct(sea.joined(sea.worlds["of_big"].job()))
    sea.correct("w")
    log = sea.log("tides")
    holds = {hold.name: hold.since for hold in log.load().state.holds}
    assert holds["derived.w"] == 0 < holds["derived.big"], "kept from the beginning, whatever was consumed"
    for name in holds:
        log.commit(log.load(), HoldDropped(name))
    log.commit(log.load(), CompactionAllowed(5, (), 0))
    days.sea.ingest("tides", SPAN, days=SPAN)
    with pytest.raises(
        InvalidUsage, match=r"tides is merged below .*; create it again from its files, or write discard"
    ):
        correct(sea.joined(sea.worlds["w"].job()))


def test_with_another_schedule_all_is_judged_by_that(days: Days) -> None:
    """A day's file is in time for its hours. Of hourly ones that with the rows of the last hour of the first day comes
    late for the others, and that with the rows after noon of the second day after the hour that one had come in."""
    days.sea.add(windows_of("w", QUARTERS))
    days.day(0, HOUR)
    days.day(1, 2 * HOUR, behind=11 * HOUR)
    days.sea.correct("w")
    assert days.sea.rows_as_of("w", 2 * D - 1) == {(0, 6 * HOUR, 1): 1, (D, D + 6 * HOUR, 1): 1}
    tides = days.sea.worlds["tides"].collection
    hourly = replace(tides, origin=replace(tides.landed, schedule="@hourly"))
    days.sea.run("tides", lambda job: declare_collection(job, hourly))
    result = days.sea.correct("w")
    assert (result["mode"], result["why"]) == ("whole", "its input has another schedule, by which rows are late")
    assert days.sea.rows_as_of("w", 3 * D) == {(18 * HOUR, D, 1): 1, (D + 12 * HOUR, D + 18 * HOUR, 1): 1}
    assert days.sea.correct("w")["outcome"] == "nothing to do"


def ran(sea: Sea, name: str, chance: random.Random) -> dict[str, Any]:
    """A run: a whole one or of what changed, which may end early or be killed; what it reported."""
    until = chance.choice(["correct", "drain", "compact", "killed"])
    if until != "killed":
        return sea.correct(name, until=until, whole=chance.random() < 0.2)
    world = sea.worlds[name]
    world.store = FaultyStore(world.truth, Fault(chance.randrange(1, 60), chance.random() < 0.3))
    sea.run(name, correct)
    world.store = world.truth
    return {}


@pytest.mark.parametrize("seed", range(SEEDS))
def test_whatever_happens_windows_hold_their_own_rows_and_the_late_ones(tmp_path: Path, seed: int) -> None:
    chance, sea = random.Random(seed), Sea(tmp_path)
    sea.add(collection())
    for name, windows in DECLARED.items():
        sea.add(windows_of(name, windows))
    days, modes, late = Days(sea), Counter[str](), 0
    for number in range(DAYS):
        for name, behind in (("a", 0), ("b", chance.randrange(1, 20) * HOUR)):
            many = chance.choice([0, 2, 4])
            at = [number * D + chance.randrange(-3 * D, 2 * D) // HOUR * HOUR for _ in range(many)]
            days.day(number, *at, name=name, behind=behind)
        for name in DECLARED:
            if chance.random() < 0.8:
                result = ran(sea, name, chance)
                modes[result.get("mode", "")] += 1
                late += result.get("late", {}).get("rows_late_for_all", 0)
            check(days, name)
        if chance.random() < 0.5:
            days.merged()
    assert modes["by_key"]
    assert late
    for name in DECLARED:
        assert sea.correct(name, check=True)["repaired"] == 0
        assert check(days, name)
        found: list[Any] = []
        sea.run(name, lambda job, found=found: found.append(verify_definition(sea.joined(job))))
        assert found[0].sound
        assert found[0].checked
