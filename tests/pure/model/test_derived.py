"""Declarations of derived collections: what they are, what they are not, and how they may be declared otherwise."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import pytest

from support.derivations import derived, landed
from tests.support.drawn import fence_of, run_of, unsealed_batch
from tidemark.errors import Corruption, InvalidUsage
from tidemark.model.arrangement import Arrangement
from tidemark.model.change import Corrected, Ingested, Quarantined, Redefined, Released
from tidemark.model.collection import Collection, Column, ColumnType, DecimalType, Derived, Envelope, Gate
from tidemark.model.derived import Consumed, Consumption, Definition, Mode, Validity
from tidemark.model.evolution import differences, evolved
from tidemark.model.interval import Interval, IntervalSet
from tidemark.model.invariants import Invariant
from tidemark.model.kind import ADDITIVE
from tidemark.model.retention import Retention
from tidemark.model.transition import Applied, Overtaken, Stale, apply, conflict
from tidemark.model.transition.derived import CONSUMPTIONS_KEPT, kept_consumptions
from tidemark.model.window.aggregate import Aggregate, Function
from tidemark.model.window.calendar import Unit
from tidemark.model.window.kinds import Calendar, Cumulate, Hopping, Session, Sliding, Tumbling
from tidemark.model.window.windows import Late, Windows
from tidemark.plan.computed_as import differs
from tidemark.plan.retain import plan_retention

pytestmark = pytest.mark.pure

COUNT = Column("_rows", ColumnType.INT)
D = derived("d", "a", hidden=(COUNT,))

HOURLY = Windows(("k",), "at", Tumbling(10), (Aggregate("n", Function.COUNT),))
OTHERWISE = (
    HOURLY,
    replace(HOURLY, by=()),
    replace(HOURLY, kind=Tumbling(10, 5)),
    replace(HOURLY, kind=Sliding(10)),
    replace(HOURLY, aggregates=(Aggregate("n", Function.COUNT, where="k > 1"),)),
    replace(HOURLY, where="k > 1"),
    replace(HOURLY, grace=5),
    replace(HOURLY, late=Late.DISCARD),
    replace(HOURLY, max_lateness=5),
    replace(HOURLY, early=True),
)


class TestDeclaration:
    def test_it_has_no_source_and_says_what_brings_it_up_to_date(self) -> None:
        with pytest.raises(InvalidUsage, match="d is derived, it has no source; its rows follow from a: `tidemark cor"):
            _ = D.landed
        with pytest.raises(InvalidUsage, match="tides is not derived"):
            _ = landed("tides").derived

    def test_its_rows_are_updates_and_none_is_late_or_read_again(self) -> None:
        assert (D.kind, D.lateness, D.correctable_for, D.corrected_reach, D.start, D.order_by) == (
            ADDITIVE,
            0,
            0,
            0,
            0,
            None,
        )
        assert D.type_of("n") is ColumnType.INT
        assert D.suite(Gate.UNSEALED) != D.suite(Gate.TRACE)

    def test_what_a_state_asks_of_intervals_and_files_has_an_answer(self) -> None:
        state = Arrangement(D, ingested=IntervalSet((Interval(0, 30),)), complete_below=20, seal=30)
        assert (state.complete, state.hole_below(99), state.horizon) == (30, None, 20)
        assert (state.retracts_facts, state.snapshots_remembered_from) == (False, 20)
        assert plan_retention(replace(state, collection=replace(D, retention=Retention("full_merge"))), 0)

    @pytest.mark.parametrize(
        ("made", "refused"),
        [
            (lambda: Derived((), Definition("x")), "one input or more"),
            (lambda: Derived(("a", "b", "a"), Definition("x")), "from names a twice"),
            (lambda: Derived(("a",), Definition("x"), history=-1), "history is -1"),
            (lambda: Derived(("a",), Definition("x"), max_lag=0), "max_lag is 0"),
            (lambda: derived("d", "d"), "derived from itself"),
            (lambda: Validity(), "names valid_from, valid_to or valid_for"),
            (lambda: Validity(valid_to="t", valid_for=1), "both say when a row ends"),
            (lambda: Validity("t", valid_for=0), "valid_for is 0"),
            (lambda: Validity(valid_for=1), "valid_for counts from valid_from"),
            (lambda: derived("d", "a", validity=Validity(valid_to="gone")), "goes by gone, which is no column"),
            (lambda: derived("d", "a", value=(Column("s", ColumnType.STRING),), validity=Validity(valid_from="s")),
             "goes by s, which is string"),
            (lambda: Definition("x", windows=HOURLY), "a select, a python function or windows, exactly one"),
            (lambda: Definition(), "a select, a python function or windows, exactly one"),
            (lambda: Definition(windows=HOURLY, version="1"), "version and by belong to python"),
            (lambda: Derived(("a", "b"), Definition(windows=HOURLY)),
             "windows are over one input, and from names a, b"),
            (lambda: Derived(("a",), Definition(windows=HOURLY), validity=Validity("t")), "from when it closes"),
            (lambda: Derived(("a",), Definition(function="m:f", version="1"), validity=Validity("t", valid_for=1)),
             "takes no python"),
        ],
    )  # fmt: skip
    def test_what_makes_no_sense_is_refused(self, made: Any, refused: str) -> None:
        with pytest.raises(InvalidUsage, match=refused):
            made()

    def test_whatever_may_give_other_rows_gives_another_fingerprint(self) -> None:
        one = D.derived
        others = [
            replace(one, inputs=("b",)),
            replace(one, definition=Definition("other")),
            replace(one, definition=Definition(function="m:f", version="1")),
            replace(one, definition=Definition(function="m:f", version="2")),
            replace(one, validity=Validity("t", valid_for=1)),
            replace(one, validity=Validity(valid_from="n")),
            *(replace(one, definition=Definition(windows=windows)) for windows in OTHERWISE),
        ]
        assert len({one.fingerprint, *(other.fingerprint for other in others)}) == 7 + len(OTHERWISE)
        assert replace(one, history=5, max_lag=7).fingerprint == one.fingerprint

    @pytest.mark.parametrize(
        ("kind", "by", "recorded"),
        [
            (Tumbling(3600), (), "f0e976000c9eb2a1"),
            (Tumbling(3600), ("id",), "efcf61b6d738a5cf"),
            (Hopping(3600, 600), (), "cc29ac6de123b07c"),
            (Sliding(60), ("id",), "e8807025d9728beb"),
            (Session(60), (), "98399e8adcf4746a"),
            (Cumulate(3600, 600), (), "87dfa89a89f45151"),
            (Calendar(Unit.MONTH), (), "6ff150466251e246"),
        ],
    )
    def test_windows_are_in_each_release_the_same_definition(
        self, kind: Any, by: tuple[str, ...], recorded: str
    ) -> None:
        """As 0.4 and 0.5 recorded them. A field that is new is in it only where it says something."""
        aggregates = (Aggregate("n", Function.COUNT), Aggregate("s", Function.SUM, "amount"))
        assert Definition(windows=Windows(by, "at", kind, aggregates)).fingerprint == recorded

        @dataclass(frozen=True)
        class Newer(type(kind)):  # type: ignore[misc]
            rounded: bool = False

        newer = Newer(**vars(kind))
        assert Definition(windows=Windows(by, "at", newer, aggregates)).fingerprint == recorded
        assert Definition(windows=Windows(by, "at", replace(newer, rounded=True), aggregates)).fingerprint != recorded

    def test_what_was_recorded_before_null_was_a_value_is_of_this_definition(self) -> None:
        """Of 0.3: Windows(("id",), "at", Sliding(60), (count, sum of amount))."""
        aggregates = (Aggregate("n", Function.COUNT), Aggregate("s", Function.SUM, "amount"))
        windows = Windows(("id",), "at", Sliding(60), aggregates)
        assert Definition(windows=windows).before_null_was_a_value == "c6d36285a1f95620"
        made = replace(D, origin=Derived(("a",), Definition(windows=windows)))
        recorded = replace(consumption(10), definition=made.derived.before_null_was_a_value + ".kept")
        change = Corrected(fence_of("correct", "0-10", "t"), recorded, None, None, Mode.WHOLE, 0)
        state = replace(Arrangement(made), fences=(change.fence,))
        assert isinstance(apply(state, change), Applied), "its log could not be read"
        recorded_whole = made.computed_as.replace(made.derived.fingerprint, made.derived.before_null_was_a_value)
        by_key, by_value = landed("a", key=(Column("id", ColumnType.INT),)), landed("a")
        assert differs(recorded_whole, made, [by_key]) == ""
        assert differs(recorded_whole, made, [by_value]) == "rows without id count in windows since 0.4"


class TestEvolution:
    def test_another_definition_may_bring_and_drop_columns(self) -> None:
        total = Column("total", ColumnType.INT)
        asked = derived("d", "a", "b", select="otherwise", value=(total,), hidden=(Column("_totals", ColumnType.INT),))
        new = evolved(D, asked)
        assert [(c.name, c.id) for c in (*new.key, *new.value, *new.hidden)] == [("k", 1), ("total", 4), ("_totals", 5)]
        assert [(c.name, c.id) for c in new.dropped] == [("n", 2), ("_rows", 3)]
        assert (new.schema, new.derived.inputs) == (1, ("a", "b"))
        assert differences(D, new) == ["added total int", "dropped n int"]

    def test_hidden_columns_keep_their_numbers_only_all_together(self) -> None:
        """Where one of them is of another type now, the names of the others may stand for other sums."""
        assert evolved(D, derived("d", "a", hidden=(COUNT,))) == D
        wide = Column("_part1", DecimalType(38, 0))
        more = evolved(D, derived("d", "a", hidden=(COUNT, replace(wide, type=ColumnType.INT))))
        assert [c.id for c in more.hidden] == [4, 5]
        new = evolved(more, derived("d", "a", hidden=(COUNT, wide)))
        assert [(c.id, c.type) for c in new.hidden] == [(6, ColumnType.INT), (7, wide.type)]
        assert [c.id for c in new.dropped] == [3, 4, 5]
        assert len({one.computed_as for one in (D, more, new)}) == 3

    def test_of_a_column_that_went_and_came_back_nothing_is_left(self) -> None:
        """The same definition again, and what the collection holds is not what it says."""
        other = evolved(D, derived("d", "a", hidden=(COUNT,), value=(Column("total", ColumnType.INT),)))
        again = evolved(other, D)
        assert again.derived == D.derived
        assert again.computed_as not in (D.computed_as, other.computed_as)
        assert D.computed_as.startswith(D.derived.fingerprint)

    def test_a_hidden_column_that_fits_no_more_is_another_one(self) -> None:
        new = evolved(D, derived("d", "a", hidden=(Column("_rows", ColumnType.STRING),)))
        assert [c.id for c in new.hidden] == [4]
        assert [c.id for c in new.dropped] == [3]
        again = evolved(new, derived("d", "a", hidden=(COUNT,)))
        assert [c.id for c in again.hidden] == [5]

    @pytest.mark.parametrize(
        ("asked", "refused"),
        [
            (
                derived("d", "a", key=(Column("k", ColumnType.STRING),)),
                r"key column k of collection d cannot change from int to string; write CAST\(… AS bigint\) AS k",
            ),
            (derived("d", "a", value=(Column("n", ColumnType.STRING),)), "value column n of collection d cannot"),
            (replace(landed("d"), value=D.value), "origin of collection d cannot change from derived to landed"),
        ],
    )
    def test_another_key_or_type_wants_another_name(self, asked: Collection, refused: str) -> None:
        with pytest.raises(InvalidUsage, match=refused) as raised:
            evolved(D, asked)
        assert "declare a collection of another name to have it so" in str(raised.value)

    def test_how_it_is_kept_and_refreshed_may_change(self) -> None:
        asked = replace(derived("d", "a", history=5, max_lag=9, hidden=(COUNT,)), retention=Retention("full_merge"))
        new = evolved(D, asked)
        assert (new.schema, new.derived.history, new.retention.policy) == (0, 5, "full_merge")
        state = apply(Arrangement(D), Redefined(new))
        assert isinstance(state, Applied)


def consumption(upper: int, complete_below: int | None = None, batch: str | None = None) -> Consumption:
    complete = upper if complete_below is None else complete_below
    return Consumption(upper, complete, (Consumed("a", upper, 1, "i"),), D.derived.fingerprint, batch)


class TestStates:
    @pytest.mark.parametrize(
        ("consumptions", "rule"),
        [
            ((consumption(20), consumption(10)), Invariant.CONSUMPTIONS_ASCEND),
            ((consumption(20), consumption(21, 10)), Invariant.CONSUMPTIONS_ASCEND),
            ((consumption(20, 21),), Invariant.CONSUMED_IS_CORRECTED),
            ((consumption(40),), Invariant.CONSUMED_IS_CORRECTED),
        ],
    )
    def test_frontiers_never_go_back(self, consumptions: tuple[Consumption, ...], rule: Invariant) -> None:
        with pytest.raises(Corruption) as raised:
            Arrangement(D, ingested=IntervalSet((Interval(0, 30),)), consumptions=consumptions)
        assert raised.value.rule is rule

    def test_of_drained_consumptions_the_newest_are_kept_and_of_others_all(self) -> None:
        consumptions = tuple(consumption(upper) for upper in range(1, 201))
        kept = kept_consumptions(consumptions, 150)
        assert [each.upper for each in kept] == list(range(150 - CONSUMPTIONS_KEPT + 1, 201))
        assert kept_consumptions(consumptions[:5], 3) == consumptions[:5]

    def test_a_landed_collection_is_not_corrected(self) -> None:
        change = Corrected(fence_of("correct", "0-10", "t"), consumption(10), None, None, Mode.WHOLE, 0)
        with pytest.raises(InvalidUsage, match="not derived"):
            apply(Arrangement(landed("d")), replace(change, fence=replace(change.fence, unannounced=True)))

    def test_nothing_is_put_back(self) -> None:
        done = apply(Arrangement(D), Released("b", run_of("r")))
        assert isinstance(done, Stale)
        assert "run correct again" in done.reason

    def test_landed_rows_are_quarantined_with_a_run_of_the_ledger(self) -> None:
        done = apply(Arrangement(landed("a", envelope=Envelope.APPEND)), Quarantined("b", None))
        assert isinstance(done, Stale)

    def test_redefinitions_and_corrections_do_not_go_side_by_side(self) -> None:
        change = Corrected(fence_of("correct", "0-10", "t"), consumption(10), None, None, Mode.WHOLE, 0)
        for mine, theirs in ((change, Redefined(D)), (Redefined(D), change)):
            assert isinstance(conflict(mine, theirs), Overtaken)
        ingested = Ingested(fence_of("ingest", "0-10", "t"), unsealed_batch(["b", "0..9"], 0), None)
        assert conflict(change, ingested) is None
