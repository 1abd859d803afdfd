"""The `retention` of a collection file: from what YAML says to the model's policy.

retention: all                                   every time stays readable (the default)
retention: full_merge                            only the newest complete time does
retention: {tiered: {keep_recent: 7}}            those since the seventh newest seal
retention: {time_boundary: 1h}                   the last instant of every hour
retention: [{keep: all, for: 7d}, {keep: 1h, for: 30d}, {keep: 1d}]      by age
retention: adaptive                              as the reads ask
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tidemark.errors import InvalidUsage
from tidemark.model.instant import parse_duration
from tidemark.model.retention import Retention, Step

PLAIN = ("all", "full_merge", "adaptive")
FORMS = "all, full_merge, adaptive, {tiered: {keep_recent: 7}}, {time_boundary: 1h} or [{keep: all, for: 7d}, ...]"


def retention_of(value: Any) -> Retention:
    """The policy a file's `retention` declares. InvalidUsage, saying what may be written, for anything else."""
    if isinstance(value, str) and value in PLAIN:
        return Retention(value)
    if isinstance(value, list) and value:
        return Retention("ladder", steps=tuple(_step(step) for step in value))
    if isinstance(value, Mapping) and set(value) == {"tiered"}:
        inner = value["tiered"]
        count = inner.get("keep_recent") if isinstance(inner, Mapping) and set(inner) == {"keep_recent"} else None
        if isinstance(count, bool) or not isinstance(count, int):
            raise InvalidUsage(f"tiered is {inner!r}; write {{tiered: {{keep_recent: 7}}}}")
        return Retention("tiered", keep_recent=count)
    if isinstance(value, Mapping) and set(value) == {"time_boundary"}:
        return Retention("time_boundary", interval=_duration(value["time_boundary"], "time_boundary"))
    raise InvalidUsage(f"{value!r} is no retention; write {FORMS}")


def _step(value: Any) -> Step:
    if not isinstance(value, Mapping) or not {"keep"} <= set(value) <= {"keep", "for"}:
        raise InvalidUsage(f"a step of a ladder is {{keep: 1h, for: 30d}} (the last may lack `for`), found {value!r}")
    interval = None if value["keep"] == "all" else _duration(value["keep"], "keep")
    reach = _duration(value["for"], "for") if "for" in value else None
    return Step(interval, reach)


def _duration(value: Any, name: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int | str):
        raise InvalidUsage(f"{name} is {value!r}, no duration; write 1h or 7d")
    return parse_duration(value)
