"""A status with all that takes more than its own state: what corrections cost, how a collection follows others, and
the next step, which may be one of these."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from tidemark.jobs.queries.blocked import found_wrong
from tidemark.jobs.queries.follows import follows, follows_of, inputs_as_they_are
from tidemark.jobs.queries.reprocessing import reprocess_bytes
from tidemark.jobs.queries.status import Status, next_step, status
from tidemark.model.arrangement import Arrangement
from tidemark.plan.consume import Usable, usable
from tidemark.storage.log.log import Head, StateLog
from tidemark.storage.stores.store import ObjectStore


def whole_status(store: ObjectStore, log: StateLog, head: Head, newest: Callable[[str], Head | None]) -> Status:
    """The status at `head` as of now, nothing left out; `newest` gives the heads of other collections of its root."""
    costs = reprocess_bytes(store, head.state)
    following = next_step_among(head.state, newest)
    own = status(head, wrong=found_wrong(store, head.state))
    following_of = follows_of(head, log, newest)
    return replace(own, reprocess_bytes=costs, follows=following_of, next_step=following)


def next_step_among(state: Arrangement, newest: Callable[[str], Head | None]) -> str:
    """The command that moves a collection on, be it one of another collection. A derived one that has consumed all that
    its inputs report moves on with the one it waits for, or else with the least complete that has not ended; `newest`
    gives their heads."""
    own = next_step(state)
    if own != f"tidemark correct {state.collection.name}":
        return own
    inputs = inputs_as_they_are(state, newest)
    seen = follows(state, inputs)
    if seen.due:
        return own
    ended = {found.name for one in inputs if isinstance(found := usable(one), Usable) and found.ended}
    going_on = [one for one in seen.inputs if one.name not in ended] or seen.inputs
    first = seen.waits_for or min(going_on, key=lambda one: one.complete_below).name
    given = next(one.state for one in inputs if one.name == first)
    return next_step_among(given, newest) if given else own
