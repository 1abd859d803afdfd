"""The SQL of definitions: Spark's, in which names keep the case they are written in."""

from __future__ import annotations

from typing import Any, ClassVar

from sqlglot import exp
from sqlglot.dialects.dialect import NormalizationStrategy
from sqlglot.dialects.spark import Spark
from sqlglot.parsers.spark import SparkParser

_WITH_WORDS_INSIDE = frozenset({"CAST", "EXTRACT", "OVERLAY", "POSITION", "SUBSTR", "SUBSTRING", "TRIM", "TRY_CAST"})
"""Functions whose arguments are not only separated by commas: `CAST(x AS int)`."""


class DefinitionSql(Spark):
    """Spark SQL, to be written again as it was read: functions are known by their names alone, because what sqlglot has
    for a function it knows may be written as another one, which is not quite the same."""

    NORMALIZATION_STRATEGY = NormalizationStrategy.CASE_SENSITIVE

    class Tokenizer(Spark.Tokenizer):
        # Since Spark 4.0 'a''b' is one text with a quote in it, no longer two texts side by side.
        STRING_ESCAPES: ClassVar[list[str]] = ["\\", "'"]

    class Parser(SparkParser):
        FUNCTIONS: ClassVar[dict[str, Any]] = {}
        FUNCTION_PARSERS: ClassVar[dict[str, Any]] = {
            name: parser for name, parser in SparkParser.FUNCTION_PARSERS.items() if name in _WITH_WORDS_INSIDE
        }
        ARRAY_CONSTRUCTORS: ClassVar[dict[str, Any]] = {}  # array(1, 2)[0] is an element of it

        def _warn_unsupported(self) -> None:
            """Nothing: it would log a second line of what is refused in one."""


def text_of(node: exp.Expr) -> str:
    """The SQL of a node for an executor: every name quoted, so that none is taken for a word of the language."""
    return node.sql(dialect=DefinitionSql, identify=True, comments=False)


def shown(node: exp.Expr) -> str:
    """The SQL of a node for people."""
    text = node.sql(dialect=DefinitionSql, comments=False)
    return text if len(text) <= 80 else f"{text[:60]} … {text[-15:]}"


def place(node: exp.Expr) -> str:
    """Where a node is in the text, to end a sentence with: ` (line 3)`; empty if that is not known."""
    lines = [line for part in node.walk() if isinstance(line := part.meta.get("line"), int)]
    return f" (line {min(lines)})" if lines else ""
