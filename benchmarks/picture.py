"""A picture of a long life: batches alive, and rows written for each row drained, beside the least possible."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import Any

from benchmarks.optimum import curve

WIDTH, PANEL, LEFT, RIGHT, TOP, GAP = 860, 190, 56, 190, 34, 58
ALLOWED = 1.3
"""Times the optimum: the target."""


def picture(result: dict[str, Any]) -> str:
    """The SVG of one result of the longevity benchmark."""
    writing, ingests = result["writing"], result["ingests"]
    written, optimum = courses(result)
    alive = [float(count) for count in writing["live_batches"]]
    title = f"{ingests:,} ingests of {result['rows_per_ingest']:,} rows into {result['base']:,}"
    most = writing["live_batches_most"]
    panels = [
        _panel(TOP, f"{title}: batches alive after each", [("alive", "#1f77b4", alive)], ingests),
        _panel(
            TOP + PANEL + GAP,
            f"rows written per row drained so far, at most {most} batches alive; the optimum is each moment's own",
            [
                ("Tidemark", "#1f77b4", written),
                ("the optimum", "#2ca02c", optimum),
                (f"{ALLOWED} × the optimum", "#c44e52", [ALLOWED * value for value in optimum]),
            ],
            ingests,
        ),
    ]
    height = TOP + 2 * PANEL + GAP + 40
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" font-family="sans-serif">'
    return "\n".join([head, f'<rect width="{WIDTH}" height="{height}" fill="white"/>', *panels, "</svg>", ""])


def courses(result: dict[str, Any]) -> tuple[list[float], list[float]]:
    """Rows written per row drained up to each ingest, and the least possible had it been the last."""
    writing, ingests = result["writing"], result["ingests"]
    rows = writing["rows_drained"] / ingests
    merged = accumulate(writing["merged_rows"])
    written = [1 + total / (rows * day) for day, total in enumerate(merged, start=1)]
    least = curve(ingests, writing["live_batches_most"], base=writing["base_rows"] / rows)
    return written, [total / day for day, total in enumerate(least, start=1)]


def _panel(top: int, title: str, series: Sequence[tuple[str, str, Sequence[float]]], ingests: int) -> str:
    """Lines over ingests: axes, a title, a name at the end of each line."""
    most = max(max(values) for _, _, values in series) * 1.05
    right, bottom = WIDTH - RIGHT, top + PANEL

    def x(ingest: float) -> float:
        return LEFT + (right - LEFT) * ingest / ingests

    def y(value: float) -> float:
        return bottom - PANEL * value / most

    parts = [f'<text x="{LEFT}" y="{top - 10}" font-size="14" fill="#222">{title}</text>']
    for tick in _ticks(most):
        parts.append(f'<path d="M{LEFT} {y(tick):.1f}H{right}" stroke="#ddd"/>')
        parts.append(_label(LEFT - 8, y(tick) + 4, f"{tick:g}", "end"))
    for tick in (0, ingests // 4, ingests // 2, 3 * ingests // 4, ingests):
        parts.append(_label(x(tick), bottom + 16, f"{tick:,}", "middle"))
    names = _spread([y(values[-1]) for _, _, values in series])
    for (name, colour, values), at in zip(series, names, strict=True):
        points = " ".join(f"{x(day):.1f},{y(value):.1f}" for day, value in enumerate(values, start=1))
        parts.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="1.2"/>')
        parts.append(_label(right + 8, at + 4, f"{name}: {values[-1]:.3g}", "start", colour))
    return "\n".join(parts)


def _label(x: float, y: float, text: str, anchor: str, colour: str = "#555") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" font-size="12" text-anchor="{anchor}" fill="{colour}">{text}</text>'


def _ticks(most: float) -> list[float]:
    step = next(step for step in (0.5, 1, 2, 5, 10, 20, 50, 100, 1000) if most / step <= 7)
    return [step * number for number in range(int(most / step) + 1)]


def _spread(heights: Sequence[float], least: float = 15) -> list[float]:
    """The heights, those that would overlap moved down."""
    moved = dict.fromkeys(range(len(heights)), 0.0)
    free = float("-inf")
    for number in sorted(moved, key=lambda number: heights[number]):
        moved[number] = max(heights[number], free)
        free = moved[number] + least
    return list(moved.values())
