"""How far the inputs of a derived collection are consumed, and what one commit of `correct` leaves."""

from __future__ import annotations

from dataclasses import replace

import pytest

from support.derivations import Derivations, derived, landed
from tidemark.errors import InvalidUsage
from tidemark.model.arrangement import Hold
from tidemark.model.change import HoldDropped, HoldPlaced, Sealed
from tidemark.model.collection import Gate
from tidemark.model.frontier import EMPTY
from tidemark.model.instant import format_instant
from tidemark.model.interval import Interval
from tidemark.model.retention import Retention
from tidemark.model.transition import AlreadyApplied, Stale
from tidemark.plan.correct import CorrectRequest, InputState, Waits, plan_correct
from tidemark.plan.read import plan_as_of
from tidemark.plan.seal import plan_seal

pytestmark = pytest.mark.pure

MERGED = Retention("full_merge")


def world(*declared: object) -> Derivations:
    made = Derivations()
    made.add(*declared)  # type: ignore[arg-type]
    return made


def at(time: int) -> str:
    return format_instant(time)


def requested(found: CorrectRequest | Waits | None) -> CorrectRequest:
    assert isinstance(found, CorrectRequest), found
    return found


def waits(found: CorrectRequest | Waits | None) -> Waits:
    assert isinstance(found, Waits), found
    return found


class TestFrontiers:
    def test_the_least_complete_input_is_consumed_whole_and_the_others_as_far(self) -> None:
        w = world(landed("a"), landed("b"), derived("d", "a", "b"))
        w.day("a", 0, 20, 1, 15)
        w.day("b", 0, 30, 25)
        w.correct("d")
        assert w.consumed("d") == (20, 20, (20, 20))
        w.day("b", 30, 40)
        assert w.correct("d") is None
        w.day("a", 20, 40, 30)
        w.correct("d")
        assert w.consumed("d") == (40, 40, (40, 40))

    def test_a_tick_is_consumed_and_the_frontier_is_above_it(self) -> None:
        """A row learned at 20 is below no frontier of 20: so u is 21 though W is 20 still."""
        w = world(landed("a"), landed("b"), derived("d", "a", "b"))
        for name in ("a", "b"):
            w.day(name, 0, 20, 1)
        w.correct("d")
        w.day("a", 0, 20, 5)  # late: it is learned at the seal, 20
        assert (w.state("a").seal, w.state("a").complete_below) == (21, 20)
        w.correct("d")
        assert w.consumed("d") == (21, 20, (21, 20))
        assert w.correct("d") is None

    def test_what_was_learned_late_before_the_first_build_is_below_its_frontier(self) -> None:
        """Row by row every instant is exact: a row of 20 is there as of 20, and not as of 19."""
        w = world(landed("a"), derived("d", "a", by_row=True))
        w.day("a", 0, 20, 1)
        w.catch_up("d")
        w.day("a", 20, 40, 30)
        w.ingest("a", 20, 40, 35)
        w.settle("a", 40)
        w.catch_up("d")
        assert w.consumed("d") == (41, 40, (41,))
        assert [sum(w.tanks["d"].as_of(time).values()) for time in (29, 30, 39, 40)] == [1, 2, 2, 3]

    def test_several_ticks_of_one_completeness_have_frontiers_of_their_own(self) -> None:
        w = world(landed("a"), landed("b"), derived("d", "a", "b"))
        for name in ("a", "b"):
            w.day(name, 0, 20, 1)
        w.correct("d")
        w.day("b", 0, 20, 2)
        w.correct("d")
        w.day("a", 0, 20, 3)
        w.correct("d")
        assert w.consumed("d") == (22, 20, (21, 21))
        w.settle("d")
        assert (w.state("d").seal, w.state("d").complete_below) == (22, 20)

    def test_only_what_is_drained_and_gated_is_consumed(self) -> None:
        w = world(landed("a"), derived("d", "a"))
        w.ingest("a", 0, 20, 1)
        assert waits(w.plan("d")).laggard == "a"
        w.seal("a", 20)
        assert "nothing of it is drained" in waits(w.plan("d")).reason
        w.drain("a")
        assert "passed no gate" in waits(w.plan("d")).reason
        w.gate("a", Gate.TRACE)
        assert requested(w.plan("d")).upper == 20

    def test_a_merge_that_no_gate_has_seen_is_waited_for(self) -> None:
        w = world(landed("a"), derived("d", "a"))
        w.day("a", 0, 20, 1)
        w.catch_up("d")
        w.day("a", 20, 40)
        tank = w.tanks["a"]
        tank.state = replace(tank.state, certificates=tank.state.certificates[:-2])
        assert tank.state.certified_trace_upper < 20
        assert waits(w.plan("d")).laggard == "a"

    def test_an_input_that_was_never_created_is_waited_for_by_name(self) -> None:
        w = world(landed("a"), derived("d", "a"))
        found = waits(plan_correct(w.state("d"), [InputState("a", None, 0)]))
        assert (found.laggard, "tidemark init" in found.reason) == ("a", True)

    def test_other_inputs_than_declared_are_refused(self) -> None:
        w = world(landed("a"), landed("b"), derived("d", "a"))
        with pytest.raises(InvalidUsage, match="has the inputs a, given were b"):
            plan_correct(w.state("d"), [InputState("b", w.state("b"), 1)])

    def test_a_landed_collection_is_not_corrected(self) -> None:
        w = world(landed("a"))
        with pytest.raises(InvalidUsage, match="a is not derived"):
            plan_correct(w.state("a"), [])

    def test_until_is_not_passed_and_waited_for(self) -> None:
        w = world(landed("a"), derived("d", "a"))
        w.day("a", 0, 40, 1, 35)
        w.correct("d", until=20)
        assert w.consumed("d") == (20, 20, (20,))
        assert w.plan("d", until=20) is None
        assert w.plan("d", until=10) is None
        w.correct("d", until=60)
        assert w.consumed("d") == (40, 40, (40,))
        found = waits(w.plan("d", until=60))
        assert found.laggard == "a"
        assert "00:00:00.000040Z only" in found.reason

    def test_catching_up_stops_where_it_is_asked_to_one_commit_each(self) -> None:
        w = world(landed("a"), derived("d", "a"))
        w.day("a", 0, 20, 1)
        w.correct("d", stops=(5, 10))
        w.day("a", 20, 90, 33)
        stops = tuple(range(0, 200, 20))
        uppers = []
        while isinstance(w.correct("d", stops=stops), CorrectRequest):
            uppers.append(w.consumed("d"))
        assert uppers == [(40, 40, (40,)), (60, 60, (60,)), (80, 80, (80,)), (90, 90, (90,))]


class TestEnded:
    def test_an_input_that_has_ended_is_all_known_whenever_the_others_are_read(self) -> None:
        w = world(landed("names", end=10), landed("a"), derived("d", "a", "names"))
        w.day("names", 0, 10, 5)
        w.day("a", 0, 4, 1)
        w.correct("d")
        assert w.consumed("d") == (4, 4, (4, 10))
        w.day("names", 0, 10, 6)  # learned after the end, at 10
        w.correct("d")
        assert w.consumed("d") == (5, 4, (4, 11))

    def test_where_all_have_ended_it_has_too(self) -> None:
        w = world(landed("a", end=20), landed("b", end=30), derived("d", "a", "b"), derived("e", "d"))
        w.day("a", 0, 20, 1)
        w.day("b", 0, 30, 1)
        w.catch_up("d")
        consumed = w.state("d").consumed
        assert consumed is not None
        assert consumed.ended
        assert (consumed.upper, consumed.complete_below) == (30, 30)
        w.catch_up("e")
        again = w.state("e").consumed
        assert again is not None
        assert again.ended
        assert w.correct("e") is None

    def test_one_that_goes_on_after_all_is_waited_for_where_it_was_said_to_be_complete(self) -> None:
        w = world(landed("a", end=20), derived("d", "a"))
        w.day("a", 0, 20, 1)
        w.day("a", 0, 20, 2)
        w.catch_up("d")
        assert w.consumed("d") == (21, 21, (21,))
        w.redefine("a", landed("a", end=40))
        assert waits(w.plan("d")).laggard == "a"
        w.day("a", 20, 40, 30)
        w.catch_up("d")
        assert w.consumed("d") == (40, 40, (40,))


class TestDiamonds:
    """The join of A, 10 at one hour and 20 at thirty, over two arms."""

    @staticmethod
    def arms() -> Derivations:
        w = world(landed("a"), derived("left", "a"), derived("right", "a"), derived("d", "left", "right"))
        w.day("a", 0, 24, 1)
        return w

    def test_arms_consumed_to_24_48_and_36_hours_never_give_the_torn_pair(self) -> None:
        w = self.arms()
        w.catch_up("left")
        w.day("a", 24, 36, 30)
        w.catch_up("right")
        found = waits(w.plan("d"))
        assert found.laggard == "left"
        assert (
            found.reason
            == f"right recorded no frontier at which it was complete to {at(24)}, as far as left is complete"
        )
        w.day("a", 36, 48)
        w.catch_up("left")
        found = waits(w.plan("d"))
        assert found.laggard == "right"
        assert f"right has consumed a to {at(36)}, left to {at(48)}" in found.reason
        w.catch_up("right")
        w.catch_up("d")
        assert w.consumed("d") == (48, 48, (48, 48))
        assert sum(w.tanks["d"].as_of(47).values()) == 4

    def test_a_row_by_row_arm_is_used_at_the_frontiers_it_recorded(self) -> None:
        """Between two of them it holds every instant: more than the other arm, which holds the earlier answer."""
        w = world(
            landed("a"),
            landed("c"),
            derived("left", "a", by_row=True),
            derived("right", "a"),
            derived("d", "left", "right", "c"),
        )
        w.day("a", 0, 24, 1)
        w.day("c", 0, 24)
        for arm in ("left", "right"):
            w.catch_up(arm)
        w.catch_up("d")
        w.day("a", 24, 48, 30)
        for arm in ("left", "right"):
            w.catch_up(arm)
        w.day("c", 24, 36, 32)
        found = waits(w.plan("d"))
        assert found.laggard == "c"
        assert f"left recorded no frontier at which it was complete to {at(36)}" in found.reason
        w.day("c", 36, 48)
        w.catch_up("d")
        assert w.consumed("d") == (48, 48, (48, 48, 48))

    def test_arms_over_two_collections_of_one_name_are_not_used_together(self) -> None:
        """It was made again, and the left arm has consumed the new one as far as the right arm the old one."""
        w = self.arms()
        for name in ("left", "right", "d"):
            w.catch_up(name)
        w.add(landed("a"))
        w.day("a", 0, 24, 7)
        w.catch_up("left")
        found = waits(w.plan("d"))
        assert f"right have consumed a to {at(24)}, but two collections of that name" in found.reason
        w.catch_up("right")
        w.catch_up("d")
        assert sum(w.tanks["d"].as_of(w.state("d").seal - 1).values()) == 2


class TestKills:
    def test_what_is_committed_and_not_sealed_counts_as_current(self) -> None:
        """A kill after the commit at 20, +5, before its seal; then +1 by 30: as of 19 it is 5, as of 29 6, not 11."""
        w = world(landed("a"), derived("d", "a"))
        w.day("a", 0, 20, *range(5))
        w.correct("d")
        w.day("a", 20, 30, 25)
        w.correct("d")
        assert w.state("d").seal == 0
        w.settle("d")
        assert sum(w.tanks["d"].as_of(19).values()) == 5
        assert sum(w.tanks["d"].as_of(29).values()) == 6
        assert [batch.first_time for batch in w.state("d").unsealed] == []
        assert w.state("d").seal == 30

    def test_of_two_runs_side_by_side_one_commits_and_the_other_plans_again(self) -> None:
        w = world(landed("a"), derived("d", "a"))
        w.day("a", 0, 20, 1)
        request = requested(w.plan("d"))
        one, other = w.executed("d", request), w.executed("d", request)
        w.do("d", one)
        done = w.commit("d", other)
        assert isinstance(done, Stale)
        assert "was corrected to" in done.reason
        assert isinstance(w.commit("d", one), AlreadyApplied)
        assert w.plan("d") is None

    def test_a_run_planned_under_another_definition_is_stale(self) -> None:
        w = world(landed("a"), derived("d", "a"))
        w.day("a", 0, 20, 1)
        change = w.executed("d", requested(w.plan("d")))
        w.redefine("d", derived("d", "a", select="otherwise"))
        done = w.commit("d", change)
        assert isinstance(done, Stale)
        assert "defined otherwise" in done.reason

    def test_nothing_is_written_below_the_frontier_before(self) -> None:
        w = world(landed("a"), derived("d", "a"))
        w.day("a", 0, 20, 1)
        w.correct("d")
        w.day("a", 20, 30, 25)
        change = w.executed("d", requested(w.plan("d")))
        assert change.batch is not None
        early = replace(change, batch=replace(change.batch, first_time=19))
        assert isinstance(w.commit("d", early), Stale)
        nowhere = replace(change, consumption=replace(change.consumption, upper=w.state("d").complete))
        assert isinstance(w.commit("d", nowhere), Stale)


class TestBootstrap:
    def test_reads_before_the_first_frontier_are_refused_and_not_answered_with_nothing(self) -> None:
        w = world(landed("a"), derived("d", "a"))
        w.day("a", 0, 365, 1, 200)
        w.catch_up("d")
        assert w.state("d").since == 364
        with pytest.raises(InvalidUsage, match=r"outside the readable \[since 1970-01-01T00:00:00.000364Z"):
            plan_as_of(w.state("d"), 100)
        assert plan_as_of(w.state("d")).upto == 364

    def test_history_is_built_one_frontier_each_so_often_and_resumed_at_any(self) -> None:
        w = world(landed("a", start=100), derived("d", "a", history=50))
        w.day("a", 100, 290, 120)
        w.correct("d", stops=range(0, 300, 10))
        assert w.consumed("d") == (150, 150, (150,))
        assert w.state("d").since == 149
        w.settle("d")
        w.catch_up("d", stops=range(0, 300, 10))
        consumptions = w.state("d").consumptions
        assert [each.upper for each in consumptions] == [150, 200, 250, 290]
        assert [each.building for each in consumptions] == [True, True, True, False]
        w.day("a", 290, 320)
        w.catch_up("d", stops=range(0, 400, 10))
        assert [each.upper for each in w.state("d").consumptions[4:]] == [300, 310, 320]

    def test_history_begins_where_all_inputs_are_readable(self) -> None:
        w = world(landed("a", retention=MERGED), derived("d", "a", history=30))
        w.day("a", 0, 100, 1)
        w.retain("a")
        w.day("a", 100, 200, 150)
        w.correct("d")
        assert w.consumed("d") == (120, 120, (120,))

    def test_history_of_what_has_ended_is_built_all_the_same(self) -> None:
        w = world(landed("a", end=90), derived("d", "a", history=40))
        w.day("a", 0, 90, 1, 85)
        w.catch_up("d")
        assert [each.upper for each in w.state("d").consumptions] == [40, 80, 90]
        assert w.state("d").consumptions[-1].ended

    def test_what_is_merged_beyond_what_others_are_complete_to_is_waited_for_with_a_hold(self) -> None:
        w = world(landed("a", retention=MERGED), landed("b"), derived("d", "a", "b"))
        w.day("a", 0, 40, 1)
        w.retain("a")
        w.day("b", 0, 20, 1)
        found = waits(w.plan("d"))
        assert (found.laggard, dict(found.holds)) == ("b", {"a": 39, "b": 0})
        assert "a is readable from" in found.reason
        for name, since in found.holds:
            w.do(name, HoldPlaced(Hold("derived.d", since)))
        w.day("a", 40, 60)
        w.retain("a")
        w.day("b", 20, 50)
        w.correct("d")
        assert w.consumed("d") == (50, 50, (50, 50))


class TestHolds:
    def test_each_input_has_a_hold_at_what_was_consumed(self) -> None:
        w = world(landed("a", retention=MERGED), derived("d", "a"))
        w.day("a", 0, 20, 1)
        w.correct("d")
        assert w.state("a").holds == (Hold("derived.d", 19),)
        w.day("a", 20, 40, 30)
        w.retain("a")
        assert w.state("a").since == 19
        request = requested(w.plan("d"))
        assert [(each.after, each.upto, each.hold_before, each.hold_after) for each in request.inputs] == [
            (19, 39, 19, 39)
        ]
        assert request.whole == ""

    @pytest.mark.parametrize("end", [21, 40])
    def test_a_lost_hold_costs_a_whole_refresh(self, end: int) -> None:
        """Also where the first instant that was not consumed is the first that is still distinguished."""
        w = world(landed("a", retention=MERGED), derived("d", "a"))
        w.day("a", 0, 20, 1)
        w.correct("d")
        w.do("a", HoldDropped("derived.d"))
        w.day("a", 20, end, end - 1)
        w.retain("a")
        request = requested(w.plan("d"))
        assert f"its history is merged below {at(end - 1)}" in request.whole
        assert [(each.after, each.upto) for each in request.inputs] == [(None, end - 1)]
        w.catch_up("d")
        assert sum(w.tanks["d"].as_of(end - 1).values()) == 2

    def test_another_collection_of_the_name_is_read_whole(self) -> None:
        w = world(landed("a"), derived("d", "a"))
        w.day("a", 0, 20, 1)
        w.catch_up("d")
        w.add(landed("a"))
        w.day("a", 0, 10, 2)
        found = waits(w.plan("d"))
        assert found.laggard == "a", "what D said it is complete below is never lowered"
        w.day("a", 10, 20, 3, 4)
        request = requested(w.plan("d"))
        assert request.whole == "a was created again"
        assert (request.upper, request.moves) == (21, True)
        w.catch_up("d")
        assert sum(w.tanks["d"].as_of(19).values()) == 1
        assert sum(w.tanks["d"].as_of(20).values()) == 3

    def test_another_definition_is_a_whole_difference_at_the_next_frontier(self) -> None:
        w = world(landed("a"), derived("d", "a"))
        w.day("a", 0, 20, 1)
        w.catch_up("d")
        assert w.plan("d") is None
        w.redefine("d", derived("d", "a", select="otherwise"))
        request = requested(w.plan("d", until=10))
        assert (request.whole, request.upper, request.moves) == ("another definition", 21, True)


class TestChecks:
    def test_a_check_compares_at_the_inputs_as_they_were_consumed(self) -> None:
        """What was lost and what came in by another way is found, and nothing else is."""
        w = world(landed("a"), derived("d", "a"))
        w.day("a", 0, 20, 1, 2)
        w.catch_up("d")
        w.day("a", 20, 40, 30)
        request = requested(w.plan("d", check=True))
        assert (request.checks, request.moves, request.upper) == (True, False, 21)
        assert [each.upto for each in request.inputs] == [19]
        assert w.executed("d", request).batch is None
        w.tanks["d"].rows["stray"] = [(("d", ("a", "never")), 7, 1)]
        change = w.executed("d", requested(w.plan("d", check=True)))
        assert change.batch is not None
        assert change.batch.rows == 1
        w.do("d", change)
        w.catch_up("d")
        assert sum(w.tanks["d"].as_of(39).values()) == 3

    def test_without_a_first_build_a_check_is_one(self) -> None:
        w = world(landed("a"), derived("d", "a"))
        w.day("a", 0, 20, 1)
        assert requested(w.plan("d", check=True)).whole == "first build"

    def test_whole_is_computed_when_asked_though_nothing_is_new(self) -> None:
        w = world(landed("a"), derived("d", "a"))
        w.day("a", 0, 20, 1)
        w.catch_up("d")
        request = requested(w.plan("d", whole=True))
        assert (request.whole, request.moves, request.checks) == ("asked for", False, False)


class TestQuarantine:
    def test_the_youngest_batch_takes_its_consumption_with_it_and_the_frontier_stays(self) -> None:
        w = world(landed("a"), derived("d", "a"))
        w.day("a", 0, 20, 1)
        w.catch_up("d")
        w.day("a", 20, 30, 25)
        w.correct("d")
        w.seal("d")
        (batch,) = w.state("d").unsealed
        w.quarantine("d", batch.id)
        assert w.consumed("d") == (20, 20, (20,))
        w.drain("d")
        w.gate("d", Gate.TRACE)
        request = requested(w.plan("d"))
        assert (request.interval, request.upper) == (Interval(30, 31), 31)
        w.catch_up("d")
        assert sum(w.tanks["d"].as_of(29).values()) == 1
        assert sum(w.tanks["d"].as_of(30).values()) == 2

    def test_commits_that_found_nothing_to_differ_go_with_it(self) -> None:
        w = world(landed("a"), derived("d", "a"))
        w.day("a", 0, 20, 1)
        w.correct("d")
        w.day("a", 20, 30)
        w.correct("d")
        assert len(w.state("d").consumptions) == 2
        w.quarantine("d", w.state("d").unsealed[0].id)
        assert w.state("d").consumptions == ()
        request = requested(w.plan("d"))
        assert (request.whole, request.interval) == ("first build", Interval(30, 31))
        w.catch_up("d")
        assert w.state("d").since == 30

    def test_an_older_one_stays_until_the_younger_is_gone(self) -> None:
        w = world(landed("a"), derived("d", "a"))
        w.day("a", 0, 20, 1)
        w.correct("d")
        w.day("a", 20, 30, 25)
        w.correct("d")
        older, younger = (batch.id for batch in w.state("d").unsealed)
        done = w.quarantine("d", older)
        assert isinstance(done, Stale)
        assert f"quarantine {younger} first" in done.reason
        w.quarantine("d", younger)
        w.quarantine("d", older)
        assert w.state("d").unsealed == ()

    def test_what_was_drained_stays(self) -> None:
        w = world(landed("a"), derived("d", "a"))
        w.day("a", 0, 20, 1)
        w.correct("d")
        batch = w.state("d").unsealed[0]
        ahead = replace(batch, last_time=99)  # some of its rows are not due
        w.tanks["d"].state = replace(w.state("d"), unsealed=(ahead,))
        w.settle("d")
        done = w.quarantine("d", batch.id)
        assert isinstance(done, Stale)
        assert "correct --check" in done.reason


class TestSeal:
    def test_it_is_sealed_to_where_it_was_corrected_whatever_is_asked(self) -> None:
        w = world(landed("a"), derived("d", "a"))
        assert plan_seal(w.state("d"), 99) is None
        w.day("a", 0, 20, 1)
        w.day("a", 0, 20, 2)
        w.correct("d")
        w.gate("d", Gate.UNSEALED)
        assert plan_seal(w.state("d"), 99) == Sealed(21, 20, 0)
        w.seal("d")
        assert plan_seal(w.state("d"), 99) is None
        assert w.state("d").hole_below(99) is None


class TestEventTimes:
    def test_below_the_greatest_since_of_the_inputs_they_are_refused(self) -> None:
        """A late row of event day 7 comes by row over an input whose since is day 9: it stands at 9 there."""
        w = world(landed("a", retention=MERGED), landed("b"), derived("d", "a", "b", by_row=True))
        w.day("a", 0, 10, 7)
        w.day("b", 0, 10)
        w.retain("a")
        w.catch_up("d")
        assert w.state("d").event_times_from == 9
        assert plan_as_of(w.state("d"), event_time=9).event_upto == 9
        with pytest.raises(InvalidUsage, match=r"event time .*000008Z is below .*000009Z, from where on"):
            plan_as_of(w.state("d"), event_time=8)

    def test_rows_that_follow_from_several_have_none(self) -> None:
        w = world(landed("a"), derived("d", "a"))
        w.day("a", 0, 10, 7)
        w.catch_up("d")
        assert w.state("d").event_times_from == EMPTY
        with pytest.raises(InvalidUsage, match="rows of collection d have no event times"):
            plan_as_of(w.state("d"), event_time=9)
