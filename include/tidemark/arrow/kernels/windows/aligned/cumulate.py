"""Cumulating windows of many instants."""

from __future__ import annotations

from tidemark.arrow.kernels.windows.aligned.kernel import AlignedKernel, AssignedWindows, grid, plus, repeated
from tidemark.arrow.rows.columns import Ints
from tidemark.model.window.kinds import Cumulate


class CumulateKernel(AlignedKernel[Cumulate]):
    def windows_at(self, at: Ints) -> AssignedWindows:
        first = grid(at, self.kind.size, self.kind.offset)
        steps = (at - first) // self.kind.step
        of, each = repeated(self.kind.most_windows - steps)
        start = first[of]
        return AssignedWindows(of, start, plus(start, (steps[of] + each + 1) * self.kind.step))

    def earliest_after(self, at: Ints) -> tuple[Ints, Ints]:
        step = grid(at, self.kind.step, self.kind.offset)
        return grid(at, self.kind.size, self.kind.offset), plus(step, self.kind.step)
