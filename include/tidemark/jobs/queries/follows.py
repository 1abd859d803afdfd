"""How a derived collection follows its inputs: how far each was consumed, what it has beyond, and who is waited for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Literal

from tidemark.model.arrangement import Arrangement
from tidemark.model.change import Corrected
from tidemark.model.instant import format_instant
from tidemark.plan.consume import Usable, laggard, usable
from tidemark.plan.correct import InputState, Waits
from tidemark.storage.log.log import Head, StateLog

LOOKED_BACK = 200
"""Versions looked through for the newest run: about twenty runs."""


@dataclass(frozen=True)
class FollowedInput:
    """An input: up to where it was `consumed` (None: it was not), and `readable` and complete there (0: it cannot be
    read yet). All of it was consumed, or it has more (`behind`), or it is waited for (`lags`)."""

    name: str
    consumed: int | None
    readable: int
    complete_below: int
    status: Literal["all", "behind", "lags"]

    def as_dict(self) -> dict[str, Any]:
        """JSON values; times also as ISO 8601 under `<name>_text`, None where there is none."""
        times = {"consumed": self.consumed, "readable": self.readable, "complete_below": self.complete_below}
        texts = {f"{name}_text": format_instant(time) if time else None for name, time in times.items()}
        return {"name": self.name, **times, **texts, "status": self.status}


@dataclass(frozen=True)
class Follows:
    """How a derived collection follows its inputs. `waits_for` is the input without which it goes no further, and `why`
    says what of it is missing (None and "": none); `due` says that a run of `correct` has something to do; `last` is
    the newest of its runs, in words ("": none of late)."""

    inputs: tuple[FollowedInput, ...]
    waits_for: str | None
    why: str
    due: bool
    last: str = ""

    def as_dict(self) -> dict[str, Any]:
        """JSON values."""
        inputs = [one.as_dict() for one in self.inputs]
        following = {"waits_for": self.waits_for, "why": self.why, "due": self.due, "last": self.last}
        return {"inputs": inputs, **following}


def follows_of(head: Head, log: StateLog, newest: Callable[[str], Head | None]) -> Follows | None:
    """How the collection of `head` follows its inputs as they are now, of which `newest` gives the heads (None: there
    is no such collection); None of a collection that lands."""
    state = head.state
    if not state.collection.is_derived:
        return None
    return follows(state, inputs_as_they_are(state, newest), last=last_run(log, head.version))


def inputs_as_they_are(state: Arrangement, newest: Callable[[str], Head | None]) -> list[InputState]:
    """The inputs of a derived collection, of which `newest` gives the heads (None: there is no such collection)."""
    heads = [(name, newest(name)) for name in state.collection.derived.inputs]
    return [
        InputState(name, found.arrangement, found.version) if found else InputState(name, None, 0)
        for name, found in heads
    ]


def follows(state: Arrangement, inputs: Sequence[InputState], *, last: str = "") -> Follows:
    """As `follows_of`, of states at hand."""
    from tidemark.jobs.derived import planned  # what reads definitions: not for the status of one that lands

    plan = planned(state, inputs)
    waits = plan if isinstance(plan, Waits) else None
    found = [usable(given) for given in inputs]
    if plan is None:
        waits = laggard(state, [one for one in found if isinstance(one, Usable)])
    lags = waits.laggard if waits else None
    followed = tuple(_followed(state, given, one, lags) for given, one in zip(inputs, found, strict=True))
    due = plan is not None and not isinstance(plan, Waits)
    return Follows(followed, lags, waits.reason if waits else "", due, last)


def last_run(log: StateLog, version: int) -> str:
    """The newest run of `correct` at or before a version, in words."""
    records = islice(log.history(version), LOOKED_BACK)
    return next((record.change.words for record in records if isinstance(record.change, Corrected)), "")


def _followed(state: Arrangement, given: InputState, one: Usable | Waits, laggard: str | None) -> FollowedInput:
    recorded = state.consumed.of(given.name) if state.consumed else None
    consumed = recorded.upper if recorded else None
    if isinstance(one, Waits):
        return FollowedInput(given.name, consumed, 0, 0, "lags")
    all_of_it = consumed is not None and consumed >= one.upper
    progress: Literal["all", "behind", "lags"] = "all" if all_of_it else "behind"
    return FollowedInput(
        given.name, consumed, one.upper, one.known_complete, "lags" if given.name == laggard else progress
    )
