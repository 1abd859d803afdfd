"""Ring 2: the state machine against the oracle, and proof that it goes deep."""

from __future__ import annotations

import os

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test
from model.machine import REACHED, Machine

pytestmark = pytest.mark.model

EVERYTHING = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much, HealthCheck.large_base_example]
settings.register_profile("dev", max_examples=40, stateful_step_count=30, deadline=None, suppress_health_check=EVERYTHING)
settings.register_profile("ci", settings.get_profile("dev"), max_examples=120, derandomize=True, print_blob=True)
settings.register_profile("nightly", settings.get_profile("dev"), max_examples=5000, stateful_step_count=60)
PROFILE = os.environ.get("HYPOTHESIS_PROFILE", "ci")


def test_any_order_of_work_answers_as_the_oracle():
    run_state_machine_as_test(Machine, settings=settings.get_profile(PROFILE))
    print(dict(REACHED))
