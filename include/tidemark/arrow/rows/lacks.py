"""What `_lacks` says of a fact: what the images of its message do not have (docs/decisions/0084)."""

from __future__ import annotations

from collections.abc import Sequence

ONLY_KEY = "*"
"""In `_lacks`: of a before-image no more is known than its key; values that it has are guessed."""
BEFORE = "-"
"""In `_lacks`: the before-image of an update. What it replaced is whatever was there."""


def lacking(ids: Sequence[int], *, before: bool = False) -> str:
    """What `_lacks` has of an image without the columns of some ids, and of an update perhaps its before-image."""
    return ",".join([*([BEFORE] if before else []), *map(str, ids)])
