"""What a definition raises for some row, in one clear line that says for which."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException, PythonException
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from tidemark.errors import InvalidUsage, TidemarkError, plain_line
from tidemark.spark.derive.faults import fault_of_a_row, fault_of_planning
from tidemark.spark.derive.user_code import place

PROBES = 48
"""Times a definition is computed again over fewer rows to find the one it raises for: 2^48 rows are more than any."""
_CONDITION = re.compile(r"\[([A-Z_][A-Z0-9_.]+)\] (.*)")
_SAID = {"USER_RAISED_EXCEPTION"}
_TOO_LARGE = re.compile("(BINARY_)?ARITHMETIC_OVERFLOW|NUMERIC_VALUE_OUT_OF_RANGE")
"""Conditions of what does not fit in its type. Spark proposes try_add there, with which no sum and no window is
computed: what an overflow hides depends on the order of rows."""
_TRIED = {
    *(
        "DIVIDE_BY_ZERO",
        "REMAINDER_BY_ZERO",
        "INTERVAL_DIVIDED_BY_ZERO",
        "CAST_INVALID_INPUT",
        "CANNOT_PARSE_TIMESTAMP",
    ),
    *("CANNOT_PARSE_TIME", "CONVERSION_INVALID_INPUT", "INVALID_ARRAY_INDEX_IN_ELEMENT_AT", "INVALID_URL"),
    *("CANNOT_DECODE_URL", "INVALID_UTF8_STRING", "MALFORMED_RECORD_IN_PARSING", "MALFORMED_VARIANT"),
    *("INVALID_VARIANT_CAST", "INVALID_VARIANT_GET_PATH"),
}
"""Conditions of functions that have one beside them which gives null instead, as try_divide and try_cast."""
_THROWN = re.compile(r"(?:^|org\.apache\.spark\.[\w.$]+: )\[([A-Z_][A-Z0-9_]+)[\].]")
"""The condition of an error that Spark itself threw; what others say in brackets is none."""
DATA = frozenset(
    {
        "ARITHMETIC_OVERFLOW", "BINARY_ARITHMETIC_OVERFLOW", "CANNOT_DECODE_URL", "CANNOT_PARSE_DECIMAL",
        "CANNOT_PARSE_INTERVAL", "CANNOT_PARSE_JSON_FIELD", "CANNOT_PARSE_TIME", "CANNOT_PARSE_TIMESTAMP",
        "CAST_INVALID_INPUT", "CAST_OVERFLOW", "COLLECTION_SIZE_LIMIT_EXCEEDED", "COMPARATOR_RETURNS_NULL",
        "CONVERSION_INVALID_INPUT", "DATETIME_FIELD_OUT_OF_BOUNDS", "DATETIME_OVERFLOW",
        "DECIMAL_PRECISION_EXCEEDS_MAX_PRECISION", "DIVIDE_BY_ZERO", "DUPLICATED_MAP_KEY", "EXCEED_LIMIT_LENGTH",
        "FAILED_ROW_TO_JSON", "HLL_INVALID_INPUT_SKETCH_BUFFER", "HLL_UNION_DIFFERENT_LG_K", "ILLEGAL_DAY_OF_WEEK",
        "INTERVAL_ARITHMETIC_OVERFLOW", "INTERVAL_DIVIDED_BY_ZERO", "INVALID_ARRAY_INDEX",
        "INVALID_ARRAY_INDEX_IN_ELEMENT_AT", "INVALID_BITMAP_POSITION", "INVALID_BYTE_STRING",
        "INVALID_DATETIME_PATTERN", "INVALID_FRACTION_OF_SECOND", "INVALID_INDEX_OF_ZERO", "INVALID_INTERVAL_FORMAT",
        "INVALID_INTERVAL_WITH_MICROSECONDS_ADDITION", "INVALID_JSON_ROOT_FIELD", "INVALID_PARAMETER_VALUE",
        "INVALID_REGEXP_REPLACE", "INVALID_TIMEZONE", "INVALID_URL", "INVALID_UTF8_STRING", "INVALID_VARIANT_CAST",
        "INVALID_VARIANT_GET_PATH", "KLL_INVALID_INPUT_SKETCH_BUFFER", "MALFORMED_CHARACTER_CODING",
        "MALFORMED_RECORD_IN_PARSING", "MALFORMED_VARIANT", "NEGATIVE_VALUES_IN_FREQUENCY_EXPRESSION", "NULL_MAP_KEY",
        "NUMERIC_OUT_OF_SUPPORTED_RANGE", "NUMERIC_VALUE_OUT_OF_RANGE", "REMAINDER_BY_ZERO",
        "ROW_SUBQUERY_TOO_MANY_ROWS", "SCALAR_SUBQUERY_TOO_MANY_ROWS", "STRUCT_ARRAY_LENGTH_MISMATCH",
        "THETA_INVALID_INPUT_SKETCH_BUFFER", "TUPLE_INVALID_INPUT_SKETCH_BUFFER", "USER_RAISED_EXCEPTION",
        "VARIANT_CONSTRUCTOR_SIZE_LIMIT", "VARIANT_DUPLICATE_KEY", "VARIANT_SIZE_LIMIT", "VECTOR_DIMENSION_MISMATCH",
        "WKB_PARSE_ERROR",
    }
)  # fmt: skip
"""Conditions of Spark that the values of rows bring about. Others concern machines, settings or Spark itself."""


_FAILED = (PySparkException, Py4JJavaError)
"""What a query fails with. PySpark hands on as it is what a row raises while one side of a join is broadcast."""


class Raised(InvalidUsage):
    """A definition raises for a row of its inputs."""


def message_of(error: BaseException) -> str:
    """The line of an error of Spark's that says what is wrong: its condition, and the words for it."""
    text = str(error)
    match = _CONDITION.search(text)
    if match is None:
        if said := fault_of_a_row(error):
            return said
        return plain_line((text.splitlines() or [type(error).__name__])[0])
    condition, words = match[1], match[2].split(" SQLSTATE:")[0].split(" If necessary set")[0]
    if _TOO_LARGE.match(condition):
        words = re.split(r" Use ['`\w]*try_", words)[0]
    return plain_line(words if condition in _SAID else f"{condition}: {words}")


def is_about_rows(error: BaseException) -> bool:
    """Whether it is what a definition says of a row; else something failed that may be tried again."""
    return _has_condition_of_rows(error) or bool(fault_of_a_row(error))


def _has_condition_of_rows(error: BaseException) -> bool:
    match = _THROWN.search(str(error))
    return match is not None and match[1] in DATA


@contextmanager
def naming(name: str, where: Callable[[], str]) -> Iterator[None]:
    """Raise what a definition raises as Raised, with `where()`: of which row, or of what it is."""
    try:
        yield
    except TidemarkError:
        raise
    except _FAILED as error:
        if isinstance(error, PythonException):
            if (said := _said_by_a_definition(error)) is None:
                raise
            raise Raised(f"the definition of {name} raises {said} for a row; filter such rows out") from None
        if not _has_condition_of_rows(error) and (said := fault_of_planning(error)):
            raise InvalidUsage(unplanned(name, said)) from None
        if not is_about_rows(error):
            raise
        match, said, at = _CONDITION.search(str(error)), message_of(error), where()
        if match and match[1] in _SAID:  # by raise_error: whoever raises so says what to do
            raise Raised(f"the definition of {name} raises: {said}{at}") from None
        instead = _instead(match[1] if match else "")
        raise Raised(f"the definition of {name} raises {said}{at}; filter such rows out{instead}") from None


def refusal_of_planning(name: str, error: BaseException) -> InvalidUsage:
    """The refusal of a definition that Spark reads, and cannot plan; or that raises for whatever row there is."""
    if _has_condition_of_rows(error):
        return InvalidUsage(f"the definition of {name} raises {message_of(error)} for any row; correct the constant")
    return InvalidUsage(unplanned(name, fault_of_planning(error) or message_of(error)))


def unplanned(name: str, said: str) -> str:
    """What is said of a definition that Spark reads, and cannot plan."""
    return (
        f"the definition of {name} cannot be planned by Spark: {said}; write it otherwise: a subquery in an expression "
        "as a join, a smaller constant"
    )


def _instead(condition: str) -> str:
    """What else than to filter rows out helps, where there is such a thing."""
    if _TOO_LARGE.match(condition):
        return ", or compute it in a wider type, as CAST(… AS decimal(38, 0))"
    return ", or use try_…" if condition in _TRIED else ""


def _said_by_a_definition(error: PythonException) -> str | None:
    """What a function of a definition in Python raised on an executor; None if it was another's."""
    text = str(error)
    if f"{place()}{os.sep}" not in text:
        return None
    lines = [line.split(" SQLSTATE:")[0] for line in text.splitlines()]
    raised = [line for line in lines if re.match(r"[A-Za-z_][\w.]*(: |$)", line)]
    return plain_line(raised[-1] if raised else lines[-1], 300)


def row_that_raises(rows: DataFrame, key: list[str], query: Callable[[DataFrame], DataFrame]) -> str:
    """One row of an input for which a query of single rows raises, for a message; empty where none is found alone.

    The rows are halved, by a hash of all their columns, and the half that raises is halved again.
    """
    hashed = rows.withColumn("_hash", F.xxhash64(*(F.col(f"`{name}`") for name in rows.columns)))
    suspects = hashed
    for bit in range(PROBES):
        half = F.col("_hash").bitwiseAND(F.lit(1 << bit)) == 0
        zeros = suspects.where(half)
        suspects = zeros if _raises(query(zeros.drop("_hash"))) else suspects.where(~half)
        found = suspects.limit(2).collect()
        if len(found) < 2:
            break
    else:
        found = suspects.limit(1).collect()
    if not found or not _raises(query(suspects.drop("_hash"))):
        return ""
    row = found[0].asDict()
    cells = ", ".join(f"{name} {_plain(row[name])}" for name in [*key, *(n for n in row if n not in (*key, "_hash"))])
    return f" for the row {plain_line(cells, 300)}"


def _raises(frame: DataFrame) -> bool:
    try:
        frame.write.format("noop").mode("overwrite").save()
    except _FAILED as error:
        if is_about_rows(error):
            return True
        raise
    return False


def _plain(value: Any) -> str:
    return repr(value) if isinstance(value, str) else str(value)
