"""Walks of the state machine on S3: the same jobs, races and crashes, the same oracles."""

from __future__ import annotations

import pytest
from hypothesis import Phase, seed, settings
from hypothesis.stateful import run_state_machine_as_test

from simulation.machine import Machine
from simulation.test_machine import DEV
from support.stores import Stores

pytestmark = [pytest.mark.s3, pytest.mark.timeout(3600)]

FEW = settings(DEV, max_examples=10, stateful_step_count=20, database=None, phases=[Phase.generate])


def test_any_order_of_work_answers_as_the_oracle(stores: Stores, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("simulation.machine.MemoryStore", stores)
    run_state_machine_as_test(seed(1)(type("Machine", (Machine,), {})), settings=FEW)
