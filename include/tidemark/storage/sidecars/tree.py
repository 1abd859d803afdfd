"""A tree of immutable blocks: nodes above leaves that come in order, written so that no more than one node of each
height is in memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

B = TypeVar("B")


@dataclass
class Tree(Generic[B]):
    """A tree being written. `write_node` writes a node under a key, of a height (1 above leaves), and answers with the
    block that names it. `spine` holds, for each height, the blocks that have no parent yet."""

    stem: str
    fan_out: int
    write_node: Callable[[str, int, Sequence[B]], B]
    spine: list[list[B]] = field(default_factory=lambda: [[]])
    written: int = 0

    def fresh_key(self) -> str:
        """The key of the next object of the tree."""
        self.written += 1
        return f"{self.stem}-{self.written:05d}.json"

    def add(self, block: B, height: int = 0) -> None:
        """Take a block; a full node is written only when one more comes, so that a root never has one child."""
        if height == len(self.spine):
            self.spine.append([])
        if len(self.spine[height]) == self.fan_out:
            self._close(height)
        self.spine[height].append(block)

    def finish(self, key: str) -> B:
        """Write what has no parent yet; the root under `key`."""
        height = 0
        while height < len(self.spine) - 1:
            self._close(height)
            height += 1
        return self.write_node(key, height + 1, self.spine[height])

    def _close(self, height: int) -> None:
        self.add(self.write_node(self.fresh_key(), height + 1, self.spine[height]), height + 1)
        self.spine[height] = []
