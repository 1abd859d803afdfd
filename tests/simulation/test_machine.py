"""Ring 2: the state machine against the oracle, and proof that it goes deep."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis.stateful import run_state_machine_as_test

from simulation.depths import REACHED
from simulation.machine import MEANWHILE, STEPS, Machine, as_cells
from support.budget import budget
from support.world import DAY
from tidemark.model.collection import Envelope, Late
from tidemark.model.retention import Retention
from tidemark.plan import compact, remember, undue

pytestmark = pytest.mark.simulation

SLOW = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much, HealthCheck.large_base_example]
DEV = settings(max_examples=20, stateful_step_count=30, deadline=None, suppress_health_check=SLOW, print_blob=True)
PROFILES = {
    "dev": DEV,
    # To shrink what this one finds takes minutes: run it again as dev, with the blob it prints.
    "ci": settings(DEV, max_examples=6, database=None, phases=[Phase.explicit, Phase.generate]),
    "deep": settings(DEV, max_examples=20, stateful_step_count=50, phases=[Phase.explicit, Phase.generate]),
}
PROFILE = os.environ.get("HYPOTHESIS_PROFILE", budget(ci="ci", deep="deep"))
SEEDS: dict[str, Sequence[int]] = {"ci": [1], "deep": range(1, 11)}
"""Several short searches go wider than a long one, which tries variations of what it knows."""
DEPTHS = (
    "late and applied",
    "late and moved to the seal",
    "late and discarded",
    "replayed",
    "replayed and moved",
    "replayed: stale",
    "late fact before a compacted one",
    "more lateness than is remembered",
    "merge of three and more",
    "crash",
    "crash without effect",
    "ingested: stale",
    "ingested: fenced",
    "drained: stale",
    "drained: fenced",
    "compacted: stale",
    "compacted: fenced",
    "drain waits through a quarantine",
    "ingest waits through a release",
    "since beyond the horizon",
    "mended file",
    "released",
    "certificates lapse",
    "reads below since",
    "since beyond the seal",
    "a hold stops since",
    "a lone batch is rewritten",
    "a merge that moves no data",
    "what cancels was stored separately",
    "what is stored separately is kept",
    "a merge that keeps instants below since",
    "trimmed",
    "trimmed: stale",
    "remembered facts merged",
    "what is ahead was merged",
    "what is ahead was sorted by buckets",
    "columns changed beside rows at rest",
    "a tick",
    "a tick upon a tick",
    "on time below the ticks",
)


@pytest.fixture(autouse=True)
def remembered_facts_and_what_is_ahead_are_merged_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """A walk is short."""
    monkeypatch.setattr(remember, "FAN_IN", 2)
    monkeypatch.setattr(remember, "LEAST_GROWTH", 1)
    monkeypatch.setattr(undue, "STAGE_ROWS", 3)
    monkeypatch.setattr(undue, "STAGE_BATCHES", 1)
    monkeypatch.setattr(compact, "SETTLED_ROWS", 1)


@pytest.mark.parametrize("number", SEEDS.get(PROFILE, (None,)))
def test_any_order_of_work_answers_as_the_oracle(number: int | None):
    machine = type("Machine", (Machine,), {})
    run_state_machine_as_test(machine if number is None else seed(number)(machine), settings=PROFILES[PROFILE])


def declared(of: type[Machine] = Machine, **changes: Any) -> Machine:
    """A machine of today's usual kind, moved by hand."""
    machine = of()
    usual: dict[str, Any] = {
        "envelope": Envelope.UPSERT,
        "late": Late("reemit"),
        "grace": 0,
        "event_time": True,
        "order_by": True,
        "ahead": True,
        "retention": Retention(),
        "live_batches": 2,
        "past": [[[as_cells(0)]]],
    }
    machine.declare(**usual | changes)
    return machine


def a_row(key: int, value: str = "a") -> dict[str, Any]:
    return {**as_cells(0), "k": key, "v": value}


TO_WAIT = {
    "replay": {"late": Late("discard")},
    "trim": {"late": Late("reemit", DAY)},
    "settle": {"envelope": Envelope.APPEND},
}
"""What a step's collection must be, for there to be something to wait with."""


@pytest.mark.parametrize("meanwhile", MEANWHILE)
@pytest.mark.parametrize("step", STEPS)
def test_a_step_that_waited_while_others_went_on(step: str, meanwhile: str):
    """Every pair, and not only those that a search comes by."""
    REACHED.pop(f"{step} waits through a {meanwhile}", None)
    for run in (0, 1):
        machine = declared(**TO_WAIT.get(step, {}))
        if step == "replay":
            machine.late_rows(updates=[a_row(1)], happened=0, landed=[], merge=None)
        for ahead in (0, -1):
            machine.overtaken(step, meanwhile, [[a_row(2), a_row(3)]], run, ahead)
            machine.answers_are_the_oracle_s()
            machine.the_trace_keeps_its_descriptions()
        machine.teardown()
    assert REACHED[f"{'ingest' if meanwhile == 'release' else step} waits through a {meanwhile}"]


def test_a_late_fact_before_a_compacted_one(monkeypatch: pytest.MonkeyPatch):
    """What is merged by levels alone: such a batch is known by its level."""
    monkeypatch.setattr(compact, "SETTLED_ROWS", 2**18)
    REACHED.pop("late fact before a compacted one", None)
    machine = declared()
    for day in range(6):
        machine.quiet_day([[a_row(key, "ab"[day % 2]) for key in range(min(3, day + 1))]])
    machine.late_rows(updates=[a_row(0, "b")], happened=0, landed=[], merge=None)
    machine.answers_are_the_oracle_s()
    machine.teardown()
    assert REACHED["late fact before a compacted one"]


@pytest.mark.parametrize("envelope", [Envelope.UPSERT, Envelope.APPEND])
def test_as_many_ticks_as_a_day_has_instants(envelope: Envelope):
    """The seal is beyond the next day by then, whose rows are on time all the same, and whose end moves no seal."""
    for depth in ("a tick upon a tick", "on time below the ticks", "complete below the ticks"):
        REACHED.pop(depth, None)
    machine = declared(envelope=envelope)
    machine.learned_at_once(updates=[a_row(0, "b"), a_row(3)], happened=4, ahead=-1, times=12)
    machine.quiet_day([[a_row(0), {**a_row(1), "dt": 9}]])
    machine.quiet_day([[{**a_row(2), "dt": 2}]])
    machine.answers_are_the_oracle_s()
    machine.the_trace_keeps_its_descriptions()
    machine.teardown()
    assert all(
        REACHED[depth] for depth in ("a tick upon a tick", "on time below the ticks", "complete below the ticks")
    )


@pytest.mark.parametrize("envelope", [Envelope.UPSERT, Envelope.APPEND])
def test_late_rows_that_wait_while_others_are_learned_are_judged_again(envelope: Envelope):
    """Both were planned at one seal; the tick of the first makes the second one's times a thing of the past."""
    REACHED.pop("ingested: stale", None)
    machine = declared(envelope=envelope)
    for _ in range(2):
        machine.quiet_day([[a_row(0)]])
    machine.land_late([a_row(1)], 4)
    waiting = machine.start_work("ingest", machine.day(-1), [])
    assert waiting is not None
    machine.learned_at_once(updates=[a_row(2)], happened=3, ahead=-2, times=1)
    machine.finish(waiting)
    assert REACHED["ingested: stale"]
    machine.run_ingest(waiting.day)
    machine.seal(-1)
    machine.drain(0)
    machine.answers_are_the_oracle_s()
    assert machine.oracle.seal == machine.oracle.complete + 2
    machine.teardown()


@pytest.mark.skipif(PROFILE != "deep", reason="too few examples to reach everything")
@pytest.mark.parametrize("depth", DEPTHS)
def test_it_went_deep(depth: str):
    """A green run proves nothing of what it never came to."""
    assert REACHED[depth], f"never reached: {depth}; reached were {dict(REACHED)}"
