"""Windows that take late rows for a while only, through all steps: whatever runs there were, and whatever was merged
meanwhile, each window holds the rows that came before it was frozen.

Days are real ones here, as lateness is judged by the ends of a schedule's intervals. A row happened at its `k`.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from simulation.plain_definitions import happened, plain_of, windows_of
from simulation.rows_read import Update, read_updates
from simulation.script import row
from simulation.sea import Sea
from support.budget import budget
from support.faulty import Fault, FaultyStore
from support.world import DAY, collection
from tidemark.api.windowed import late_by
from tidemark.jobs.steps.correct import correct
from tidemark.model.change import CompactionAllowed
from tidemark.model.collection import Envelope
from tidemark.model.corrected import Corrected
from tidemark.model.window.aggregate import Aggregate, Function
from tidemark.model.window.contents import Rule
from tidemark.model.window.evaluate import window_rows
from tidemark.model.window.kinds import Cumulate, Hopping, Sliding, Tumbling
from tidemark.model.window.lateness import Lateness, judge, lateness
from tidemark.model.window.windows import Late, Windows
from tidemark.plan.read import plan_changes

HOUR = 3_600_000_000
D = 24 * HOUR
SPAN = D // DAY
"""Of the ring's days so many are one of the schedule's."""
COUNT = Aggregate("n", Function.COUNT)
LEAST = Aggregate("least", Function.MIN, "k")
HOURLY = Windows((), "k", Tumbling(6 * HOUR), (COUNT,), late=Late.DISCARD)
SLID = replace(HOURLY, kind=Sliding(10 * HOUR))
SEEDS, DAYS = budget(ci=(1, 7), deep=(36, 14))


def came(time: int) -> int:
    """Up to where the input was complete when a row of that time came. Before its first day nothing was, ever."""
    return time // D * D if time >= D else -(2**62)


@dataclass
class Days:
    """A landed collection by days, and windows of it. `learned` are its updates, with the times they had at first."""

    sea: Sea
    learned: Counter[Update] = field(default_factory=Counter)
    known: int = 0

    def day(self, number: int, *at: int, name: str = "of", gone: tuple[int, ...] = (), behind: int = 0) -> None:
        """Rows that come with the file of a day, where they happened before it as late ones. Their time is the last of
        that day, as that of rows is which have none of their own; or `behind` that, also as their event time: so
        they come late for windows, and not for the input."""
        last = (number + 1) * D - 1 - behind
        rows = [row(k, "a", last, e=last if behind else max(k, 0)) for k in at]
        rows += [row(k, "a", last, e=max(k, 0), d=-1) for k in gone]
        self.sea.ingest("tides", number * SPAN, (name, rows), days=SPAN)
        state = self.sea.worlds["tides"].state
        request = plan_changes(state, self.known - 1, state.seal - 1)
        self.learned.update(read_updates(self.sea.worlds["tides"].truth, request))
        self.known = state.seal

    def merged(self) -> None:
        """The history of the input goes, as far as nobody holds it."""
        log = self.sea.log("tides")
        state = log.load().state
        upto = min([state.complete_below - 1, *(hold.since for hold in state.holds)])
        if upto > state.since:
            log.commit(log.load(), CompactionAllowed(upto, (), 0))

    def law(self, name: str = "w") -> int:
        """Check each frontier that is recorded against the rows as they were learned; how many there were."""
        world = self.sea.worlds[name]
        windows = world.state.collection.derived.definition.windows
        assert windows is not None
        due = plain_of(world.state.collection.derived.definition).due
        for consumption in world.state.consumptions:
            (consumed,) = consumption.inputs
            rows = [
                {"k": k, "v": v, "_learned": came(time), "_diff": diff}
                for ((k, v), time, _), diff in self.learned.items()
                if time < consumed.upper
            ]
            computed = window_rows(windows, happened(windows, rows), lambda one, cells: dict(cells)[one.of])
            there = {
                (*key, *window, *values): 1
                for key, window, values in computed
                if due({"window_end": window.end}) < consumption.upper
            }
            assert self.sea.rows_as_of(name, consumption.upper - 1) == there, (name, consumption.upper)
            judged = lateness(judge(Rule.of(windows), happened(windows, rows)))
            assert consumption.late == judged, (name, consumption.upper)
        return len(world.state.consumptions)


@pytest.fixture
def days(tmp_path: Path) -> Days:
    sea = Sea(tmp_path)
    sea.add(replace(collection(Envelope.UPDATES), name="tides"))
    return Days(sea)


def test_what_comes_when_a_window_has_closed_changes_it_no_more(days: Days) -> None:
    days.sea.add(windows_of("w", HOURLY))
    days.day(0, HOUR, 7 * HOUR)
    days.sea.correct("w")
    before = days.sea.rows_as_of("w", D - 1)
    assert before == {(0, 6 * HOUR, 1): 1, (6 * HOUR, 12 * HOUR, 1): 1}
    days.day(1, 2 * HOUR, D + HOUR)
    result = days.sea.correct("w")
    assert days.sea.rows_as_of("w", 2 * D - 1) == {**before, (D, D + 6 * HOUR, 1): 1}
    assert result["late"] == {"rows_late_for_all": 1, "rows_late_for_some": 0, "window_updates_late": 1}
    assert days.law() == 2


def test_what_is_retracted_when_a_window_has_closed_stays_in_it(days: Days) -> None:
    days.sea.add(windows_of("w", HOURLY))
    days.day(0, HOUR, 2 * HOUR)
    days.sea.correct("w")
    days.day(1, gone=(HOUR,))
    days.sea.correct("w")
    assert days.sea.rows_as_of("w", 2 * D - 1) == {(0, 6 * HOUR, 2): 1}
    assert days.law() == 2


def test_late_rows_correct_windows_for_as_long_as_they_may(days: Days) -> None:
    """Windows of the first day change for a day after they closed: what the second day's file tells counts in those of
    its evening, which closed at its end, and what the third day's tells counts in none."""
    days.sea.add(windows_of("w", replace(HOURLY, late=Late.REEMIT, max_lateness=D)))
    days.day(0, HOUR, 20 * HOUR)
    days.sea.correct("w")
    days.day(1, 2 * HOUR, 21 * HOUR)
    days.sea.correct("w")
    evening = (18 * HOUR, 24 * HOUR)
    assert days.sea.rows_as_of("w", 2 * D - 1) == {(0, 6 * HOUR, 2): 1, (*evening, 2): 1}
    days.day(2, 3 * HOUR, 22 * HOUR)
    days.sea.correct("w")
    assert days.sea.rows_as_of("w", 3 * D - 1) == {(0, 6 * HOUR, 2): 1, (*evening, 2): 1}
    assert days.law() == 3


def test_windows_of_windows_are_judged_by_the_schedule_below_them(days: Days) -> None:
    """What the first windows are corrected by comes when the second ones have closed."""
    days.sea.add(windows_of("w", replace(HOURLY, late=Late.REEMIT)))
    daily = Windows((), "window_start", Tumbling(D), (Aggregate("n", Function.SUM, "n"),), late=Late.DISCARD)
    days.sea.add(windows_of("daily", daily, "w"))
    late_updates = []
    for number, at in enumerate([(HOUR, 7 * HOUR), (2 * HOUR, D + HOUR), (2 * D,)]):
        days.day(number, *at)
        days.sea.correct("w")
        late_updates.append(days.sea.correct("daily")["late"]["window_updates_late"])
    assert days.sea.rows_as_of("w", 3 * D - 1)[0, 6 * HOUR, 2] == 1
    assert days.sea.rows_as_of("daily", 3 * D - 1) == {(0, D, 2): 1, (D, 2 * D, 1): 1, (2 * D, 3 * D, 1): 1}
    assert late_updates == [0, 2, 0], "the row that goes, and the one that comes"


def test_what_came_too_late_adds_up_and_is_reported(days: Days) -> None:
    days.sea.add(windows_of("w", replace(HOURLY, kind=Hopping(8 * HOUR, 4 * HOUR))))
    days.sea.add(windows_of("always", replace(HOURLY, late=Late.REEMIT)))
    reports = []
    for number, at in enumerate([(HOUR,), (2 * HOUR, 23 * HOUR), (3 * HOUR,)]):
        days.day(number, *at)
        reports.append(days.sea.correct("w")["late"])
        assert not any(days.sea.correct("always")["late"].values())
    of_day = {"rows_late_for_all": 1, "rows_late_for_some": 1, "window_updates_late": 3}
    assert reports[1:] == [of_day, {"rows_late_for_all": 1, "rows_late_for_some": 0, "window_updates_late": 2}]
    state = days.sea.worlds["w"].state
    assert late_by(state, D - 1) == Lateness()
    assert late_by(state, 2 * D - 1) == Lateness(1, 1, 3)
    assert late_by(state, 9 * D) == Lateness(2, 1, 5)
    words = [record.change.words for record in days.sea.log("w").history() if isinstance(record.change, Corrected)]
    assert words[0].endswith("1 row late for all windows, 0 for some, 2 window updates lost")
    assert words[1].endswith("1 row late for all windows, 1 for some, 3 window updates lost")
    assert "late" not in words[2]


def test_a_row_counts_in_the_sliding_windows_that_start_late_enough(days: Days) -> None:
    """When the first day is complete, windows that end with it take nothing more: a row at 15:00 counts in those only
    that start at 14:00 or later. Here that is the one that starts just after 14:30, and the new one after it."""
    days.sea.add(windows_of("w", SLID))
    half = HOUR // 2
    days.day(0, 14 * HOUR + half, 23 * HOUR)
    days.sea.correct("w")
    day = {
        (4 * HOUR + half, 14 * HOUR + half, 1): 1,
        (13 * HOUR, 23 * HOUR, 2): 1,
        (14 * HOUR + half + 1, 24 * HOUR + half + 1, 1): 1,
    }
    assert days.sea.rows_as_of("w", 2 * D) == day
    days.day(1, 15 * HOUR, 12 * HOUR)
    result = days.sea.correct("w")
    corrected = {
        (14 * HOUR + half + 1, 24 * HOUR + half + 1, 2): 1,
        (15 * HOUR + 1, 25 * HOUR + 1, 1): 1,
    }
    kept = dict(list(day.items())[:2])
    assert days.sea.rows_as_of("w", 2 * D) == kept | corrected
    assert result["late"] == {"rows_late_for_all": 1, "rows_late_for_some": 1, "window_updates_late": 3}
    assert days.law() == 2


def test_who_came_an_instant_too_late_opens_no_sliding_window_whatever_is_merged(days: Days) -> None:
    """Had the row at 14:00 less 1 µs come before the first day was complete, a window would start at 14:00, and hold
    the one at 19:00. It came just then, so it is late for all, which no run could tell of it once it was merged."""
    days.sea.add(windows_of("w", SLID))
    days.day(0, 19 * HOUR)
    days.sea.correct("w")
    days.day(0, 14 * HOUR - 1, name="late")
    assert days.sea.correct("w")["late"]["rows_late_for_all"] == 1
    for number in (1, 2):
        days.day(number, number * D + HOUR)
        days.merged()
        days.sea.correct("w")
        assert days.sea.worlds["tides"].state.since == number * D - 1, "the end of an interval, but not what came then"
        days.sea.correct("w", whole=True)
        assert (14 * HOUR, 24 * HOUR, 1) not in days.sea.rows_as_of("w", 9 * D)
    assert days.law() == 4


DECLARED = {
    "discarding": Windows(("v",), "k", Tumbling(5 * HOUR, HOUR), (COUNT,), grace=3 * HOUR, late=Late.DISCARD),
    "hopping": Windows((), "k", Hopping(40 * HOUR, 9 * HOUR), (COUNT, LEAST), late=Late.REEMIT, max_lateness=30 * HOUR),
    "growing": Windows((), "k", Cumulate(2 * D, 12 * HOUR), (LEAST,), late=Late.DISCARD, early=True),
    "slid": Windows(("v",), "k", Sliding(30 * HOUR), (COUNT, LEAST), grace=2 * HOUR, late=Late.DISCARD, early=True),
    "within": Windows((), "k", Sliding(5 * HOUR - 1, True), (COUNT,), late=Late.REEMIT, max_lateness=20 * HOUR),
}


@pytest.mark.parametrize("seed", range(SEEDS))
def test_whatever_happens_windows_hold_what_came_before_they_were_frozen(tmp_path: Path, seed: int) -> None:
    walked(tmp_path, seed, DECLARED, DAYS)


def walked(folder: Path, seed: int, declared: Mapping[str, Windows], many: int) -> Days:
    """Days on which rows come and are retracted, early and late, and windows of them, to which anything happens."""
    chance, sea = random.Random(seed), Sea(folder)
    sea.add(replace(collection(Envelope.UPDATES), name="tides"))
    for name, windows in declared.items():
        sea.add(windows_of(name, windows))
    days, there = Days(sea), Counter[int]()
    for number in range(many):
        for name in ("on time", "late"):
            at = [number * D + chance.randrange(-3 * D, D) // HOUR * HOUR for _ in range(chance.choice([0, 2, 4]))]
            gone = tuple(k for k in there if chance.random() < 0.1)
            there.subtract(gone)
            there.update(at)
            there = +there
            days.day(number, *at, name=name, gone=gone)
        for name in declared:
            what = chance.choice(["correct", "drain", "compact", "", "killed", "whole"]) if number else "drain"
            if what == "killed":
                world = sea.worlds[name]
                world.store = FaultyStore(world.truth, Fault(chance.randrange(1, 60), chance.random() < 0.3))
                sea.run(name, correct)
                world.store = world.truth
            elif what == "whole":
                sea.correct(name, whole=True)
            elif what:
                sea.correct(name, until=what)
            days.law(name)
        if chance.random() < 0.5:
            days.merged()
    for name in declared:
        assert sea.correct(name, check=True)["repaired"] == 0
        assert days.law(name)
    return days


def test_what_happened_before_the_collections_start_counts_if_its_first_day_brings_it(days: Days) -> None:
    """Nothing was complete before the first day was, so no window had closed, not even those that ended before it."""
    days.sea.add(windows_of("w", HOURLY))
    days.day(0, -7 * HOUR, -HOUR, HOUR)
    days.sea.correct("w")
    first = {(-12 * HOUR, -6 * HOUR, 1): 1, (-6 * HOUR, 0, 1): 1, (0, 6 * HOUR, 1): 1}
    assert days.sea.rows_as_of("w", D - 1) == first
    days.day(1, -7 * HOUR, D + HOUR)
    days.sea.correct("w")
    assert days.sea.rows_as_of("w", 2 * D - 1) == {**first, (D, D + 6 * HOUR, 1): 1}, "a day later it is late"
    days.law()
