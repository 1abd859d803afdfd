"""Live batches as bars over the time that each stands for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any

from tidemark.airflow.web.markup import Markup, joined, tag
from tidemark.model.instant import format_instant
from tidemark.model.wording import counted

NARROWEST = 0.5
"""Of a bar, in percent of its lane: less is not seen."""


def lanes(entry: Mapping[str, Any]) -> Markup:
    """One lane for each level, oldest left. A bar spans the interval of its batch, or of all that have the same one: a
    day's may be many while it is open. Its colour distinguishes trace from unsealed."""
    batches = entry["batches"]
    if not batches:
        return tag("p", "none yet", class_="quiet")
    first = min(max(batch["lower"], entry["start"]) for batch in batches)
    last = max(first + 1, *(batch["upper"] for batch in batches))
    levels = sorted({batch["level"] for batch in batches if batch["level"] is not None}, reverse=True)
    drawn = [_lane(f"level {level}", [b for b in batches if b["level"] == level], first, last) for level in levels]
    for label, is_ahead in (("unsealed", False), ("ahead", True)):
        if in_lane := [batch for batch in batches if batch["level"] is None and batch["ahead"] == is_ahead]:
            drawn.append(_lane(label, in_lane, first, last))
    return joined(
        [*drawn, tag("div", tag("span", format_instant(first)), tag("span", format_instant(last)), class_="axis")]
    )


def _lane(label: str, batches: Iterable[Mapping[str, Any]], first: int, last: int) -> Markup:
    def of(batch: Mapping[str, Any]) -> tuple[int, int]:
        return batch["lower"], batch["upper"]

    bars = joined(_bar(list(same), first, last) for _, same in groupby(sorted(batches, key=of), of))
    return tag("div", tag("span", label, class_="quiet"), tag("svg", bars, class_="track", height=22), class_="lane")


def _bar(batches: Sequence[Mapping[str, Any]], first: int, last: int) -> Markup:
    """Of batches that stand for one interval."""
    one, rows, size = batches[0], sum(batch["rows"] for batch in batches), sum(batch["bytes"] for batch in batches)
    uncertified = sum(not batch["certified"] for batch in batches)
    left = min(100 - NARROWEST, 100 * max(0, one["lower"] - first) / (last - first))
    width = max(NARROWEST, 100 * (one["upper"] - first) / (last - first) - left)
    flags = {"unsealed": one["level"] is None, "uncertified": uncertified > 0, "empty": not rows}
    kind = " ".join(["bar", *(name for name, is_so in flags.items() if is_so)])
    many = f" in {len(batches)} batches" if len(batches) > 1 else ""
    which = one["id"][:12] if not many else counted(len(batches), "batch", "batches")
    says = f"{one['interval']}, {rows:,} rows, {size:,} bytes, {which}"
    if uncertified:
        says += ", not certified yet" if uncertified == len(batches) else f", {uncertified} of them not certified yet"
    shape = tag("rect", class_=kind, width="100%", height="100%", rx=3)
    text = tag("text", f"{rows:,} rows{many}", x=5, y=15)
    # A picture within the picture, which cuts off what does not fit. Its places are attributes of its own, because the
    # policy allows no style but the one sheet.
    return tag("svg", tag("title", says), shape, text, x=f"{left:.4f}%", width=f"{width:.4f}%", height=22)
