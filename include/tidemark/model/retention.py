"""What an owner wants to be able to read of the past: the policy by which `since` moves."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

from tidemark.errors import InvalidUsage
from tidemark.model.instant import format_duration

POLICIES = ("all", "full_merge", "tiered", "time_boundary", "adaptive", "ladder")
MOST_RECENT = 1000
"""Seals that `tiered` may count: the state names each of them."""


LEAST_RECENT = 8
"""Seals that `adaptive` keeps distinct where the reads asked say nothing better."""


@dataclass(frozen=True)
class Step:
    """A step of a ladder: of times up to `reach` below what is complete (None: of all older ones) the last instant of
    every `interval` is kept (None: every time). Microseconds."""

    interval: int | None = None
    reach: int | None = None

    def __str__(self) -> str:
        kept = "every time" if self.interval is None else f"the last instant of every {format_duration(self.interval)}"
        return kept if self.reach is None else f"{kept} for {format_duration(self.reach)}"


@dataclass(frozen=True)
class Retention:
    """`all`: every time stays readable. `full_merge`: only the newest complete one. `tiered`: those since the newest
    `keep_recent` seals, of which ticks are none. `time_boundary`: the last instant of every `interval`. `ladder`: by
    age, `steps` from young to old. `adaptive`: chosen by the reads that were asked.
    """

    policy: str = "all"
    keep_recent: int | None = None
    interval: int | None = None
    steps: tuple[Step, ...] = ()

    def __post_init__(self) -> None:
        if self.policy not in POLICIES:
            raise InvalidUsage(f"retention {self.policy!r} is not one of {', '.join(POLICIES)}")
        if (self.policy == "tiered") != (self.keep_recent is not None):
            raise InvalidUsage("tiered, and no other retention, takes keep_recent; write {tiered: {keep_recent: 7}}")
        if self.keep_recent is not None and not 1 <= self.keep_recent <= MOST_RECENT:
            raise InvalidUsage(f"keep_recent is {self.keep_recent}; it must be 1 to {MOST_RECENT}")
        if (self.policy == "time_boundary") != (self.interval is not None):
            raise InvalidUsage("time_boundary, and no other retention, takes an interval; write {time_boundary: 1h}")
        if self.interval is not None and self.interval < 1:
            raise InvalidUsage(f"time_boundary is {format_duration(self.interval)}; it must be above 0, as 1h")
        if (self.policy == "ladder") != bool(self.steps):
            raise InvalidUsage("a ladder has one step or more; write [{keep: all, for: 7d}, {keep: 1d}]")
        self._check_steps()

    def __str__(self) -> str:
        if self.policy == "all":
            return "every time stays readable"
        if self.policy == "full_merge":
            return "the newest complete time"
        if self.policy == "tiered":
            return f"all since the newest {self.keep_recent} seals"
        if self.policy == "time_boundary":
            return f"the last instant of every {format_duration(self.interval or 1)}"
        if self.policy == "adaptive":
            return "as the reads ask"
        return "; ".join(str(step) for step in self.steps)

    @property
    def keeps_all_for(self) -> int | None:
        """How far below the seal every time stays readable, whatever is asked and sealed; None: without end."""
        if self.policy == "all":
            return None
        first = self.steps[0] if self.steps else Step(interval=1)
        return 0 if first.interval is not None else first.reach

    @property
    def recent(self) -> int:
        """How many of the newest seals the state has to remember."""
        if self.policy == "adaptive":
            return LEAST_RECENT
        return self.keep_recent or 0

    @property
    def intervals(self) -> tuple[int, ...]:
        """The intervals whose last instants are kept, from young to old."""
        steps = [self.interval, *(step.interval for step in self.steps)]
        return tuple(interval for interval in steps if interval)

    def _check_steps(self) -> None:
        for step in self.steps:
            if step.interval is not None and step.interval < 1:
                raise InvalidUsage(f"keep is {format_duration(step.interval)}; it must be all, or above 0, as 1h")
        for younger, older in pairwise(self.steps):
            if younger.reach is None or (older.reach is not None and older.reach <= younger.reach):
                raise InvalidUsage("the steps of a ladder reach further back one by one; only the last may lack `for`")
            if older.interval is None:
                raise InvalidUsage("`keep: all` is the first step of a ladder, the others keep an interval each")
            if older.interval % (younger.interval or 1):
                texts = format_duration(younger.interval or 1), format_duration(older.interval)
                raise InvalidUsage(
                    "the steps of a ladder keep intervals that divide each other; {} does not divide {}".format(*texts)
                )


KEEP_ALL = Retention()
