"""How the fields of a kind are written in a collection file: a field's type says it.

type           in a file                                          in a kind
Length         `1h`, how long a window is: at most 20,000,000d    microseconds
SomeLength     the same, or left out                              microseconds, or None
Distance       `1h`, between the starts or the ends of windows    microseconds
Offset         `15m`, or `-15m`                                   microseconds
ZoneName       `America/New_York`                                 a name of the tz database
bool           `true`                                             a bool
int            `2`                                                a whole number
a StrEnum      one of its values                                  a member

config/windows_kinds.py makes the sections of a collection file of them.
"""

from __future__ import annotations

from typing import Annotated

from tidemark.errors import InvalidUsage

Length = Annotated[int, "length"]
SomeLength = Annotated[int | None, "length"]
Distance = Annotated[int, "distance"]
Offset = Annotated[int, "offset"]
ZoneName = Annotated[str, "zone"]


def check_positive(what: str, length: int) -> None:
    """Raise InvalidUsage for a length that is not."""
    if length < 1:
        raise InvalidUsage(f"{what} is {length} µs; it must be 1 or more")
