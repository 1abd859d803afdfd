"""A row of bars: one figure for each of some times, oldest left. What each says is its title, and the extremes are
written beside them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tidemark.airflow.web.markup import Markup, joined, tag

STYLE = """
.chart { display: grid; grid-template-columns: 1fr; gap: 2px; margin: .3rem 0 1rem }
.chart svg { width: 100%; background: var(--soft); border-radius: 3px }
.chart rect { fill: var(--trace) } .chart rect.late { fill: var(--unsealed) } .chart rect.lag { fill: var(--open) }
.chart .ends { display: flex; justify-content: space-between; font-size: 12px; color: var(--quiet) }
"""
HEIGHT = 90
"""Pixels of the greatest bar."""
_GAP = 0.15
"""Of a bar's place, between it and the next."""


@dataclass(frozen=True)
class Bar:
    """A figure of a time: how high it is, and what it says."""

    value: float
    says: str


def bars(title: str, found: Sequence[Bar], first: str, last: str, most: str, kind: str = "") -> Markup:
    """The bars, with what is said of the `first` and `last` time and of the greatest figure (`most`)."""
    top = max((bar.value for bar in found), default=0) or 1
    place = 100 / max(1, len(found))
    drawn = joined(_bar(bar, at * place, place * (1 - _GAP), bar.value / top, kind) for at, bar in enumerate(found))
    picture = tag("svg", tag("title", f"{title}, at most {most}"), drawn, role="img", height=HEIGHT)
    ends = tag("div", tag("span", first), tag("span", f"at most {most}"), tag("span", last), class_="ends")
    return tag("div", tag("h3", title), picture, ends, class_="chart")


def _bar(bar: Bar, left: float, width: float, share: float, kind: str) -> Markup:
    """One bar. Its place is said by attributes: the policy of pages allows no style but the one sheet."""
    height = 0 if bar.value <= 0 else max(1.0, HEIGHT * share)
    shape = {"x": f"{left:.3f}%", "width": f"{width:.3f}%", "y": f"{HEIGHT - height:.1f}", "height": f"{height:.1f}"}
    return tag("rect", tag("title", bar.says), **shape, **({"class_": kind} if kind else {}))
