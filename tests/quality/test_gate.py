"""The gate job, end to end over real parts: what it certifies, what it refuses, what it shows."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tests.quality.support import DAY, World, collection, fact, update
from tidemark.arrow.parts import writer
from tidemark.arrow.parts.checksums import PartSink
from tidemark.arrow.parts.timelines import TimelinesSeen
from tidemark.errors import Corruption, GateFailed, InvalidUsage
from tidemark.jobs.steps.gate import gate
from tidemark.model.batch import Description
from tidemark.model.change import CompactionAllowed, Redefined, Sealed
from tidemark.model.chunk.bounds import TimelineBounds
from tidemark.model.collection import Envelope, Gate
from tidemark.quality.results import Results
from tidemark.storage.sidecars import parts_table
from tidemark.storage.stores.private import open_private

pytestmark = pytest.mark.quality

STATUS = {"expect_column_values_to_be_in_set": {"column": "status", "value_set": ["new", "paid"]}}
HALF_UNIQUE = {"expect_column_proportion_of_unique_values_to_be_between": {"column": "amount", "min_value": 0.5}}


@pytest.fixture(autouse=True)
def docs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TIDEMARK_DOCS", str(tmp_path))
    return tmp_path


def refusal(world: World, which: Gate) -> str:
    with pytest.raises(GateFailed) as failed:
        gate(world.job(), which)
    return str(failed.value)


def test_a_good_batch_is_certified_for_once() -> None:
    world = World(collection(quality=[STATUS]))
    batch = world.ingest(1, [update(key, time=DAY + key) for key in range(100)])
    result = gate(world.job(), Gate.UNSEALED)
    assert (result["outcome"], result["batches"], result["warnings"]) == ("applied", [batch.id], [])
    assert world.state.is_certified(batch)
    tasks = world.runner.tasks
    assert gate(world.job(), Gate.UNSEALED)["outcome"] == "nothing to do"
    assert world.runner.tasks == tasks


def kept(docs: Path, which: Gate = Gate.UNSEALED) -> list[dict[str, Any]]:
    """The gate's kept results, newest first."""
    results = Results(open_private(str(docs)))
    found = [results.load("orders", which, name) for name in results.names("orders", which)]
    assert None not in found
    return [document for document in found if document]


def test_values_of_a_masked_column_are_in_no_message_and_no_row(docs: Path) -> None:
    world = World(collection(Envelope.UPSERT, quality=[STATUS], masked=("status",)))
    batch = world.ingest(1, [fact(1, time=DAY), fact(2, time=DAY, status="bogus")])
    message = refusal(world, Gate.UNSEALED)
    assert f"batch {batch.id}: 1 row holds masked, not value_set (new, paid); " in message
    (report,) = kept(docs)
    (failure,) = [result for result in report["results"] if not result["passed"]]
    ((row,), failing) = failure["rows"], failure["failing"]
    assert (row["id"], row["status"], failing) == (2, "masked", 1)
    assert "bogus" not in json.dumps(report) + "".join(world.notes)


def test_a_failing_expectation_shows_rows_result_and_way_out(docs: Path) -> None:
    world = World(collection(Envelope.UPSERT, quality=[STATUS]))
    rows = [fact(1, time=DAY), fact(2, time=DAY, status="bogus"), fact(3, time=DAY, deleted=True)]
    batch = world.ingest(1, rows)
    message = refusal(world, Gate.UNSEALED)
    (file,) = (docs / "orders" / "unsealed").iterdir()
    assert message == (
        f"unsealed gate of orders: expect_column_values_to_be_in_set(status) of batch {batch.id}: "
        "1 row holds bogus, not value_set (new, paid); "
        f"see {file}; `tidemark quarantine orders {batch.id}`, mend the file, run again; "
        f"or accept it: `tidemark gate orders unsealed --accept {batch.id} --reason TEXT`"
    )
    assert not world.state.is_certified(batch)
    assert "f.jsonl" in world.notes[-1]
    (report,) = kept(docs)
    assert (report["outcome"], report["passed"], report["attempt"]) == ("failed", False, "attempt")
    (failure,) = [result for result in report["results"] if not result["passed"]]
    assert [(row["id"], row["_file"], row["_row"]) for row in failure["rows"]] == [(2, "f.jsonl", 3)]
    assert (failure["asked"], failure["observed"]) == (
        "expect_column_values_to_be_in_set: column status, value_set (new, paid)",
        "1 of 2 unexpected",
    )
    assert (file.stat().st_mode & 0o777, file.parent.stat().st_mode & 0o777) == (0o600, 0o700)


def test_what_passes_is_kept_too_and_what_has_nothing_to_do(docs: Path) -> None:
    world = World(collection(quality=[HALF_UNIQUE]))
    world.ingest(1, [update(1, time=DAY, amount=5)])
    where = gate(world.job(), Gate.UNSEALED)["docs"]
    gate(world.job(), Gate.UNSEALED)
    nothing, passed = kept(docs)
    assert Path(where).is_file()
    assert (nothing["outcome"], nothing["results"]) == ("nothing", [])
    observed = {result["rule"]: result["observed"] for result in passed["results"]}
    assert observed["rows as recorded"] == "rows 1, rows_recorded 1"
    assert observed["expect_column_proportion_of_unique_values_to_be_between(amount)"] == "1.0"


def test_failing_rows_are_capped() -> None:
    world = World(collection(quality=[STATUS]))
    world.ingest(1, [update(key, time=DAY, status="bogus") for key in range(50)])
    refusal(world, Gate.UNSEALED)
    assert "20 of 50 rows" in world.notes[-1]


def test_tombstones_and_retractions_are_not_judged() -> None:
    required = {"expect_column_values_to_not_be_null": {"column": "status"}}
    keyed = World(collection(Envelope.UPSERT, quality=[required]))
    keyed.ingest(1, [fact(1, time=DAY), fact(2, time=DAY, deleted=True)])
    assert gate(keyed.job(), Gate.UNSEALED)["outcome"] == "applied"
    signed = World(collection(Envelope.UPDATES, quality=[STATUS]))
    signed.ingest(1, [update(1, time=DAY, status="bogus", diff=-1), update(2, time=DAY)])
    assert gate(signed.job(), Gate.UNSEALED)["outcome"] == "applied"


def test_one_bad_batch_does_not_hold_back_a_good_one() -> None:
    world = World(collection(quality=[STATUS]))
    good = world.ingest(1, [update(1, time=DAY)])
    bad = world.ingest(2, [update(1, time=2 * DAY, status="bogus")])
    assert bad.id in refusal(world, Gate.UNSEALED)
    assert world.state.is_certified(good)
    assert not world.state.is_certified(bad)


def test_a_warning_is_reported_and_stops_nothing() -> None:
    name, arguments = next(iter(STATUS.items()))
    world = World(collection(quality=[{name: arguments | {"severity": "warning"}}]))
    world.ingest(1, [update(1, time=DAY, status="bogus")])
    result = gate(world.job(), Gate.UNSEALED)
    assert result["outcome"] == "applied"
    assert [warning["rule"] for warning in result["warnings"]] == ["expect_column_values_to_be_in_set(status)"]
    assert "bogus" in world.notes[-1]


def test_lateness_and_volume_warn() -> None:
    world = World(collection())
    for day in (1, 2, 3):
        world.ingest(day, [update(1, time=day * DAY)])
    assert gate(world.job(), Gate.UNSEALED)["warnings"] == []
    world.ingest(4, [update(key, time=4 * DAY) for key in range(10)], late=3)
    warnings = gate(world.job(), Gate.UNSEALED)["warnings"]
    assert {warning["rule"]: warning["message"] for warning in warnings} == {
        "late share": "30% of its rows came late, which is more than usual",
        "volume": "brought 10 rows, about 1 would be usual",
    }


@pytest.mark.parametrize(
    ("recorded", "rule"),
    [
        ({"rows": 7}, "rows as recorded"),
        ({"digest": 5}, "digest as recorded"),
        ({"part_count": 2}, "parts complete"),
        ({"first_time": DAY - 1}, "times as recorded"),
        ({"last_event_time": 9 * DAY}, "event times as recorded"),
    ],
)
def test_a_batch_unlike_its_record_is_refused(recorded: dict[str, int], rule: str) -> None:
    world = World(collection())
    world.ingest(1, [update(1, time=DAY), update(2, time=DAY)], **recorded)
    assert f": {rule} of batch" in refusal(world, Gate.UNSEALED)


def test_bounds_of_a_timeline_that_are_too_narrow_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    class Narrow(TimelinesSeen):
        def bounds(self) -> tuple[TimelineBounds, ...]:
            return tuple(replace(each, last=each.first) for each in super().bounds())

    world = World(collection(timelines=("amount",)))
    with monkeypatch.context() as patch:
        patch.setattr(writer, "TimelinesSeen", Narrow)
        batch = world.ingest(1, [update(key, time=DAY, amount=key) for key in (1, 2)])
    (part,) = parts_table.parts_of(world.store, [batch])
    assert (
        f"bounds as recorded of batch {batch.id}: 1 of 1 parts do not have the bounds that are recorded of their "
        f"timelines, first {part.file.key}: timeline amount is recorded as 1 to 1, the rows have 1 to 2"
    ) in refusal(world, Gate.UNSEALED)


def test_another_suite_certifies_again_and_old_certificates_do_not_count() -> None:
    world = World(collection())
    batch = world.ingest(1, [update(1, time=DAY, status="bogus")])
    gate(world.job(), Gate.UNSEALED)
    suite = world.collection.suite(Gate.UNSEALED)
    redefined = replace(world.collection, quality=(json.dumps(STATUS),))
    world.commit(Redefined(redefined))
    assert redefined.suite(Gate.UNSEALED) != suite
    assert not world.state.is_certified(batch)
    assert "bogus" in refusal(world, Gate.UNSEALED)


def test_a_batch_drained_in_part_may_be_gated_again() -> None:
    world = World(collection())
    world.ingest(0, [update(1, time=1), update(2, time=DAY)])
    gate(world.job(), Gate.UNSEALED)
    world.commit(Sealed(10, 10, 10))
    world.drain(Description(0, 10), [update(1, time=1)])
    world.commit(Redefined(replace(world.collection, quality=(json.dumps(STATUS),))))
    assert gate(world.job(), Gate.UNSEALED)["outcome"] == "applied"


def test_the_frontier_gate_needs_no_runner() -> None:
    world = World(collection())
    world.ingest_nothing(0)
    world.commit(Sealed(DAY, DAY, DAY))
    job = world.job()
    job.runner = lambda: pytest.fail("the frontier gate read data")
    assert gate(job, Gate.FRONTIER)["outcome"] == "applied"
    assert world.state.certified_upper == DAY
    assert gate(job, Gate.FRONTIER)["outcome"] == "nothing to do"


def test_a_seal_over_a_hole_is_refused() -> None:
    world = World(collection())
    world.ingest_nothing(1)
    world.commit(Sealed(2 * DAY, 2 * DAY, 2 * DAY))
    message = refusal(world, Gate.FRONTIER)
    assert "no hole in what is complete" in message
    assert "[1970-01-01T00:00:00Z, 1970-01-02T00:00:00Z) was never ingested" in message
    assert world.state.certified_upper == 0


def test_a_data_free_batch_is_certified_for_from_metadata(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(collection())
    world.commit(Sealed(DAY, DAY, DAY))
    batch = world.drain(Description(0, DAY), [])
    job = world.job()
    job.runner = lambda: pytest.fail("there is nothing to read")
    monkeypatch.setitem(sys.modules, "great_expectations", None)
    assert gate(job, Gate.TRACE)["batches"] == [batch.id]
    assert world.state.is_certified(batch)


TRACE_CASES: dict[str, tuple[list[dict[str, Any]], dict[str, Any]]] = {
    "no zero diffs": ([update(1, time=5, diff=0), update(2, time=5)], {}),
    "consolidated": ([update(1, time=5), update(1, time=5)], {}),
    "times from lower and since": ([update(1, time=3)], {}),
    "times to upper or since": ([update(1, time=10)], {}),
    "rows as recorded": ([update(1, time=5)], {"rows": 3}),
    "digest as recorded": ([update(1, time=5)], {"digest": 3}),
    "parts complete": ([update(1, time=5)], {"part_count": 3}),
}


@pytest.mark.parametrize(("rows", "recorded", "rule"), [(*case, rule) for rule, case in TRACE_CASES.items()])
def test_a_trace_batch_that_breaks_an_invariant_is_refused(
    rows: list[dict[str, Any]], recorded: dict[str, Any], rule: str
) -> None:
    world = World(collection())
    world.commit(Sealed(10, 10, 10))
    world.drain(Description(0, 4), [])
    world.drain(Description(4, 10), rows, **recorded)
    message = refusal(world, Gate.TRACE)
    assert message.startswith(f"trace gate of orders: {rule} of batch")
    assert "tidemark verify orders --data" in message


def test_times_forwarded_past_the_upper_are_lawful_where_since_has_passed_it() -> None:
    world = World(collection())
    world.commit(Sealed(10, 10, 10))
    world.commit(CompactionAllowed(20))
    world.drain(Description(0, 10, 20), [update(1, time=20), update(2, time=20)])
    assert gate(world.job(), Gate.TRACE)["outcome"] == "applied"


def test_the_compaction_gate_certifies_and_warns_of_debt() -> None:
    world = World(collection(live_batches=2))
    world.commit(Sealed(15, 15, 15))
    batches = [world.drain(Description(at, at + 5), [update(1, time=at + 1)]) for at in (0, 5, 10)]
    result = gate(world.job(), Gate.COMPACTION)
    assert result["batches"] == [batch.id for batch in batches]
    assert [warning["rule"] for warning in result["warnings"]] == ["no compaction due"] * 3


def test_dates_and_timestamps_are_compared_as_such() -> None:
    after = {"expect_column_values_to_be_between": {"column": "at", "min_value": "2013-01-01T00:00:00Z"}}
    on = {"expect_column_values_to_be_in_set": {"column": "day", "value_set": ["2013-01-02"]}}
    world = World(collection(quality=[after, on]))
    good = {"at": datetime(2013, 1, 2, tzinfo=UTC), "day": datetime(2013, 1, 2, tzinfo=UTC).date()}
    world.ingest(1, [update(1, time=DAY, **good), update(2, time=DAY)])
    assert gate(world.job(), Gate.UNSEALED)["outcome"] == "applied"
    bad = {"at": datetime(2012, 1, 2, tzinfo=UTC), "day": datetime(2013, 1, 3, tzinfo=UTC).date()}
    world.ingest(2, [update(1, time=2 * DAY, **bad)])
    message = refusal(world, Gate.UNSEALED)
    assert "expect_column_values_to_be_between(at)" in message
    assert "2012-01-02" in message
    assert "(and 1 more)" in message


def test_an_aggregate_says_what_was_observed() -> None:
    world = World(collection(quality=[HALF_UNIQUE]))
    world.ingest(1, [update(key, time=DAY) for key in range(10)])
    assert ": observed 0.1, not min_value 0.5;" in refusal(world, Gate.UNSEALED)


def test_an_expectation_great_expectations_refuses_is_the_owners_to_mend() -> None:
    """One that is right by our catalogue, and of which it asks more: at least one bound."""
    broken = {"expect_column_values_to_be_between": {"column": "amount"}}
    world = World(collection(quality=[broken]))
    world.ingest(1, [update(1, time=DAY)])
    with pytest.raises(InvalidUsage, match=r"expect_column_values_to_be_between\(amount\) is refused"):
        gate(world.job(), Gate.UNSEALED)


def test_an_expectation_that_cannot_be_evaluated_fails_with_its_reason() -> None:
    mean = {"expect_column_mean_to_be_between": {"column": "status", "min_value": 1}}
    world = World(collection(quality=[mean]))
    world.ingest(1, [update(1, time=DAY)])
    assert "could not be evaluated" in refusal(world, Gate.UNSEALED)


def test_no_place_for_its_result_hides_no_failure(docs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    blocked = docs / "file"
    blocked.write_text("not a folder")
    monkeypatch.setenv("TIDEMARK_DOCS", str(blocked))
    world = World(collection(quality=[STATUS]))
    world.ingest(1, [update(1, time=DAY, status="bogus")])
    assert "bogus" in refusal(world, Gate.UNSEALED)
    assert any(note.startswith("the gate's result could not be kept") for note in world.notes)


def test_rows_changed_at_rest_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The file keeps its size and row groups. Of an older release's only its checksum and what its rows add up to give
    it away; today's is refused where it is read."""
    with pytest.raises(Corruption, match=r"is damaged in row group 0, column status"):
        gate(changed_at_rest()[0].job(), Gate.UNSEALED)
    monkeypatch.setattr("tidemark.arrow.parts.writer.PartSink.finish", written_by_an_older_release)
    world, key = changed_at_rest()
    assert f"1 of 1 parts changed since written, first {key}" in refusal(world, Gate.UNSEALED)


def written_by_an_older_release(sink: PartSink, metadata: Any) -> None:
    """Write a part's tail, of which nothing is recorded."""
    FINISH(sink, metadata)


FINISH = PartSink.finish


def changed_at_rest() -> tuple[World, str]:
    """A collection with a part in which a text differs from what was written, and its key."""
    world = World(collection())
    world.ingest(1, [update(key, time=DAY, status="new" * 20) for key in range(100)])
    (key,) = [key for key in world.store.objects if key.endswith(".parquet")]
    data = world.store.objects[key]
    world.store.objects[key] = data.replace(b"new", b"now", 1)
    assert world.store.objects[key] != data
    return world, key


def test_unsorted_rows_are_found() -> None:
    world = World(collection())
    world.ingest(1, [update(1, time=DAY, status="b"), update(1, time=DAY, status="a")])
    assert "sorted of batch" in refusal(world, Gate.UNSEALED)


def test_the_same_expectation_twice_is_judged_twice() -> None:
    world = World(collection(quality=[STATUS, STATUS]))
    world.ingest(1, [update(1, time=DAY, status="bogus")])
    assert "(and 1 more)" in refusal(world, Gate.UNSEALED)


def test_code_that_a_collection_stored_before_is_refused_and_not_run(docs: Path) -> None:
    """As an older version would have stored it: the gate does not trust what the file's reader let through."""
    name, arguments = next(iter(STATUS.items()))
    ran = docs / "ran"
    code = {"type": "pass_through", "pass_through_filter": f"@pd.io.common.os.system('touch {ran}')"}
    world = World(collection(quality=[{name: arguments | {"row_condition": code}}]))
    world.ingest(1, [update(1, time=DAY)])
    with pytest.raises(InvalidUsage, match="row_condition has no type 'pass_through'"):
        gate(world.job(), Gate.UNSEALED)
    assert not ran.exists()
    (refused,) = kept(docs)
    assert refused["outcome"] == "refused"
    assert "pass_through" in refused["error"]


def test_a_condition_selects_the_rows_and_the_failing_ones_are_found_among_all() -> None:
    name, arguments = next(iter(STATUS.items()))
    some = {"type": "comparison", "column": "id", "operator": ">=", "parameter": 2}
    world = World(collection(quality=[{name: arguments | {"row_condition": some}}, STATUS]))
    world.ingest(1, [update(key, time=DAY, status="bogus") for key in range(4)])
    refusal(world, Gate.UNSEALED)
    assert "2 of 2 rows" in world.notes[-1]
    assert "4 of 4 rows" in world.notes[-1]


@pytest.mark.parametrize("sign", [1, -1])
def test_dates_and_times_that_no_calendar_reaches_are_judged_and_shown(sign: int) -> None:
    """Any int64 of microseconds, any int32 of days: Python's dates end with the years 1 and 9999."""
    late, far = sign * 2**62, sign * 2**31 - (sign > 0)
    bound = "max_value" if sign > 0 else "min_value"
    between = "expect_column_values_to_be_between"
    quality = [{between: {"column": name, bound: "2013-01-01"}} for name in ("at", "day")]
    extremes = [
        {f"expect_column_{which}_to_be_between": {"column": "at", bound: "2013-01-01"}} for which in ("max", "min")
    ]
    world = World(collection(Envelope.UPSERT, quality=[*quality, *extremes]))
    far_day = pa.scalar(far, pa.int32()).cast(pa.date32())
    world.ingest(1, [fact(1, time=DAY, at=pa.scalar(late, pa.timestamp("us", "UTC")), day=far_day)])
    message = refusal(world, Gate.UNSEALED)
    assert f"1 row holds {late}, not {bound} 2013-01-01 (and 3 more)" in message
    assert f"1 row holds {far}, not" in world.notes[-1]
    assert f"observed {late}, not" in world.notes[-1]


def test_a_batch_of_tombstones_has_no_rows_to_judge() -> None:
    world = World(collection(Envelope.UPSERT, quality=[STATUS]))
    world.ingest(1, [fact(1, time=DAY, deleted=True)])
    assert gate(world.job(), Gate.UNSEALED)["outcome"] == "applied"


def test_integers_stay_exact_beside_nulls() -> None:
    """As floats, which is what pandas makes of integers beside nulls, 2**53 and 2**53 + 1 are one."""
    world = World(collection(quality=[{"expect_column_values_to_be_unique": {"column": "amount"}}]))
    amounts = [2**53, 2**53 + 1, None]
    world.ingest(1, [update(key, time=DAY, amount=amount) for key, amount in enumerate(amounts)])
    assert gate(world.job(), Gate.UNSEALED)["outcome"] == "applied"
