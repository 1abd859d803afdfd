"""The adapters reach production: with one of its functions broken, the cases that are about it fail."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.conformance import window_for_a_while, window_production
from tests.conformance.runner import Case, cases, failure, outcome
from tests.conformance.test_vectors import VECTORS
from tidemark.arrow.kernels.aggregates.groups import groups_by
from tidemark.arrow.kernels.merge import merged
from tidemark.arrow.kernels.windows.late_sessions import judged_updates
from tidemark.arrow.kernels.windows.placed import placed
from tidemark.arrow.kernels.windows.sessions import sessions_of
from tidemark.arrow.kernels.windows.sliding import sliding_in_order, sliding_of
from tidemark.arrow.read import answer
from tidemark.jobs.queries.arrivals import Arrivals
from tidemark.jobs.steps.ingest import ingest
from tidemark.model.batching.cutting import Cutter
from tidemark.model.batching.length import Adaptive
from tidemark.model.batching.rate import RateMonitor
from tidemark.model.chunk.cuts import Appender
from tidemark.model.correction_buffer.buckets import BucketChain
from tidemark.model.correction_buffer.chain_rule import is_too_large
from tidemark.model.correction_buffer.stack import Stack
from tidemark.spark.derive.computer import SparkComputer

pytestmark = pytest.mark.pure
CASES = [case for path in sorted(VECTORS.glob("*.json")) for case in cases(path)]
ALIGNED = ("tumbling", "hopping", "cumulate")
KERNELS: dict[str, tuple[tuple[str, ...], tuple[Callable[..., Any], ...]]] = {
    "sliding": (("sliding",), (sliding_of, sliding_in_order)),
    "session": (("session",), (sessions_of, judged_updates)),
    "groups": (ALIGNED, (groups_by,)),
    "placed": (ALIGNED, (placed,)),
}
"""Kinds of windows, and the kernels that compute them."""


def _raises(*_: object, **__: object) -> Any:
    raise NotImplementedError("broken by a test")


@contextmanager
def broken(*functions: Callable[..., Any]) -> Iterator[None]:
    """The functions raise, under whatever name a module has imported them."""
    with pytest.MonkeyPatch.context() as patch:
        for function in functions:
            patch.setattr(function, "__code__", _raises.__code__)
        for remembered in (window_production, window_for_a_while):
            remembered.forget()
        yield


def kind_of(case: Case) -> str:
    """The kind of windows that a case is of."""
    return str(case.content["kind"] if case.kind == "retractions" else case.kind)


def computed(kinds: tuple[str, ...]) -> list[Case]:
    return [case for case in CASES if kind_of(case) in kinds and outcome(case).computed]


@pytest.mark.parametrize("name", KERNELS)
def test_windows_are_those_of_the_kernels(name: str) -> None:
    kinds, kernels = KERNELS[name]
    some = computed(kinds)
    assert some
    with broken(*kernels):
        passed = [case.name for case in some if "broken by a test" not in (failure(case) or "")]
    assert not passed, f"they pass without {name}"
    for kernel in kernels:
        with broken(kernel):
            assert any(failure(case) for case in some), f"no case is computed by {kernel.__name__}"


def test_windows_of_all_kinds_are_those_of_the_computer_that_correct_asks() -> None:
    some = [case for case in computed((*ALIGNED, "sliding", "session")) if not case.content.get("grace")]
    with broken(SparkComputer.compute):
        failing = [case for case in some if failure(case)]
    for kind in (*ALIGNED, "sliding", "session"):
        assert [case for case in failing if kind_of(case) == kind], f"no case of {kind} windows fails"


OTHERS: dict[str, tuple[tuple[Callable[..., Any], ...], dict[str, set[str]]]] = {
    "correction buffer": (
        (BucketChain.peel, BucketChain.restore, Stack.pushed, is_too_large),
        {
            "correction": {"cor.derived.empty_since_discards"},
            "bucket_chain": set(),
            "bucket_layout": {"bkt.derived.layout.u8_fresh"},
            "chain_invariant": set(),
        },
    ),
    "cuts": ((Appender.appended,), {"batcher_cases": set()}),
    "reads": ((answer,), {"latest_at_cases": {"OL01"}, "range_cases": {"OR02"}, "cache_sequences": set()}),
    "merges": (
        (merged,),
        {
            "arrangement": {"arr.derived.append_empty_rejected"},
            "compact_request": {"cmp.since_behind_older"},
            "compact_multipart": set(),
        },
    ),
    "looks": ((Arrivals.look, ingest), {"cuts": set()}),
    "batches": (
        (Cutter.cut, Adaptive.length, RateMonitor.rate),
        {
            "triggers": {
                *("flink/continuous_3000", "flink/session_count_4"),  # of windows
                *("own.count_0_refused", "own.every_0_refused"),
            },
            "cuts": set(),
        },
    ),
}
"""Other functions that production runs; and by kinds of cases that are about them those that pass without: they hold
nothing, are refused before, or ask for rows without times, which only the law has."""


@pytest.mark.parametrize("name", OTHERS)
def test_the_other_cases_reach_production_too(name: str) -> None:
    functions, passing = OTHERS[name]
    some = [case for case in CASES if case.kind in passing]
    with broken(*functions):
        passed = [case for case in some if failure(case) is None]
    found = {kind: {case.name for case in passed if case.kind == kind} for kind in passing}
    assert found == passing
