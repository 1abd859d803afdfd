"""Cases that say what is a valid batch or state, against the validators that states and batches run on themselves."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from tests.conformance.codes import check_error
from tests.conformance.plain import COLLECTION, frontier_of, update_of
from tests.support import rules
from tidemark.errors import Corruption
from tidemark.model import invariants
from tidemark.model.arrangement import Arrangement
from tidemark.model.batch import Description, ObjectRef, TraceBatch, UnsealedBatch
from tidemark.model.interval import Interval
from tidemark.model.invariants import Invariant, Violation

Value = dict[str, Any]
OURS_ALONE = {Invariant.TRACE_FROM_ZERO}
"""What the vectors hold valid and we do not (docs/decisions/0019). It is checked last."""


def description(value: Value) -> Description:
    return Description(*(frontier_of(value.get(name, 0)) for name in ("lower", "upper", "since")))


def unsealed_batch(value: Value, name: str = "b") -> UnsealedBatch:
    first, last = value.get("ts_min", 0), value.get("ts_max", 0)
    ref = ObjectRef(name, 1, "")
    lower, upper = value["seqno"]
    return UnsealedBatch(name, Interval(0, 1), ref, 1, 1, 1, 0, first, last, first, last, sequence=(lower, upper))


def trace_batch(value: Value, name: str = "b") -> TraceBatch:
    return TraceBatch(name, description(value), value.get("level", 0), 0, 0, 0)


def _unsealed_batch(value: Value) -> Iterator[Violation]:
    lower, upper = value["seqno"]
    return rules.of_unsealed_rows((lower, upper), [update_of(update) for update in value["updates"]])


def _trace_batch(value: Value) -> Iterator[Violation]:
    parts = value.get("parts", [value.get("updates", [])])
    return rules.of_trace_rows(description(value), [[update_of(update) for update in part] for part in parts])


def _unsealed_batch_meta(value: Value) -> Iterator[Violation]:
    return unsealed_batch(value).violations()


def _trace_batch_meta(value: Value) -> Iterator[Violation]:
    return trace_batch(value).violations()


def _arrangement_meta(value: Value) -> Iterator[Violation]:
    unsealed = [unsealed_batch(batch, f"u{at}") for at, batch in enumerate(value.get("unsealed_batches", []))]
    trace = [trace_batch(batch, f"t{at}") for at, batch in enumerate(value.get("trace_batches", []))]
    state = Arrangement(
        COLLECTION,
        complete_below=frontier_of(value["seal"]),
        seal=frontier_of(value["seal"]),
        since=frontier_of(value["since"]),
        unsealed=tuple(unsealed),
        trace=tuple(trace),
    )
    return state.violations()


def _adapter(validate: Callable[[Value], Iterator[Violation]]) -> Callable[[dict[str, Any]], None]:
    def run(case: dict[str, Any]) -> None:
        expected = case["expect"].get("error")
        try:
            invariants.check(validate(case["value"]))
        except Corruption as error:
            if expected is None and error.rule in OURS_ALONE:
                return
            if expected is None:
                raise
            check_error(expected, error)
            return
        if expected is not None:
            raise AssertionError(f"expected error {expected['code']}, it is valid")

    return run


KINDS = {
    "validate_unsealed_batch": _adapter(_unsealed_batch),
    "validate_trace_batch": _adapter(_trace_batch),
    "validate_unsealed_batch_meta": _adapter(_unsealed_batch_meta),
    "validate_trace_batch_meta": _adapter(_trace_batch_meta),
    "validate_arrangement_meta": _adapter(_arrangement_meta),
}
