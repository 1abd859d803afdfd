"""The chains of one time bucket: a stack that obeys the chain rule, over anything that has a number of rows, can be cut
at a time, and can be merged with another. That may be sorted rows, or batches of which only the numbers are known: then
what the stack holds is a plan.

    >>> from typing import NamedTuple
    >>> class Planned(NamedTuple):                            # batches that become one; parts: rows, first, last time
    ...     batches: tuple[str, ...]
    ...     parts: tuple[tuple[int, int, int], ...]
    ...     rows = property(lambda self: sum(rows for rows, first, last in self.parts))
    ...     pieces = property(lambda self: len(self.parts))
    ...     def cut(self, at):
    ...         before = tuple(part for part in self.parts if part[2] < at)
    ...         return self._replace(parts=before), self._replace(parts=tuple({*self.parts} - {*before}))
    >>> def both(older, newer):
    ...     return Planned(older.batches + newer.batches, older.parts + newer.parts)
    >>> stack = Stack()
    >>> for batch in (
    ...     Planned(("a",), ((900, 64, 95), (900, 96, 120))),
    ...     Planned(("b",), ((400, 70, 90),)),
    ...     Planned(("c",), ((200, 96, 97),)),
    ... ):
    ...     stack = stack.pushed(batch, both, 3.0)
    >>> for chain in stack.chains:                            # 200 * 3 > 400, so b and c are merged; 600 * 3 = 1,800
    ...     print(*chain.batches, chain.rows)
    a 1800
    b c 600
    >>> before, after, parts = stack.split(96)                # each part goes to one side, as none straddles 96
    >>> before.rows, after.rows, parts
    (1300, 1100, 4)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, Protocol, Self, TypeVar

from tidemark.model.correction_buffer.chain_rule import is_too_large


class Chained(Protocol):
    """What a stack is made of."""

    @property
    def rows(self) -> int:
        """Its size, for the chain rule."""

    @property
    def pieces(self) -> int:
        """What a cut may have to touch."""

    def cut(self, at: int) -> tuple[Self, Self]:
        """What is before a time, and the rest; either may be empty."""


C = TypeVar("C", bound=Chained)


@dataclass(frozen=True)
class Stack(Generic[C]):
    """Chains from old to new, none of them empty. The chain rule (chain_rule.py) is brought about by `pushed` alone:
    what a split leaves may break it until then."""

    chains: tuple[C, ...] = ()

    @property
    def rows(self) -> int:
        return sum(chain.rows for chain in self.chains)

    def pushed(self, chain: C, merge: Callable[[C, C], C], proportionality: float) -> Stack[C]:
        """With one chain more, merged (older, newer) with older ones as the chain rule asks. What comes out empty is
        left out."""
        if not chain.rows:
            return self
        chains = [*self.chains, chain]
        while len(chains) > 1 and is_too_large(chains[-1].rows, chains[-2].rows, proportionality):
            newer, older = chains.pop(), chains.pop()
            both = merge(older, newer)
            if both.rows:
                chains.append(both)
        return Stack(tuple(chains))

    def split(self, at: int) -> tuple[Self, Self, int]:
        """What is before a time, the rest, and the pieces that may have been touched: none of an empty stack."""
        cuts = [chain.cut(at) for chain in self.chains]
        before, after = tuple(b for b, _ in cuts if b.rows), tuple(a for _, a in cuts if a.rows)
        return type(self)(before), type(self)(after), sum(chain.pieces for chain in self.chains)
