"""What the kernel of an aligned kind computes, over arrays of instants, and arithmetic on these that is exact to 64
bits."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Generic, NamedTuple, TypeVar

import numpy as np

from tidemark.arrow.kernels.aggregates.sums import Overflowed
from tidemark.arrow.rows.columns import Ints
from tidemark.model.window.kinds import AlignedKind

MOST_ROWS = 2**22
"""The most rows that a batch may have when each row is repeated for each of its windows."""
_BEYOND = "a window near {} µs has a bound beyond 64 bits; leave such rows out by windows.where"

KindT = TypeVar("KindT", bound=AlignedKind)


class AssignedWindows(NamedTuple):
    """Windows of some instants, in order of these and of start and end: `of` which instant each is, by its number, and
    its bounds. Without `of` each instant has one window."""

    of: Ints | None
    start: Ints
    end: Ints


class AlignedKernel(ABC, Generic[KindT]):
    """The windows of many instants, in microseconds: those that the methods of the kind, which are the law, say of
    each. Raises Overflowed for a window whose bounds are beyond 64 bits."""

    def __init__(self, kind: KindT) -> None:
        self.kind = kind

    @abstractmethod
    def windows_at(self, at: Ints) -> AssignedWindows:
        """The windows that hold each instant (the kind's `windows_at`). Raises Overflowed also where these are too many
        for one batch."""

    @abstractmethod
    def earliest_after(self, at: Ints) -> tuple[Ints, Ints]:
        """Start and end of the first window that ends after each instant (the kind's `earliest_after`)."""

    @property
    def most_rows(self) -> int:
        """Rows that `windows_at` takes at once, whatever their instants are."""
        return max(1, MOST_ROWS // self.kind.most_windows)


class SideBySideKernel(AlignedKernel[KindT]):
    """The windows of a kind of which each instant is in exactly one: the first that ends after it."""

    def windows_at(self, at: Ints) -> AssignedWindows:
        return AssignedWindows(None, *self.earliest_after(at))


def repeated(many: Ints) -> tuple[Ints, Ints]:
    """Each place as often as it says, and which time it is, from 0."""
    if len(many) and int(many.max()) * len(many) > MOST_ROWS:
        raise Overflowed("rows are in too many windows")
    of = np.repeat(np.arange(len(many)), many)
    return of, np.arange(len(of)) - np.repeat(np.cumsum(many) - many, many)


def grid(at: Ints, step: int, offset: int) -> Ints:
    """The last of the instants n * step + offset that is not after each."""
    return minus(at, (at % step - offset % step) % step)


def plus(at: Ints, more: Ints | int) -> Ints:
    """The sum, where `more` is nowhere below 0."""
    found = at + more
    if len(wrong := np.flatnonzero(found < at)):
        raise beyond(int(at[wrong[0]]))
    return found


def minus(at: Ints, less: Ints | int) -> Ints:
    """The difference, where `less` is nowhere below 0."""
    found = at - less
    if len(wrong := np.flatnonzero(found > at)):
        raise beyond(int(at[wrong[0]]))
    return found


def beyond(at: int) -> Overflowed:
    """The error for a window near an instant that has a bound beyond 64 bits."""
    return Overflowed(_BEYOND.format(at))
