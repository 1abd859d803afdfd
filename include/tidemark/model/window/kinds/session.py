"""Sessions: which there are, the rows of a key say (model/window/sessions.py)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from tidemark.model.instant import format_duration
from tidemark.model.window.kinds.fields import Length, SomeLength, check_positive
from tidemark.model.window.kinds.kind import Kind


@dataclass(frozen=True)
class Session(Kind):
    """Rows of which each follows another within a gap. `session: 45m` is short for `{gap: 45m}`."""

    # [first row, last row + gap). Rows at a distance of exactly the gap are together, unless `exact_gap_merges` is
    # false. With `max_length` all rows of a session come less than that after its first: the next row begins a new one,
    # and none is longer.

    gap: Length
    """How long after a row the next of its session comes at most."""
    exact_gap_merges: bool = True
    """Whether rows at a distance of exactly the gap belong to one session."""
    max_length: SomeLength = None
    """How long after its first row a session's rows come: the next begins a new session. Left out, however long."""
    kind: Literal["session"] = "session"

    summary: ClassVar[str] = "Rows that follow each other: `45m`."
    noun = "session"
    late_is_counted = "counted where it joins no other"
    no_next_window = (
        "sessions: without rows none is open that a late row could count in, and one of its own would overlap closed "
        "ones"
    )

    def __post_init__(self) -> None:
        check_positive("the gap of a session", self.gap)
        if self.max_length is not None:
            check_positive("the max_length of a session", self.max_length)

    @property
    def joins_at_end(self) -> bool:
        return self.exact_gap_merges

    @property
    def most_windows(self) -> int | None:
        return 2 if self.max_length is None else None

    @property
    def windows_per_row(self) -> int:
        return 1

    @property
    def changes(self) -> str:
        if self.max_length is None:
            return "at most 2 sessions: it may join two, or part one"
        return (
            "at most 2 sessions, and where one is cut for its length those that follow within the gap: each begins "
            "where the one before was cut"
        )

    @property
    def called(self) -> str:
        return f"sessions with a gap of {format_duration(self.gap)}"
