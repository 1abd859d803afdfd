"""The kernels of the aligned kinds: each in a file of its own, chosen by the class of the kind."""

from __future__ import annotations

from typing import Any

from tidemark.arrow.kernels.windows.aligned.calendar import CalendarKernel
from tidemark.arrow.kernels.windows.aligned.cumulate import CumulateKernel
from tidemark.arrow.kernels.windows.aligned.hopping import HoppingKernel
from tidemark.arrow.kernels.windows.aligned.kernel import AlignedKernel
from tidemark.arrow.kernels.windows.aligned.tumbling import TumblingKernel
from tidemark.model.window.kinds import AlignedKind, Calendar, Cumulate, Hopping, Tumbling

KERNELS: dict[type[AlignedKind], type[AlignedKernel[Any]]] = {
    Tumbling: TumblingKernel,
    Hopping: HoppingKernel,
    Cumulate: CumulateKernel,
    Calendar: CalendarKernel,
}


def kernel_of(kind: AlignedKind) -> AlignedKernel[Any]:
    """The kernel of a kind."""
    return KERNELS[type(kind)](kind)
