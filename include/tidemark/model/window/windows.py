"""A definition by windows: rows of one input, by some of its columns and by when they happened, in windows of one
kind, and the aggregates of each."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from tidemark.errors import InvalidUsage
from tidemark.model.window.aggregate import Aggregate
from tidemark.model.window.kinds import WindowKind

WINDOW_START, WINDOW_END = "window_start", "window_end"
"""The columns of a row that say which window it describes; the end belongs to sliding windows and to no others."""
EVENT_TIME = "event_time"
"""Windows `on` this are by when rows happened, the event times of the input's updates; unless the input has a column of
that name."""


class Late(StrEnum):
    """What a row does that comes when a window it belongs to has closed: `reemit` corrects the window, `discard`
    leaves it as it was, `next_window` counts the row in the earliest window of its key that is open."""

    REEMIT = "reemit"
    DISCARD = "discard"
    NEXT_WINDOW = "next_window"


@dataclass(frozen=True)
class Windows:
    """A row for each window of each value of the columns `by` in which there are rows: its key are these columns,
    WINDOW_START and WINDOW_END; its value are the `aggregates`.

    `on` is the column that says when a row happened; or EVENT_TIME, the event time of its update (`is_on_event_time`).
    Only rows for which `where` holds count (Spark SQL over a row of the input). A window closes `grace` µs after its
    end: from then on its row is there; with `early` as soon as it has rows. Late rows count by `late`; `reemit` for
    `max_lateness` µs after the window closed (None: for ever).
    """

    by: tuple[str, ...]
    on: str
    kind: WindowKind
    aggregates: tuple[Aggregate, ...]
    where: str = ""
    grace: int = 0
    late: Late = Late.REEMIT
    max_lateness: int | None = None
    early: bool = False

    def __post_init__(self) -> None:
        if self.grace < 0:
            raise InvalidUsage(f"grace is {self.grace} µs; it must be 0 or more")
        if self.max_lateness is not None and (self.late is not Late.REEMIT or self.max_lateness < 0):
            raise InvalidUsage(f"max_lateness is {self.max_lateness} µs; it must be 0 or more, and belongs to reemit")
        if self.late is Late.NEXT_WINDOW and self.kind.no_next_window:
            raise InvalidUsage(
                f"late: next_window is not available for {self.kind.no_next_window}; write discard or reemit"
            )
        names = [*self.by, WINDOW_START, WINDOW_END, *(one.name for one in self.aggregates)]
        if repeated := sorted({name for name in names if names.count(name) > 1}):
            raise InvalidUsage(f"columns of windows are called {', '.join(repeated)} twice; call one of them otherwise")

    def is_on_event_time(self, columns: Iterable[str]) -> bool:
        """Whether they are on the event times of an input with these columns: one that is called so, however it is
        spelled, goes before, as SQL knows no difference of case."""
        return self.on == EVENT_TIME and EVENT_TIME not in {name.lower() for name in columns}

    @property
    def counts_late_for(self) -> int | None:
        """For how long after a window closed late rows count in it, in microseconds; None: for ever."""
        return self.max_lateness if self.late is Late.REEMIT else 0
