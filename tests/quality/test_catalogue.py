"""The catalogue of owner's expectations against the installed Great Expectations, and small batches against large."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tests.quality.support import DAY, InProcess, World, collection, fact
from tidemark.errors import GateFailed
from tidemark.jobs.steps import gate as gate_job
from tidemark.model.collection import Envelope, Gate
from tidemark.quality.expectations import CATALOGUE, COMMON, owner_expectations
from tidemark.quality.rows import pandas_rows, spark_rows
from tidemark.quality.validation import Validator
from tidemark.storage.sidecars import parts_table
from tidemark.storage.stores.local import LocalStore

TEXT = {"column": "status"}
NUMBER = {"column": "amount"}
PAIR = {"column_A": "amount", "column_B": "id"}
LIST = {"column_list": ["id", "amount"]}
CONDITION = {"type": "comparison", "column": {"name": "status"}, "operator": "==", "parameter": "paid"}
SEVERAL = {
    "type": "or",
    "conditions": [
        {"type": "and", "conditions": [CONDITION, {"type": "nullity", "column": "status", "is_null": False}]},
        {"type": "comparison", "column": "status", "operator": "IN", "parameter": ["'; DROP", "${spark.app.name}"]},
        {"type": "comparison", "column": "day", "operator": "<=", "parameter": "2013-01-02"},
    ],
}

EXAMPLES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    # name: (arguments under which ROWS pass, arguments under which they fail)
    "expect_column_distinct_values_to_be_in_set": (
        {**TEXT, "value_set": ["new", "paid", "{}"]},
        {**TEXT, "value_set": ["new"]},
    ),
    "expect_column_distinct_values_to_contain_set": (
        {**TEXT, "value_set": ["new"]},
        {**TEXT, "value_set": ["x"]},
    ),
    "expect_column_distinct_values_to_equal_set": (
        {**TEXT, "value_set": ["new", "paid", "{}"]},
        {**TEXT, "value_set": ["new"]},
    ),
    "expect_column_max_to_be_between": ({**NUMBER, "max_value": 9}, {**NUMBER, "max_value": 1}),
    "expect_column_mean_to_be_between": ({**NUMBER, "max_value": 9}, {**NUMBER, "max_value": 1}),
    "expect_column_median_to_be_between": ({**NUMBER, "max_value": 9}, {**NUMBER, "max_value": 1}),
    "expect_column_min_to_be_between": ({**NUMBER, "min_value": 1}, {**NUMBER, "min_value": 3}),
    "expect_column_proportion_of_non_null_values_to_be_between": (
        {**NUMBER, "min_value": 0.7},
        {**NUMBER, "min_value": 0.9},
    ),
    "expect_column_proportion_of_unique_values_to_be_between": (
        {**TEXT, "max_value": 0.8},
        {**TEXT, "min_value": 0.9},
    ),
    "expect_column_stdev_to_be_between": ({**NUMBER, "max_value": 9}, {**NUMBER, "max_value": 0.1}),
    "expect_column_sum_to_be_between": ({**NUMBER, "max_value": 9}, {**NUMBER, "max_value": 1}),
    "expect_column_unique_value_count_to_be_between": ({**TEXT, "max_value": 3}, {**TEXT, "min_value": 4}),
    "expect_column_value_lengths_to_be_between": ({**TEXT, "min_value": 2}, {**TEXT, "min_value": 3}),
    "expect_column_value_lengths_to_equal": ({**TEXT, "value": 3, "mostly": 0.5}, {**TEXT, "value": 3}),
    "expect_column_values_to_be_between": ({**NUMBER, "max_value": 3}, {**NUMBER, "max_value": 2}),
    "expect_column_values_to_be_in_set": (
        {"column": "day", "value_set": ["2013-01-02"]},
        {"column": "day", "value_set": ["2013-01-03"]},
    ),
    "expect_column_values_to_be_json_parseable": ({**TEXT, "mostly": 0.2}, TEXT),
    "expect_column_values_to_be_null": ({**NUMBER, "mostly": 0.2}, NUMBER),
    "expect_column_values_to_be_unique": ({"column": "id"}, TEXT),
    "expect_column_values_to_match_regex": ({**TEXT, "regex": "[a-z{]"}, {**TEXT, "regex": "^[a-z]+$"}),
    "expect_column_values_to_match_regex_list": (
        {**TEXT, "regex_list": ["[a-z]", "[{]"]},
        {**TEXT, "regex_list": ["[a-z]", "[{]"], "match_on": "all"},
    ),
    "expect_column_values_to_match_strftime_format": (
        {**TEXT, "strftime_format": "%Y", "mostly": 0},
        {**TEXT, "strftime_format": "%Y"},
    ),
    "expect_column_values_to_not_be_in_set": ({**TEXT, "value_set": ["x"]}, {**TEXT, "value_set": ["new"]}),
    "expect_column_values_to_not_be_null": ({**NUMBER, "row_condition": SEVERAL}, NUMBER),
    "expect_column_values_to_not_match_regex": ({**TEXT, "regex": "x"}, {**TEXT, "regex": "new"}),
    "expect_column_values_to_not_match_regex_list": (
        {**TEXT, "regex_list": ["x"]},
        {**TEXT, "regex_list": ["new"]},
    ),
    "expect_column_pair_values_a_to_be_greater_than_b": (
        {**PAIR, "or_equal": True, "ignore_row_if": "either_value_is_missing"},
        {"column_A": "id", "column_B": "amount", "ignore_row_if": "either_value_is_missing"},
    ),
    "expect_column_pair_values_to_be_equal": (
        {**PAIR, "mostly": 0.2, "ignore_row_if": "either_value_is_missing"},
        {**PAIR, "ignore_row_if": "either_value_is_missing"},
    ),
    "expect_column_pair_values_to_be_in_set": (
        {**PAIR, "value_pairs_set": [[1, 1], [3, 2], [3, 3]], "ignore_row_if": "either_value_is_missing"},
        {**PAIR, "value_pairs_set": [[1, 1]], "ignore_row_if": "either_value_is_missing"},
    ),
    "expect_compound_columns_to_be_unique": (LIST, {"column_list": ["status", "day"]}),
    "expect_multicolumn_sum_to_equal": (
        {**LIST, "sum_total": 5, "mostly": 0.2, "ignore_row_if": "any_value_is_missing"},
        {**LIST, "sum_total": 5, "ignore_row_if": "any_value_is_missing"},
    ),
    "expect_select_column_values_to_be_unique_within_record": (
        {**LIST, "mostly": 0.2, "ignore_row_if": "any_value_is_missing"},
        {**LIST, "ignore_row_if": "any_value_is_missing"},
    ),
    "expect_table_row_count_to_be_between": ({"min_value": 4, "max_value": 4}, {"min_value": 5}),
    "expect_table_row_count_to_equal": ({"value": 4}, {"value": 5}),
}
DATED = {"day": date(2013, 1, 2)}
ROWS = [
    fact(1, time=DAY, **DATED),
    fact(2, time=DAY, status="paid", amount=3),
    fact(3, time=DAY, status="new", amount=3, **DATED),
    fact(4, time=DAY, status="{}", amount=None),
    fact(5, time=DAY, deleted=True),
]


@pytest.mark.quality
def test_the_catalogue_is_true_of_the_installed_version() -> None:
    from great_expectations.expectations.registry import get_expectation_impl

    for name, (required, optional) in CATALOGUE.items():
        fields = get_expectation_impl(name).__fields__
        assert {*required, *optional, *COMMON} <= set(fields), name
        assert {field for field, of in fields.items() if of.required} <= set(required), name


@pytest.mark.quality
def test_every_expectation_has_an_example() -> None:
    assert sorted(EXAMPLES) == sorted(CATALOGUE)


@pytest.fixture(scope="module")
def spark() -> Iterator[Any]:
    from tidemark.spark.session import session

    running = session("quality tests")
    yield running
    running.stop()


@pytest.mark.quality
@pytest.mark.spark
@pytest.mark.parametrize("passes", [True, False])
def test_small_and_large_batches_are_judged_alike(spark: Any, tmp_path: Path, passes: bool) -> None:
    quality = [{name: examples[not passes]} for name, examples in EXAMPLES.items()]
    world = World(collection(Envelope.UPSERT, quality=quality), LocalStore(str(tmp_path)))
    parts = parts_table.parts_of(world.store, [world.ingest(1, ROWS)])
    owners = owner_expectations(world.collection)
    small = Validator().judge_rows(owners, pandas_rows(world.store, parts, world.collection))
    frame = spark_rows(spark, world.store.url, parts, world.collection)
    large = Validator().judge_rows(owners, frame)
    verdicts = {
        str(owner): (of_small.passed, of_small.error, of_large.passed, of_large.error)
        for owner, of_small, of_large in zip(owners, small, large, strict=True)
    }
    assert verdicts == {str(owner): (passes, None, passes, None) for owner in owners}


@pytest.mark.quality
@pytest.mark.spark
def test_a_large_batch_is_judged_by_spark_and_shows_its_rows(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TIDEMARK_DOCS", str(tmp_path / "docs"))
    monkeypatch.setenv("TIDEMARK_SMALL_MEMORY", "0")
    quality = [
        {"expect_column_values_to_be_in_set": {"column": "status", "value_set": ["new", "paid"]}},
        {"expect_column_values_to_be_between": {"column": "at", "max_value": "9999-12-31"}},
    ]
    world = World(collection(Envelope.UPSERT, quality=quality), LocalStore(str(tmp_path / "store")))
    far = pa.scalar(2**62, pa.timestamp("us", "UTC"))
    world.ingest(1, [*ROWS, fact(6, time=DAY, at=far)])

    class OnSpark(InProcess):
        def __init__(self) -> None:
            super().__init__(world.store)
            self.spark = spark

    world.runner = OnSpark()
    with pytest.raises(GateFailed, match=r"1 row holds \{\}, not value_set"):
        gate_job.gate(world.job(), Gate.UNSEALED)
    (file,) = (tmp_path / "docs" / "orders" / "unsealed").iterdir()
    report = json.loads(file.read_text())
    failures = [result for result in report["results"] if not result["passed"]]
    assert [[(row["id"], row["_row"]) for row in failure["rows"]] for failure in failures] == [[(4, 5)], [(6, 7)]]
    assert failures[1]["message"] == f"1 row holds {2**62}, not max_value 9999-12-31"
    assert [row["at"] for row in failures[1]["rows"]] == [str(2**62)]
