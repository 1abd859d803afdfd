"""What is known of one column in a chunk: between which values all of its rows are."""

from __future__ import annotations

from dataclasses import dataclass

from tidemark.model.update import Scalar


@dataclass(frozen=True)
class Bounds:
    """The least and the greatest value of a column in a chunk, both included (None: it has none), and how many of its
    rows are null there. Bounds may be too wide, never too narrow."""

    first: Scalar
    last: Scalar
    nulls: int = 0


ALL_NULL = Bounds(None, None)
"""Of a chunk that has no value in the column."""
