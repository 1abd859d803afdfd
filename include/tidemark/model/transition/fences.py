"""Of the attempts at one step of one interval only the newest may commit."""

from __future__ import annotations

from dataclasses import replace

from tidemark.model.arrangement import Arrangement, Fence
from tidemark.model.change import Attempted, Change
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
    """Why an attempt must stop, or None. `overtaken` says what the state does not hold any more."""
    holder = state.fence(fence.step, fence.interval)
    if holder == fence.token or (holder is None and fence.unannounced):
        return None
    return _by(fence, holder or "a finished one")


def overtaken(mine: Change, theirs: Change) -> FencedOff | None:
    """Why an attempt that is announced by nothing must stop after `theirs`, committed since it planned: a newer one has
    begun, which may have finished since and left no fence. None if it need not."""
    fence = getattr(mine, "fence", None)
    if not isinstance(fence, Fence) or not fence.unannounced or not isinstance(theirs, Attempted):
        return None
    same = (fence.step, fence.interval) == (theirs.fence.step, theirs.fence.interval)
    return _by(fence, theirs.fence.token) if same and fence.token != theirs.fence.token else None


def _by(fence: Fence, other: str) -> FencedOff:
    return FencedOff(f"{fence.step} of {fence.interval}: attempt {fence.token} was overtaken by {other}")
