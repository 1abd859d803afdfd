"""What a collection file may say under `quality:`, checked without Great Expectations."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest

from tidemark.errors import InvalidUsage
from tidemark.model.collection import Collection, Column, ColumnType, Envelope, Format, Gate, Landed, Source
from tidemark.quality.expectations import check_owner_expectations, owner_expectations

pytestmark = pytest.mark.pure


def orders(*quality: Any) -> Collection:
    return Collection(
        "orders",
        (Column("id", ColumnType.INT),),
        (Column("status", ColumnType.STRING), Column("at", ColumnType.TIMESTAMP), Column("day", ColumnType.DATE)),
        Landed(Source("*.parquet", Format.PARQUET, Envelope.APPEND)),
        quality=tuple(json.dumps(entry) for entry in quality),
    )


IN_SET = "expect_column_values_to_be_in_set"
BETWEEN = "expect_column_values_to_be_between"


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ({"expect_column_values_to_be_in_sett": {"column": "status"}},
         f"quality[0]: there is no expectation 'expect_column_values_to_be_in_sett' here; did you mean {IN_SET}?"),
        ({IN_SET: {"column": "status"}}, f"quality[0]: {IN_SET} needs value_set"),
        ({IN_SET: {"column": "status", "value_set": ["a"], "mostl": 0.5}},
         f"quality[0]: {IN_SET} has no argument 'mostl'; did you mean mostly?"),
        ({IN_SET: {"column": "statuss", "value_set": ["a"]}},
         f"quality[0]: {IN_SET}: collection orders has no column 'statuss'; did you mean status?"),
        ({IN_SET: {"column": "status", "value_set": "a"}},
         f"quality[0]: {IN_SET}: value_set is 'a'; it must be a list"),
        ({IN_SET: {"column": "status", "value_set": ["a"], "mostly": 95}},
         f"quality[0]: {IN_SET}: mostly is 95; it must be a share between 0 and 1"),
        ({IN_SET: {"column": "status", "value_set": ["a"], "severity": "fatal"}},
         f"quality[0]: {IN_SET}: severity is 'fatal'; it must be critical or warning"),
        ({BETWEEN: {"column": "id", "min_value": {"$PARAMETER": "x"}}},
         f"quality[0]: {BETWEEN}: min_value is {{'$PARAMETER': 'x'}}; it must be a number or a time"),
        ({BETWEEN: {"column": "day", "min_value": "yesterday"}},
         f"quality[0]: {BETWEEN}: min_value on column day: not a date: 'yesterday'; write 2013-01-02"),
        *(
            (
                {BETWEEN: {"column": name, "max_value": value}},
                f"quality[0]: {BETWEEN}: max_value on column {name}: {value!r} is a date or a count since 1970: {day}",
            )
            for name in ("day", "at")
            for value, day in ((20130102, "write 2013-01-02"), ("20130102", "write 2013-01-02"))
        ),
        (
            {BETWEEN: {"column": "at", "min_value": "noon"}},
            (
                f"quality[0]: {BETWEEN}: min_value on column at: not a time: 'noon'; "
                "write 2013-01-02, 2013-01-02T03:04:05Z or microseconds"
            ),
        ),
        ({"expect_column_pair_values_to_be_in_set": {"column_A": "id", "column_B": "day", "value_pairs_set": [[1]]}},
         "quality[0]: expect_column_pair_values_to_be_in_set: value_pairs_set holds [1]; it must hold pairs"),
        (
            {"expect_column_values_to_match_regex": {"column": "status", "regex": "("}},
            (
                "quality[0]: expect_column_values_to_match_regex: '(' is not a regular expression of RE2, "
                "which knows no look-around and no back-references: missing ): ("
            ),
        ),
        (
            {IN_SET: {"column": "status", "value_set": ["a"], "row_condition": "id > 5"}},
            (
                f"quality[0]: {IN_SET}: row_condition must be a mapping such as "
                "{type: nullity, column: ..., is_null: false}, not a text"
            ),
        ),
        ({IN_SET: ["status"]}, f"quality[0]: the arguments of {IN_SET} must be a mapping, not ['status']"),
        ({}, "quality[0] must be one expectation with its arguments, as {name: {column: ...}}, not {}"),
    ],
)  # fmt: skip
def test_a_wrong_expectation_is_refused_with_its_nearest_right_one(entry: Any, said: str) -> None:
    with pytest.raises(InvalidUsage) as refused:
        check_owner_expectations(orders(entry))
    assert str(refused.value) == said


def test_constants_take_the_type_of_their_column() -> None:
    between = {BETWEEN: {"column": "at", "min_value": "1970-01-02T03:00:00Z", "max_value": 5}}
    dates = {IN_SET: {"column": "day", "value_set": ["1970-01-02", "1969-12-31"]}}
    texts = {IN_SET: {"column": "status", "value_set": ["2013-01-02"]}}
    first, second, third = owner_expectations(orders(between, dates, texts))
    assert first.judged == {"column": "at", "min_value": 27 * 3_600_000_000, "max_value": 5}
    assert second.judged == {"column": "day", "value_set": [1, -1]}
    assert third.judged == {"column": "status", "value_set": ["2013-01-02"]}


def test_the_certificates_name_changes_with_the_owners_suite_alone() -> None:
    before = orders({IN_SET: {"column": "status", "value_set": ["a"]}})
    after = orders({IN_SET: {"column": "status", "value_set": ["a", "b"]}})
    assert before.suite(Gate.UNSEALED) != after.suite(Gate.UNSEALED)
    assert before.suite(Gate.TRACE) == after.suite(Gate.TRACE)


def test_checking_imports_neither_great_expectations_nor_pandas() -> None:
    code = (
        "import sys; import tidemark.quality.expectations, tidemark.jobs.steps.gate;"
        "print(sorted({'great_expectations', 'pandas', 'pyspark'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
