"""Statistics of windows of aligned kinds that take late rows for a while only, as SQL over an input's updates: which of
them count in which window, and how many came too late for each.

Rows are placed in all their windows, as where the windows themselves are computed (`lateness.py`); but each update
stands for itself here, as it is told since when rows are there. A row that counts in the next window is late all the
same for its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tidemark.definition.recipe import DIFF, FROZEN, LEARNED, TIME
from tidemark.definition.windows.assigned import AT, END, START, Source, assigned, happening
from tidemark.definition.windows.checked import Checked
from tidemark.definition.windows.lateness import frozen, rows_in_windows
from tidemark.model.window.kind import Aligned
from tidemark.model.window.statistics import ROWS_LATE_FOR_ALL, ROWS_LATE_FOR_SOME, UPDATES_LATE
from tidemark.model.window.windows import WINDOW_END, WINDOW_START

_MANY, _EACH = "_many", "_each"


@dataclass(frozen=True)
class Counted:
    """Both are queries over the view of the input's updates, under the input's name, with LEARNED, TIME and DIFF.

    `rows` gives `columns`, START and END of each window, TIME, DIFF and FROZEN. `late` gives of each window for which
    an update came too late the values of `by`, WINDOW_START, WINDOW_END, ROWS_LATE_FOR_ALL, ROWS_LATE_FOR_SOME and
    UPDATES_LATE.
    """

    columns: tuple[str, ...]
    rows: str
    late: str


def counted(declared: Checked, columns: Sequence[str]) -> Counted:
    """Which updates count in windows of an aligned kind; rows are told apart by `columns`."""
    windows = declared.windows
    kind = windows.kind
    assert isinstance(kind, Aligned)  # which rows others hold is no question of SQL
    happened = happening(declared.input, windows.on, declared.on, declared.where.sql if declared.where else "")
    rows = rows_in_windows(declared, happened, [*columns, TIME, DIFF])
    return Counted(tuple(columns), rows, _late(declared, kind, happened))


def _late(declared: Checked, kind: Aligned, happened: Source) -> str:
    """Only a row that happened below where the input was complete when it came can be late; those of one instant that
    came at one time are in the same windows, and late for the same."""
    alike = [*(f"`{name}`" for name in declared.windows.by), AT, LEARNED]
    of = ", ".join(alike)
    together = Source(
        f"SELECT {of}, sum(abs({DIFF})) AS {_MANY} FROM {happened.rows} WHERE {LEARNED} > {AT} GROUP BY {of}",
        happened.name,
    )
    placed = assigned(kind, together, declared.on).adding(**{FROZEN: frozen(declared)})
    placed = placed.adding(**{_EACH: f"bool_and({FROZEN}) OVER (PARTITION BY {of})"})
    window = ", ".join([*alike[:-2], START, END])
    shown = [*alike[:-2], f"{START} AS {WINDOW_START}", f"{END} AS {WINDOW_END}"]
    shown += [
        f"sum(IF({_EACH}, {_MANY}, 0)) AS {ROWS_LATE_FOR_ALL}",
        f"sum(IF({_EACH}, 0, {_MANY})) AS {ROWS_LATE_FOR_SOME}",
        f"sum({_MANY}) AS {UPDATES_LATE}",
    ]
    return f"SELECT {', '.join(shown)} FROM {placed.rows} WHERE {FROZEN} GROUP BY {window}"
