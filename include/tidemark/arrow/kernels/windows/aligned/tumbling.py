"""Tumbling windows of many instants."""

from __future__ import annotations

from tidemark.arrow.kernels.windows.aligned.kernel import SideBySideKernel, grid, plus
from tidemark.arrow.rows.columns import Ints
from tidemark.model.window.kinds import Tumbling


class TumblingKernel(SideBySideKernel[Tumbling]):
    def earliest_after(self, at: Ints) -> tuple[Ints, Ints]:
        start = grid(at, self.kind.size, self.kind.offset)
        return start, plus(start, self.kind.size)
