"""How a definition is refused."""

from __future__ import annotations

from tidemark.errors import InvalidUsage


def refused(why: str) -> InvalidUsage:
    """The refusal of a definition, for which `why` is a predicate: `has no FROM; name an input`."""
    return InvalidUsage(f"the select {why}")
