"""What may be collected: versions nobody keeps any more, and objects that no kept version names. Decided in two phases.

A plan says what was found and since which plan; a later collector removes what a plan has listed for the whole of its
grace and nothing names then. Ages are differences by the store's own clock, in microseconds: no machines need agree.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import islice

COLLECT = "collect"
"""The step of a collector's own version, which it commits before it removes objects."""
LIMIT = 100_000
"""Objects in one plan, so that it stays readable; the others wait for the next."""
KEEP_READS = 30 * 86_400 * 1_000_000
"""Records of reads that were asked, by which adaptive retention chooses, are useful for so long."""
TOLERANCE = 10 * 60 * 1_000_000
"""How far two clocks may disagree about the time between two plans. A writer trusts what it saw for half of a version's
grace, and the version goes at the end of it: this is a third of the other half."""
_UNIQUE = "[0-9a-f]{32}"
_READ = re.compile(rf"reads/\d{{20}}-{_UNIQUE}\.json")
_OURS = re.compile(
    rf"data/{_UNIQUE}/((late-)?{_UNIQUE}\.parquet|parts-{_UNIQUE}(-\d+)?\.json)|ledger/{_UNIQUE}(-\d+)?\.json"
    rf"|commits/{_UNIQUE}\.json"
)
"""Keys of objects that are garbage where no version names them (docs/format.md). All others are left alone."""
_UNFINISHED = re.compile(r"(.*/)?\.tmp-[0-9a-f]{24}")
"""Names of unfinished files; an unfinished upload has the key of its object."""


class Why(StrEnum):
    """Why something may go."""

    VERSION = "version superseded longer ago than versions are kept"
    STRAY = "version outside the history, left by a collector or a writer that stood still"
    UNNAMED = "named by no version that is kept"
    UNFINISHED = "never finished by its writer"
    READ = "record of reads older than 30 days"


@dataclass(frozen=True)
class Stored:
    """An object as listed; `token` distinguishes unfinished ones of one key."""

    key: str
    bytes: int
    modified: int
    token: str = ""


@dataclass(frozen=True)
class Garbage:
    """Something that may go; `since` is the first plan that listed it and all since have."""

    key: str
    bytes: int
    why: Why
    since: int = 0
    token: str = ""


@dataclass(frozen=True)
class Clocks:
    """What a collector's machine said when it made a plan, in microseconds: its wall clock, which can be set, and for
    how long it has been running since `boot`, which cannot. An empty `boot` is not known."""

    wall: int
    uptime: int
    boot: str = ""

    def passed_since(self, before: Clocks) -> int:
        """How much time has passed, by the best of the clocks that both know."""
        return self.uptime - before.uptime if self.boot and self.boot == before.boot else self.wall - before.wall


@dataclass(frozen=True)
class GarbagePlan:
    """What a collector found at `version`. `versions_below` is the low-water mark once `versions` are gone; `appeared`
    is when the earlier plans that entries refer to were written; `left_out` counts what was too much for one plan;
    `clocks` are those of the machine that wrote it (None: an earlier release did)."""

    number: int
    version: int
    versions_below: int
    versions: tuple[Garbage, ...] = ()
    objects: tuple[Garbage, ...] = ()
    left_out: int = 0
    appeared: tuple[tuple[int, int], ...] = ()
    clocks: Clocks | None = None

    @property
    def entries(self) -> tuple[Garbage, ...]:
        """All that is listed, versions first."""
        return self.versions + self.objects

    @property
    def bytes(self) -> int:
        return sum(entry.bytes for entry in self.entries)


@dataclass(frozen=True)
class Graces:
    """How long a plan must have listed something before it goes."""

    versions: int
    objects: int


@dataclass(frozen=True)
class Inventory:
    """What a collector sees: the head, the version objects by number, the low-water mark, the others, and what is
    unfinished."""

    version: int
    oldest: int
    versions: Sequence[tuple[int, Stored]]
    objects: Iterable[Stored]
    unfinished: Sequence[Stored] = ()

    @property
    def now(self) -> int:
        """The store's time, as far as its versions show: never later than it is."""
        return max((stored.modified for _, stored in self.versions), default=0)


def disagreement(previous: GarbagePlan | None, appeared: int, clocks: Clocks, now: int) -> str | None:
    """Why ages cannot be counted across the time since `previous`, which appeared at `appeared` by the store's clock,
    when that clock says `now`: a step of one clock would pass for time. None if they agree.

    On one machine the store's clock is compared with the time the machine has been on, else with its wall clock.
    """
    if previous is None:
        return None
    if now < appeared - TOLERANCE:
        return f"the store's clock went back by {_shown(appeared - now)} since plan {previous.number}"
    if previous.clocks is None:
        return None
    by_store, passed = now - appeared, clocks.passed_since(previous.clocks)
    if abs(by_store - passed) <= TOLERANCE:
        return None
    durations = f"{_shown(by_store)} have passed by the store's clock, {_shown(passed)} by this machine's"
    return f"since plan {previous.number} {durations}"


def stepped(before: Clocks, after: Clocks) -> str | None:
    """Whether this machine's wall clock was set between two looks at it, and by how much; None if not."""
    step = (after.wall - before.wall) - (after.uptime - before.uptime)
    if abs(step) <= TOLERANCE:
        return None
    return f"this machine's clock was set {'back' if step < 0 else 'ahead'} by {_shown(abs(step))}"


def ahead(found: Inventory, appeared: int, wall: int) -> str | None:
    """Whether something appeared in what is the future to this machine: then its clock does not show how long ago
    anything was superseded."""
    newest = max(found.now, appeared)
    if newest <= wall + TOLERANCE:
        return None
    return f"the store's newest object appeared {_shown(newest - wall)} from now, by this machine's clock"


def _shown(micros: int) -> str:
    """A duration to the minute, for people."""
    hours, minutes = divmod(round(abs(micros) / 60_000_000), 60)
    return f"{'-' if micros < 0 else ''}{hours}:{minutes:02} h"


def first_kept(found: Inventory, *, now: int, keep: int, window: int, pinned: Sequence[int] = ()) -> int:
    """The oldest version to keep: `keep` after it was superseded a version may go, with its whole window of checkpoint
    and changes, but no pinned one, nothing after a pinned one, and never the newest."""
    superseded = dict(found.versions)
    kept = found.oldest
    first = (found.oldest // window + 1) * window
    for start in range(first, found.version + 1, window):
        if start not in superseded or now - superseded[start].modified < keep or any(pin < start for pin in pinned):
            break
        kept = start
    return kept


def plan_collection(
    found: Inventory,
    kept: int,
    named: Collection[str],
    previous: GarbagePlan | None,
    *,
    now: int,
    appeared: int,
    clocks: Clocks | None = None,
    afresh: bool = False,
) -> GarbagePlan:
    """The plan that follows `previous`, which appeared at `appeared`. `named` are the keys that versions from `kept` on
    name. `afresh` counts every grace from this plan on, whatever was listed before."""
    versions = [
        Garbage(stored.key, stored.bytes, Why.STRAY if number < found.oldest else Why.VERSION)
        for number, stored in found.versions
        if number < kept
    ]
    before = {(entry.key, entry.token): entry.since for entry in previous.entries} if previous and not afresh else {}
    number = previous.number + 1 if previous else 1

    def dated(entries: Iterable[Garbage]) -> Iterator[Garbage]:
        return (replace(entry, since=before.get((entry.key, entry.token), number)) for entry in entries)

    # What was listed before comes first, so that its time is never lost to the limit.
    objects = sorted(dated(_garbage(found, named, now)), key=lambda entry: (entry.since, entry.key))
    listed = (*dated(versions), *islice(objects, LIMIT))
    times = dict(previous.appeared) | {previous.number: appeared} if previous else {}
    used = {entry.since for entry in listed}
    return GarbagePlan(
        number,
        found.version,
        max(kept, previous.versions_below if previous else 0),
        listed[: len(versions)],
        listed[len(versions) :],
        max(0, len(objects) - LIMIT),
        tuple(sorted((plan, time) for plan, time in times.items() if plan in used)),
        clocks,
    )


def _garbage(found: Inventory, named: Collection[str], now: int) -> Iterator[Garbage]:
    for stored in found.objects:
        if stored.key in named:
            continue
        if _OURS.fullmatch(stored.key):
            yield Garbage(stored.key, stored.bytes, Why.UNNAMED)
        elif now - stored.modified > KEEP_READS and _READ.fullmatch(stored.key):
            yield Garbage(stored.key, stored.bytes, Why.READ)
    for stored in found.unfinished:
        if _is_unfinished(stored.key):
            yield Garbage(stored.key, stored.bytes, Why.UNFINISHED, token=stored.token)


def _is_unfinished(key: str) -> bool:
    return (_UNFINISHED.fullmatch(key) or _OURS.fullmatch(key)) is not None


def foreign(found: Inventory, named: Collection[str]) -> list[str]:
    """The keys that no version names, and that Tidemark gives no object: a collector leaves them alone."""
    others = [each.key for each in found.objects if not (_OURS.fullmatch(each.key) or _READ.fullmatch(each.key))]
    return [key for key in others if key not in named] + [
        each.key for each in found.unfinished if not _is_unfinished(each.key)
    ]


def token_of(plan: GarbagePlan, attempt: str) -> str:
    """The token under which a collector commits before it removes what is due by `plan`: whoever folds that version
    learns which plan to ask."""
    return f"{plan.number}-{attempt}"


def plan_of(token: str) -> int:
    """The number of the plan in a collector's token; 0, which no plan has, if an earlier release committed it."""
    number = token.partition("-")[0]
    return int(number) if number.isdecimal() and "-" in token else 0


def due(plan: GarbagePlan, graces: Graces, *, now: int) -> GarbagePlan:
    """The part of a plan whose grace is over at `now`, when the plan itself appeared."""
    appeared = {**dict(plan.appeared), plan.number: now}

    def over(grace: int) -> Callable[[Garbage], bool]:
        return lambda entry: now - appeared[entry.since] >= grace

    versions = tuple(filter(over(graces.versions), plan.versions))
    return replace(plan, versions=versions, objects=tuple(filter(over(graces.objects), plan.objects)))
