"""The campaign of kills and stops, over launchers and children: a few in `make test`, 300 in `make test-deep`."""

from __future__ import annotations

import os

import pytest

from tests.deep.campaign import run
from tests.support.budget import budget

pytestmark = pytest.mark.deep

RESIDENT, SUBMIT, CHILD = budget(ci=6, deep=150), budget(ci=0, deep=50), budget(ci=6, deep=100)


@pytest.mark.timeout(budget(ci=1200, deep=4 * 3600))
def test_kills_and_stops_lose_nothing_and_leave_nothing() -> None:
    campaign = run(int(os.environ.get("SEED", "1")), resident=RESIDENT, submit=SUBMIT, child=CHILD)
    print(campaign.report())
    assert campaign.hits == RESIDENT + SUBMIT + CHILD
