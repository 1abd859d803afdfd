"""How far the seal moves: over no batch without a certificate, and not at all before the collection's first interval,
whatever else was ingested."""

from __future__ import annotations

import pickle
from dataclasses import replace
from typing import Any

import pytest

from tidemark.errors import Uncertified
from tidemark.model.arrangement import Arrangement, Certificate, EmptyReading
from tidemark.model.batch import UnsealedBatch
from tidemark.model.change import Certified, Sealed
from tidemark.model.collection import Collection, Column, ColumnType, Envelope, Format, Gate, Landed, Source
from tidemark.model.interval import Interval, IntervalSet
from tidemark.model.transition import Applied, Stale, apply
from tidemark.plan.blocked import blocking, blocking_own, plan_seal_so_far
from tidemark.plan.gate import plan_gate
from tidemark.plan.seal import plan_seal

pytestmark = pytest.mark.pure

START = 100
COLLECTION = Collection(
    "c", (Column("id", ColumnType.INT),), (), Landed(Source("*", Format.CSV, Envelope.APPEND), start=START, grace=5)
)


def ingested(*intervals: tuple[int, int]) -> Arrangement:
    return Arrangement(COLLECTION, ingested=IntervalSet(tuple(Interval(*bounds) for bounds in intervals)))


def test_later_intervals_do_not_seal_what_came_before_the_start() -> None:
    """The first interval's rows may have happened before the start: they are on time, in whatever order days come."""
    assert plan_seal(ingested((200, 300)), 300) == Sealed(0, 0, 300)


def test_the_first_interval_passes_those_that_waited() -> None:
    waiting = replace(ingested((100, 300)), requested_seal=300)
    assert plan_seal(waiting, 200) == Sealed(295, 295, 300)


def test_the_seal_stops_at_a_hole_less_the_grace() -> None:
    assert plan_seal(ingested((100, 200), (300, 400)), 400) == Sealed(195, 195, 400)


def test_a_wait_is_recorded_once() -> None:
    assert plan_seal(replace(ingested((200, 300)), requested_seal=300), 300) is None


DAY = 100


def days(*read: int, bad: tuple[int, ...] = (), **changes: Any) -> Arrangement:
    """Days were read, each with a batch of its own times; those that are not `bad` are certified."""
    batches = tuple(batch_of(day, day * DAY, number) for number, day in enumerate(read))
    return state_of(batches, [f"day{day}" for day in read if day not in bad], **changes)


def batch_of(day: int, first: int, number: int, **changes: Any) -> UnsealedBatch:
    last = (day + 1) * DAY - 1
    bounds = (first, last, first, last)
    interval = Interval(day * DAY, (day + 1) * DAY)
    return UnsealedBatch(f"day{day}", interval, (), 1, 1, 1, 0, *bounds, (number, number + 1), **changes)


def state_of(batches: tuple[UnsealedBatch, ...], certified: list[str], **changes: Any) -> Arrangement:
    suite = COLLECTION.suite(Gate.UNSEALED)
    read = IntervalSet()
    for batch in batches:
        read = read.add(batch.interval)
    return Arrangement(
        COLLECTION,
        **{"ingested": read, "unsealed": batches, "certificates": tuple(Certificate(one, suite) for one in certified)}
        | changes,
    )


def test_an_interval_to_whose_end_ticks_came_before_it_is_sealed_past_what_it_learned() -> None:
    days = (batch_of(1, 100, 0), batch_of(2, 200, 1, learned_at=295))
    state = replace(state_of(days, ["day1", "day2"]), complete_below=195, seal=295)
    assert plan_seal(state, 300) == Sealed(296, 295, 300)


class TestABadDay:
    """A batch without a certificate is in the way: what is not behind it is sealed, what is asked for is recorded."""

    def test_its_interval_counts_as_missing(self) -> None:
        state = days(1, 2, 3, 4, bad=(3,))
        with pytest.raises(Uncertified, match="batch day3 below 495 is not certified") as refused:
            plan_seal(state, 500)
        assert refused.value.intervals == (Interval(300, 400),)
        assert plan_seal_so_far(state, 500) == Sealed(295, 295, 500), "not to within the bad day, to its first row"
        assert plan_seal_so_far(days(1, 2, 3, 4, bad=(1, 3)), 500) == Sealed(0, 0, 500)

    def test_whoever_mends_it_passes_all_that_was_asked_for(self) -> None:
        waiting = days(1, 2, 3, 4, requested_seal=500)
        assert plan_seal_so_far(waiting, 200) == plan_seal(waiting, 200) == Sealed(495, 495, 500)

    def test_of_two_the_one_mended_first_passes_what_is_before_the_other(self) -> None:
        assert plan_seal_so_far(days(1, 2, 3, 4, bad=(3,), requested_seal=500), 200) == Sealed(295, 295, 500)
        assert plan_seal_so_far(days(1, 2, 3, 4, bad=(1,), requested_seal=500), 400) is None, "as was recorded"

    def test_a_later_day_with_rows_of_an_earlier_one_stops_that_and_not_what_was_learned(self) -> None:
        """Day 3 is bad and has rows of day 2. Day 1 was run again, and corrected."""
        sealed = {"complete_below": 195, "seal": 195}
        correction = replace(batch_of(1, 195, 0, learned_at=195), id="again")
        batches = (correction, batch_of(2, 200, 1), batch_of(3, 270, 2))
        state = state_of(batches, ["again", "day2"], **sealed)
        assert plan_seal_so_far(state, 400) == Sealed(196, 195, 400)
        assert blocking_own(state, 200) == (), "the corrected day need not wait"
        assert blocking_own(state, 300) == (Interval(300, 400),)

    def test_a_bad_correction_stops_all_that_would_pass_what_it_learned(self) -> None:
        bad = replace(batch_of(1, 195, 0, learned_at=195), id="bad")
        state = state_of((bad, batch_of(2, 200, 1)), ["day2"], complete_below=195, seal=195)
        assert plan_seal_so_far(state, 300) == Sealed(195, 195, 300)
        assert blocking(state, 300) == blocking_own(state, 200) == (Interval(100, 200),)

    @pytest.mark.parametrize("quarantined", [False, True])
    def test_so_does_a_day_without_rows_which_has_no_batch(self, quarantined: bool) -> None:
        empty = EmptyReading("empty", Interval(300, 400), quarantined=quarantined)
        state = days(1, 2, 4, ingested=IntervalSet((Interval(100, 500),)), empty=(empty,))
        if quarantined:
            assert plan_seal(state, 500) == Sealed(495, 495, 500)
            return
        with pytest.raises(Uncertified, match="batch empty below 495 is not certified") as refused:
            plan_seal(state, 500)
        assert refused.value.intervals == (Interval(300, 400),)
        assert plan_seal_so_far(state, 500) == Sealed(295, 295, 500)
        assert plan_gate(state, Gate.UNSEALED, [Interval(200, 300)]) is None
        request = plan_gate(state, Gate.UNSEALED, refused.value.intervals)
        assert request is not None
        passed = apply(state, Certified(Gate.UNSEALED, request.suite, request.names))
        assert isinstance(passed, Applied)
        assert plan_seal(passed.state, 500) == Sealed(495, 495, 500)
        assert isinstance(apply(state, Sealed(495, 495, 500)), Stale), (
            "nor does a commit pass it that was planned before"
        )

    def test_a_tick_does_not_wait_for_a_day_without_rows_that_is_still_to_be_sealed(self) -> None:
        correction = replace(batch_of(1, 195, 0, learned_at=195), id="again")
        state = state_of((correction,), ["again"], complete_below=195, seal=195)
        empty = (EmptyReading("empty", Interval(200, 300)),)
        assert plan_seal_so_far(replace(state, empty=empty), 200) == Sealed(196, 195, 200)

    def test_what_others_asked_for_is_not_a_runs_own(self) -> None:
        state = days(1, 2, bad=(2,), requested_seal=300)
        assert blocking(state, 200) == (Interval(200, 300),)
        assert blocking_own(state, 200) == ()

    def test_a_gate_looks_at_the_batches_of_its_runs_intervals(self) -> None:
        state = days(1, 2, 3, bad=(1, 2, 3))
        of_two = plan_gate(state, Gate.UNSEALED, [Interval(200, 300)])
        assert of_two is not None
        assert [batch.id for batch in of_two.unsealed] == ["day2"]
        assert plan_gate(state, Gate.UNSEALED, [Interval(400, 500)]) is None
        of_all = plan_gate(state, Gate.UNSEALED)
        assert of_all is not None
        assert len(of_all.unsealed) == 3

    def test_what_blocks_survives_the_way_between_processes(self) -> None:
        error = Uncertified("no", "unsealed", (Interval(1, 2),))
        copied = pickle.loads(pickle.dumps(error))
        assert (str(copied), copied.gate, copied.intervals) == ("no", "unsealed", (Interval(1, 2),))
