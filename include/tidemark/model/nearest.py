"""The valid name nearest to a wrong one."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import Any

LONGEST = 200


def similar(name: str, valid: Mapping[str, Any] | tuple[str, ...] | list[str]) -> str | None:
    """The valid name most like a wrong one, if one is alike."""
    # Likeness takes the product of both lengths, and what is this long is like nothing.
    near = difflib.get_close_matches(name, list(valid), n=1, cutoff=0.5) if len(name) <= LONGEST else []
    return near[0] if near else None


def nearest(name: str, valid: Mapping[str, Any] | tuple[str, ...] | list[str]) -> str:
    """A hint to end a refusal with: the valid name most like a wrong one, else all that are valid."""
    if near := similar(name, valid):
        return f"; did you mean {near!r}?"
    return f"; valid are {', '.join(valid)}" if valid else ""
