"""Walks of the state machines on S3: the same jobs, races and crashes, the same oracles."""

from __future__ import annotations

import pytest
from hypothesis import Phase, seed, settings
from hypothesis.stateful import run_state_machine_as_test

from simulation.full_snapshot_machine import FullSnapshotMachine
from simulation.machine import Machine
from simulation.test_machine import DEV
from support.budget import budget
from support.stores import Stores

pytestmark = [pytest.mark.s3, pytest.mark.timeout(budget(ci=300, deep=3600))]

EXAMPLES, STEPS = budget(ci=(2, 8), deep=(20, 20))
FEW = settings(DEV, max_examples=EXAMPLES, stateful_step_count=STEPS, database=None, phases=[Phase.generate])


@pytest.mark.parametrize("machine", [Machine, FullSnapshotMachine])
def test_any_order_of_work_answers_as_the_oracle(
    stores: Stores, machine: type[Machine], monkeypatch: pytest.MonkeyPatch
):
    for module in ("machine", "full_snapshot_machine"):
        monkeypatch.setattr(f"simulation.{module}.MemoryStore", stores)
    run_state_machine_as_test(seed(1)(type(machine.__name__, (machine,), {})), settings=FEW)
