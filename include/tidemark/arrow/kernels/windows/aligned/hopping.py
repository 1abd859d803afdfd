"""Hopping windows of many instants."""

from __future__ import annotations

import numpy as np

from tidemark.arrow.kernels.windows.aligned.kernel import AlignedKernel, AssignedWindows, grid, minus, plus, repeated
from tidemark.arrow.rows.columns import Ints
from tidemark.model.window.kinds import Hopping


class HoppingKernel(AlignedKernel[Hopping]):
    def windows_at(self, at: Ints) -> AssignedWindows:
        size, advance = self.kind.size, self.kind.advance
        newest = grid(at, advance, self.kind.offset)
        many = np.maximum((size - 1 - (at - newest)) // advance + 1, 0)
        of, each = repeated(many)
        start = minus(newest[of], (many[of] - 1 - each) * advance)
        return AssignedWindows(of, start, plus(start, size))

    def earliest_after(self, at: Ints) -> tuple[Ints, Ints]:
        before = grid(minus(at, self.kind.size), self.kind.advance, self.kind.offset)
        start = plus(before, self.kind.advance)
        return start, plus(start, self.kind.size)
