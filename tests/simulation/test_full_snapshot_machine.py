"""Ring 2 for collections of full snapshots: the state machine against its oracle, and proof that it goes deep."""

from __future__ import annotations

import pytest
from hypothesis import seed, settings
from hypothesis.stateful import run_state_machine_as_test

from simulation.depths import REACHED
from simulation.full_snapshot_machine import FullSnapshotMachine
from simulation.test_machine import PROFILE, PROFILES

pytestmark = pytest.mark.simulation

SEEDS = {"ci": range(1, 3), "deep": range(1, 11)}.get(PROFILE, (None,))
DEPTHS = (
    "several full snapshots drained at once",
    "empty full snapshot drained",
    "unchanged full snapshot writes nothing",
    "empty full snapshot quarantined",
    "sealed full snapshot quarantined",
    "full snapshot released",
    "mended full snapshot",
    "late full snapshot refused",
)


@pytest.mark.parametrize("number", SEEDS)
def test_any_order_of_work_answers_as_the_last_full_snapshot(number: int | None):
    machine = type("FullSnapshotMachine", (FullSnapshotMachine,), {})
    profile = settings(PROFILES[PROFILE])
    run_state_machine_as_test(machine if number is None else seed(number)(machine), settings=profile)


@pytest.mark.skipif(PROFILE == "dev", reason="too few examples to reach everything")
@pytest.mark.parametrize("depth", DEPTHS)
def test_it_went_deep(depth: str):
    assert REACHED[depth], f"never reached: {depth}; reached were {dict(REACHED)}"
