"""The campaign of kills and stops over both launchers, in `make test-deep` only: it takes an hour or two."""

from __future__ import annotations

import os

import pytest

from tests.deep.campaign import run

pytestmark = pytest.mark.deep


@pytest.mark.timeout(4 * 3600)
@pytest.mark.skipif(os.environ.get("TIDEMARK_TEST_DEPTH") != "deep", reason="set TIDEMARK_TEST_DEPTH=deep")
def test_two_hundred_kills_and_stops_lose_nothing_and_leave_nothing() -> None:
    campaign = run(int(os.environ.get("SEED", "1")), resident=150, submit=50)
    print(campaign.report())
    assert campaign.hits == 200
