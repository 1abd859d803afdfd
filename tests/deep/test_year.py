"""A year of flights in windows, by processes that are killed; only in `make test-deep`."""

from __future__ import annotations

import os

import pytest

from tests.deep.year import YEAR_DAYS, run
from tests.support.budget import DEEP

pytestmark = pytest.mark.deep

KILLS = int(os.environ.get("KILLS", "40"))


@pytest.mark.timeout(6 * 3600)
@pytest.mark.skipif(not DEEP, reason="only with TIDEMARK_TEST_DEPTH=deep, as in `make test-deep`")
def test_every_window_of_a_year_is_as_calculated_from_the_csv_after_any_kill() -> None:
    year = run(int(os.environ.get("SEED", "1")), days=YEAR_DAYS, kills=KILLS)
    print(year.report())
    assert year.kills_left == 0
