"""Where a field is in a row: the names that lead to it, with dots between them, `source.ts_ms`.

A dot that belongs to a name is written DOT in a path, which no name has: collection files may not contain it.
"""

from __future__ import annotations

from collections.abc import Sequence

DOT = "\0"


def literal(name: str) -> str:
    """The path of a field of the row itself, whatever dots its name has."""
    return name.replace(".", DOT)


def steps(path: str) -> list[str]:
    """The names that lead to a field."""
    return [step.replace(DOT, ".") for step in path.split(".")]


def of_steps(names: Sequence[str]) -> str:
    """The path that some names are."""
    return ".".join(map(literal, names))


def shown(path: str) -> str:
    """A path for people, and as Parquet writes it."""
    return path.replace(DOT, ".")


def both(name: str) -> tuple[str, ...]:
    """The paths that a name may mean where rows are nested: a field of this name, then one within others."""
    return (literal(name), name) if "." in name else (name,)
