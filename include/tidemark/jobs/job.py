"""What every job is given, and the loop they share: plan, execute, apply, commit; after `stale`, again."""

from __future__ import annotations

import os
import socket
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, Generic, Protocol, TypeVar

from tidemark.errors import Contention, Fenced, InvalidUsage
from tidemark.jobs.computer import Computer, on_spark
from tidemark.model.arrangement import Fence
from tidemark.model.change import Attempted, Change
from tidemark.model.collection import NAME
from tidemark.model.interval import Interval
from tidemark.model.transition import Stale
from tidemark.storage import ObjectStore, open_store
from tidemark.storage.log.log import Committed, Head, StateLog

ROUNDS = 20
"""Times a job plans again after finding its result stale, before it gives way to others."""


C = TypeVar("C", bound=Change)
F = TypeVar("F")


class Outcome(StrEnum):
    """What became of a step. Of several steps together it is the first of these that any of them came to."""

    APPLIED = "applied"
    ALREADY_APPLIED = "already applied"
    PLANNED = "planned"
    WAITS = "waits"
    NOTHING_TO_DO = "nothing to do"


@dataclass(frozen=True)
class Proposal(Generic[C, F]):
    """What planning and executing against a head came to: the change to commit (None: nothing to do), and what was
    found on the way."""

    change: C | None
    found: F


@dataclass(frozen=True)
class Settled(Generic[C, F]):
    """The head that holds the change (or at which nothing was to do), the change, what was found when it was made, and
    whether this call made it so."""

    head: Head
    change: C | None
    found: F
    fresh: bool

    @property
    def outcome(self) -> Outcome:
        if self.change is None:
            return Outcome.NOTHING_TO_DO
        return Outcome.APPLIED if self.fresh else Outcome.ALREADY_APPLIED


class Runner(Protocol):
    """Runs kernels over tasks, wherever that is. Answers come in the order of the tasks, each from one attempt only."""

    def run(self, kernel: str, tasks: Sequence[Any]) -> list[Any]:
        """The answers of `kernel` (see tidemark/arrow/kernels/registry.py) to each task."""
        ...

    @property
    def parallelism(self) -> int:
        """How many tasks run at once."""
        ...


def fresh_id() -> str:
    """A name nobody else uses."""
    return uuid.uuid4().hex


def writer_name() -> str:
    """Who commits, for people reading the log: host and process."""
    return f"{socket.gethostname()}:{os.getpid()}"


@dataclass
class Job:
    """One attempt at one step of one collection.

    `runner` is called only when data must be read, so that a step without such work never starts a JVM; `attempt` is
    the fencing token, and `first` says that none before it of the same run can be alive; `note` shows progress.
    `computer_on` makes of the runner what computes derived collections; `beside` opens the log of a collection below
    the same root (None: where this one's store says it is), `all_names` are those of the collections there.
    """

    store: ObjectStore
    log: StateLog
    runner: Callable[[], Runner]
    attempt: str
    new_id: Callable[[], str] = fresh_id
    note: Callable[[str], None] = field(default=lambda text: None)
    first: bool = False
    computer_on: Callable[[Callable[[], Runner]], Computer] = on_spark
    beside: Callable[[str], StateLog] | None = None
    all_names: Callable[[], Sequence[str]] | None = None
    _own_fences: set[Fence] = field(default_factory=set)
    _near: dict[str, StateLog] = field(default_factory=dict)

    @property
    def computer(self) -> Computer:
        """What computes a derived collection; the runner is called if that takes one."""
        return self.computer_on(self.runner)

    def neighbour(self, name: str) -> Job:
        """A job on another collection below the same root: to read it, and to place holds on it. Its log is opened
        once: what was loaded of it is gone on from."""
        log = self._near.get(name)
        if log is None:
            log = self.beside(name) if self.beside else replace(self.log, store=_neighbour_store(self.store.url, name))
            self._near[name] = log
        return replace(self, store=log.store, log=log, first=False, _own_fences=set())

    def fenced(self, head: Head, step: str, interval: Interval) -> tuple[Head, Fence]:
        """Make this attempt the one that may commit `step` of `interval`, and return the head that says so.

        An attempt takes over once, when it starts: planning again after that it must still hold the fence, else it was
        overtaken (Fenced). The first attempt of a run that finds no fence writes no version to set one; it must find
        none later either.
        """
        fence, quiet = (Fence(step, interval, self.attempt, unannounced) for unannounced in (False, True))
        holder = head.state.fence(step, interval)
        if (fence in self._own_fences and holder != self.attempt) or (quiet in self._own_fences and holder is not None):
            raise Fenced(
                f"{step} of {interval}: attempt {self.attempt} was overtaken; a newer one runs or has finished"
            )
        if self.first and holder is None:
            self._own_fences.add(quiet)
            return head, quiet
        committed = self.log.commit(head, Attempted(fence))
        if isinstance(committed, Stale):
            raise Contention(committed.reason)
        self._own_fences.add(fence)
        return committed.head, fence

    def commit_until_fit(self, change_for: Callable[[Head], C | None]) -> Settled[C, None]:
        """As `settle`, where nothing is found but the change."""
        return self.settle(lambda head: Proposal(change_for(head), None))

    def settle(self, propose: Callable[[Head], Proposal[C, F]]) -> Settled[C, F]:
        """Plan and execute (`propose`) against the newest head, and commit; after `stale`, all over.

        Raises Contention after ROUNDS of that, and what `propose` and `StateLog.commit` raise.
        """
        reason = ""
        for _ in range(ROUNDS):
            head = self.log.load()
            proposal = propose(head)
            change = proposal.change
            if change is None:
                return Settled(head, None, proposal.found, False)
            outcome = self.log.commit(head, change)
            if isinstance(outcome, Committed):
                self._own_fences.discard(getattr(change, "fence", None))
                return Settled(outcome.head, change, proposal.found, outcome.fresh)
            reason = outcome.reason
            self.note(f"stale, planning again: {reason}")
        raise Contention(f"stale {ROUNDS} times, last: {reason}; run the step again")


def _neighbour_store(url: str, name: str) -> ObjectStore:
    return collection_store(root_of(url), name)


def root_of(url: str) -> str:
    """The root that a collection's store is below."""
    return url.rstrip("/").rpartition("/")[0]


def collection_store(root: str, name: str) -> ObjectStore:
    """The store of one collection below a root. InvalidUsage if the name could not be one."""
    if not NAME.fullmatch(name):
        raise InvalidUsage(f"collection name {name!r} must match {NAME.pattern}")
    return open_store(f"{root.rstrip('/')}/{name}")
