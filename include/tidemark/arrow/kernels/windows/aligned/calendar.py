"""Units of the calendar of many instants: those that the law has of each day of UTC with instants, from its beginning
to its end (model/window/calendar.py)."""

from __future__ import annotations

import numpy as np

from tidemark.arrow.kernels.aggregates.instants import DAY
from tidemark.arrow.kernels.aggregates.sums import Overflowed
from tidemark.arrow.kernels.windows.aligned.kernel import SideBySideKernel, beyond
from tidemark.arrow.rows.columns import Ints
from tidemark.model.window.kinds import Calendar

_LEAST, _MOST = -(2**63), 2**63 - 1
_MOST_DAYS = 2**14
"""Days that have instants of one batch: a unit of the calendar is looked for day by day, in some microseconds."""


class CalendarKernel(SideBySideKernel[Calendar]):
    @property
    def most_rows(self) -> int:
        return _MOST_DAYS

    def earliest_after(self, at: Ints) -> tuple[Ints, Ints]:
        days = np.unique(at // DAY)
        if len(days) > _MOST_DAYS:
            raise Overflowed(f"rows have more than {_MOST_DAYS:,} days")
        units, upto = list[tuple[int, int]](), None
        for first in (day * DAY for day in days.tolist()):
            upto = first if upto is None else max(first, upto)
            while upto < first + DAY:
                units.append(self.kind.bounds_at(upto))
                upto = units[-1][1]
        if units and (units[0][0] < _LEAST or units[-1][1] > _MOST):
            raise beyond(int(at.min()) if units[0][0] < _LEAST else int(at.max()))
        bounds = np.array(units, np.int64).reshape(-1, 2)
        which = np.searchsorted(bounds[:, 0], at, "right") - 1
        return bounds[which, 0], bounds[which, 1]
