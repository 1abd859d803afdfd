"""The campaign of kills and stops, over launchers and children of tasks."""

from __future__ import annotations

import os

import pytest

from tests.deep.campaign import run


@pytest.mark.parametrize(("launcher", "hits"), [("child", 200), ("resident", 80), ("submit", 25)])
def test_kills_and_stops_lose_nothing_and_leave_nothing(launcher: str, hits: int) -> None:
    campaign = run(int(os.environ.get("SEED", "1")), **{"child": 0, "resident": 0, "submit": 0, launcher: hits})
    print(campaign.report())
    assert campaign.hits == hits
