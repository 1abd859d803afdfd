"""How late records came, each by itself: what engines tell besides windows, and another reading of lateness."""

from __future__ import annotations

from collections.abc import Iterable

from tidemark.model.window.happened import Happened


def behind(rows: Iterable[Happened]) -> list[int]:
    """How far behind the frontier each row came, as often as it is there."""
    return [max(row.learned - row.at, 0) for row in rows if row.at is not None for _ in range(abs(row.diff))]


def on_time(rows: Iterable[Happened], grace: int) -> list[Happened]:
    """Another reading of lateness, by rows and not by windows: those that came before a frontier, less the grace, had
    passed them. It loses more; windows of what is left never change once closed."""
    return [row for row in rows if row.at is None or row.at >= row.learned - grace]
