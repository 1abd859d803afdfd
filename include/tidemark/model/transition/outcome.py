"""What becomes of a change: it fits, it is there already, it no longer fits, or somebody else has taken over."""

from __future__ import annotations

from dataclasses import dataclass

from tidemark.model.arrangement import Arrangement


@dataclass(frozen=True)
class Applied:
    """The change fits: the state after it (None: the collection was dropped)."""

    state: Arrangement | None


@dataclass(frozen=True)
class AlreadyApplied:
    """The state already holds what the change says."""


@dataclass(frozen=True)
class Stale:
    """The change no longer fits; plan and execute again."""

    reason: str


@dataclass(frozen=True)
class Overtaken(Stale):
    """What was committed since the plan does not go with the change, though the state may not show it; planned again
    it may fit."""


@dataclass(frozen=True)
class FencedOff:
    """A newer attempt has taken over; stop."""

    reason: str


Outcome = Applied | AlreadyApplied | Stale | FencedOff
