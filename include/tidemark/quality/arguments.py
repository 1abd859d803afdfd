"""What each argument of an owner's expectation may hold: plain values of the type it is for, and nothing else.

Nothing here is handed on as an expression: no text that pandas, SQL or Great Expectations would evaluate, no parameter
looked up elsewhere, no name of a file or an address.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from tidemark.errors import InvalidUsage
from tidemark.model.collection import Collection, ColumnType, DecimalType, ValueType
from tidemark.quality.conditions import parse_condition
from tidemark.quality.constants import constant_of, number, scaled
from tidemark.quality.refusal import nearest, shown
from tidemark.quality.regexes import check_regex

SEVERITIES = ("critical", "warning")
LONGEST_TEXT = 2_000
_LIKE_THE_COLUMN = tuple(f"expect_column_{of}_to_be_between" for of in ("values", "min", "max"))
"""Expectations whose bounds are values of the column; those of the others are counts, shares and other numbers."""
_BETWEEN_TIMES = (*_LIKE_THE_COLUMN, *(f"expect_column_{of}_to_be_between" for of in ("mean", "median")))
"""Those of which it is true where the column holds times."""
_FIGURES = tuple(f"expect_column_{of}_to_be_between" for of in ("mean", "median", "stdev", "sum"))
"""Expectations about a figure in the column's unit, which of decimals is one of their last digit."""
_ORDERED = (*_LIKE_THE_COLUMN, "expect_column_pair_values_a_to_be_greater_than_b")
_ACROSS = (
    "expect_column_pair_values_a_to_be_greater_than_b",
    "expect_column_pair_values_to_be_equal",
    "expect_multicolumn_sum_to_equal",
    "expect_select_column_values_to_be_unique_within_record",
)
"""Expectations that set values of one column beside those of another."""
_ABOUT_TEXT = ("lengths", "regex", "strftime", "json")
_TIMES = (ColumnType.DATE, ColumnType.TIMESTAMP)
_NO_TEXTS = (*_TIMES, ColumnType.BYTES)
_UNORDERED = (ColumnType.BYTES, ColumnType.JSON)
_CHOICES = {
    "severity": SEVERITIES,
    "match_on": ("any", "all"),
    "column_A": ("both_values_are_missing", "either_value_is_missing", "neither"),
    "column_list": ("all_values_are_missing", "any_value_is_missing", "never"),
}


@dataclass(frozen=True)
class About:
    """The expectation whose arguments are checked."""

    collection: Collection
    expectation: str
    arguments: Mapping[str, Any]

    def type_of(self, column: str) -> ValueType:
        return next(declared.type for declared in self.collection.columns if declared.name == column)

    @property
    def bounds_like(self) -> str | None:
        """The column whose values the bounds are, if they are."""
        column = self.arguments.get("column")
        if column is None:
            return None
        of = self.type_of(column)
        kinds = _BETWEEN_TIMES if of in _TIMES else _LIKE_THE_COLUMN
        if isinstance(of, DecimalType):
            kinds = (*_LIKE_THE_COLUMN, *_FIGURES)
        return str(column) if self.expectation in kinds else None

    @property
    def observes_values(self) -> bool:
        """Whether what it observes is a time, or a decimal, as its one column holds them."""
        column = self.bounds_like
        if column is None:
            return False
        return self.type_of(column) in _TIMES or isinstance(self.type_of(column), DecimalType)

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns it is about."""
        named = [self.arguments[name] for name in ("column", "column_A", "column_B") if name in self.arguments]
        return (*named, *self.arguments.get("column_list", ()))


def checked(about: About, argument: str, value: Any) -> Any:
    """The argument's value as the judge shall have it. Raises InvalidUsage if the argument may not hold it."""
    return _CHECKS[argument](about, argument, value)


def check_columns(about: About) -> None:
    """Raise InvalidUsage where the expectation is about what its columns do not hold: text, an order, one unit."""
    types = {column: about.type_of(column) for column in about.columns}
    for column, type_ in types.items():
        if about.expectation in _ORDERED and type_ in _UNORDERED:
            raise InvalidUsage(f"column {column} is {type_}, whose values are in no order here")
    if about.expectation in _ACROSS and any(isinstance(type_, DecimalType) for type_ in types.values()):
        scales = {type_.scale if isinstance(type_, DecimalType) else None for type_ in types.values()}
        if len(scales) > 1:
            named = ", ".join(f"{column} {type_}" for column, type_ in types.items())
            raise InvalidUsage(f"columns {named} differ in their digits behind the point; here they must have as many")
    if any(word in about.expectation for word in _ABOUT_TEXT):
        type_ = about.type_of(about.arguments["column"])
        if type_ in _NO_TEXTS or isinstance(type_, DecimalType):
            raise InvalidUsage(f"column {about.arguments['column']} is of type {type_}; this expectation is about text")


def _column(about: About, argument: str, value: Any) -> str:
    names = [column.name for column in about.collection.columns]
    if not isinstance(value, str) or value not in names:
        near = nearest(value, names)
        raise InvalidUsage(f"collection {about.collection.name} has no column {shown(value)}{near}")
    return value


def _columns(about: About, argument: str, value: Any) -> list[str]:
    names = [_column(about, argument, name) for name in _list(argument, value)]
    if len(set(names)) < max(2, len(names)):
        raise InvalidUsage(f"{argument} is {shown(value)}; it must name two columns or more, each once")
    return names


def _list(argument: str, value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise InvalidUsage(f"{argument} is {shown(value)}; it must be a list")
    return value


def _bound(about: About, argument: str, value: Any) -> Any:
    column = about.bounds_like
    of = about.type_of(column) if column else None
    if isinstance(of, DecimalType) and about.expectation in _FIGURES:
        return _scaled(argument, value, of)
    if not (number(value) or (column and isinstance(value, str))):
        raise InvalidUsage(f"{argument} is {shown(value)}; it must be {'a number or a time' if column else 'a number'}")
    return _constant(about, argument, value, column) if column else value


def _scaled(argument: str, value: Any, of: DecimalType) -> int | float:
    try:
        return scaled(value, of)
    except InvalidUsage as error:
        raise InvalidUsage(f"{argument}: {error}") from None


def _constant(about: About, argument: str, value: Any, column: str) -> Any:
    try:
        return constant_of(about.collection, column, value)
    except InvalidUsage as error:
        raise InvalidUsage(f"{argument} on column {column}: {error}") from None


def _values(about: About, argument: str, value: Any) -> list[Any]:
    return [_constant(about, argument, one, about.arguments["column"]) for one in _list(argument, value)]


def _pairs(about: About, argument: str, value: Any) -> list[list[Any]]:
    columns = (about.arguments["column_A"], about.arguments["column_B"])
    for pair in _list(argument, value):
        if not isinstance(pair, list) or len(pair) != len(columns):
            raise InvalidUsage(f"{argument} holds {shown(pair)}; it must hold pairs")
    return [
        [_constant(about, argument, one, column) for one, column in zip(pair, columns, strict=True)] for pair in value
    ]


def _truth(about: About, argument: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise InvalidUsage(f"{argument} is {shown(value)}; it must be true or false")
    return value


def _share(about: About, argument: str, value: Any) -> float:
    if not number(value) or not 0 <= value <= 1:
        raise InvalidUsage(f"{argument} is {shown(value)}; it must be a share between 0 and 1")
    return value  # type: ignore[no-any-return]


def _count(about: About, argument: str, value: Any) -> int:
    if not number(value) or not isinstance(value, int) or value < 0:
        raise InvalidUsage(f"{argument} is {shown(value)}; it must be a count")
    return value


def _number(about: About, argument: str, value: Any) -> float:
    of = about.type_of(about.columns[0])
    if isinstance(of, DecimalType):
        return _scaled(argument, value, of)
    if not number(value):
        raise InvalidUsage(f"{argument} is {shown(value)}; it must be a number")
    return value  # type: ignore[no-any-return]


def _choice(about: About, argument: str, value: Any) -> str:
    choices = _CHOICES[
        argument if argument in _CHOICES else "column_A" if "column_A" in about.arguments else "column_list"
    ]
    if not isinstance(value, str) or value not in choices:
        *others, last = choices
        raise InvalidUsage(f"{argument} is {shown(value)}; it must be {', '.join(others)} or {last}")
    return value


def _regex(about: About, argument: str, value: Any) -> str:
    check_regex(value)
    return str(value)


def _regexes(about: About, argument: str, value: Any) -> list[str]:
    patterns = [_regex(about, argument, pattern) for pattern in _list(argument, value)]
    if not patterns:
        raise InvalidUsage(f"{argument} is empty; it must be a regular expression")
    return patterns


def _time_format(about: About, argument: str, value: Any) -> str:
    written = _text(about, argument, value)
    moment = datetime(2013, 1, 2, 3, 4, 5)  # noqa: DTZ001 - a format is tried with any moment
    try:
        datetime.strptime(moment.strftime(written), written)  # noqa: DTZ007
    except (ValueError, UnicodeError):
        raise InvalidUsage(
            f"{argument} {shown(value)} cannot read what it writes; write one such as %Y-%m-%d"
        ) from None
    return written


def _text(about: About, argument: str, value: Any) -> str:
    if not isinstance(value, str) or len(value) > LONGEST_TEXT:
        raise InvalidUsage(f"{argument} is {shown(value)}; it must be a text of at most {LONGEST_TEXT} characters")
    return value


def _texts(about: About, argument: str, value: Any) -> str | list[str]:
    return [_text(about, argument, one) for one in value] if isinstance(value, list) else _text(about, argument, value)


def _condition(about: About, argument: str, value: Any) -> Any:
    return parse_condition(about.collection, value)


_CHECKS: dict[str, Callable[[About, str, Any], Any]] = {
    "column": _column,
    "column_A": _column,
    "column_B": _column,
    "column_list": _columns,
    "description": _text,
    "ignore_row_if": _choice,
    "match_on": _choice,
    "max_value": _bound,
    "min_value": _bound,
    "mostly": _share,
    "notes": _texts,
    "or_equal": _truth,
    "regex": _regex,
    "regex_list": _regexes,
    "row_condition": _condition,
    "severity": _choice,
    "strftime_format": _time_format,
    "strict_max": _truth,
    "strict_min": _truth,
    "sum_total": _number,
    "value": _count,
    "value_pairs_set": _pairs,
    "value_set": _values,
}
"""One check for every argument of the catalogue: what is not here cannot be said."""
