"""Chains of time buckets, step by step. Ten million times are kept as the ranges they are."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from tests.conformance.fields import check_known
from tests.conformance.steps import Step, perform, run_each
from tidemark.model.correction_buffer.buckets import BucketChain

Range = tuple[int, int]
FIELDS = {
    "restore": {"fuel"},
    "restore_until_fuel_left": {"fuel"},
    "peel": {"frontier"},
    "peel_stepwise": {"start", "step", "end", "restore_fuel_each"},
    "insert_range": {"range"},
    "all_bits_at_least": {"bits"},
    "lower_in": {"range_exclusive_low", "range_inclusive_high"},
    "range_of": {"time"},
    "contains": {"range_of", "time"},
}
"""What the steps say that are more than their name."""
HOLD_OR_FAIL = {"all_bits_at_least", "lower_in"}
"""Steps that state a fact, unless they expect the opposite."""


@dataclass(frozen=True)
class Times:
    """Times as disjoint half-open ranges, ascending; splitting costs one a time."""

    ranges: tuple[Range, ...] = ()

    def __len__(self) -> int:
        return sum(end - start for start, end in self.ranges)

    def split(self, at: int) -> tuple[Times, Times, int]:
        return self.between(0, at), self.between(at, self.ranges[-1][1] if self.ranges else at), len(self)

    def between(self, lower: int, upper: int) -> Times:
        cut = ((max(start, lower), min(end, upper)) for start, end in self.ranges)
        return Times(tuple((start, end) for start, end in cut if start < end))

    def __add__(self, other: Times) -> Times:
        """Of two without a time in common."""
        found: list[Range] = []
        for start, end in sorted((*self.ranges, *other.ranges)):
            if found and found[-1][1] == start:
                start = found.pop()[0]
            found.append((start, end))
        return Times(tuple(found))


class Subject:
    """A chain of buckets and the operations of the vectors upon it, by their names."""

    def __init__(self, config: dict[str, Any], initial: Any = ()) -> None:
        check_known(config, {"time_bits", "min_bits"})
        times = _times(initial)
        self.chain: BucketChain[Times] = BucketChain.over(
            times, **{name: config[name] for name in ("time_bits", "min_bits") if name in config}
        )

    def restore(self, step: Step) -> dict[str, bool]:
        self.chain, left = self.chain.restore(step["fuel"])
        return {"fuel_left_positive": left > 0}

    def restore_until_fuel_left(self, step: Step) -> None:
        left = 0
        while left <= 0:
            self.chain, left = self.chain.restore(step["fuel"])

    def peel(self, step: Step) -> dict[str, Any]:
        """How many buckets were handed out, with what."""
        due, self.chain = self.chain.peel(self._frontier_of(step["frontier"]))
        return {"bucket_count": len(due), "times": _joined(due)}

    def peel_stepwise(self, step: Step) -> dict[str, Any]:
        """Everything comes out once, in order, as soon as it is due and hardly before; what came out in all."""
        contained = _joined(bucket.content for bucket in self.chain.buckets)
        frontier = step["start"]
        while frontier < step["end"]:
            frontier = min(frontier + step["step"], step["end"])
            before = self.chain.lower
            due, self.chain = self.chain.peel(frontier)
            lower = max(before, self.chain.lower)
            in_order = [one for times in due for one in times.ranges]
            assert in_order == sorted(in_order), f"at {frontier}: not ascending"
            assert _joined(due) == contained.between(before, lower), (
                f"at {frontier}: not what was contained up to {lower}"
            )
            last = max((end for _, end in in_order), default=0)
            assert lower >= frontier, f"at {frontier}: only what is below {lower} is out"
            assert last <= frontier - 1 + (1 << self.chain.min_bits), f"at {frontier}: {last - 1} is out"
            self.chain, _ = self.chain.restore(step["restore_fuel_each"])
        return {"times": contained.between(0, self.chain.lower)}

    def insert_range(self, step: Step) -> None:
        start, end = (self.chain.lower if bound == "lower" else bound for bound in step["range"])
        while start < end:
            bucket = self.chain.find(start)
            assert bucket is not None, f"no bucket for {start}"
            upper = min(end, bucket.end)
            self.chain = self.chain.holding(bucket, bucket.content + Times(((start, upper),)))
            start = upper

    def is_empty(self, step: Step) -> bool:
        return not self.chain.buckets

    def all_bits_at_least(self, step: Step) -> bool:
        return all(bucket.bits >= step["bits"] for bucket in self.chain.buckets)

    def lower(self, step: Step) -> int | None:
        return self.chain.lower if self.chain.buckets else None

    def lower_in(self, step: Step) -> bool:
        return bool(step["range_exclusive_low"] < self.chain.lower <= step["range_inclusive_high"])

    def range_of(self, step: Step) -> list[int | None] | None:
        bucket = self.chain.find(step["time"])
        return bucket and [bucket.start, None if bucket.end == self.chain.end else bucket.end]

    def contains(self, step: Step) -> bool:
        bucket = self.chain.find(step["range_of"])
        return bucket is not None and step["time"] in bucket

    def bucket_count(self, step: Step) -> int:
        return len(self.chain.buckets)

    def layout(self, step: Step) -> list[list[int]]:
        return [[bucket.start, bucket.bits] for bucket in self.chain.buckets]

    def _frontier_of(self, value: int | None) -> int:
        return self.chain.end if value is None else value


def run(case: dict[str, Any]) -> None:
    """Raise, naming the step, where one does not do what is expected of it."""
    check_known(case, {"config", "initial_times", "steps"})
    subject = Subject(case.get("config", {}), case.get("initial_times", ()))
    run_each(case["steps"], lambda step: _run_step(subject, step))


def layout(case: dict[str, Any]) -> None:
    """Where the buckets begin, and how wide they are, after some operations."""
    check_known(case, {"config", "initial_times", "ops", "expect"})
    subject = Subject(case.get("config", {}), case.get("initial_times", ()))
    for name, number in case["ops"]:
        getattr(subject, {"restore": "restore", "peel": "peel"}[name])({"fuel": number, "frontier": number})
    found = subject.layout({})
    assert found == case["expect"], f"expected {case['expect']}, found {found}"


def _run_step(subject: Subject, step: Step) -> None:
    name = step["op"]
    check_known(step, {"op", "expect", *FIELDS.get(name, ())})
    expected = step.get("expect", {"returns": True} if name in HOLD_OR_FAIL else {})
    perform(subject, name, step, expected, lambda found: _compare(expected, found, subject.bucket_count(step)))


def _compare(expected: dict[str, Any], found: Any, buckets: int) -> None:
    """What is expected by name: how many buckets there are after the step, what it tells by name, what it returns."""
    by_name = {"bucket_count": buckets, **(found if isinstance(found, dict) else {})}
    found = by_name.pop("times", found)
    check_known(expected, {"ok", "returns", "returns_range", "returns_count", *by_name})
    assert expected.get("ok", True) is True, "expected that it fails, it succeeded"
    for name, wanted in expected.items():
        if name in by_name or name.startswith("returns"):
            seen = by_name[name] if name in by_name else _as_said(name, found)
            assert seen == wanted, f"{name}: expected {wanted}, found {seen}"


def _as_said(said: str, found: Any) -> Any:
    """Times as a list, as one range, or how many; anything else as it is."""
    if not isinstance(found, Times):
        return found
    assert said in ("returns", "returns_count", "returns_range"), f"{said} of times"
    if said == "returns_count":
        return len(found)
    if said == "returns_range":
        assert len(found.ranges) == 1, f"no single range: {found.ranges}"
        return list(found.ranges[0])
    return [time for start, end in found.ranges for time in range(start, end)]


def _times(initial: Any) -> Times:
    """A list of times, or a range."""
    if isinstance(initial, dict):
        check_known(initial, {"range"})
        start, end = initial["range"]
        return Times(((start, end),))
    return _joined(Times(((time, time + 1),)) for time in initial)


def _joined(some: Iterable[Times]) -> Times:
    found = Times()
    for times in some:
        found += times
    return found


KINDS = {"bucket_chain": run, "bucket_layout": layout}
