"""Names that columns of a key or a value cannot have, because readers could not distinguish them from others.

`diff` is what `changes` calls a row's multiplicity; all other columns that Tidemark adds begin with an underscore,
which no declared one may. Spark does not distinguish `Status` from `status`, so no collection may have both.
Collections that have such columns from before keep them; none gets another.
"""

from __future__ import annotations

from collections.abc import Collection as Names
from collections.abc import Sequence

from tidemark.errors import InvalidUsage

RESERVED = frozenset({"diff"})


def problem(names: Sequence[str], kept: Names[str] = ()) -> tuple[int, str] | None:
    """The position in `names` of the first that cannot be used, and why, with a name that can; None if all can.

    Those in `kept` are there already, and stay. A name listed twice in one spelling is refused by `Collection` itself.
    """
    taken: dict[str, str] = {name.lower(): name for name in names if name in kept}
    for at, name in enumerate(names):
        if name in kept:
            continue
        low = name.lower()
        if low in RESERVED:
            return at, f"column {name} is reserved: `changes` calls its count diff; call it {_free(name, names)}"
        if (other := taken.setdefault(low, name)) != name:
            free = _free(name, names)
            return at, f"columns {other} and {name} differ in case only, which Spark ignores; call one {free}"
    return None


def check(names: Sequence[str], kept: Names[str] = ()) -> None:
    """Raise InvalidUsage where `problem` finds one."""
    if wrong := problem(names, kept):
        raise InvalidUsage(wrong[1])


def _free(name: str, names: Sequence[str]) -> str:
    taken = {other.lower() for other in names}
    number, free = 1, f"{name}_value"
    while free.lower() in taken:
        number += 1
        free = f"{name}_value{number}"
    return free
