"""An entry of `quality:` holds plain values: nothing in it reaches an evaluator of pandas, Spark or anything else."""

from __future__ import annotations

import json
import operator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from tidemark.config.collection_file import load
from tidemark.errors import InvalidUsage
from tidemark.model.collection import Collection, Column, ColumnType, DecimalType, Envelope, Format, Landed, Source
from tidemark.quality.conditions import pandas_mask, parse_condition
from tidemark.quality.expectations import CATALOGUE, COMMON, check_owner_expectations, owner_expectations
from tidemark.quality.regexes import pandas_matches

pytestmark = pytest.mark.pure

COLUMNS = {"id": ColumnType.INT, "status": ColumnType.STRING, "at": ColumnType.TIMESTAMP, "ok": ColumnType.BOOL}
CODE = "@pd.io.common.os.system('touch PWNED')"
IN_SET = "expect_column_values_to_be_in_set"
EXPRESSION = {"$PARAMETER": "9^9^9^9"}
"""What Great Expectations would calculate, for as long as it takes."""


def orders(*quality: Any) -> Collection:
    columns = tuple(Column(name, kind) for name, kind in COLUMNS.items())
    source = Source("*.parquet", Format.PARQUET, Envelope.APPEND)
    return Collection("orders", columns[:1], columns[1:], Landed(source), quality=tuple(map(json.dumps, quality)))


def refusal(name: str, **arguments: Any) -> str:
    with pytest.raises(InvalidUsage) as refused:
        check_owner_expectations(orders({name: arguments}))
    assert "\n" not in str(refused.value)
    assert len(str(refused.value)) < 3_000
    return str(refused.value)


CONDITIONS: dict[str, Any] = {
    "row_condition has no type 'pass_through'; its types are": {"type": "pass_through", "pass_through_filter": CODE},
    "row_condition must be a mapping": CODE,
    "row_condition has no type ['and']": {"type": ["and"]},
    "row_condition of type comparison needs parameter": {"type": "comparison", "column": "id", "operator": "=="},
    "has no operator '== 1 or @pd'": {"type": "comparison", "column": "id", "operator": "== 1 or @pd", "parameter": 1},
    "has no column 'id == 1 or @pd.x'": {"type": "nullity", "column": "id == 1 or @pd.x", "is_null": True},
    "has no column {'name': 'id', 'x': 1}": {"type": "nullity", "column": {"name": "id", "x": 1}, "is_null": True},
    "has no 'pass_through_filter'; known are column, is_null": {
        **{"type": "nullity", "column": "id", "is_null": True},
        "pass_through_filter": CODE,
    },
    "is no number, which the column holds": {
        **{"type": "comparison", "column": "id", "operator": "=="},
        "parameter": {"__class__": CODE},
    },
    "parameter of IN must be a list": {
        **{"type": "comparison", "column": "status", "operator": "IN"},
        "parameter": "new",
    },
    "row_condition has no type 'pass_through'; its": {
        "type": "and",
        "conditions": [{"type": "or", "conditions": [{"type": "pass_through", "pass_through_filter": CODE}]}],
    },
    "conditions must be a list of at least one": {"type": "or", "conditions": []},
    "is_null is 'yes'": {"type": "nullity", "column": "id", "is_null": "yes"},
}


@pytest.mark.parametrize(("said", "condition"), CONDITIONS.items())
def test_a_row_condition_is_a_comparison_of_columns_with_constants_or_refused(said: str, condition: Any) -> None:
    assert said in refusal(IN_SET, column="status", value_set=["new"], row_condition=condition)


def test_row_conditions_are_bounded_in_depth_and_number() -> None:
    one = {"type": "nullity", "column": "id", "is_null": True}
    deep: dict[str, Any] = one
    for _ in range(50):
        deep = {"type": "and", "conditions": [deep]}
    wide = {"type": "and", "conditions": [one] * 101}
    assert "nested more than 8 deep" in refusal(IN_SET, column="status", value_set=["a"], row_condition=deep)
    assert "more than 100 comparisons" in refusal(IN_SET, column="status", value_set=["a"], row_condition=wide)


@pytest.mark.parametrize("name", CATALOGUE)
@pytest.mark.parametrize("value", [EXPRESSION, {"x": CODE}, [EXPRESSION], [[EXPRESSION, EXPRESSION]], None])
def test_no_argument_takes_an_expression_or_a_mapping(name: str, value: Any) -> None:
    required, optional = CATALOGUE[name]
    sound = {
        **{"column": "status", "column_A": "id", "column_B": "id", "column_list": ["id", "status"]},
        **{"value": 1, "value_set": ["a"], "value_pairs_set": [[1, 1]], "regex": "a", "regex_list": ["a"]},
        **{"strftime_format": "%Y", "sum_total": 1},
    }
    arguments = {argument: sound[argument] for argument in required}
    check_owner_expectations(orders({name: arguments}))
    for argument in (*required, *optional, *COMMON):
        assert refusal(name, **{**arguments, argument: value}).startswith(f"quality[0]: {name}: ")


@pytest.mark.parametrize(
    "argument",
    [
        *("condition_parser", "result_format", "catch_exceptions", "meta", "id", "rendered_content", "domain"),
        *("unexpected_rows_query", "batch_id", "table", "parse_strings_as_datetimes", "windows", "__class__", "url"),
    ],
)
def test_what_is_in_no_list_cannot_be_said(argument: str) -> None:
    assert "has no argument" in refusal(IN_SET, column="status", value_set=["a"], **{argument: "x"})


@pytest.mark.parametrize(
    "name", ["unexpected_rows_expectation", "UnexpectedRowsExpectation", "expect_query_results_to_match_comparison"]
)
def test_expectations_that_run_a_query_do_not_exist(name: str) -> None:
    assert "there is no expectation" in refusal(name, unexpected_rows_query="SELECT 1")


@pytest.mark.parametrize("pattern", [r"(?=a)", r"(a)\1", "(", "a" * 1_001, "((((((((((a{100}){100}){100}){100}))))))"])
def test_a_regex_is_one_of_a_linear_engine(pattern: str) -> None:
    assert "is not a regular expression of" in refusal(
        "expect_column_values_to_match_regex", column="status", regex=pattern
    )


@pytest.mark.measured
@pytest.mark.timeout(60)
def test_a_regex_that_would_go_back_for_ever_is_matched_in_linear_time() -> None:
    texts = pd.Series(["a" * 100_000, "a" * 100_000 + "b"])
    assert pandas_matches(texts, ["^(a+)+b$"]).tolist() == [False, True]
    assert pandas_matches(texts, ["x", "b$"]).tolist() == [False, True]
    assert pandas_matches(texts, ["a", "b$"], every=True).tolist() == [False, True]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"column": "status", "value_set": [True]}, "value_set on column status: True is no text (quote it)"),
        ({"column": "id", "value_set": ["1"]}, "value_set on column id: '1' is no number"),
        ({"column": "id", "value_set": [2**64]}, "is no number"),
        ({"column": "at", "value_set": [1.5]}, "1.5 is no time"),
        ({"column": True, "value_set": [1]}, "no column True"),
    ],
)
def test_constants_are_of_their_columns_type(arguments: dict[str, Any], said: str) -> None:
    assert said in refusal(IN_SET, **arguments)


def test_a_time_is_no_text() -> None:
    said = refusal("expect_column_values_to_match_regex", column="at", regex="2013")
    assert "column at is of type timestamp; this expectation is about text" in said


HOSTILE = ["'] or @pd.x or status in ['", "`id`", '"', "'", "\\", "@pd", "${spark.app.name}", "\x00", "%s {0} $x"]


@pytest.mark.parametrize("value", HOSTILE)
def test_a_constant_is_compared_as_it_is(value: str) -> None:
    frame = pd.DataFrame({"status": pd.Series([value, "new", None], dtype=object)})
    condition = parse_condition(
        orders(), {"type": "comparison", "column": "status", "operator": "==", "parameter": value}
    )
    assert pandas_mask(condition, frame).tolist() == [True, False, False]


@pytest.mark.parametrize("sign", ["==", "!=", "<", "<=", ">", ">="])
def test_comparisons_agree_with_pythons_and_null_is_never_true(sign: str) -> None:
    python = {"==": "eq", "!=": "ne", "<": "lt", "<=": "le", ">": "gt", ">=": "ge"}[sign]
    values = [2**53, 2**53 + 1, -5]
    frame = pd.DataFrame({"id": pd.Series([*values, None], dtype="Int64")})
    written = {"type": "comparison", "column": {"name": "id"}, "operator": sign, "parameter": 2**53}
    expected = [getattr(operator, python)(value, 2**53) for value in values]
    assert pandas_mask(parse_condition(orders(), written), frame).tolist() == [*expected, False]


def test_conditions_combine() -> None:
    frame = pd.DataFrame(
        {"id": pd.Series([1, 2, 3, None], dtype="Int64"), "status": pd.Series(["a", None, "b", "b"], dtype=object)}
    )
    some = {"type": "comparison", "column": "id", "operator": "IN", "parameter": [1, 3]}
    others = {"type": "comparison", "column": "status", "operator": "NOT_IN", "parameter": ["a"]}
    no_id = {"type": "nullity", "column": "id", "is_null": True}
    both = parse_condition(orders(), {"type": "and", "conditions": [some, others]})
    either = parse_condition(orders(), {"type": "or", "conditions": [{"type": "and", "conditions": [some]}, no_id]})
    assert pandas_mask(both, frame).tolist() == [False, False, True, False]
    assert pandas_mask(either, frame).tolist() == [True, False, True, True]


def test_decimals_are_whole_numbers_of_more_than_64_bits_and_may_all_be_null() -> None:
    price = Column("price", DecimalType(38, 2))
    source = Source("*.parquet", Format.PARQUET, Envelope.APPEND)
    priced = Collection("orders", (Column("id", ColumnType.INT),), (price,), Landed(source))
    written = {"type": "comparison", "column": "price", "operator": ">", "parameter": "0.30"}
    condition = parse_condition(priced, written)
    frame = pd.DataFrame({"price": pd.Series([10**37, 30, 31, None], dtype="object")})
    assert pandas_mask(condition, frame).tolist() == [True, False, True, False]
    assert pandas_mask(condition, frame.iloc[3:]).tolist() == [False]
    no_price = parse_condition(priced, {"type": "nullity", "column": "price", "is_null": True})
    assert pandas_mask(no_price, frame).tolist() == [False, False, False, True]


def test_whole_numbers_beside_a_fraction_are_compared_exactly() -> None:
    written = {"type": "comparison", "column": "id", "operator": ">", "parameter": 9007199254740992.0}
    frame = pd.DataFrame({"id": pd.Series([2**53, 2**53 + 1, None], dtype="Int64")})
    assert pandas_mask(parse_condition(orders(), written), frame).tolist() == [False, True, False]


def test_a_time_in_a_condition_is_in_microseconds() -> None:
    written = {"type": "comparison", "column": "at", "operator": ">=", "parameter": "1969-12-31T23:59:59Z"}
    frame = pd.DataFrame({"at": pd.Series([-1_000_000, -1_000_001, 2**62], dtype="Int64")})
    assert pandas_mask(parse_condition(orders(), written), frame).tolist() == [True, False, True]


def test_an_entry_that_was_stored_before_is_refused_where_it_is_read() -> None:
    stored = Collection(
        **{**vars(orders()), "quality": ('{"expect_column_values_to_be_null":' * 2_000 + "1" + "}" * 2_000,)}
    )
    with pytest.raises(InvalidUsage, match=r"quality\[0\]"):
        owner_expectations(stored)


FILE = """\
name: orders
key: [id]
value: [status]
columns: {id: int, status: string}
start: 2024-01-01
time: arrival
source: {path: "{{ landing }}/x/{{ ds }}/*.csv", format: csv, envelope: append}
quality:
  - expect_column_values_to_be_unique: {column: id}
  - expect_column_values_to_be_in_set:
      column: status
      value_set: [new]
"""


@pytest.mark.parametrize(
    ("added", "line", "said"),
    [
        ("      row_condition: {type: pass_through, pass_through_filter: x}\n", 13, "no type 'pass_through'"),
        ("      mostl: 0.5\n", 13, "did you mean mostly?"),
        ("  - expect_column_values_to_be_nul: {column: id}\n", 13, "did you mean expect_column_values_to_be_null?"),
        ("  - expect_column_values_to_be_null: {2013-01-01: id}\n", 13, "quote it"),
        ("  - expect_table_row_count_to_equal: {value: .nan}\n", 13, "nan cannot be written as JSON"),
        (f"  - expect_table_row_count_to_equal: {{value: 0x{'f' * 9000}}}\n", 13, "a value of 9002 characters"),
        ("  - expect_table_row_count_to_equal: {value: !!binary aGk=}\n", 13, "binary, which is not allowed"),
        ("  - expect_column_values_to_be_in_set: {column: id, value_set: [1, x]}\n", 13, "'x' is no number"),
    ],
)
def test_a_wrong_entry_is_refused_at_its_line(tmp_path: Path, added: str, line: int, said: str) -> None:
    file = tmp_path / "orders.yaml"
    file.write_text(FILE)
    assert len(load(file).quality) == 2
    file.write_text(FILE + added)
    with pytest.raises(InvalidUsage) as refused:
        load(file)
    assert str(refused.value).startswith(f"{file}:{line}: ")
    assert said in str(refused.value)
    assert len(str(refused.value)) < 1_000
