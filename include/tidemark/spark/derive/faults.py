"""What the JVM throws while it evaluates a definition for a row, or plans it, and Spark has no condition for: a
definition's doing all the same, in one line of the thousands of characters it comes with."""

from __future__ import annotations

import re

from tidemark.errors import plain_line

MOST = 300
"""Characters of a fault that are shown."""
_FRAMES = 12
"""Frames of a throwable among which its cause is: an evaluated expression calls a library, and that throws."""
_THROWN = re.compile(r"^(?:Caused by: |: )?((?:[a-z]\w*\.)+[A-Z]\w*)(?:[:;] (.*))?$")
_OF_EXPRESSIONS = frozenset(
    {
        "java.lang.ArithmeticException",
        "java.lang.ArrayIndexOutOfBoundsException",
        "java.lang.IllegalArgumentException",
        "java.lang.IndexOutOfBoundsException",
        "java.lang.NegativeArraySizeException",
        "java.lang.NumberFormatException",
        "java.lang.RuntimeException",
        "java.lang.StringIndexOutOfBoundsException",
        "java.lang.UnsupportedOperationException",
        "java.time.DateTimeException",
        "java.time.zone.ZoneRulesException",
        "java.util.regex.PatternSyntaxException",
    }
)
"""What an expression throws for a value, every time. Memory, disks, networks and interrupts are none of these."""
_EVALUATED = re.compile(r"at org\.apache\.spark\.(sql\.catalyst\.(expressions|util)|unsafe\.types)\.")
_PLANNED = re.compile(r"at org\.apache\.spark\.sql\.(catalyst\.(optimizer|planning)|execution\.SparkStrategies)\b")
_AT_WORK = "Job aborted due to stage failure"


def fault_of_a_row(error: BaseException) -> str:
    """What an expression threw for a value, in one line; "" if it was not an expression."""
    throwables = _throwables(error)
    for at, (name, words, frames) in enumerate(throwables):
        if name in _OF_EXPRESSIONS and any(_EVALUATED.match(frame) for frame in frames[:_FRAMES]):
            deepest = throwables[-1][1] if at < len(throwables) - 1 else ""
            text = words if not deepest or deepest in words else f"{words}: {deepest}"
            return plain_line(text or name.rpartition(".")[2], MOST)
    return ""


def fault_of_planning(error: BaseException) -> str:
    """What Spark threw as it planned a query, in one line; "" if it was at work by then."""
    if _AT_WORK in str(error):
        return ""
    throwables = _throwables(error)
    planned = any(_PLANNED.match(frame) for _, _, frames in throwables for frame in frames)
    return plain_line(throwables[-1][1] or throwables[-1][0], MOST) if planned else ""


def _throwables(error: BaseException) -> list[tuple[str, str, list[str]]]:
    """The class, words and frames of each throwable of an error's text, the outermost first."""
    found: list[tuple[str, str, list[str]]] = []
    text = f"{error}\n{getattr(error, '_stackTrace', '') or ''}"
    for line in map(str.strip, text.splitlines()):
        if line.startswith("at "):
            if found:
                found[-1][2].append(line)
        elif match := _THROWN.match(line):
            found.append((match[1], match[2] or "", []))
    return found
