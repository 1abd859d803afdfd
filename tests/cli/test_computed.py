"""What the commands print, computed from hand-made values: debt, the rules of verify, rows and ranges of keys."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, date, datetime
from io import StringIO
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tidemark.api.conditions import Where, conditions_of
from tidemark.api.keys import keys_within
from tidemark.arrow.rows.plain import plain_rows
from tidemark.cli import output
from tidemark.cli.command import Call, Settings
from tidemark.cli.steps import line_of
from tidemark.errors import InvalidUsage
from tidemark.jobs.in_process_runner import InProcess
from tidemark.jobs.queries.status import debt
from tidemark.jobs.queries.verify import findings_of
from tidemark.model.arrangement import Arrangement
from tidemark.model.batch import Description, ObjectRef, Part, TraceBatch, UnsealedBatch
from tidemark.model.collection import Collection, Column, ColumnType, Envelope, Format, Landed, Source
from tidemark.model.interval import Interval
from tidemark.plan.tasks import InspectAnswer, KeyRange
from tidemark.storage import ObjectStore

pytestmark = pytest.mark.pure

SOURCE = Source("{{ landing }}/*", Format.CSV, Envelope.APPEND)
KEY = (Column("name", ColumnType.STRING), Column("number", ColumnType.INT), Column("day", ColumnType.DATE))
COLLECTION = Collection("things", KEY, (Column("price", ColumnType.FLOAT),), Landed(SOURCE), live_batches=2)
OBJECT = ObjectRef("data/b/p.parquet", 10, "ab" * 32)


def state(*batches: tuple[int, int]) -> Arrangement:
    """A trace of batches given as (level, rows), a time unit each."""
    trace = tuple(
        TraceBatch(f"b{at}", Description(at, at + 1), level, rows, 0, 0, OBJECT if rows else None)
        for at, (level, rows) in enumerate(batches)
    )
    return Arrangement(COLLECTION, complete_below=len(trace), seal=len(trace), trace=trace)


@pytest.mark.parametrize(
    ("batches", "compactions", "rows"),
    [
        ((), 0, 0),
        (((0, 5),), 0, 0),
        (((0, 5), (0, 5)), 0, 0),
        (((0, 5), (0, 5), (0, 5)), 1, 15),
        (((1, 9), (0, 2), (0, 2), (0, 2), (0, 2)), 1, 8),
        (((2, 9), (1, 3), (0, 1)), 0, 0),
        (((0, 0), (0, 0), (0, 0)), 1, 0),
        (((0, 5), (0, 0), (0, 5)), 1, 0),
    ],
)
def test_debt_is_every_compaction_due_run_to_the_end(
    batches: tuple[tuple[int, int], ...], compactions: int, rows: int
) -> None:
    owed = debt(state(*batches))
    assert (owed.compactions, owed.rows) == (compactions, rows)


PART = Part(OBJECT, 2, 7, ((("a", 1, 0), 2),), ("b", 1, 0), 3, 8, 1, 9)
ANSWER = InspectAnswer(
    OBJECT, OBJECT.sha256, 2, 7, 0, 0, 0, 3, 8, 1, 9, ("a", 1, 0), ("b", 1, 0), ("name", "number", "day", "price")
)
UNSEALED = UnsealedBatch("b", Interval(3, 9), OBJECT, 1, 2, 10, 7, 3, 8, 1, 9)
TRACE = TraceBatch("b", Description(3, 9), 0, 2, 10, 7, OBJECT, 1)


@pytest.mark.parametrize("batch", [UNSEALED, TRACE], ids=["unsealed", "trace"])
def test_a_part_as_recorded_has_no_findings(batch: UnsealedBatch | TraceBatch) -> None:
    assert list(findings_of(batch, PART, ANSWER)) == []


@pytest.mark.parametrize(
    ("found", "rules"),
    [
        ({"sha256": "cd" * 32}, ["content"]),
        ({"rows": 3}, ["rows"]),
        ({"digest": 8}, ["sum"]),
        ({"null_keys": 1}, ["no null keys"]),
        ({"unsorted": 1}, ["sorted"]),
        ({"zero_diffs": 1}, ["no zero diffs"]),
        ({"repeated": 1}, ["consolidated"]),
        ({"first_key": ("aa", 1, 0)}, ["first key"]),
        ({"last_key": ("c", 1, 0)}, ["last key"]),
        ({"first_time": 2}, ["first time", "times from lower"]),
        ({"last_time": 9}, ["last time", "times to upper or since"]),
        ({"first_event_time": 2}, ["first event time"]),
        ({"last_event_time": 8}, ["last event time"]),
    ],
)
def test_each_difference_is_a_finding_that_names_batch_and_object(found: dict[str, Any], rules: list[str]) -> None:
    findings = list(findings_of(TRACE, PART, replace(ANSWER, **found)))
    assert [finding.rule for finding in findings] == rules
    assert {finding.subject for finding in findings} == {"batch b, data/b/p.parquet"}


def test_an_unsealed_batch_may_hold_diffs_of_zero_and_only_times_it_recorded() -> None:
    assert list(findings_of(UNSEALED, PART, replace(ANSWER, zero_diffs=1))) == []
    assert [f.rule for f in findings_of(replace(UNSEALED, last_time=7), PART, ANSWER)] == ["times as recorded"]


def test_a_trace_batch_forwarded_to_since_may_hold_since() -> None:
    forwarded = replace(TRACE, description=Description(3, 9, 20))
    times = {"first_time": 20, "last_time": 20}
    assert list(findings_of(forwarded, replace(PART, **times), replace(ANSWER, **times))) == []


def test_a_document_of_rows_is_printed_as_they_come() -> None:
    """Each row before the next is asked for, nothing before the first; breaks of any kind stay in texts."""
    texts = ["line\nbreak", "a\u2028b\x85c\x0cd", '"quoted" é', ""]
    stream, printed = StringIO(), list[int]()

    def rows() -> Iterator[dict[str, Any]]:
        for at, text in enumerate(texts):
            printed.append(len(stream.getvalue()))
            yield {"at": at, "text": text}

    output.print_json_rows({"version": 3}, rows(), lambda: len(printed), stream)
    expected = {"version": 3, "rows": [{"at": at, "text": text} for at, text in enumerate(texts)], "count": 4}
    assert stream.getvalue() == json.dumps(expected, ensure_ascii=False, indent=2) + "\n"
    assert printed[0] == 0 < printed[2] < printed[3]
    stream = StringIO()
    output.print_json_rows({"version": 3}, iter(()), lambda: 0, stream)
    assert stream.getvalue() == json.dumps({"version": 3, "rows": [], "count": 0}, indent=2) + "\n"


def test_a_table_shows_the_start_of_a_long_text() -> None:
    assert output.shortened("é" * 500) == "é" * 500
    assert output.shortened("é" * 1_048_576) == "é" * 500 + "… (1,048,576 characters)"
    assert output.shortened(10**600) == 10**600


def test_rows_are_plain_and_exact() -> None:
    zoned = pa.timestamp("us", "UTC")
    table = pa.table(
        {
            "at": pa.array([datetime(2024, 1, 1, tzinfo=UTC), None], zoned),
            "far": pa.array([2**62, -1], pa.int64()).cast(zoned),
            "day": pa.array([date(2024, 2, 29), None]),
            "ratio": pa.array([math.nan, -math.inf]),
            "count": pa.array([2**63 - 1, None]),
            "text": pa.array(["[bold]é", ""]),
            "flag": pa.array([True, None]),
        }
    )
    rows = plain_rows(table)
    assert rows == [
        ("2024-01-01T00:00:00Z", str(2**62), "2024-02-29", "nan", 2**63 - 1, "[bold]é", True),
        (None, "1969-12-31T23:59:59.999999Z", None, "-inf", None, "", None),
    ]
    assert json.loads(json.dumps(rows, allow_nan=False))[0][4] == 2**63 - 1


@pytest.mark.parametrize(
    ("conditions", "keys"),
    [
        ({}, KeyRange()),
        ({"number": "1"}, KeyRange()),
        ({"name": "a"}, KeyRange(("a",), ("a\0",))),
        ({"name": "a", "number": "-1"}, KeyRange(("a", -1), ("a", 0))),
        ({"name": "a", "day": "1970-01-03"}, KeyRange(("a",), ("a\0",))),
        ({"name": "a", "number": "5", "day": "1970-01-03"}, KeyRange(("a", 5, 2), ("a", 5, 3))),
        ({"name": ["a", None]}, KeyRange(None, ("a\0",))),
        ({"name": ["a", "c"]}, KeyRange(("a",), ("c\0",))),
        ("name = 'a' OR name = 'c'", KeyRange(("a",), ("c\0",))),
        ("name = 'a' OR number = 1", KeyRange()),
        ("name = 'a' AND number BETWEEN 1 AND 4", KeyRange(("a", 1), ("a", 5))),
        ("name = 'a' AND NOT number < 1.5", KeyRange(("a", 2), ("a\0",))),
        ("name = 'a' AND (number IS NULL OR number > 3)", KeyRange(("a",), ("a\0",))),
        ("name = 'a' AND NOT (number > 3 OR number IS NULL)", KeyRange(("a",), ("a", 4))),
    ],
)
def test_the_range_of_keys_that_fit(conditions: Where, keys: KeyRange) -> None:
    assert keys_within(COLLECTION, conditions_of(COLLECTION, conditions)) == keys


def test_a_condition_that_is_no_value_of_its_column_is_refused() -> None:
    with pytest.raises(InvalidUsage, match=r"column number is of type int; 'x' is no value of it"):
        conditions_of(COLLECTION, {"name": "a", "number": "x"})


@pytest.mark.parametrize(
    ("micros", "text"),
    [(0, "0s"), (1, "1µs"), (90_000_000, "1m 30s"), (4 * 3_600_000_000, "4h"), (86_400_000_001, "1d 1µs")],
)
def test_durations(micros: int, text: str) -> None:
    assert output.duration(micros) == text


def test_a_run_of_several_modes_says_of_which_commits_it_tells_why() -> None:
    result = {"outcome": "applied", "version": 5, "commits": 3, "mode": "by_key", "why": "first build", "consumed": {}}
    result |= {"upper_text": "2024-01-04", "rows_read": 7, "added": 2, "retracted": 1}
    assert line_of(result | {"modes": {"whole": 1, "by_key": 2}}) == (
        "applied: corrected to 2024-01-04 in 3 commits, 1 whole (first build) and 2 by key: "
        "7 rows read, 1 retracted and 2 added, version 5"
    )
    assert ", whole (first build): 7" in line_of(result | {"modes": {"whole": 3}})
    assert line_of({"outcome": "applied", "version": 8, "trace_upper": 5, "trace_upper_text": "2024-01-04"}) == (
        "applied: trace upper 2024-01-04, version 8"
    )


def test_what_a_step_runs_on_is_started_once_however_often_it_is_asked_for(tmp_path: Path) -> None:
    made: list[ObjectStore] = []

    def runner(store: ObjectStore) -> InProcess:
        made.append(store)
        return InProcess(store)

    call = Call(Settings(root=str(tmp_path / "root"), runner=runner), StringIO())
    job = call.job("things", step="correct", create=True)
    assert job.runner() is job.runner()
    assert len(made) == 1
