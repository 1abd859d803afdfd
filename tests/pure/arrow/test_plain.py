"""Values as JSON and people have them, also beyond every calendar."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest

from tidemark.arrow.rows.plain import plain_rows

pytestmark = pytest.mark.pure


def test_rows_are_strict_json() -> None:
    table = pa.table(
        {
            "at": pa.array([2**63 - 1, None], pa.int64()).cast(pa.timestamp("us", "UTC")),
            "day": pa.array([-(2**31), None], pa.int32()).cast(pa.date32()),
            "share": [float("nan"), float("-inf")],
        }
    )
    assert json.loads(json.dumps(plain_rows(table), allow_nan=False)) == [
        [str(2**63 - 1), str(-(2**31)), "nan"],
        [None, None, "-inf"],
    ]
