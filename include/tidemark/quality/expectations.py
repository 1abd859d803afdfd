"""The owner's expectations: which ones a collection file may name, and what it may say of them.

Checked without importing Great Expectations, which costs seconds: collection files are read whenever DAGs are
parsed. A test holds the catalogue against the installed version.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from difflib import get_close_matches
from typing import Any

from tidemark.errors import InvalidUsage
from tidemark.model.collection import Collection, ColumnType
from tidemark.model.instant import EPOCH, parse_instant

_COLUMN = ("column",)
_PAIR = ("column_A", "column_B")
_LIST = ("column_list",)
_RANGE = ("min_value", "max_value", "strict_min", "strict_max")
_MOSTLY = ("mostly", "row_condition")

CATALOGUE: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    # name: (required arguments, optional arguments)
    "expect_column_distinct_values_to_be_in_set": ((*_COLUMN, "value_set"), ("row_condition",)),
    "expect_column_distinct_values_to_contain_set": ((*_COLUMN, "value_set"), ("row_condition",)),
    "expect_column_distinct_values_to_equal_set": ((*_COLUMN, "value_set"), ("row_condition",)),
    "expect_column_max_to_be_between": (_COLUMN, (*_RANGE, "row_condition")),
    "expect_column_mean_to_be_between": (_COLUMN, (*_RANGE, "row_condition")),
    "expect_column_median_to_be_between": (_COLUMN, (*_RANGE, "row_condition")),
    "expect_column_min_to_be_between": (_COLUMN, (*_RANGE, "row_condition")),
    "expect_column_proportion_of_non_null_values_to_be_between": (_COLUMN, (*_RANGE, "row_condition")),
    "expect_column_proportion_of_unique_values_to_be_between": (_COLUMN, (*_RANGE, "row_condition")),
    "expect_column_stdev_to_be_between": (_COLUMN, (*_RANGE, "row_condition")),
    "expect_column_sum_to_be_between": (_COLUMN, (*_RANGE, "row_condition")),
    "expect_column_unique_value_count_to_be_between": (_COLUMN, (*_RANGE, "row_condition")),
    "expect_column_value_lengths_to_be_between": (_COLUMN, (*_RANGE, *_MOSTLY)),
    "expect_column_value_lengths_to_equal": ((*_COLUMN, "value"), _MOSTLY),
    "expect_column_values_to_be_between": (_COLUMN, (*_RANGE, *_MOSTLY)),
    "expect_column_values_to_be_in_set": ((*_COLUMN, "value_set"), _MOSTLY),
    "expect_column_values_to_be_json_parseable": (_COLUMN, _MOSTLY),
    "expect_column_values_to_be_null": (_COLUMN, _MOSTLY),
    "expect_column_values_to_be_unique": (_COLUMN, _MOSTLY),
    "expect_column_values_to_match_regex": ((*_COLUMN, "regex"), _MOSTLY),
    "expect_column_values_to_match_regex_list": ((*_COLUMN, "regex_list"), ("match_on", *_MOSTLY)),
    "expect_column_values_to_match_strftime_format": ((*_COLUMN, "strftime_format"), _MOSTLY),
    "expect_column_values_to_not_be_in_set": ((*_COLUMN, "value_set"), _MOSTLY),
    "expect_column_values_to_not_be_null": (_COLUMN, _MOSTLY),
    "expect_column_values_to_not_match_regex": ((*_COLUMN, "regex"), _MOSTLY),
    "expect_column_values_to_not_match_regex_list": ((*_COLUMN, "regex_list"), _MOSTLY),
    "expect_column_pair_values_a_to_be_greater_than_b": (_PAIR, ("or_equal", "ignore_row_if", *_MOSTLY)),
    "expect_column_pair_values_to_be_equal": (_PAIR, ("ignore_row_if", *_MOSTLY)),
    "expect_column_pair_values_to_be_in_set": ((*_PAIR, "value_pairs_set"), ("ignore_row_if", *_MOSTLY)),
    "expect_compound_columns_to_be_unique": (_LIST, ("ignore_row_if", *_MOSTLY)),
    "expect_multicolumn_sum_to_equal": ((*_LIST, "sum_total"), ("ignore_row_if", *_MOSTLY)),
    "expect_select_column_values_to_be_unique_within_record": (_LIST, ("ignore_row_if", *_MOSTLY)),
    "expect_table_row_count_to_be_between": ((), (*_RANGE, "row_condition")),
    "expect_table_row_count_to_equal": (("value",), ("row_condition",)),
}
"""Expectations with one meaning on small batches (pandas) and large ones (Spark). Left out: those of one
engine only, those about types and columns (a collection's are declared), about row order (rows are sorted by
key), other tables."""

COMMON = ("severity", "description", "notes")
"""Arguments every expectation takes."""
SEVERITIES = ("critical", "warning")


@dataclass(frozen=True)
class OwnerExpectation:
    """One checked entry of `quality:` as written. `typed` holds its constants about date and timestamp columns once
    more, as dates and aware datetimes: neither engine compares those with text reliably."""

    name: str
    arguments: dict[str, Any]
    typed: dict[str, Any]

    @property
    def severity(self) -> str:
        return str(self.arguments.get("severity", SEVERITIES[0]))

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns it is about; none if it is about the whole batch."""
        return _columns_of(self.arguments)

    def __str__(self) -> str:
        about = f"({', '.join(self.columns)})" if self.columns else ""
        return f"{self.name}{about}"


def check_owner_expectations(collection: Collection) -> None:
    """Raise InvalidUsage if an entry of `quality:` could not be run, naming it and the nearest valid
    spelling."""
    owner_expectations(collection)


def owner_expectations(collection: Collection) -> tuple[OwnerExpectation, ...]:
    """The entries of `quality:`, checked. Raises InvalidUsage as check_owner_expectations does."""
    return tuple(_parse(collection, text, f"quality[{at}]") for at, text in enumerate(collection.quality))


def _parse(collection: Collection, text: str, where: str) -> OwnerExpectation:
    entry = json.loads(text)
    if not isinstance(entry, dict) or len(entry) != 1:
        raise InvalidUsage(
            f"{where} must be one expectation with its arguments, as {{name: {{column: ...}}}}, not {text}"
        )
    name, arguments = next(iter(entry.items()))
    if name not in CATALOGUE:
        raise InvalidUsage(f"{where}: there is no expectation {name!r} here{_nearest(name, CATALOGUE)}")
    if not isinstance(arguments, dict):
        raise InvalidUsage(f"{where}: the arguments of {name} must be a mapping, not {arguments!r}")
    required, optional = CATALOGUE[name]
    if missing := [argument for argument in required if argument not in arguments]:
        raise InvalidUsage(f"{where}: {name} needs {', '.join(missing)}")
    allowed = (*required, *optional, *COMMON)
    for argument in arguments:
        if argument not in allowed:
            raise InvalidUsage(f"{where}: {name} has no argument {argument!r}{_nearest(argument, allowed)}")
    _check_values(collection, arguments, f"{where}: {name}")
    return OwnerExpectation(name, arguments, _typed(collection, arguments, f"{where}: {name}"))


def _check_values(collection: Collection, arguments: Mapping[str, Any], where: str) -> None:
    severity = arguments.get("severity", SEVERITIES[0])
    if severity not in SEVERITIES:
        raise InvalidUsage(f"{where}: severity is {severity!r}; it must be critical or warning")
    mostly = arguments.get("mostly", 1)
    if isinstance(mostly, bool) or not isinstance(mostly, int | float) or not 0 <= mostly <= 1:
        raise InvalidUsage(f"{where}: mostly is {mostly!r}; it must be a share between 0 and 1")
    if not isinstance(arguments.get("row_condition", {}), dict):
        raise InvalidUsage(
            f"{where}: row_condition must be a mapping such as {{type: nullity, column: ...}}, not a text"
        )
    for bound in ("min_value", "max_value"):
        value = arguments.get(bound, 0)
        if isinstance(value, bool) or not isinstance(value, int | float | str):
            raise InvalidUsage(f"{where}: {bound} is {value!r}; it must be a number or a time")
    for plural in ("value_set", "column_list", "regex_list", "value_pairs_set"):
        if not isinstance(arguments.get(plural, []), list):
            raise InvalidUsage(f"{where}: {plural} is {arguments[plural]!r}; it must be a list")
    for pattern in (arguments.get("regex", ""), *arguments.get("regex_list", ())):
        try:
            re.compile(pattern)
        except (re.error, TypeError):
            raise InvalidUsage(f"{where}: {pattern!r} is not a regular expression") from None
    for values in arguments.get("value_pairs_set", []):
        if not isinstance(values, list) or len(values) != len(_PAIR):
            raise InvalidUsage(f"{where}: value_pairs_set holds {values!r}; it must hold pairs")
    names = [column.name for column in collection.columns]
    for column in _columns_of(arguments):
        if column not in names:
            raise InvalidUsage(
                f"{where}: collection {collection.name} has no column {column!r}{_nearest(column, names)}"
            )


def _columns_of(arguments: Mapping[str, Any]) -> tuple[str, ...]:
    single = [str(arguments[name]) for name in (*_COLUMN, *_PAIR) if name in arguments]
    return (*single, *(str(name) for name in arguments.get("column_list", ())))


def _typed(collection: Collection, arguments: dict[str, Any], where: str) -> dict[str, Any]:
    types = {column.name: column.type for column in collection.columns}
    typed: dict[str, Any] = {}
    if "column" in arguments:
        of_column = types[arguments["column"]]
        for name in ("min_value", "max_value"):
            if name in arguments:
                typed[name] = _constant(arguments[name], of_column, where)
        if "value_set" in arguments:
            typed["value_set"] = [_constant(value, of_column, where) for value in arguments["value_set"]]
    if "value_pairs_set" in arguments:
        pair = [types[arguments[name]] for name in _PAIR]
        typed["value_pairs_set"] = [
            [_constant(value, of_column, where) for value, of_column in zip(values, pair, strict=True)]
            for values in arguments["value_pairs_set"]
        ]
    return {name: value for name, value in typed.items() if value != arguments[name]}


def _constant(value: Any, of_column: ColumnType, where: str) -> Any:
    if not isinstance(value, str):
        return value
    if of_column is ColumnType.TIMESTAMP:
        try:
            return EPOCH + timedelta(microseconds=parse_instant(value))
        except InvalidUsage as error:
            raise InvalidUsage(f"{where}: {error}") from None
    if of_column is ColumnType.DATE:
        try:
            return date.fromisoformat(value)
        except ValueError:
            raise InvalidUsage(f"{where}: not a date: {value!r}; write 2013-01-02") from None
    return value


def _nearest(name: str, known: Any) -> str:
    close = get_close_matches(name, list(known), n=1)
    return f"; did you mean {close[0]}?" if close else f"; known are {', '.join(sorted(known))}"
