"""The owner's expectations: which ones a collection file may name, and what it may say of them.

Checked without importing Great Expectations, which costs seconds: collection files are read whenever DAGs are
parsed. A test holds the catalogue against the installed version.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tidemark.errors import InvalidUsage
from tidemark.model.collection import Collection
from tidemark.model.condition.tree import Condition
from tidemark.model.whole import AGGREGATES, is_about_whole
from tidemark.quality.arguments import SEVERITIES, About, check_columns, checked
from tidemark.quality.refusal import nearest, shown

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


class WrongExpectation(InvalidUsage):
    """An entry of `quality:` that cannot be run; `loc` leads to what is wrong, from `quality` on."""

    def __init__(self, message: str, loc: tuple[str | int, ...] = ("quality",)) -> None:
        super().__init__(message)
        self.loc = loc

    def __reduce__(self) -> tuple[type[WrongExpectation], tuple[str, tuple[str | int, ...]]]:
        return type(self), (str(self), self.loc)


@dataclass(frozen=True)
class OwnerExpectation:
    """One checked entry of `quality:`: its arguments as written, and `judged`, those that Great Expectations is given,
    with constants as the columns hold them. `condition` says which rows it is about (None: all), which is no
    affair of Great Expectations: it would evaluate it."""

    name: str
    arguments: dict[str, Any]
    judged: dict[str, Any]
    condition: Condition | None = None
    observes_values: bool = False

    @property
    def severity(self) -> str:
        return str(self.arguments.get("severity", SEVERITIES[0]))

    @property
    def is_about_whole(self) -> bool:
        """Whether it is asked once of all rows of an interval, and not of each batch."""
        return is_about_whole(self.name)

    @property
    def is_aggregate(self) -> bool:
        """Whether it is about a figure that no rows do not have."""
        return self.name in AGGREGATES

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns it is about; none if it is about the whole batch."""
        single = [self.arguments[name] for name in (*_COLUMN, *_PAIR) if name in self.arguments]
        return (*single, *self.arguments.get("column_list", ()))

    def __str__(self) -> str:
        about = f"({', '.join(self.columns)})" if self.columns else ""
        return f"{self.name}{about}"


def check_owner_expectations(collection: Collection) -> None:
    """Raise WrongExpectation if an entry of `quality:` could not be run, naming it and the nearest valid
    spelling."""
    owner_expectations(collection)


def owner_expectations(collection: Collection) -> tuple[OwnerExpectation, ...]:
    """The entries of `quality:`, checked. Raises WrongExpectation as check_owner_expectations does."""
    return tuple(_parse(collection, text, at) for at, text in enumerate(collection.quality))


def _parse(collection: Collection, text: str, at: int) -> OwnerExpectation:
    where, loc = f"quality[{at}]", ("quality", at)
    try:
        entry = json.loads(text)
    except (ValueError, RecursionError):
        raise WrongExpectation(f"{where} cannot be read: {shown(text)}", loc) from None
    if not isinstance(entry, dict) or len(entry) != 1:
        raise WrongExpectation(
            f"{where} must be one expectation with its arguments, as {{name: {{column: ...}}}}, not {text[:200]}", loc
        )
    name, arguments = next(iter(entry.items()))
    if name not in CATALOGUE:
        raise WrongExpectation(
            f"{where}: there is no expectation {shown(name)} here{nearest(name, CATALOGUE)}", (*loc, name)
        )
    if not isinstance(arguments, dict):
        raise WrongExpectation(
            f"{where}: the arguments of {name} must be a mapping, not {shown(arguments)}", (*loc, name)
        )
    _check_names(name, arguments, where, (*loc, name))
    return _checked(About(collection, name, arguments), f"{where}: {name}", (*loc, name))


def _check_names(name: str, arguments: Mapping[str, Any], where: str, loc: tuple[str | int, ...]) -> None:
    required, optional = CATALOGUE[name]
    if missing := [argument for argument in required if argument not in arguments]:
        raise WrongExpectation(f"{where}: {name} needs {', '.join(missing)}", loc)
    allowed = (*required, *optional, *COMMON)
    for argument in arguments:
        if argument not in allowed:
            near = nearest(argument, allowed)
            raise WrongExpectation(f"{where}: {name} has no argument {shown(argument)}{near}", (*loc, argument))


def _checked(about: About, where: str, loc: tuple[str | int, ...]) -> OwnerExpectation:
    judged: dict[str, Any] = {}
    columns = ("column", "column_A", "column_B", "column_list")
    # The columns first: what the others may hold depends on them.
    for argument in sorted(about.arguments, key=lambda name: name not in columns):
        try:
            judged[argument] = checked(about, argument, about.arguments[argument])
        except InvalidUsage as error:
            raise WrongExpectation(f"{where}: {error}", (*loc, argument)) from None
    try:
        check_columns(about)
    except InvalidUsage as error:
        raise WrongExpectation(f"{where}: {error}", loc) from None
    condition = judged.pop("row_condition", None)
    return OwnerExpectation(about.expectation, dict(about.arguments), judged, condition, about.observes_values)
