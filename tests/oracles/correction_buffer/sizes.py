"""How large chunks are, and how chains grow."""

from __future__ import annotations

from dataclasses import dataclass

from tests.oracles.correction_buffer.chain import CHUNK_ROWS
from tidemark.errors import InvalidUsage

PROPORTIONALITY = 3.0
"""More: fewer chains to read, each row rewritten more often."""


@dataclass(frozen=True)
class Sizes:
    """Of one buffer. Chunks are counted in rows: where rows are wide, so are chunks.

    Raises InvalidUsage for sizes under which nothing would be kept, or nothing merged.
    """

    chunk_rows: int = CHUNK_ROWS
    proportionality: float = PROPORTIONALITY

    def __post_init__(self) -> None:
        if self.chunk_rows < 1:
            raise InvalidUsage(f"a chunk of {self.chunk_rows} rows is empty: chunk_rows must be 1 or more")
        if not self.proportionality > 1:
            raise InvalidUsage(
                f"with a proportionality of {self.proportionality} chains would never be merged; it must be above 1"
            )


DEFAULT_SIZES = Sizes()
