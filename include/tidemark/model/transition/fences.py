"""Of the attempts at one step of one interval only the newest may commit."""

from __future__ import annotations

from dataclasses import replace

from tidemark.model.arrangement import Arrangement, Fence
from tidemark.model.change import (
    Attempted,
)
from tidemark.model.transition.outcome import AlreadyApplied, Applied, FencedOff, Outcome


def attempted(state: Arrangement, change: Attempted) -> Outcome:
    """The newest attempt fences off those before it."""
    fence = change.fence
    if state.fence(fence.step, fence.interval) == fence.token:
        return AlreadyApplied()
    return Applied(replace(state, fences=(*unfenced(state, fence), fence)))


def unfenced(state: Arrangement, fence: Fence) -> tuple[Fence, ...]:
    """The fences without the one of a step and interval, which has finished or is replaced."""
    return tuple(f for f in state.fences if (f.step, f.interval) != (fence.step, fence.interval))


def fenced_off(state: Arrangement, fence: Fence) -> FencedOff | None:
    """Why an attempt must stop, or None."""
    holder = state.fence(fence.step, fence.interval)
    if holder == fence.token:
        return None
    return FencedOff(
        f"{fence.step} of {fence.interval}: attempt {fence.token} was overtaken by {holder or 'a finished one'}"
    )
