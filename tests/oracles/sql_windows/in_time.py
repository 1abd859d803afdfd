"""Which rows count in windows that take late ones for a while only, as Spark SQL over an input's updates.

Updates have LEARNED, up to where the input was complete when they came (null: nothing was), and `_diff`.
"""

from __future__ import annotations

from collections.abc import Sequence

from tests.oracles.sql_windows.aggregates import AT, END, START
from tests.oracles.sql_windows.placement import Rows, eligible, joined, open_at, placed, starts
from tidemark.model.window.close import closes_at
from tidemark.model.window.kinds import Sliding
from tidemark.model.window.windows import Late, Windows

LEARNED, DIFF = "_learned", "_diff"


def counting(windows: Windows, columns: Sequence[str], updates: Rows) -> Rows:
    """The rows that count, once for each window of an aligned or sliding kind in which they do."""
    kind, late = windows.kind, frozen(windows, END)
    if isinstance(kind, Sliding):
        return _slid(windows, kind, columns, updates)
    assert not hasattr(kind, "gap"), "sessions are judged by the law (late_sessions.py)"
    found = placed(kind, updates).adding(_late=late)
    if windows.late is Late.NEXT_WINDOW:
        found = open_at(kind, found, f"({LEARNED} - {windows.grace})", "_open", "_open_end")
        own = f"SELECT * FROM ({found.sql}) WHERE NOT _late"
        all_columns = ", ".join(f"`{name}`" for name in (*columns, AT, DIFF))
        window = f"_open AS {START}, _open_end AS {END}"
        moved = f"SELECT _update, {all_columns}, {window} FROM ({found.sql}) WHERE _late"
        both = f"SELECT _update, {all_columns}, {START}, {END} FROM ({own}) UNION {moved}"
        return repeated([*columns, AT, START, END], Rows(both))
    return repeated([*columns, AT, START, END], Rows(f"SELECT * FROM ({found.sql}) WHERE NOT _late"))


def frozen(windows: Windows, end: str) -> str:
    """Whether a window of an end took no more rows when an update came."""
    assert windows.counts_late_for is not None
    after = closes_at(windows.kind, 0, windows.grace) + windows.counts_late_for
    return f"coalesce({end} + {after} <= {LEARNED}, false)"


def _slid(windows: Windows, kind: Sliding, columns: Sequence[str], updates: Rows) -> Rows:
    """Windows end with what was in time for that, and begin just after what was in time for any."""
    of = eligible(kind, updates)
    left = f"greatest({AT} - {kind.size}, 0)" if kind.clamp_start_at_zero else f"{AT} - {kind.size}"
    before, after = (
        repeated([*columns, AT], Rows(f"SELECT * FROM ({of.sql}) WHERE NOT {frozen(windows, f'({end})')}"))
        for end in (f"{left} + {kind.size}", f"{AT} + {kind.size}")
    )
    within = f"r.{AT} BETWEEN w.{START} AND w.{END} AND NOT {frozen(windows, f'w.{END}')}"
    return repeated([*columns, AT, START, END], joined(windows.by, of, starts(kind, windows.by, before, after), within))


def repeated(columns: Sequence[str], updates: Rows) -> Rows:
    """The rows that updates add up to, each as often as it is there."""
    names = ", ".join(f"`{name}`" for name in columns)
    summed = f"SELECT {names}, sum({DIFF}) AS _many FROM ({updates.sql}) GROUP BY {names} HAVING sum({DIFF}) <> 0"
    times = "IF(_many < 0, CAST(raise_error('fewer rows than none') AS int), CAST(_many AS int))"
    each = f"SELECT {names}, explode(array_repeat(true, {times})) AS _one FROM ({summed})"
    return Rows(f"SELECT {names} FROM ({each})")
