"""Definitions by windows of any kind, analysed."""

from __future__ import annotations

from functools import lru_cache

from tidemark.definition.recipe import InputShape, Recipe
from tidemark.definition.windows import aligned
from tidemark.definition.windows.data_driven import analysed_data_driven
from tidemark.model.derived import Refresh
from tidemark.model.window.kinds import AlignedKind
from tidemark.model.window.windows import Windows


@lru_cache(maxsize=64)
def analysed_windows(windows: Windows, shape: InputShape, refresh: Refresh = Refresh.AUTO) -> Recipe:
    """What to compute for windows over an input of this shape.

    Raises InvalidUsage for columns that are none of the input's or have a wrong type, and for expressions that a select
    may not hold either. What was analysed is known to the process, as of a select."""
    if isinstance(windows.kind, AlignedKind):
        return aligned.analysed_windows(windows, shape, refresh)
    return analysed_data_driven(windows, shape, refresh)
