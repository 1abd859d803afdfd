"""The built-in rules: which expectation over the evidence states which invariant, and how a failure reads. Which gate
has which of them is declared in gates.py."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tidemark.model.collection import Collection
from tidemark.quality.evidence import Row

CRITICAL = "critical"
WARNING = "warning"

LATE_SHARE = 0.25
"""More late rows than this share of a batch is worth a look; never a failure, as late rows are applied
exactly."""
VOLUME = (0.2, 5.0)
"""Rows against what the median rate of recent intervals would bring: outside of it is worth a look, never a failure."""

CORRECTED_SHARE = 0.1
"""A correction that retracts more than this share of an interval's rows is worth a look, where the collection does
not say how much may be (`corrected_share`), which is a failure beyond."""

Term = tuple[str, str, Any]
"""(column, one of `null` `==` `<` `>`, value): a condition on the rows of a part."""
Clause = tuple[Term, ...]
"""All of its terms hold."""
Offending = Callable[[Row, Collection], list[Clause]]
"""Which rows break a rule, given the failing evidence: those for which any clause holds; no clause, no
query."""


def _nothing(row: Row, collection: Collection) -> list[Clause]:
    return []


@dataclass(frozen=True)
class Rule:
    """One rule: a Great Expectations expectation by its snake-case name, over columns of the evidence.

    `message` is formatted with the failing evidence row. `count` names the evidence column that counts
    offending rows, `offending` says how those rows are found again in the batch's parts. A rule is an invariant of
    what is stored, which nobody can accept the breach of, unless it is the owner's `judgement` of data.
    """

    name: str
    expectation: str
    arguments: dict[str, Any]
    message: str
    severity: str = CRITICAL
    count: str | None = None
    offending: Offending = _nothing
    judgement: bool = False

    @property
    def figures(self) -> tuple[str, ...]:
        """The columns of the evidence that it is about."""
        return tuple(self.arguments[name] for name in ("column", "column_A", "column_B") if name in self.arguments)


def _both(first: str, second: str) -> dict[str, Any]:
    """Two figures that are always known: beside one that is not, a rule fails."""
    return {"column_A": first, "column_B": second, "ignore_row_if": "neither"}


def _equal(name: str, column: str, message: str) -> Rule:
    arguments = _both(column, f"{column}_recorded")
    return Rule(name, "expect_column_pair_values_to_be_equal", arguments, message)


def _none(name: str, column: str, message: str, offending: Offending = _nothing) -> Rule:
    arguments = {"column": column, "max_value": 0}
    return Rule(name, "expect_column_values_to_be_between", arguments, message, count=column, offending=offending)


def _at_least(name: str, high: str, low: str, message: str, offending: Offending = _nothing) -> Rule:
    arguments = _both(high, low) | {"or_equal": True}
    expectation = "expect_column_pair_values_a_to_be_greater_than_b"
    return Rule(name, expectation, arguments, message, offending=offending)


def _where(column: str, operator: str, evidence: str) -> Offending:
    """The rows whose column compares so with a figure of the evidence."""
    return lambda row, collection: [((column, operator, row[evidence]),)]


def _null_keys(row: Row, collection: Collection) -> list[Clause]:
    return [((column.name, "null", None),) for column in collection.key]


_STORED = (
    Rule(
        "parts unaltered",
        "expect_column_values_to_be_between",
        {"column": "parts_altered", "max_value": 0},
        "{parts_altered} of {parts} parts changed since written, first {altered}",
    ),
    _equal("parts complete", "parts", "has {parts} parts, {parts_recorded} were recorded"),
    Rule(
        "schema",
        "expect_column_values_to_be_between",
        {"column": "parts_with_other_columns", "max_value": 0},
        "{parts_with_other_columns} of {parts} parts have the columns {columns}, declared are {columns_declared}",
    ),
    Rule(
        "bounds as recorded",
        "expect_column_values_to_be_between",
        {"column": "parts_misbounded", "max_value": 0},
        "{parts_misbounded} of {parts} parts do not have the bounds that are recorded of their timelines, first "
        "{misbounded}",
    ),
    _equal("rows as recorded", "rows", "holds {rows} rows, {rows_recorded} were recorded"),
    _equal("digest as recorded", "digest", "its rows add up to {digest}, {digest_recorded} was recorded"),
    _none("no null keys", "null_keys", "null in the key, {null_keys} times", _null_keys),
    _none("sorted", "rows_out_of_order", "out of order, {rows_out_of_order} times"),
)

UNSEALED = (
    *_STORED,
    _equal("times as recorded", "times", "holds times {times}, {times_recorded} was recorded"),
    _equal(
        "event times as recorded",
        "event_times",
        "holds event times {event_times}, {event_times_recorded} was recorded",
    ),
    _at_least(
        "above the trace",
        "first_time",
        "floor",
        "holds time {first_time}, but the trace is complete below {floor}",
        _where("_time", "<", "floor"),
    ),
    _none(
        "retracted rows were contributed",
        "rows_not_contributed",
        "retracts {rows_not_contributed} rows that its files had not contributed, of {rows_retracted} in all",
    ),
    Rule(
        "corrected share",
        "expect_column_pair_values_a_to_be_greater_than_b",
        {
            "column_A": "corrected_share_allowed",
            "column_B": "corrected_share",
            "or_equal": True,
            "ignore_row_if": "either_value_is_missing",
        },
        "retracts {rows_retracted:,} of {rows_contributed:,} rows, {corrected_share:.1%}; corrected_share allows "
        "{corrected_share_allowed:.1%}: where the correction is right, raise it in the collection file",
        judgement=True,
    ),
    Rule(
        "corrected share, usual",
        "expect_column_values_to_be_between",
        {"column": "corrected_share_undeclared", "max_value": CORRECTED_SHARE},
        "retracts {rows_retracted:,} of {rows_contributed:,} rows, {corrected_share:.1%}, and the collection file "
        "does not say how much a correction may: corrected_share",
        WARNING,
    ),
    Rule(
        "late share",
        "expect_column_values_to_be_between",
        {"column": "late_share", "max_value": LATE_SHARE},
        "{late_share:.0%} of its rows came late, which is more than usual",
        WARNING,
    ),
    Rule(
        "volume",
        "expect_column_values_to_be_between",
        {
            "column": "volume",
            "min_value": VOLUME[0],
            "max_value": VOLUME[1],
        },
        "brought {rows_recorded:,} rows, about {usual_rows:,.0f} would be usual",
        WARNING,
    ),
)

SNAPSHOTS = (
    Rule(
        "rows of the full snapshot before",
        "expect_column_pair_values_a_to_be_greater_than_b",
        {
            "column_A": "snapshot_rows",
            "column_B": "snapshot_rows_least",
            "or_equal": True,
            "ignore_row_if": "either_value_is_missing",
        },
        "has {snapshot_rows:,} rows, the full snapshot before has {snapshot_rows_before:,}, and all others would be "
        "deleted; source.min_share {min_share:g} lets it have {snapshot_rows_least:,} or more",
        judgement=True,
    ),
)
"""Beside the others, of full snapshots; also of those without rows, which have no batch."""

DEFINED = (
    Rule(
        "consumed once",
        "expect_column_values_to_be_between",
        {"column": "consumptions", "min_value": 1, "max_value": 1},
        "belongs to {consumptions} recorded consumptions of the inputs, it must belong to one",
    ),
    _equal("rows added as recorded", "rows_added", "adds {rows_added} rows, {rows_added_recorded} were recorded"),
    _equal(
        "rows retracted as recorded", "rows_taken", "retracts {rows_taken} rows, {rows_taken_recorded} were recorded"
    ),
    Rule(
        "definition",
        "expect_column_values_to_be_between",
        {"column": "rows_differing", "max_value": 0},
        "of {keys_computed} recomputed keys {rows_differing} rows are not what the definition says, first "
        "{first_differing}",
    ),
)
"""Beside the others, of what a derived collection was corrected by."""

FRONTIER = (
    _at_least("seal only advances", "seal", "floor", "the seal {seal} is behind {floor}, which was promised before"),
    Rule(
        "no hole in what is complete",
        "expect_column_values_to_be_null",
        {"column": "hole"},
        "interval {hole} was never ingested, and everything below {complete_below} is said to be complete",
    ),
    Rule(
        "batches certified",
        "expect_column_values_to_be_between",
        {"column": "batches_uncertified", "max_value": 0},
        "{batches_uncertified} of {batches_below} batches below the seal {seal} are not certified, first {uncertified}",
    ),
)

TRACE = (
    *_STORED,
    Rule(
        "parts disjoint",
        "expect_column_values_to_be_between",
        {"column": "parts_overlapping", "max_value": 0},
        "{parts_overlapping} parts start before the one before them ends",
    ),
    _none(
        "cancels as recorded",
        "values_uncancelled",
        "in parts that cancel {values_uncancelled} values of keys, whose diffs do not add up to 0",
    ),
    _none(
        "no zero diffs",
        "zero_diffs",
        "diff 0, {zero_diffs} times",
        lambda row, collection: [(("_diff", "==", 0),)],
    ),
    _none("consolidated", "rows_repeated", "key, value and times of another row repeated, {rows_repeated} times"),
    _at_least(
        "times from lower and since",
        "first_time",
        "earliest",
        "{description} holds time {first_time}, before {earliest}",
        _where("_time", "<", "earliest"),
    ),
    _at_least(
        "times to upper or since",
        "latest",
        "last_time",
        "{description} holds time {last_time}, after {latest}",
        _where("_time", ">", "latest"),
    ),
    _at_least(
        "event times from since",
        "first_event_time",
        "since",
        "{description} holds event time {first_event_time}, before its since",
        _where("_event_time", "<", "since"),
    ),
    _at_least("since of the state", "since_of_state", "since", "{description} is ahead of since {since_of_state}"),
    _at_least("upper below the seal", "seal", "upper", "{description} reaches beyond the seal {seal}"),
    Rule(
        "neighbours touch",
        "expect_column_pair_values_to_be_equal",
        _both("lower", "upper_of_older"),
        "{description} starts at {lower}, the batch before it ends at {upper_of_older}",
    ),
    _at_least("levels do not rise", "level_of_older", "level", "has level {level} after one of {level_of_older}"),
)

COMPACTION = (
    *TRACE,
    Rule(
        "live batches",
        "expect_column_pair_values_a_to_be_greater_than_b",
        {
            "column_A": "live_bound",
            "column_B": "live_batches",
            "or_equal": True,
            "ignore_row_if": "either_value_is_missing",
        },
        "the trace has {live_batches} live batches, at most {live_bound} are expected",
    ),
    Rule(
        "no compaction due",
        "expect_column_values_to_be_between",
        {"column": "cascades_due", "max_value": 0},
        "another compaction is due already; run `tidemark compact` if this persists",
        WARNING,
    ),
)
