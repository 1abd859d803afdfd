"""What became since of what a gate run looked at."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tidemark.model.arrangement import Arrangement
from tidemark.model.collection import Covers, Gate
from tidemark.model.instant import format_instant

SHOWN_BATCHES = 20


@dataclass(frozen=True)
class Line:
    """One sentence; `kind` is `good`, `bad` or `quiet`."""

    text: str
    kind: str


def now_of(found: Mapping[str, Any], state: Arrangement | None) -> list[Line]:
    """Sentences about the batches a kept result names, or about the frontier it was about; those that failed first."""
    if state is None:
        return [Line("the collection's state cannot be read now", "quiet")]
    if found.get("gate") in [gate for gate in Gate if gate.covers is Covers.FRONTIER]:
        return list(_frontier(found, state))
    failed = {str(result.get("batch")) for result in found["results"] if _stops(result)}
    batches = sorted(map(str, found["batches"]), key=lambda batch: (batch not in failed, batch))
    lines = [_batch(batch, batch in failed, state) for batch in batches[:SHOWN_BATCHES]]
    if len(batches) > len(lines):
        lines.append(Line(f"and {len(batches) - len(lines):,} batches more", "quiet"))
    return lines


def _stops(result: Mapping[str, Any]) -> bool:
    return not result.get("passed") and result.get("severity") == "critical"


def _frontier(found: Mapping[str, Any], state: Arrangement) -> Iterator[Line]:
    upper = found.get("upper")
    if not isinstance(upper, int):
        return
    if state.certified_upper >= upper:
        yield Line(f"passes now: the frontier is certified up to {format_instant(state.certified_upper)}", "good")
    else:
        yield Line(f"not certified yet: the frontier is so up to {format_instant(state.certified_upper)}", "bad")


def _batch(batch: str, failed: bool, state: Arrangement) -> Line:
    name, zone = f"batch {batch[:12]}", state.collection.zone
    if any(each.id == batch for each in state.taken_out):
        return Line(f"{name}: mended since: it was quarantined, and its files may be ingested again", "good")
    live = next((each for each in (*state.live, *state.without_rows) if each.id == batch), None)
    if live is None:
        words = "; ".join(f"accepted: {one.in_zone(zone).words}" for one in state.accepted if one.batch == batch)
        gone = f"{name}: no longer there: it was drained, merged or replaced"
        return Line(f"{gone}; {words}" if words else gone, "quiet")
    if accepted := [one for one in state.accepted if one.batch == batch]:
        return Line(f"accepted: {accepted[-1].in_zone(zone).words}", "quiet")
    if state.is_certified(live):
        return Line(f"{name}: {'passes now' if failed else 'certified'} under the suite of today", "good")
    return Line(f"{name}: not certified, and nothing behind it runs", "bad")
