"""About how large a definition is, before it is analysed: who has many to look at leaves the largest to others."""

from __future__ import annotations

from tidemark.definition.parse import parsed, tokens_of
from tidemark.model.derived import Definition

_EXPRESSION = 20
"""Nodes that an expression of windows is worth besides its own tokens: each is resolved by itself."""


def effort(definition: Definition) -> int:
    """Nodes of a select with its WITH written out; of windows the tokens of their expressions, and more for each; 0 for
    a function in Python, which is not analysed. Raises InvalidUsage for a text that is no definition."""
    if definition.windows is not None:
        windows = definition.windows
        texts = [windows.where, *(text for one in windows.aggregates for text in (one.of, one.where))]
        return sum(len(tokens_of(text)) + _EXPRESSION for text in texts if text)
    if definition.function:
        return 0
    return sum(1 for _ in parsed(definition.select).walk())
