"""What is known of Spark's functions: which no definition may call, and which add up rows. By their names in lower
case, as sqlglot's own classes say little of them."""

from __future__ import annotations

import re
from collections.abc import Mapping

from sqlglot import exp

_CLOCK = "depends on when it runs; take a time from a column"
_CHANCE = "gives something else each time; take a value from a column, or hash the key with xxhash64"
_PLACE = "depends on how the data is laid out; take a value from a column"
_SESSION = "depends on who runs it; write the value"
_CODE = "runs code outside SQL; write a python definition"
_FILE = "reads files; write them into a collection, and name it in `from`"
_SKETCH = "depends on the order of rows"

REFUSED: Mapping[str, str] = {
    **dict.fromkeys(
        (
            "now",
            "curdate",
            "current_date",
            "current_datetime",
            "current_time",
            "current_timestamp",
            "localtime",
            "localtimestamp",
        ),
        _CLOCK,
    ),
    **dict.fromkeys(("rand", "randn", "random", "randstr", "uniform", "uuid", "shuffle"), _CHANCE),
    **dict.fromkeys(("sample", "aes_encrypt", "try_aes_encrypt"), _CHANCE),
    **dict.fromkeys(
        (
            "input_file_block_length",
            "input_file_block_start",
            "input_file_name",
            "monotonically_increasing_id",
            "spark_partition_id",
        ),
        _PLACE,
    ),
    **dict.fromkeys(
        (
            "current_catalog",
            "current_database",
            "current_path",
            "current_schema",
            "current_timezone",
            "current_user",
            "session_user",
            "user",
            "version",
        ),
        _SESSION,
    ),
    **dict.fromkeys(("java_method", "reflect", "try_reflect"), _CODE),
    **dict.fromkeys(("identifier",), "names a table or column at run time; write the name itself"),
    **dict.fromkeys(("read_files", "read_kafka", "table_changes", "cloud_files"), _FILE),
    **dict.fromkeys(("from_protobuf", "to_protobuf"), "reads what a message is from a file; write a python definition"),
    **dict.fromkeys(("raise_error", "assert_true"), "stops the whole collection for one row; use an expectation of it"),
    **dict.fromkeys(
        ("percentile_approx", "approx_percentile"), f"{_SKETCH}; percentile(x, 0.5) does not, and is exact"
    ),
    **dict.fromkeys(
        ("histogram_numeric", "approx_top_k", "approx_top_k_accumulate", "approx_top_k_combine"),
        f"{_SKETCH}; count the rows of each value instead",
    ),
    "measure": "belongs to metric views; write the sum",
    **dict.fromkeys(("vector_avg", "vector_sum"), f"{_SKETCH}, as all sums of floats; sum each element by itself"),
    **dict.fromkeys(("try_sum", "try_avg"), f"hides an overflow, and {_SKETCH} then; use sum or avg"),
}
"""Functions that no definition may call, and why; each reason is followed by what to write instead."""
_SKETCHES = re.compile(r"(hll|kll|theta|tuple)_.*agg.*")


def why_refused(name: str) -> str:
    """Why no definition may call a function, followed by what to write instead; empty if it may."""
    if _SKETCHES.fullmatch(name):
        return f"{_SKETCH}; approx_count_distinct and percentile do not"
    return REFUSED.get(name, "")


FIRST_OF = ("first", "first_value", "last", "last_value", "any_value")
LISTS = ("collect_list", "array_agg", "collect_set")
EXTREMES = ("max_by", "min_by")
MOMENTS = frozenset(
    {
        "corr",
        "covar_pop",
        "covar_samp",
        "kurtosis",
        "regr_avgx",
        "regr_avgy",
        "regr_intercept",
        "regr_r2",
        "regr_slope",
        "regr_sxx",
        "regr_sxy",
        "regr_syy",
        "skewness",
        "std",
        "stddev",
        "stddev_pop",
        "stddev_samp",
        "var_pop",
        "var_samp",
        "variance",
    }
)
"""Aggregates that Spark computes in floats, in whatever order rows come."""

ORDERLESS_OF_LISTS = frozenset(
    {"sort_array", "array_sort", "size", "array_size", "cardinality", "array_max", "array_min", "array_contains"}
)
"""Functions of an array whose result does not depend on the order of its elements."""

AGGREGATES = frozenset(
    {
        *FIRST_OF,
        *LISTS,
        *EXTREMES,
        *MOMENTS,
        "any",
        "approx_count_distinct",
        "avg",
        "bit_and",
        "bit_or",
        "bit_xor",
        "bitmap_and_agg",
        "bitmap_construct_agg",
        "bitmap_or_agg",
        "bool_and",
        "bool_or",
        "count",
        "count_if",
        "count_min_sketch",
        "every",
        "grouping",
        "grouping_id",
        "listagg",
        "max",
        "mean",
        "median",
        "min",
        "mode",
        "percentile",
        "percentile_cont",
        "percentile_disc",
        "regr_count",
        "schema_of_variant_agg",
        "some",
        "string_agg",
        "sum",
        "vector_avg",
        "vector_sum",
    }
)
"""All aggregates, by name."""

GENERATORS = frozenset(
    {
        "explode",
        "explode_outer",
        "inline",
        "inline_outer",
        "json_tuple",
        "posexplode",
        "posexplode_outer",
        "stack",
        "variant_explode",
        "variant_explode_outer",
    }
)
"""Functions that make rows of one row."""

UNIT_FIRST = frozenset({"date_add", "date_diff", "dateadd", "datediff", "timestampadd", "timestampdiff"})
"""Functions of which the first of three arguments is a unit of time, no column."""


def name_of(node: exp.Expr) -> str:
    """A function's name in lower case; empty for what is none."""
    if isinstance(node, exp.Anonymous):
        return str(node.name).lower()
    if isinstance(node, exp.Any):
        return "any"
    return node.sql_name().lower() if isinstance(node, exp.Func) else ""


def is_aggregate(node: exp.Expr) -> bool:
    """Whether a node is an aggregate function, windowed or not."""
    if isinstance(node, exp.Any):  # x LIKE ANY (…) is none
        return not isinstance(node.parent, exp.Binary)
    return isinstance(node, exp.Anonymous | exp.AggFunc) and name_of(node) in AGGREGATES


def is_generator(node: exp.Expr) -> bool:
    """Whether a node makes rows of one row."""
    return isinstance(node, exp.Func) and name_of(node) in GENERATORS


def windowed(node: exp.Expr) -> exp.Window | None:
    """The window that an aggregate function is in, as `sum(x) FILTER (…) OVER (…)`, if any."""
    around = with_filter(node)
    above = around.parent
    return above if isinstance(above, exp.Window) and above.this is around else None


def with_filter(node: exp.Expr) -> exp.Expr:
    """An aggregate with the clauses around it that belong to it: FILTER (…), WITHIN GROUP (…), IGNORE NULLS."""
    around = node
    while isinstance(above := around.parent, exp.Filter | exp.IgnoreNulls | exp.RespectNulls | exp.WithinGroup):
        if above.this is not around:
            break
        around = above
    return around


def own_aggregates(node: exp.Expr) -> list[exp.Expr]:
    """The aggregates of a select that are in this expression of it: none of its windows, none of queries in it."""
    found = []
    for part in node.walk(prune=lambda part: isinstance(part, exp.Query)):
        if is_aggregate(part) and windowed(part) is None:
            found.append(part)
    return found
