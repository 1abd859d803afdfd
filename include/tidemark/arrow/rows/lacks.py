"""What `_lacks` says of a fact: what the images of its message do not have (docs/decisions/0084)."""

from __future__ import annotations

from collections.abc import Sequence

ONLY_KEY = "*"
"""In `_lacks`: of a before-image no more is known than its key; values that it has are guessed."""
BEFORE = "-"
"""In `_lacks`: the before-image of an update. What it replaced is whatever was there."""

READ = "r"
"""In `_lacks`: a row of a snapshot. Changes after it in the log count after it, though it may say a later time."""


def lacking(ids: Sequence[int], mark: str = "") -> str:
    """What `_lacks` has of an image without the columns of some ids, and with a mark."""
    return ",".join([*([mark] if mark else []), *map(str, ids)])
