"""A step and a gate of the tests' own, declared as the product's are: whatever lists them elsewhere must follow."""

from __future__ import annotations

from typing import Any

import pytest

from tidemark.errors import InvalidUsage
from tidemark.jobs.job import Job
from tidemark.jobs.steps.declared import STEPS
from tidemark.jobs.steps.step import Argument, Intervals, Step, When
from tidemark.model.collection import COVERED, Covers, Gate
from tidemark.model.instant import parse_duration
from tidemark.model.interval import Interval
from tidemark.quality.evidence import Evidence
from tidemark.quality.gates import GATES, Judgement
from tidemark.quality.suites import Rule


def whole(text: str) -> int:
    """An argument's own type."""
    if not text.isdigit():
        raise InvalidUsage(f"not a whole number: {text!r}; write 7")
    return int(text)


def tally(job: Job, interval: Interval, *, at_least: int, wait_for: int | None, aloud: bool) -> dict[str, Any]:
    """Count the batches. Nothing is changed."""
    head = job.log.load()
    options = {"batches": len(head.state.batches), "at_least": at_least, "wait_for": wait_for, "aloud": aloud}
    return {"outcome": "applied", "version": head.version, "of": str(interval), **options}


ARGUMENTS = (
    Argument("least", "Fewer are not counted.", whole, "COUNT", default="1", environ="TOY_LEAST", parameter="at_least"),
    Argument("wait_for", "How long to wait.", parse_duration, "DURATION"),
    Argument("aloud", "Say it aloud.", flag=True),
)


def declared(monkeypatch: pytest.MonkeyPatch) -> tuple[Step, Gate]:
    """Declare the step `tally` behind the others of a run, and its gate `counted`."""
    gate = str.__new__(Gate, "counted")
    gate._name_, gate._value_ = "COUNTED", "counted"
    # What a new member in the source of the enumeration would do.
    monkeypatch.setitem(Gate._member_map_, "COUNTED", gate)
    monkeypatch.setitem(Gate._value2member_map_, "counted", gate)
    monkeypatch.setattr(Gate, "_member_names_", [*Gate._member_names_, "COUNTED"])
    monkeypatch.setitem(COVERED, gate, Covers.TRACE)
    rules = (
        Rule(
            "few rows",
            "expect_column_values_to_be_between",
            {"column": "rows", "max_value": 1},
            "holds {rows} rows, which is too many to count",
        ),
    )
    monkeypatch.setitem(
        GATES,
        gate,
        Judgement(
            rules,
            lambda seen: Evidence(gate, tuple({"batch": batch.id, "rows": batch.rows} for batch in seen.request.trace)),
            checks="Batches are few enough to count.",
            way_out="forget {batch} of `{collection}`, {again}",
            mend="Learn to count.",
        ),
    )
    step = Step(
        "tally",
        job="tests.support.toy_step:tally",
        intervals=Intervals.NAMES_RUN,
        help="Count the batches of a collection.",
        docs="Counts batches.",
        arguments=ARGUMENTS,
        gate=gate,
        when=When.EACH_RUN,
        kernels=("inspect",),
        imports=("this_is_slow",),
    )
    monkeypatch.setitem(STEPS, "tally", step)
    return step, gate
