"""Collections of windows, of every kind and way to be declared, and those they are over, as a version wrote them that
computed some by queries of Spark. Every later version must go on with them and change no row.

What is there stays as it is. `tools/run python -m tests.oracles.written_windows FOLDER` writes the same to a new folder
by the version of today, with Spark.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "include"))
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # as pytest has them

from tests.oracles.followed_windows import Followed, through
from tests.oracles.random_windows import DAY, HOUR
from tests.spark.test_derived import Deriving
from tidemark.jobs.steps.correct import correct
from tidemark.jobs.steps.drain import drain
from tidemark.jobs.steps.seal import seal
from tidemark.model.collection import Envelope
from tidemark.model.window.aggregate import Aggregate, Function
from tidemark.model.window.calendar import Unit
from tidemark.model.window.kinds import Calendar, Cumulate, Hopping, Session, Sliding, Tumbling
from tidemark.model.window.windows import EVENT_TIME, Late, Windows

WINDOWS = Path(__file__).resolve().parents[1] / "compat" / "windows"
SEED, DAYS = 27, [(26, 0), (9, 6)]
"""Of which seed the rows are; how many are new on a day, and of how many something is retracted."""
COUNTS = (
    Aggregate("n", Function.COUNT),
    Aggregate("known", Function.COUNT, "note", "m > -2"),
    Aggregate("total", Function.SUM, "m * 2 + 1"),
    Aggregate("prices", Function.SUM, "p"),
    Aggregate("mean", Function.AVG, "m"),
    Aggregate("mean_price", Function.AVG, "p"),
)
"""Most of them are added up, by columns that are hidden."""
ALL = (
    *COUNTS,
    Aggregate("exact", Function.SUM, "y"),
    Aggregate("least", Function.MIN, "x"),
    Aggregate("most", Function.MAX, "upper(s)"),
    Aggregate("earliest", Function.FIRST, "s", "m <> 1 OR m IS NULL"),
    Aggregate("latest", Function.LAST, "CASE WHEN ok THEN p ELSE r END"),
    Aggregate("notes", Function.COLLECT, "note", "note LIKE '%2%' OR note IS NOT NULL"),
    Aggregate("different", Function.COUNT_DISTINCT, "coalesce(s, g)"),
    Aggregate("about", Function.APPROX_DISTINCT, "id"),
    Aggregate("p90", Function.APPROX_QUANTILE, "y", at=0.9),
)
SOME = (*COUNTS[:3], *ALL[6:12])
WHERE = "coalesce(m, 0) BETWEEN -4 AND 4 AND s NOT LIKE '%50%'"
DEFINITIONS: dict[Envelope, dict[str, Windows]] = {
    Envelope.UPDATES: {
        "hours": Windows(("g",), "at", Tumbling(4 * HOUR, -HOUR), COUNTS, WHERE, grace=HOUR),
        "hours_told": Windows(("h", "ok"), "at", Tumbling(9 * HOUR), ALL, "length(coalesce(s, '')) < 9", early=True),
        "hops": Windows((), "at", Hopping(8 * HOUR, 3 * HOUR), SOME, WHERE, grace=2 * HOUR),
        "adding_up": Windows(("ok",), "day", Cumulate(4 * DAY, DAY), ALL[3:9], early=True),
        "months": Windows(("g",), "cal", Calendar(Unit.MONTH, "America/New_York"), ALL, early=True),
        "nights": Windows((), "at", Calendar(Unit.DAY, "Asia/Kathmandu"), COUNTS, WHERE, late=Late.DISCARD),
        "slides": Windows(("g",), "at", Sliding(5 * HOUR), SOME, WHERE),
        "slides_clamped": Windows((), "ti", Sliding(7, clamp_start_at_zero=True), ALL, early=True),
        "slides_lasting": Windows(("ok",), "at", Sliding(6 * HOUR), SOME, grace=HOUR, max_lateness=5 * HOUR),
        "visits": Windows(("g", "ok"), "at", Session(3 * HOUR), ALL, WHERE, grace=HOUR),
        "visits_cut": Windows((), "ti", Session(6, False, 13), SOME, early=True),
        "visits_lasting": Windows(("ok",), "at", Session(3 * HOUR), SOME, grace=HOUR, late=Late.DISCARD),
        "happened": Windows(("h",), EVENT_TIME, Tumbling(6 * HOUR), COUNTS, WHERE),
        "happened_slides": Windows((), EVENT_TIME, Sliding(3 * HOUR), SOME, early=True),
    },
    Envelope.APPEND: {
        "moved_on": Windows(("ok",), "at", Tumbling(5 * HOUR), ALL, WHERE, late=Late.NEXT_WINDOW),
        "moved_days": Windows((), "at", Calendar(Unit.DAY, "Europe/London"), COUNTS, late=Late.NEXT_WINDOW, early=True),
    },
    Envelope.UPSERT: {
        "kept_hours": Windows(("g",), "at", Tumbling(4 * HOUR), COUNTS, WHERE),
        "kept_visits": Windows(("ok",), "at", Session(5 * HOUR), SOME, early=True),
    },
}


@dataclass
class Written:
    """The collections below a root, opened or being made."""

    root: Path
    spark: Any

    def inputs(self, days: int = len(DAYS)) -> Iterator[tuple[Followed, dict[str, Deriving]]]:
        """Each input as it is after so many days, and the windows over it."""
        for envelope, definitions in DEFINITIONS.items():
            followed = Followed.of(self.root, self.spark, SEED, envelope)
            followed.skip(DAYS[:days])
            yield followed, {name: followed.deriving(name, windows) for name, windows in definitions.items()}

    def make(self) -> None:
        """Write them: each day is landed, and the windows are corrected; of the first day they are in the trace."""
        for followed, each in self.inputs(0):
            for day, (rows, gone) in enumerate(DAYS):
                followed.next_day(rows, gone)
                for one in each.values():
                    if day == 0:
                        one.declared()
                    correct(one.job())
                    if day == 0:  # and what is corrected afterwards is not sealed
                        through(one.job, 1, seal, drain)
        for asked in self.root.glob("root/*/store"):  # what the store of another place promises
            shutil.rmtree(asked)


if __name__ == "__main__":
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    os.environ["PYTHONPATH"] = os.pathsep.join(path for path in sys.path if path)
    from tidemark.spark.session import session

    Written(Path(sys.argv[1]).absolute(), session("windows of today")).make()
