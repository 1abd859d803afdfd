"""The valid name nearest to a wrong one."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import Any

LONGEST = 200


def nearest(name: str, valid: Mapping[str, Any] | tuple[str, ...] | list[str]) -> str:
    """A hint to end a refusal with: the valid name most like a wrong one, else all that are valid."""
    names = list(valid)
    # Likeness takes the product of both lengths, and what is this long is like nothing.
    near = difflib.get_close_matches(name, names, n=1, cutoff=0.5) if len(name) <= LONGEST else []
    if near:
        return f"; did you mean {near[0]!r}?"
    return f"; valid are {', '.join(names)}" if names else ""
