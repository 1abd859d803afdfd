"""A few walks of the state machines on S3: the same jobs, races and crashes, the same oracles."""

from __future__ import annotations

import pytest
from hypothesis import Phase, seed, settings
from hypothesis.stateful import run_state_machine_as_test

from model.dump_machine import DumpMachine
from model.machine import Machine
from model.test_machine import DEV
from support.stores import Stores

pytestmark = pytest.mark.s3

FEW = settings(DEV, max_examples=2, stateful_step_count=8, database=None, phases=[Phase.generate])


@pytest.mark.parametrize("machine", [Machine, DumpMachine])
def test_any_order_of_work_answers_as_the_oracle(
    stores: Stores, machine: type[Machine], monkeypatch: pytest.MonkeyPatch
):
    for module in ("machine", "dump_machine"):
        monkeypatch.setattr(f"model.{module}.MemoryStore", stores)
    run_state_machine_as_test(seed(1)(type(machine.__name__, (machine,), {})), settings=FEW)
