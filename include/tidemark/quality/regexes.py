"""Regular expressions of the owner's expectations, matched in time linear in the text.

Python's and Java's engines go back and try again: `(a+)+b` on forty letters keeps them busy for hours, with a worker
that answers nobody. RE2, which Arrow brings, does not; it knows no look-around and no back-references.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from tidemark.errors import InvalidUsage
from tidemark.quality.refusal import shown

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

LONGEST = 1_000
"""Characters of a pattern; RE2 itself bounds what it compiles to."""


def check_regex(pattern: Any) -> None:
    """Raise InvalidUsage for what is no pattern of RE2."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if not isinstance(pattern, str) or len(pattern) > LONGEST:
        raise InvalidUsage(f"{shown(pattern)} is not a regular expression of at most {LONGEST} characters")
    try:
        pc.match_substring_regex(pa.array([""]), pattern)
    except (pa.ArrowException, UnicodeError) as error:
        reason = " ".join(str(error).split()).removeprefix("Invalid regular expression: ")
        raise InvalidUsage(
            f"{shown(pattern)} is not a regular expression of RE2, which knows no look-around and no back-references: "
            f"{reason[:120]}"
        ) from None


def matches(texts: pa.Array | pa.ChunkedArray, patterns: Sequence[str], *, every: bool = False) -> Any:
    """Where any of the patterns is found in a text, or `every` one of them; null where the text is null."""
    import pyarrow.compute as pc

    combine: Callable[[Any, Any], Any] = pc.and_ if every else pc.or_
    found = pc.match_substring_regex(texts, patterns[0])
    for pattern in patterns[1:]:
        found = combine(found, pc.match_substring_regex(texts, pattern))
    return found


def pandas_matches(column: pd.Series, patterns: Sequence[str], *, every: bool = False) -> pd.Series:
    """The same of a column of pandas, whose values are taken as text."""
    import pandas as pd
    import pyarrow as pa

    texts = pa.array(column.astype(str).tolist(), pa.large_string())
    return pd.Series(matches(texts, patterns, every=every).to_pylist(), index=column.index, dtype=bool)


def spark_matches(column: Any, patterns: Sequence[str], *, every: bool = False) -> Any:
    """The same of a column of Spark, by Arrow in the executors."""
    from tidemark.spark.texts import asked

    wanted = tuple(patterns)

    def found(texts: pa.Array) -> pa.Array:
        return matches(texts, wanted, every=every)

    return asked(column, found)


def register() -> None:
    """Have Great Expectations match by RE2, in both of its engines."""
    from great_expectations.execution_engine.pandas_execution_engine import PandasExecutionEngine
    from great_expectations.execution_engine.sparkdf_execution_engine import SparkDFExecutionEngine
    from great_expectations.expectations.metrics.map_metric_provider.column_condition_partial import (
        column_condition_partial,
    )
    from great_expectations.expectations.metrics.map_metric_provider.column_map_metric_provider import (
        ColumnMapMetricProvider,
    )

    def provider(name: str, keys: tuple[str, ...], negated: bool) -> None:
        def patterns_of(kwargs: dict[str, Any]) -> tuple[Sequence[str], bool]:
            patterns = kwargs["regex_list"] if "regex_list" in keys else [kwargs["regex"]]
            return patterns, kwargs.get("match_on") == "all"

        @column_condition_partial(engine=PandasExecutionEngine)
        def _pandas(cls: Any, column: Any, **kwargs: Any) -> Any:
            patterns, every = patterns_of(kwargs)
            found = pandas_matches(column, patterns, every=every)
            return ~found if negated else found

        @column_condition_partial(engine=SparkDFExecutionEngine)
        def _spark(cls: Any, column: Any, **kwargs: Any) -> Any:
            patterns, every = patterns_of(kwargs)
            found = spark_matches(column, patterns, every=every)
            return ~found if negated else found

        body = {"condition_metric_name": name, "condition_value_keys": keys, "_pandas": _pandas, "_spark": _spark}
        # Its metaclass registers a provider as soon as it is made, in place of the one there is.
        made: Any = type(ColumnMapMetricProvider)
        made(f"Linear {name}", (ColumnMapMetricProvider,), body)

    provider("column_values.match_regex", ("regex",), False)
    provider("column_values.not_match_regex", ("regex",), True)
    provider("column_values.match_regex_list", ("regex_list", "match_on"), False)
    provider("column_values.not_match_regex_list", ("regex_list",), True)
