"""Expectations on decimals, bytes and JSON: judged exactly, by pandas and by Spark alike, and reported as the
columns contain them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from tests.quality.support import DAY, World, collection
from tidemark.errors import InvalidUsage
from tidemark.model.collection import Collection, Column, ColumnType, DecimalType
from tidemark.quality.expectations import OwnerExpectation, owner_expectations
from tidemark.quality.rows import pandas_rows, spark_rows
from tidemark.quality.validation import Validator
from tidemark.quality.verdict import Verdict
from tidemark.quality.wording import Wording
from tidemark.storage.sidecars import parts_table
from tidemark.storage.stores.local import LocalStore

pytestmark = pytest.mark.quality

BETWEEN, IN_SET = "expect_column_values_to_be_between", "expect_column_values_to_be_in_set"
LARGE = Decimal("100000000000000000000000000000000000.01")
ROWS = [
    {"price": Decimal("0.10"), "cost": Decimal("0.10"), "rate": Decimal("0.125"), "data": b"\xff", "doc": '{"a":1}'},
    {"price": Decimal("0.30"), "cost": LARGE, "rate": Decimal("0.125"), "data": b"", "doc": "[]"},
    {"price": Decimal("123456789.01"), "cost": LARGE, "rate": None, "data": None, "doc": None},
]
PASS = [
    {BETWEEN: {"column": "price", "min_value": 0.1, "max_value": "123456789.01"}},
    {"expect_column_max_to_be_between": {"column": "price", "min_value": 123456789.01, "max_value": "123456789.01"}},
    {"expect_column_min_to_be_between": {"column": "price", "min_value": "0.1", "max_value": 0.1}},
    {"expect_column_sum_to_be_between": {"column": "price", "min_value": "123456789.41", "max_value": 123456789.41}},
    {"expect_column_mean_to_be_between": {"column": "rate", "min_value": 0.125, "max_value": "0.125"}},
    {"expect_column_median_to_be_between": {"column": "rate", "min_value": 0.125, "max_value": 0.125}},
    {"expect_column_stdev_to_be_between": {"column": "rate", "max_value": 0.0001}},
    {IN_SET: {"column": "price", "value_set": [0.1, 0.3, "123456789.010"]}},
    {IN_SET: {"column": "data", "value_set": ["/w==", ""]}},
    {IN_SET: {"column": "doc", "value_set": ['{ "a": 1.0 }', "[ ]"]}},
    {"expect_column_values_to_be_json_parseable": {"column": "doc"}},
    {"expect_column_pair_values_a_to_be_greater_than_b": {"column_A": "cost", "column_B": "price", "or_equal": True}},
    {"expect_multicolumn_sum_to_equal": {"column_list": ["price", "cost"], "sum_total": "0.2", "mostly": 0.3}},
    {
        "expect_column_values_to_not_be_null": {
            "column": "rate",
            "row_condition": {"type": "comparison", "column": "price", "operator": "<=", "parameter": "0.3"},
        }
    },
]
FAIL = [
    {BETWEEN: {"column": "price", "min_value": 0.11}},
    {BETWEEN: {"column": "price", "max_value": "123456789"}},
    {BETWEEN: {"column": "cost", "max_value": "9999999999999999.99"}},
    {"expect_column_max_to_be_between": {"column": "price", "max_value": "123456789.00"}},
    {"expect_column_sum_to_be_between": {"column": "price", "max_value": "123456789.40"}},
    {"expect_column_mean_to_be_between": {"column": "rate", "min_value": 0.1251}},
    {IN_SET: {"column": "data", "value_set": [""]}},
    {IN_SET: {"column": "doc", "value_set": ["{}"]}},
    {"expect_column_pair_values_to_be_equal": {"column_A": "price", "column_B": "cost"}},
]
REPORTED = [
    "1 row holds 0.10, not min_value 0.11",
    "1 row holds 123456789.01, not max_value 123456789",
    f"2 rows hold {LARGE}, not max_value 9999999999999999.99",
    "observed 123456789.01, not max_value 123456789.00",
    "observed 123456789.41, not max_value 123456789.40",
    "observed 0.125, not min_value 0.1251",
    "1 row holds /w==, not value_set ()",
    '2 rows hold {"a":1}, [], not value_set ({})',
    f"2 rows hold (0.30, {LARGE}), (123456789.01, {LARGE})",
]


def declared(quality: list[Any]) -> Collection:
    value = (
        Column("price", DecimalType(12, 2)),
        Column("cost", DecimalType(38, 2)),
        Column("rate", DecimalType(5, 3)),
        Column("data", ColumnType.BYTES),
        Column("doc", ColumnType.JSON),
    )
    return replace(collection(), value=value, quality=tuple(json.dumps(entry) for entry in quality))


def judged(folder: Path, quality: list[Any], spark: Any = None) -> list[tuple[OwnerExpectation, Verdict]]:
    world = World(declared(quality), LocalStore(str(folder)))
    own = {"_time": DAY, "_event_time": DAY, "_diff": 1}
    rows = [{"id": at, **row, **own} for at, row in enumerate(ROWS)]
    parts = parts_table.parts_of(world.store, [world.ingest(1, rows)])
    owners = owner_expectations(world.collection)
    if spark is None:
        frame: Any = pandas_rows(world.store, parts, world.collection)
    else:
        frame = spark_rows(spark, world.store.url, parts, world.collection)
    return list(zip(owners, Validator().judge_rows(owners, frame), strict=True))


def test_they_are_judged_and_reported_exactly(tmp_path: Path) -> None:
    for owner, verdict in judged(tmp_path / "pass", PASS):
        assert (verdict.passed, verdict.error) == (True, None), owner
    found = judged(tmp_path / "fail", FAIL)
    assert [verdict.passed for _, verdict in found] == [False] * len(FAIL)
    assert [Wording(owner, verdict, declared([])).failure() for owner, verdict in found] == REPORTED


@pytest.fixture(scope="module")
def spark() -> Iterator[Any]:
    from tidemark.spark.session import session

    running = session("exact types")
    yield running
    running.stop()


@pytest.mark.spark
def test_spark_judges_them_alike(spark: Any, tmp_path: Path) -> None:
    for name, quality, passes in (("pass", PASS, True), ("fail", FAIL, False)):
        for owner, verdict in judged(tmp_path / name, quality, spark):
            assert (verdict.passed, verdict.error) == (passes, None), owner


@pytest.mark.parametrize(
    ("entry", "says"),
    [
        (
            {BETWEEN: {"column": "price", "min_value": 0.005}},
            r"0.005 is no decimal\(12, 2\): it is a number which has 3",
        ),
        ({BETWEEN: {"column": "price", "min_value": "1,0"}}, r"'1,0' is no decimal\(12, 2\); write 12.50, or '12.50'"),
        ({BETWEEN: {"column": "price", "max_value": 1e11}}, "which has 12 digits before the point"),
        (
            {BETWEEN: {"column": "price", "max_value": 1234567.8901234567}},
            "more digits than a float keeps; write it in",
        ),
        ({BETWEEN: {"column": "cost", "max_value": "1e17"}}, "has more than 18 digits, counting 2 behind the point"),
        ({BETWEEN: {"column": "data", "min_value": "AA=="}}, "column data is bytes, whose values are in no order here"),
        (
            {"expect_column_max_to_be_between": {"column": "doc", "max_value": "1"}},
            "column doc is json, whose values are",
        ),
        ({IN_SET: {"column": "data", "value_set": ["ff"]}}, "'ff' is no text in base64"),
        ({IN_SET: {"column": "doc", "value_set": ["x"]}}, "'x' is no text that is JSON"),
        ({IN_SET: {"column": "price", "value_set": [True]}}, "True is no number"),
        ({"expect_column_values_to_match_regex": {"column": "price", "regex": "1"}}, "this expectation is about text"),
        ({"expect_column_value_lengths_to_equal": {"column": "data", "value": 1}}, "this expectation is about text"),
        (
            {"expect_column_pair_values_to_be_equal": {"column_A": "price", "column_B": "rate"}},
            r"columns price decimal\(12, 2\), rate decimal\(5, 3\) differ in their digits behind the point",
        ),
        (
            {"expect_multicolumn_sum_to_equal": {"column_list": ["price", "id"], "sum_total": 1}},
            r"columns price decimal\(12, 2\), id int differ in their digits behind the point",
        ),
    ],
    ids=lambda case: case if isinstance(case, str) else next(iter(case)),
)
def test_what_could_not_be_judged_exactly_is_refused(entry: Any, says: str) -> None:
    with pytest.raises(InvalidUsage, match=says):
        owner_expectations(declared([entry]))
