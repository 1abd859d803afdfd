"""Time buckets of growing width: what is due soon is in narrow ones, what is due in a year in a few wide ones.

A bucket of b bits covers `[start, start + 2^b)`; the buckets of a chain touch, and together cover the domain of times
from some *lower* bound on. At first there is one bucket over everything. A bucket is only ever halved, so that all
bounds come from binary halving. What a bucket holds is not this module's affair, only that it can be split at a time.

    peel      hand out all that is below a frontier, halving the bucket that the frontier cuts as often as needed
    restore   halve buckets until the chain is *well-formed*, for as much work (*fuel*) as one may spend now

**Well-formed**: each bucket has at most two bits more than the one before it, and the first is at most 2^min_bits wide.
So the next bucket is never more than four times as wide, there are at most as many as the domain has bits, and one, and
the next peel finds narrow ones where it needs them. A chain that ran out of fuel is not well-formed; everything works
on it all the same, and the next peel has more to halve. Once it is well-formed, where its buckets are depends on its
lower bound alone and not on the way there: nobody need remember them.

An example, over a domain of eight bits that holds the times 3, 99, 100 and 250:

    >>> class Times(tuple[int, ...]):
    ...     def split(self, at):
    ...         return Times(t for t in self if t < at), Times(t for t in self if t >= at), len(self)
    >>> chain, fuel = BucketChain.over(Times((3, 99, 100, 250)), time_bits=8).restore(1000)
    >>> [(bucket.start, bucket.bits) for bucket in chain.buckets]
    [(0, 0), (1, 0), (2, 1), (4, 2), (8, 3), (16, 4), (32, 5), (64, 6), (128, 7)]
    >>> due, chain = chain.peel(100)
    >>> [time for times in due for time in times]
    [3, 99]
    >>> chain, fuel = chain.restore(1000)
    >>> [(bucket.start, bucket.bits, *bucket.content) for bucket in chain.buckets]
    [(100, 0, 100), (101, 0), (102, 1), (104, 3), (112, 4), (128, 6), (192, 6, 250)]
    >>> fuel                                                  # halving [128, 256) and [100, 104) down cost 1 each time
    997

**Costs.** What is in a bucket of b bits is touched by at most b splits until it is due, however many peels go by: in
a well-formed chain O(log distance), where the distance is from the frontier at which it came. Peel and restore visit
O(bits of the domain) buckets beside that. Splits of a peel are no fuel spent: what is due is due.

**min_bits**: no bucket is split below that width, so a bucket that straddles the frontier is handed out whole: up to
2^min_bits - 1 times too many are out early, and times below the chain's lower bound have no bucket any more.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, replace
from typing import Generic, Protocol, Self, TypeVar

from tidemark.errors import InvalidUsage

TIME_BITS = 64
"""Times are unsigned integers of so many bits, unless a chain says otherwise."""


class Splits(Protocol):
    """What a bucket can hold."""

    def split(self, at: int) -> tuple[Self, Self, int]:
        """What is before a time, the rest, and what it cost to separate them, as fuel."""


H = TypeVar("H", bound=Splits)


@dataclass(frozen=True)
class Bucket(Generic[H]):
    """What is in `[start, start + 2^bits)`."""

    start: int
    bits: int
    content: H

    @property
    def end(self) -> int:
        return self.start + (1 << self.bits)

    def __contains__(self, time: int) -> bool:
        return self.start <= time < self.end

    def halves(self) -> tuple[Bucket[H], Bucket[H], int]:
        """The two buckets of half the width, and what the split cost."""
        bits = self.bits - 1
        middle = self.start + (1 << bits)
        before, after, cost = self.content.split(middle)
        return Bucket(self.start, bits, before), Bucket(middle, bits, after), cost


@dataclass(frozen=True)
class BucketChain(Generic[H]):
    """Buckets in ascending order that touch and reach to the end of the domain, or none.

    A frontier is a time, or `end`: the empty frontier, which no time has reached.
    """

    buckets: tuple[Bucket[H], ...]
    time_bits: int = TIME_BITS
    min_bits: int = 0

    def __post_init__(self) -> None:
        if not 0 <= self.min_bits <= self.time_bits:
            raise InvalidUsage(f"min_bits {self.min_bits} is not within the {self.time_bits} bits of a time")

    @classmethod
    def over(cls, content: H, *, time_bits: int = TIME_BITS, min_bits: int = 0) -> BucketChain[H]:
        """One bucket over the whole domain."""
        return cls((Bucket(0, time_bits, content),), time_bits, min_bits)

    @property
    def end(self) -> int:
        """The end of the domain: the frontier that is beyond every time."""
        return 1 << self.time_bits

    @property
    def lower(self) -> int:
        """Times below it have no bucket any more; the end of the domain where all was handed out."""
        return self.buckets[0].start if self.buckets else self.end

    @property
    def is_well_formed(self) -> bool:
        """Whether each bucket is at most four times as wide as the one before it, and the first is a narrowest one."""
        bits = self.min_bits - 2
        for bucket in self.buckets:
            if bucket.bits > bits + 2:
                return False
            bits = bucket.bits
        return True

    def find(self, time: int) -> Bucket[H] | None:
        """The bucket of a time; None if it was handed out."""
        at = self._at(time)
        return self.buckets[at] if at >= 0 else None

    def holding(self, bucket: Bucket[H], content: H) -> BucketChain[H]:
        """The chain where `bucket`, one of its own, holds something else."""
        at = self._at(bucket.start)
        changed = Bucket(bucket.start, bucket.bits, content)
        return replace(self, buckets=(*self.buckets[:at], changed, *self.buckets[at + 1 :]))

    def peel(self, frontier: int) -> tuple[tuple[H, ...], BucketChain[H]]:
        """What is below a frontier, by bucket, in ascending order, and the chain of the rest.

        Where the frontier cuts a bucket of minimum width, that bucket is handed out whole.
        """
        due: list[H] = []
        rest = list(reversed(self.buckets))
        while rest and rest[-1].start < frontier:
            bucket = rest.pop()
            if bucket.end > frontier and bucket.bits > self.min_bits:
                before, after, _ = bucket.halves()
                rest += (after, before)
            else:
                due.append(bucket.content)
        return tuple(due), replace(self, buckets=tuple(reversed(rest)))

    def restore(self, fuel: int) -> tuple[BucketChain[H], int]:
        """The chain nearer to well-formed, and the fuel left; where some is left, it is well-formed.

        A split is never left half done, so that more than all fuel may be spent.
        """
        if self.is_well_formed:
            return self, fuel
        formed: list[Bucket[H]] = []
        rest = list(reversed(self.buckets))
        bits = self.min_bits - 2
        while rest and fuel > 0:
            bucket = rest.pop()
            if bucket.bits <= bits + 2:
                formed.append(bucket)
                bits = bucket.bits
            else:
                before, after, cost = bucket.halves()
                rest += (after, before)
                fuel -= cost
        return replace(self, buckets=(*formed, *reversed(rest))), fuel

    def _at(self, time: int) -> int:
        return bisect_right(self.buckets, time, key=lambda bucket: bucket.start) - 1
