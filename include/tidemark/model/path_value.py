"""What the path of a file says: the value of a folder `name=value`, as Hive writes it, or the group of a pattern."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import unquote

from tidemark.errors import InvalidUsage

GROUP = "value"
"""What the group of a pattern is called."""
NULL = "__HIVE_DEFAULT_PARTITION__"
MAX_PATTERN = 500


def is_pattern(said: str) -> bool:
    """Whether it is a pattern, and not the name of a folder."""
    return "(" in said


def check(said: str) -> None:
    """Raise InvalidUsage for what is neither the name of a folder nor a pattern with one group."""
    if is_pattern(said):
        named(said)
    elif not said or {*said} & {*"/="} or len(said) > MAX_PATTERN:
        raise InvalidUsage(f"{said[:40]!r} is neither the name in a folder NAME=VALUE, nor a pattern with one group ()")


def named(pattern: str) -> str:
    """A pattern whose one group is called GROUP. Raises InvalidUsage where it has none, or several."""
    groups = [at for at in _opened(pattern) if pattern[at + 1 : at + 2] != "?"]
    if len(groups) != 1 or len(pattern) > MAX_PATTERN:
        most = f"of at most {MAX_PATTERN} characters"
        raise InvalidUsage(f"a pattern {most} with one group (...) is expected, for others write (?:...); {pattern!r}")
    return f"{pattern[: groups[0]]}(?P<{GROUP}>{pattern[groups[0] + 1 :]}"


def _opened(pattern: str) -> Iterator[int]:
    """Where groups are opened."""
    at, is_set = 0, False
    while at < len(pattern):
        if pattern[at] == "(" and not is_set:
            yield at
        is_set = pattern[at] == "[" or (is_set and pattern[at] != "]")
        at += 2 if pattern[at] == "\\" else 1


def folder_values(path: str, name: str) -> list[str | None]:
    """The values of the folders of a path that have a name; None for null."""
    folders = (folder.partition("=") for folder in path.split("/")[:-1])
    values = [unquote(value) for key, equals, value in folders if equals and unquote(key) == name]
    return [None if value == NULL else value for value in values]
