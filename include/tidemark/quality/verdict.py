"""What an expectation came to, whoever judged it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Verdict:
    """What an expectation came to: `positions` are the failing rows of a pandas frame, `values` some of what
    they hold (of the columns the expectation is about), `error` why it could not be evaluated at all."""

    passed: bool
    failing: int | None
    positions: tuple[int, ...]
    values: tuple[Any, ...]
    observed: Any
    error: str | None
    judged: int | None = None
    """How many values it was asked of, where it is asked of each."""
    not_asked: str = ""
    """Why it was not asked."""

    @classmethod
    def unasked(cls, why: str) -> Verdict:
        """That of an expectation that was not asked: nothing speaks against the rows."""
        return cls(True, None, (), (), None, None, not_asked=why)
