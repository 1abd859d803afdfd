"""What a collector plans: laws of which versions are kept, and of how long something has been listed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from tidemark.plan import collect
from tidemark.plan.collect import (
    TOLERANCE,
    Clocks,
    GarbagePlan,
    Graces,
    Inventory,
    Stored,
    Why,
    ahead,
    disagreement,
    due,
    first_kept,
    plan_collection,
)

WINDOW = 4
"""A checkpoint every so many versions here; 16 in a store."""


def found(
    times: Sequence[int], *, oldest: int = 1, objects: Sequence[str] = (), strays: Sequence[int] = ()
) -> Inventory:
    """Versions from `oldest` on, that appeared at the given times."""
    versions = [(number, Stored(f"versions/{number:03}", 10, 0)) for number in strays]
    versions += [(n, Stored(f"versions/{n:03}", 10, time)) for n, time in enumerate(times, start=oldest)]
    return Inventory(oldest + len(times) - 1, oldest, versions, [Stored(key, 1, 0) for key in objects])


def kept(times: Sequence[int], *, now: int, keep: int, oldest: int = 1, pinned: Sequence[int] = ()) -> int:
    return first_kept(found(times, oldest=oldest), now=now, keep=keep, window=WINDOW, pinned=pinned)


def test_a_window_goes_once_its_last_version_was_superseded_long_enough_ago():
    times = [0, 10, 20, 30, 40, 50, 60, 70, 80]
    assert kept(times, now=129, keep=100) == 1
    assert kept(times, now=130, keep=100) == 4, "version 4, which superseded 3, appeared at 30"
    assert kept(times, now=169, keep=100) == 4
    assert kept(times, now=170, keep=100) == 8
    assert kept(times, now=10**9, keep=100) == 8, "version 9 folds from the checkpoint 8"


def test_the_newest_stays_however_old_and_so_does_what_it_folds_from():
    assert kept([0, 0, 0], now=10**9, keep=0) == 1
    assert kept([0, 0, 0, 0], now=10**9, keep=0) == 4
    assert kept([0], now=10**9, keep=0, oldest=8) == 8


def test_nothing_from_a_pinned_version_on_goes():
    times = [0] * 20
    assert kept(times, now=100, keep=10) == 20
    assert kept(times, now=100, keep=10, pinned=[9, 17]) == 8
    assert kept(times, now=100, keep=10, pinned=[8]) == 8
    assert kept(times, now=100, keep=10, pinned=[1]) == 1


@given(
    gaps=st.lists(st.integers(0, 5), min_size=1, max_size=40),
    keep=st.integers(0, 50),
    later=st.integers(0, 60),
    start=st.sampled_from([1, 4, 8]),
    pinned=st.lists(st.integers(1, 40), max_size=2),
)
def test_every_version_that_goes_was_superseded_long_enough_ago(gaps, keep, later, start, pinned):
    times = [sum(gaps[:n]) for n in range(1, len(gaps) + 1)]
    now, newest = times[-1] + later, start + len(times) - 1
    first = kept(times, now=now, keep=keep, oldest=start, pinned=pinned)
    assert start <= first <= newest
    assert first == start or first % WINDOW == 0
    for number in range(start, first):
        assert now - times[number + 1 - start] >= keep
        assert number not in pinned
    # And nothing is kept for no reason: the next window has one that is too young, is pinned, or is the newest's.
    following = (first // WINDOW + 1) * WINDOW
    if following <= newest:
        assert now - times[following - start] < keep or any(pin < following for pin in pinned)


# Plans.


def key(name: str, folder: str = "data") -> str:
    """A key as Tidemark gives it, in order of the name."""
    unique = f"{ord(name):032x}"
    return f"data/{'0' * 32}/{unique}.parquet" if folder == "data" else f"{folder}/{unique}.json"


def plan(objects: Sequence[str], previous: GarbagePlan | None = None, *, named: set[str] = frozenset(), at: int = 0):  # type: ignore[assignment]
    return plan_collection(found([0], objects=objects), 1, named, previous, now=0, appeared=at)


def since(made: GarbagePlan) -> dict[str, int]:
    return {entry.key: entry.since for entry in made.objects}


def test_what_is_listed_again_keeps_its_time_and_what_was_named_meanwhile_starts_again():
    first = plan([key("a"), key("b")])
    assert since(first) == {key("a"): 1, key("b"): 1}
    second = plan([key("a"), key("b"), key("c")], first, named={key("b")}, at=100)
    assert since(second) == {key("a"): 1, key("c"): 2}
    third = plan([key("a"), key("b"), key("c")], second, at=200)
    assert since(third) == {key("a"): 1, key("b"): 3, key("c"): 2}
    assert third.appeared == ((1, 100), (2, 200))
    fourth = plan([key("b")], third, at=300)
    assert (fourth.number, fourth.appeared) == (4, ((3, 300),)), "times nobody refers to are dropped"


def test_due_is_what_was_listed_for_its_whole_grace():
    first = plan([key("a")])
    second = plan([key("a"), key("b")], first, at=100)
    graces = Graces(versions=10, objects=50)
    assert due(first, graces, now=100).objects == ()
    assert due(second, graces, now=149).objects == ()
    assert [entry.key for entry in due(second, graces, now=150).objects] == [key("a")]
    assert [entry.key for entry in due(second, Graces(0, 0), now=150).objects] == [key("a"), key("b")]


def test_versions_and_objects_have_graces_of_their_own():
    seen = found([0] * 9, objects=[key("a")])
    first = plan_collection(seen, 8, set(), None, now=0, appeared=0)
    second = plan_collection(seen, 8, set(), first, now=0, appeared=100)
    ripe = due(second, Graces(versions=10, objects=50), now=120)
    assert [entry.key for entry in ripe.versions] == [f"versions/{number:03}" for number in range(1, 8)]
    assert ripe.objects == ()


UNIQUE, OTHER = "0" * 32, "f" * 32
OURS = [
    f"data/{UNIQUE}/{OTHER}.parquet",
    f"data/{UNIQUE}/late-{OTHER}.parquet",
    f"data/{UNIQUE}/parts-{OTHER}.json",
    f"data/{UNIQUE}/parts-{OTHER}-12.json",
    f"ledger/{UNIQUE}.json",
    f"ledger/{UNIQUE}-3.json",
    f"commits/{UNIQUE}.json",
]
FOREIGN = [
    "README",
    "data",
    "data/notes.txt",
    f"data/{UNIQUE}.parquet",
    f"data/{UNIQUE}/mine.parquet",
    f"data/{UNIQUE}/{OTHER}.csv",
    f"data/{UNIQUE}/more/{OTHER}.parquet",
    f"data/mine/{OTHER}.parquet",
    f"index/{UNIQUE}.json",
    "ledger.json",
    "ledger/old.json",
    "reads/1.json",
]


def test_only_what_is_named_as_tidemark_names_it_is_swept():
    unfinished = [Stored(each, 0, 0, "token") for each in (*OURS, *FOREIGN, f"x/.tmp-{'a' * 24}", "x/.tmp-notes")]
    seen = replace(found([0], objects=[*OURS, *FOREIGN]), unfinished=unfinished)
    made = plan_collection(seen, 1, frozenset(), None, now=2 * collect.KEEP_READS, appeared=0)
    assert {entry.key for entry in made.objects if not entry.token} == set(OURS)
    assert {entry.key for entry in made.objects if entry.token} == {*OURS, f"x/.tmp-{'a' * 24}"}
    assert collect.foreign(seen, {"README"}) == [*FOREIGN[1:], *FOREIGN, "x/.tmp-notes"]


def test_records_of_reads_go_by_age():
    old, young = (Stored(f"reads/{at:020}-{'a' * 32}.json", 1, at) for at in (0, collect.KEEP_READS))
    seen = replace(found([0]), objects=[old, young])
    made = plan_collection(seen, 1, set(), None, now=collect.KEEP_READS + 1, appeared=0)
    assert [(entry.key, entry.why) for entry in made.objects] == [(old.key, Why.READ)]


def test_strays_go_whatever_is_kept():
    seen = found([0] * 5, oldest=8, strays=[3, 7])
    made = plan_collection(seen, 8, set(), None, now=0, appeared=0)
    assert [(entry.key, entry.why) for entry in made.versions] == [
        ("versions/003", Why.STRAY),
        ("versions/007", Why.STRAY),
    ]


def test_the_low_water_mark_of_plans_never_falls():
    """Not where versions are kept for longer than before, either: what an earlier plan lists may be gone by now."""
    first = plan_collection(found([0] * 9), 8, set(), None, now=0, appeared=0)
    assert first.versions_below == 8
    assert plan_collection(found([0] * 9), 4, set(), first, now=0, appeared=0).versions_below == 8


def test_a_full_plan_keeps_what_was_listed_first_and_says_how_much_it_left_out(monkeypatch):
    monkeypatch.setattr(collect, "LIMIT", 2)
    first = plan([key("m"), key("n")])
    second = plan([key("a"), key("b"), key("m"), key("n")], first, at=100)
    assert since(second) == {key("m"): 1, key("n"): 1}
    assert second.left_out == 2


# Clocks: ages are judged only where two clocks, of which one may have been put, agree about the time that passed.

DAY = 86_400 * 1_000_000


def between(moved: int, *, uptime: int, wall: int = 0, boot: str = "same", store: int = 5 * DAY) -> str | None:
    """What is said of plan 7, written at `store`, when the clocks moved on by so much since."""
    before = GarbagePlan(7, 1, 1, clocks=Clocks(100 * DAY, DAY, "same"))
    now = Clocks(100 * DAY + wall, DAY + uptime, boot)
    return disagreement(before, store, now, store + moved)


@given(passed=st.integers(0, 40 * DAY), step=st.integers(-60 * DAY, 60 * DAY), off=st.integers(-(10**15), 10**15))
def test_a_step_of_the_stores_clock_is_found_by_the_time_the_machine_has_been_on(passed, step, off):
    """Whatever its wall clock says, which may be the same clock."""
    said = between(passed + step, uptime=passed, wall=off)
    assert (said is None) == (abs(step) <= TOLERANCE)


@given(passed=st.integers(0, 40 * DAY), step=st.integers(-60 * DAY, 60 * DAY), uptime=st.integers(-DAY, DAY))
def test_between_two_machines_or_starts_of_one_the_wall_clock_tells(passed, step, uptime):
    said = between(passed + step, uptime=uptime, wall=passed, boot="other")
    assert (said is None) == (abs(step) <= TOLERANCE)
    assert (between(passed + step, uptime=uptime, wall=passed, boot="") is None) == (said is None)


def test_a_plan_of_an_earlier_release_tells_no_clocks_but_when_it_appeared():
    old = GarbagePlan(7, 1, 1)
    assert disagreement(None, 0, Clocks(0, 0), 50 * DAY) is None
    assert disagreement(old, DAY, Clocks(0, 0), 50 * DAY) is None
    assert disagreement(old, DAY, Clocks(0, 0), DAY - TOLERANCE) is None
    assert disagreement(old, DAY, Clocks(0, 0), DAY - TOLERANCE - 1)


def test_what_appeared_in_the_future_tells_of_no_age():
    seen = found([10, 20, TOLERANCE + 31])
    assert ahead(seen, 0, wall=31) is None
    assert ahead(seen, 0, wall=30)
    assert ahead(found([0]), TOLERANCE + 31, wall=30)


def test_a_plan_made_afresh_lists_the_same_and_counts_from_itself():
    first = plan([key("a"), key("b", "ledger")], at=0)
    second = plan([key("a"), key("b", "ledger")], first, at=10)
    args = (found([0], objects=[key("a"), key("b", "ledger")]), 1, frozenset(), second)
    kept_on, afresh = (plan_collection(*args, now=0, appeared=20, afresh=again) for again in (False, True))
    assert [entry.since for entry in kept_on.objects] == [1, 1]
    assert [entry.since for entry in afresh.objects] == [3, 3]
    assert [entry.key for entry in afresh.objects] == [entry.key for entry in kept_on.objects]
    assert due(afresh, Graces(0, 1), now=10**9).objects == ()
    assert (afresh.number, afresh.appeared) == (3, ())
