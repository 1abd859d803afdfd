"""Dates and times that no calendar of Python reaches are shown, refused and asked for like any others."""

from __future__ import annotations

import pyarrow as pa
import pytest

from tidemark.api.conditions import Conditions, is_any
from tidemark.api.values import value_of
from tidemark.arrow.decode.strict import Misfit, fitted
from tidemark.arrow.rows.consolidate import consolidated
from tidemark.arrow.rows.plain import plain_rows
from tidemark.errors import InvalidUsage
from tidemark.model.collection import ColumnType

pytestmark = pytest.mark.pure

DAYS, MICROS = 2**31 - 1, -(2**62)


def far_rows() -> pa.RecordBatch:
    days = pa.array([DAYS, 0], pa.int32()).cast(pa.date32())
    times = pa.array([MICROS, 2**62], pa.int64()).cast(pa.timestamp("us", "UTC"))
    return pa.record_batch({"id": [1, 2], "day": days, "at": times})


@pytest.mark.parametrize(
    ("column", "text", "ids"),
    [
        ("day", str(DAYS), [1]),
        ("day", "1970-01-01", [2]),
        ("day", "19700101", [2]),
        ("at", str(MICROS), [1]),
        ("at", str(2**62), [2]),
        ("at", "1970-01-01", []),
    ],
)
def test_what_is_shown_can_be_asked_for(column: str, text: str, ids: list[int]) -> None:
    of = far_rows().schema.field(column).type
    asked = Conditions(is_any(column, [value_of(column, text, of)]))
    rows = plain_rows(asked.fitting(far_rows()))
    assert [row[0] for row in rows] == ids
    assert all(text in map(str, row) for row in rows) or text in ("19700101", "1970-01-01")


@pytest.mark.parametrize("text", ["2" * 19, "-99999999999", "noon", ""])
def test_what_no_column_holds_is_refused(text: str) -> None:
    with pytest.raises(InvalidUsage, match="no value of it"):
        value_of("day", text, pa.date32())


def test_a_day_of_a_file_that_does_not_fit_is_a_misfit() -> None:
    far = pa.array([0, 2**62], pa.int64()).cast(pa.date64())
    with pytest.raises(Misfit) as misfit:
        fitted(far, ColumnType.DATE)
    assert misfit.value.index == 1
    assert f"holds a day out of range: {2**62} ms" in misfit.value.reason


def test_a_sum_that_is_refused_names_its_far_key() -> None:
    day = pa.array([DAYS, DAYS], pa.int32()).cast(pa.date32())
    updates = pa.record_batch({"day": day, "_time": [1, 1], "_event_time": [1, 1], "_diff": [2**63 - 1, 1]})
    with pytest.raises(InvalidUsage, match=rf"day '{DAYS}', .* add up to {2**63}, beyond"):
        consolidated(updates, ["day", "_time", "_event_time"])
