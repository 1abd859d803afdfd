"""Types of expressions, as far as they are sure: what decides how a sum is computed, and whether join keys are alike.

A type is Spark's name of it (`bigint`, `double`, `decimal(12, 2)`); an empty one is not known.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from sqlglot import exp

from tidemark.definition.dialect import DefinitionSql
from tidemark.definition.functions import name_of

UNKNOWN = ""
WHOLE_NUMBERS = frozenset({"tinyint", "smallint", "int", "bigint"})
FLOATS = frozenset({"float", "double"})
_DECIMAL = re.compile(r"decimal\((\d+),\s*(\d+)\)")
_INTS = frozenset(
    {
        "array_position", "array_size", "ascii", "bit_count", "bit_length", "cardinality", "char_length",
        "character_length", "date_diff", "datediff", "day", "dayofmonth", "dayofweek", "dayofyear",
        "dense_rank", "find_in_set", "hash", "hour", "instr", "len", "length", "levenshtein", "locate",
        "minute", "month", "octet_length", "position", "quarter", "rank", "regexp_count", "regexp_instr",
        "row_number", "second", "size", "unix_date", "weekday", "weekofyear", "year",
    }
)  # fmt: skip
_BIGINTS = frozenset(
    {
        "approx_count_distinct", "bigint", "count", "count_if", "crc32", "factorial", "timestampdiff",
        "to_unix_timestamp", "unix_micros", "unix_millis", "unix_seconds", "unix_timestamp", "xxhash64",
    }
)  # fmt: skip
_DOUBLES = frozenset(
    {
        "acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "cbrt", "cos", "cosh", "cot", "csc",
        "degrees", "double", "e", "exp", "expm1", "hypot", "ln", "log", "log10", "log1p", "log2",
        "months_between", "pi", "pow", "power", "radians", "rint", "sec", "sign", "signum", "sin", "sinh",
        "sqrt", "tan", "tanh",
    }
)  # fmt: skip
_STRINGS = frozenset(
    {
        "base64", "btrim", "concat_ws", "date_format", "from_unixtime", "get_json_object", "hex", "initcap",
        "lcase", "lower", "ltrim", "md5", "regexp_extract", "regexp_replace", "rtrim", "sha", "sha1", "sha2",
        "soundex", "string", "substr", "substring", "substring_index", "to_json", "translate", "trim", "ucase",
        "upper",
    }
)  # fmt: skip
_DATES = frozenset({"add_months", "date", "last_day", "make_date", "next_day", "to_date", "trunc"})
_TIMESTAMPS = frozenset({"date_trunc", "timestamp_micros", "timestamp_millis", "timestamp_seconds"})
_BY_NAME = {
    **dict.fromkeys(_INTS, "int"),
    **dict.fromkeys(_BIGINTS, "bigint"),
    **dict.fromkeys(_DOUBLES, "double"),
    **dict.fromkeys(_STRINGS, "string"),
    **dict.fromkeys(_DATES, "date"),
    **dict.fromkeys(_TIMESTAMPS, "timestamp"),
    "float": "float",
    "int": "int",
    "smallint": "smallint",
    "tinyint": "tinyint",
    "boolean": "boolean",
    "timestamp": "timestamp",
}
_OF_FIRST = frozenset({"abs", "bround", "max", "min", "negative", "positive", "round", "lag", "lead", "nanvl"})
_OF_ALL = frozenset({"coalesce", "greatest", "ifnull", "least", "nvl"})

Columns = Mapping[tuple[str, str], str]
"""Types of columns by the table's name and their own."""


def type_of(node: exp.Expr, columns: Columns) -> str:
    """The type of an expression over these columns; UNKNOWN where it is not sure."""
    match node:
        case exp.Column():
            return columns.get((node.table, node.name), UNKNOWN)
        case (
            exp.Alias() | exp.Paren() | exp.Neg() | exp.Filter() | exp.Window() | exp.IgnoreNulls() | exp.RespectNulls()
        ):
            return type_of(node.this, columns)
        case exp.Cast():
            return node.to.sql(dialect=DefinitionSql).lower()
        case exp.Literal():
            return "string" if node.is_string else _of_number(str(node.this))
        case exp.Boolean() | exp.Predicate() | exp.And() | exp.Or() | exp.Not():
            return "boolean"
        case exp.Div():
            return _quotient(type_of(node.this, columns), type_of(node.expression, columns))
        case exp.IntDiv():
            return "bigint"
        case exp.Add() | exp.Sub() | exp.Mul() | exp.Mod():
            return _arithmetic(type_of(node.this, columns), type_of(node.expression, columns))
        case exp.Case():
            given = [one.args["true"] for one in node.args["ifs"]]
            return _common(type_of(one, columns) for one in [*given, node.args.get("default")] if not _null(one))
        case exp.If():
            given = [node.args["true"], node.args.get("false")]
            return _common(type_of(one, columns) for one in given if not _null(one))
        case exp.DPipe():
            return "string"
        case exp.Func():
            return _called(node, columns)
    return UNKNOWN


def is_decimal(of: str) -> bool:
    return of.startswith("decimal")


def decimal_digits(of: str) -> tuple[int, int] | None:
    """Precision and scale of a decimal type, if they are known."""
    match = _DECIMAL.fullmatch(of)
    return (int(match[1]), int(match[2])) if match else None


def is_number(of: str) -> bool:
    return of in WHOLE_NUMBERS or of in FLOATS or is_decimal(of)


def _null(node: exp.Expr | None) -> bool:
    return node is None or isinstance(node, exp.Null)


def _of_number(text: str) -> str:
    if "e" in text.lower():
        return "double"
    if "." in text:
        scale = len(text) - text.index(".") - 1
        return f"decimal({max(len(text.replace('.', '').lstrip('0')), scale, 1)}, {scale})"
    return "int" if int(text) < 2**31 else "bigint" if int(text) < 2**63 else "decimal"


def _called(node: exp.Func, columns: Columns) -> str:
    name = name_of(node)
    arguments = (
        list(node.expressions) if isinstance(node, exp.Anonymous) else [one for one in node.args.values() if one]
    )
    if name in _BY_NAME:
        return _BY_NAME[name]
    if name in _OF_FIRST and arguments and isinstance(arguments[0], exp.Expr):
        type_ = type_of(arguments[0], columns)
        return "decimal" if name in ("round", "bround") and is_decimal(type_) else type_
    if name in _OF_ALL:
        return _common(type_of(one, columns) for one in arguments if isinstance(one, exp.Expr) and not _null(one))
    if name == "nullif" and isinstance(arguments[0], exp.Expr):
        return type_of(arguments[0], columns)
    if name in ("ceil", "ceiling", "floor"):
        type_ = type_of(arguments[0], columns)
        return "bigint" if len(arguments) == 1 and (type_ in FLOATS or type_ in WHOLE_NUMBERS) else UNKNOWN
    if name == "sum":
        return sum_type(type_of(arguments[0], columns))
    if name in ("avg", "mean"):
        type_ = type_of(arguments[0], columns)
        return "double" if type_ in FLOATS or type_ in WHOLE_NUMBERS else "decimal" if is_decimal(type_) else UNKNOWN
    if name in ("mod", "pmod") and len(arguments) == 2:
        return _arithmetic(type_of(arguments[0], columns), type_of(arguments[1], columns))
    return UNKNOWN


def sum_type(of: str) -> str:
    """The type of a sum of values of a type."""
    if of in WHOLE_NUMBERS:
        return "bigint"
    if of in FLOATS:
        return "double"
    if digits := decimal_digits(of):
        return f"decimal({min(digits[0] + 10, 38)}, {digits[1]})"
    return "decimal" if is_decimal(of) else UNKNOWN


def _common(types: Iterable[str]) -> str:
    found = set(types)
    if len(found) == 1:
        return found.pop()
    if not found or not all(map(is_number, found)):
        return UNKNOWN
    if found & FLOATS:
        return "double"
    if any(map(is_decimal, found)):
        return "decimal"
    return next(one for one in ("bigint", "int", "smallint", "tinyint") if one in found)


def _arithmetic(left: str, right: str) -> str:
    if not is_number(left) or not is_number(right):
        return UNKNOWN
    type_ = _common((left, right))
    return "decimal" if is_decimal(type_) else type_


def _quotient(left: str, right: str) -> str:
    if not is_number(left) or not is_number(right):
        return UNKNOWN
    type_ = _common((left, right))
    return "decimal" if is_decimal(type_) else "double"
