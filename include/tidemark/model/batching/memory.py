"""How many bytes may be reserved at once: one maximum, and shares of it by who holds them.

A reservation is taken or it is not, in one step: there is no state in between in which too much is counted. How much is
used is a *level* of what was taken, never a refusal. Refused is only what would pass the emergency mark; whoever is
refused writes out what it holds, and asks again.

Who has a share of its own may *borrow* what the others do not use, up to the high mark; what is between the high mark
and the emergency mark is for those who stay within their shares.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum

from tidemark.errors import InvalidUsage

LOW = 0.5


class Level(StrEnum):
    """How much of the maximum is used: up to half, up to the high mark, up to the emergency mark, or more."""

    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"
    EMERGENCY = "emergency"


@dataclass(frozen=True)
class Budget:
    """At most `maximum` bytes, of which each part named in `shares` has its own; marks are shares of the maximum."""

    maximum: int
    shares: Mapping[str, int] = field(default_factory=dict)
    high: float = 0.8
    emergency: float = 0.95

    def __post_init__(self) -> None:
        if self.maximum < 1:
            raise InvalidUsage(f"a budget of {self.maximum} bytes is too small; it must be 1 or more")
        if not LOW <= self.high <= self.emergency <= 1:
            raise InvalidUsage(
                f"high mark {self.high:g} and emergency mark {self.emergency:g}: {LOW} <= high <= emergency <= 1"
            )
        if negative := [name for name, share in self.shares.items() if share < 0]:
            raise InvalidUsage(f"the share of {negative[0]} is {self.shares[negative[0]]} bytes; it must be 0 or more")

    def level(self, used: int) -> Level:
        """The level of so many bytes; a mark belongs to the level below it."""
        share = used / self.maximum
        marks = ((LOW, Level.LOW), (self.high, Level.MEDIUM), (self.emergency, Level.HIGH))
        return next((level for mark, level in marks if share <= mark), Level.EMERGENCY)

    @property
    def most(self) -> int:
        """The most bytes that are ever reserved."""
        return int(self.emergency * self.maximum)


@dataclass(frozen=True)
class Usage:
    """What is reserved of a budget, by whom."""

    budget: Budget
    by: Mapping[str, int] = field(default_factory=dict)

    @property
    def used(self) -> int:
        return sum(self.by.values())

    @property
    def level(self) -> Level:
        return self.budget.level(self.used)

    def reserved(self, name: str, size: int) -> Usage | None:
        """With `size` bytes more of `name`; None where there is no room now. InvalidUsage for what never fits."""
        budget, taken = self.budget, self.by.get(name, 0) + size
        if size < 0:
            raise InvalidUsage(f"{name} asks for {size} bytes; it must be 0 or more")
        if size > self.largest(name):
            raise InvalidUsage(
                f"{name} asks for {size:,} bytes at once, and {self.largest(name):,} are the most that it may ever "
                f"hold of {budget.maximum:,}; give it more memory"
            )
        own = not budget.shares or taken <= budget.shares.get(name, 0)
        most = budget.most if own else int(budget.high * budget.maximum)
        return replace(self, by={**self.by, name: taken}) if self.used + size <= most else None

    def largest(self, name: str) -> int:
        """The most that `name` could ever hold, were nobody else there. It is the same whatever is reserved."""
        budget = self.budget
        if not budget.shares:
            return budget.most
        return max(min(budget.shares.get(name, 0), budget.most), int(budget.high * budget.maximum))

    def released(self, name: str, size: int) -> Usage:
        """With `size` bytes less of `name`. ValueError where it does not hold so many: they were given back twice."""
        left = self.by.get(name, 0) - size
        if left < 0 or size < 0:
            raise ValueError(f"{name} gives back {size} bytes, and holds {self.by.get(name, 0)}")
        return replace(self, by={**self.by, name: left})
