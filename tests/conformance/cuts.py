"""Batches as production cuts them: files land, the triggerer's look says what is due, and the ingest commits it.

Times are seconds after noon of the interval, event times seconds after its end. `batches` is as in a collection file.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from tests.conformance.fields import check_known
from tests.support.feed import DAY, NOON, START, Feed, fed
from tidemark.arrow.rows.memory import Memory
from tidemark.config.batches import BatchesSection
from tidemark.jobs.queries import arrivals
from tidemark.jobs.steps.ingest import ingest
from tidemark.model.batching.memory import Budget
from tidemark.model.batching.rate import SECOND
from tidemark.model.batching.reason import Cut, Reason
from tidemark.model.interval import Interval

Step = dict[str, Any]
INTERVAL = Interval(START, START + DAY)


def run(case: dict[str, Any]) -> None:
    """A case of `cuts`."""
    check_known(case, {"batches", "buffers", "steps", "why"})
    batching = BatchesSection.model_validate({"settle": "0s", **case["batches"]}).batching
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        if "buffers" in case:
            patch.setattr(arrivals, "memory", lambda: Memory(Budget(case["buffers"])))
        feed = fed(Path(folder), batching)
        for number, step in enumerate(case["steps"], start=1):
            (name,) = STEPS.keys() & step.keys()
            answered = STEPS[name](feed, step)
            for field, value in answered.items():
                expected = step.get(field, value if field != "cut" else None)
                assert value == expected, f"step {number}, {field}: expected {expected}, found {value}"


def _land(feed: Feed, step: Step) -> dict[str, Any]:
    check_known(step, {"land", "lines", "events"})
    events = [INTERVAL.upper + second * SECOND for second in step.get("events", ())]
    feed.land(NOON + step["land"] * SECOND, step.get("lines", 1), events=events)
    return {}


def _look(feed: Feed, step: Step) -> dict[str, Any]:
    """What is due then is ingested."""
    check_known(step, {"look", "cut", "rows", "open"})
    due = feed.arrivals.look(NOON + step["look"] * SECOND)
    return {"cut": None} if due is None else _figures(feed.ingested(due))


def _asked(feed: Feed, step: Step) -> dict[str, Any]:
    """Somebody asks for it."""
    check_known(step, {"ask", "cut", "rows"})
    return _figures(_ingested(feed, Cut(Reason.EXPLICIT, at=NOON + step["ask"] * SECOND)))


def _end(feed: Feed, step: Step) -> dict[str, Any]:
    """The interval is over, and its own run reads it."""
    check_known(step, {"end", "cut", "rows"})
    return _figures(_ingested(feed, None))


def _ingested(feed: Feed, cut: Cut | None) -> dict[str, Any]:
    return feed.world.run(
        lambda job: ingest(job, INTERVAL, landing_root=str(feed.world.landing), cut=cut, not_over=cut is None)
    )


def _figures(result: dict[str, Any]) -> dict[str, Any]:
    cut = result.get("cut", {})
    reasons = [cut["reason"], *cut.get("also", ())] if cut else None
    opened = {"open": result["open_seconds"]} if result.get("open_seconds") is not None else {}
    return {"cut": reasons, "rows": result.get("rows", 0), **opened}


STEPS: dict[str, Callable[[Feed, Step], dict[str, Any]]] = {"land": _land, "look": _look, "ask": _asked, "end": _end}
KINDS = {"cuts": run}
