"""Which expectations are about an interval's whole content, and not about rows one by one (docs/decisions/0070)."""

from __future__ import annotations

ROW_COUNTS = frozenset(("expect_table_row_count_to_be_between", "expect_table_row_count_to_equal"))
"""Asked also where there are no rows: these are 0."""
AGGREGATES = frozenset(
    (
        "expect_column_distinct_values_to_be_in_set",
        "expect_column_distinct_values_to_contain_set",
        "expect_column_distinct_values_to_equal_set",
        "expect_column_max_to_be_between",
        "expect_column_mean_to_be_between",
        "expect_column_median_to_be_between",
        "expect_column_min_to_be_between",
        "expect_column_proportion_of_non_null_values_to_be_between",
        "expect_column_proportion_of_unique_values_to_be_between",
        "expect_column_stdev_to_be_between",
        "expect_column_sum_to_be_between",
        "expect_column_unique_value_count_to_be_between",
    )
)
"""One figure of a column. There is none where there are no rows."""


def is_about_whole(expectation: str) -> bool:
    """Whether the expectation of this name is asked once of all rows of an interval."""
    return expectation in ROW_COUNTS or expectation in AGGREGATES
