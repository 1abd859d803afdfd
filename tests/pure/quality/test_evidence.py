"""The figures gates judge by, from hand-built states and answers."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tidemark.model.arrangement import Arrangement, Certificate
from tidemark.model.batch import Description, ObjectRef, Part, TraceBatch, UnsealedBatch
from tidemark.model.collection import Collection, Column, ColumnType, Envelope, Format, Gate, Landed, Source
from tidemark.model.interval import Interval, IntervalSet
from tidemark.model.ledger import Correctable, LedgerEntry, Status
from tidemark.plan.gate import GateRequest, plan_gate
from tidemark.plan.tasks import InspectAnswer
from tidemark.quality.evidence import (
    Inspected,
    Row,
    compaction_evidence,
    frontier_evidence,
    trace_evidence,
    unsealed_evidence,
)

pytestmark = pytest.mark.pure

COLUMNS = ("id", "_time", "_event_time", "_diff")
COLLECTION = Collection(
    "orders", (Column("id", ColumnType.INT),), (), Landed(Source("*.parquet", Format.PARQUET, Envelope.APPEND))
)


def part(name: str, first: int, last: int, *, time: int = 5) -> Part:
    return Part(ObjectRef(name, 10, "aa"), 2, 7, (((first,), 2),), (last,), time, time, time, time)


def answer(of: Part, **changes: Any) -> InspectAnswer:
    times = (of.first_time, of.last_time, of.first_event_time, of.last_event_time)
    found = InspectAnswer(of.file, "aa", 2, 7, 0, 0, 0, *times, of.first_key, of.last_key, COLUMNS)
    return replace(found, **changes)


def found(*parts: Part, **changes: Any) -> Inspected:
    return Inspected(parts, tuple(answer(each, **changes) for each in parts), COLUMNS)


def trace(identity: str, lower: int, upper: int, *, level: int = 0, rows: int = 2, since: int = 0) -> TraceBatch:
    parts = ObjectRef(identity, 1, "") if rows else None
    return TraceBatch(identity, Description(lower, upper, since), level, rows, 10, 7, parts, int(rows > 0))


def unsealed(identity: str, *, day: int = 0, rows: int = 2, time: int = 5) -> UnsealedBatch:
    interval = Interval(day * 10, day * 10 + 10)
    return UnsealedBatch(identity, interval, ObjectRef(identity, 1, ""), 1, rows, 10, 7, time, time, time, time)


def entry(day: int, rows: int, *, batch: str = "x", status: Status = Status.INGESTED, **late: int) -> LedgerEntry:
    interval = Interval(day * 10, day * 10 + 10)
    return LedgerEntry(f"{day}", 1, "aa", "t", interval, status, batch, rows, **late)


def of_trace(state: Arrangement, **parts: Inspected) -> dict[str, Row]:
    request = plan_gate(state, Gate.TRACE)
    assert request is not None
    return {row["batch"]: row for row in trace_evidence(state, request, parts).rows}


def of_unsealed(state: Arrangement, *ledger: LedgerEntry, **parts: Inspected) -> Row:
    request = GateRequest(Gate.UNSEALED, "s", unsealed=state.unsealed)
    (row,) = unsealed_evidence(state, request, parts or {"u": found(part("p", 1, 2))}, ledger).rows
    return row


def test_what_was_read_stands_beside_what_was_recorded() -> None:
    row = of_unsealed(Arrangement(COLLECTION, unsealed=(unsealed("u", rows=3),)))
    assert (row["rows"], row["rows_recorded"]) == (2, 3)
    assert (row["digest"], row["digest_recorded"]) == ("0000000000000007", "0000000000000007")
    assert row["times"] == row["times_recorded"]


def test_digests_add_up_beyond_64_bits() -> None:
    both = found(part("p", 1, 2), part("q", 3, 4), digest=2**64 - 1)
    row = of_unsealed(Arrangement(COLLECTION, unsealed=(unsealed("u"),)), u=both)
    assert row["digest"] == "fffffffffffffffe"


def test_altered_and_foreign_parts_are_counted_and_named() -> None:
    parts = (part("p", 1, 2), part("q", 3, 4), part("r", 5, 6))
    answers = (answer(parts[0]), answer(parts[1], sha256="bb"), answer(parts[2], columns=("id",)))
    row = of_unsealed(Arrangement(COLLECTION, unsealed=(unsealed("u"),)), u=Inspected(parts, answers, COLUMNS))
    assert (row["parts_altered"], row["altered"]) == (1, "q")
    assert (row["parts_with_other_columns"], row["columns"]) == (1, "id")


def test_parts_with_other_bounds_than_recorded_are_counted_and_the_first_is_shown_in_full() -> None:
    parts = (part("p", 1, 2), part("q", 3, 4))
    answers = (answer(parts[0]), answer(parts[1], misbounded=("row group 3 is wrong", "row group 4, too")))
    row = of_unsealed(Arrangement(COLLECTION, unsealed=(unsealed("u"),)), u=Inspected(parts, answers, COLUMNS))
    assert (row["parts_misbounded"], row["misbounded"]) == (1, "q: row group 3 is wrong")
    assert of_unsealed(Arrangement(COLLECTION, unsealed=(unsealed("u"),)))["parts_misbounded"] == 0


def test_only_a_batch_seen_for_the_first_time_must_be_above_the_trace() -> None:
    state = Arrangement(COLLECTION, complete_below=5, seal=5, trace=(trace("t", 0, 5),), unsealed=(unsealed("u"),))
    assert of_unsealed(state)["floor"] == 5
    assert of_unsealed(replace(state, certificates=(Certificate("u", "an older suite"),)))["floor"] == 0


def test_the_late_share_counts_applied_and_discarded_rows_of_the_batch() -> None:
    state = Arrangement(COLLECTION, unsealed=(unsealed("u"),))
    mine = entry(0, 6, batch="u", rows_late_applied=2, rows_late_discarded=2)
    assert of_unsealed(state, mine, entry(1, 100))["late_share"] == 0.5
    assert of_unsealed(state, entry(1, 100))["late_share"] is None


def test_the_usual_volume_needs_three_other_intervals() -> None:
    state = Arrangement(COLLECTION, unsealed=(unsealed("u", day=9, rows=8),))
    two = [entry(9, 8, batch="u"), entry(1, 1), entry(2, 2)]
    assert of_unsealed(state, *two)["volume"] is None
    assert of_unsealed(state, *two, entry(3, 99, status=Status.FREED))["volume"] is None
    row = of_unsealed(state, *two, entry(3, 4))
    assert (row["usual_rows"], row["volume"]) == (2, 4)


def test_the_frontier_knows_the_first_hole_and_who_is_not_certified_for() -> None:
    ingested = IntervalSet().add(Interval(0, 10)).add(Interval(20, 30))
    state = Arrangement(COLLECTION, complete_below=30, seal=30, ingested=ingested, unsealed=(unsealed("u"),))
    request = plan_gate(state, Gate.FRONTIER)
    assert request is not None
    (row,) = frontier_evidence(state, request).rows
    assert row["hole"] == str(Interval(10, 20))
    assert (row["batches_uncertified"], row["uncertified"]) == (1, "u")


def test_a_tick_passes_no_hole() -> None:
    """What was learned is known beyond what is complete; the interval behind that is not missing yet."""
    state = Arrangement(COLLECTION, complete_below=10, seal=12, ingested=IntervalSet().add(Interval(0, 10)))
    request = plan_gate(state, Gate.FRONTIER)
    assert request is not None
    (row,) = frontier_evidence(state, request).rows
    assert (row["seal"], row["complete_below"], row["hole"]) == (12, 10, None)


def test_the_last_lawful_time_is_below_upper_or_at_most_since() -> None:
    batches = (trace("a", 0, 5, since=7), trace("b", 5, 10, since=7))
    rows = of_trace(
        Arrangement(COLLECTION, complete_below=10, seal=10, since=7, trace=batches),
        a=found(part("p", 1, 2)),
        b=found(part("q", 1, 2)),
    )
    assert (rows["a"]["earliest"], rows["a"]["latest"]) == (7, 7)
    assert (rows["b"]["earliest"], rows["b"]["latest"]) == (7, 9)


def test_a_data_free_batch_is_no_row_but_a_neighbour() -> None:
    batches = (trace("a", 0, 4, level=2, rows=0), trace("b", 4, 9, level=1))
    rows = of_trace(Arrangement(COLLECTION, complete_below=9, seal=9, trace=batches), b=found(part("p", 1, 2)))
    assert list(rows) == ["b"]
    assert (rows["b"]["upper_of_older"], rows["b"]["level_of_older"]) == (4, 2)


@pytest.mark.parametrize(("spans", "overlaps"), [([(1, 2), (2, 3)], 0), ([(3, 4), (1, 2)], 0), ([(1, 3), (2, 4)], 1)])
def test_parts_of_one_run_may_meet_in_a_key_but_not_overlap(spans: list[tuple[int, int]], overlaps: int) -> None:
    parts = [part(str(at), *span) for at, span in enumerate(spans)]
    rows = of_trace(Arrangement(COLLECTION, complete_below=9, seal=9, trace=(trace("a", 0, 9),)), a=found(*parts))
    assert rows["a"]["parts_overlapping"] == overlaps


def test_what_cancels_is_beside_the_rest() -> None:
    parts = [part("p", 1, 4), replace(part("q", 2, 3), cancels=True), replace(part("r", 1, 9), cancels=True)]
    state = Arrangement(COLLECTION, complete_below=9, seal=9, trace=(trace("a", 0, 9),))
    rows = of_trace(state, a=found(*parts, uncancelled=1))
    assert (rows["a"]["parts_overlapping"], rows["a"]["values_uncancelled"]) == (0, 3)


@pytest.mark.parametrize(
    ("levels", "ahead", "due", "bound"),
    [
        ((2, 1, 0), True, 0, 6),
        ((0, 0), True, 0, 3),
        ((0, 0, 0, 0), True, 1, None),
        ((0, 0), False, 1, None),
        ((1, 0), False, 0, None),
    ],
    ids=["as many as the top level allows", "the budget", "too many", "a pair behind since", "no promise, no debt"],
)
def test_live_batches_are_bounded_once_nothing_is_due(
    levels: tuple[int, ...], ahead: bool, due: int, bound: int | None
) -> None:
    """Whether the newest batch is certified or not: this gate is what certifies it."""
    batches = tuple(trace(str(at), at, at + 1, level=level) for at, level in enumerate(levels))
    declared = replace(COLLECTION, live_batches=3, compact_ahead=ahead)
    state = Arrangement(
        declared, complete_below=len(levels), seal=len(levels), since=0 if ahead else len(levels), trace=batches
    )
    request = plan_gate(state, Gate.COMPACTION)
    assert request is not None
    parts = {batch.id: found(part("p", 1, 2)) for batch in batches}
    row = compaction_evidence(state, request, parts).rows[0]
    assert (row["cascades_due"], row["live_batches"], row["live_bound"]) == (due, len(levels), bound)


def test_replayed_dead_letters_have_no_usual_volume_and_do_not_change_it() -> None:
    batch = unsealed("b", day=5, rows=2)
    state = replace(Arrangement(COLLECTION), unsealed=(batch,))
    entries = [entry(day, 100, batch=f"x{day}") for day in range(4)]
    replays = [replace(entry(day, 1, batch=f"r{day}"), replay_of=f"{day}") for day in range(20, 40)]
    first = part("p", 1, 2)
    usual = of_unsealed(state, *entries, *replays, entry(5, 2, batch="b"), b=found(first))
    assert usual["usual_rows"] == 100
    replayed = replace(entry(5, 2, batch="b", rows_late_discarded=3), replay_of="5")
    row = of_unsealed(state, *entries, replayed, b=found(first))
    assert (row["usual_rows"], row["volume"], row["late_share"]) == (None, None, None)


def corrected(of: LedgerEntry, batch: str, rows: int, **late: int) -> LedgerEntry:
    """The file's entry once it was corrected by a batch."""
    return replace(of, batch=batch, rows=rows, correctable=Correctable(0, 0, 0, (), of), **late)


def test_a_correction_has_no_usual_volume_and_no_late_share() -> None:
    """What it wrote says nothing of how much the file holds; its late rows may have been there before."""
    state = Arrangement(COLLECTION, unsealed=(unsealed("u", day=9),))
    days = [entry(day, 2) for day in range(3)]
    row = of_unsealed(state, *days, corrected(entry(9, 100), "u", 2, rows_late_applied=50))
    assert (row["usual_rows"], row["volume"], row["late_share"]) == (None, None, None)


def test_a_day_that_was_corrected_does_not_change_what_is_usual() -> None:
    state = Arrangement(COLLECTION, unsealed=(unsealed("u", day=9),))
    days = [entry(day, 2) for day in range(3)]
    changed = [replace(entry(5, 200), path="5/other"), corrected(entry(5, 200), "y", 1)]
    assert of_unsealed(state, *days, *changed)["usual_rows"] == 2
    assert of_unsealed(state, *days[:2], *changed)["usual_rows"] is None
