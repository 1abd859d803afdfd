"""A year of flights in windows, by processes that are killed."""

from __future__ import annotations

import os

from tests.deep.year import YEAR_DAYS, run

KILLS = int(os.environ.get("KILLS", "10"))


def test_every_window_of_a_year_is_as_calculated_from_the_csv_after_any_kill() -> None:
    year = run(int(os.environ.get("SEED", "1")), days=YEAR_DAYS, run_days=28, kills=KILLS)
    print(year.report())
    assert year.kills_left == 0
