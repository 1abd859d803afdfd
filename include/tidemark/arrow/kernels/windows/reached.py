"""Which sliding windows a change can reach, and which rows define these.

An example: windows are 10 long, and something changed at 100. A window that holds 100 starts in [90, 100], and a window
that a row at 100 defines starts at 90 or 101. So those that start in [90, 101] may differ, and they follow from the
rows in [89, 111]: a row at 89 defines the window that starts at 90, and the last window ends at 111. Where changes are
near each other this is one region.
"""

from __future__ import annotations

import numpy as np

from tidemark.arrow.kernels.windows.regions import Regions, regions
from tidemark.arrow.rows.columns import Ints


def starts_reached(group: Ints, at: Ints, size: int) -> Regions:
    """Where the windows of a `size` start that may differ where rows at some instants of groups came or went; groups
    are numbered from 0."""
    return regions(group, at - size, at + 1, np.ones(len(at), bool))


def rows_around(starts: Regions, size: int) -> Regions:
    """The regions of the rows that are in windows of a `size` which start in some regions, or that define these
    windows. Windows of these rows that start elsewhere may lack some."""
    return regions(starts.group, starts.first - 1, starts.upto + size, np.ones(len(starts.group), bool))
