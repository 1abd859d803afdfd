"""Runs of a backfill: each is about several intervals, because a run costs more than a small interval does.

Airflow asks a timetable for the runs of a backfill one after another, and looks among the runs that exist for one with
the same logical date. So a wide run may not reach over an interval that has a run: that run would be passed over, or
its files read twice in a row. Here a wide run ends where the next run begins, and an interval that a run is about
already is given as that run.

    a backfill of 1 to 20 January, 7 intervals a run at most, where the 10th has a run already
    [1, 8)  [8, 10)  [10, 11), which exists  [11, 18)  [18, 21)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pendulum
from airflow.timetables.base import DagRunInfo, DataInterval, TimeRestriction

from tidemark.errors import InvalidUsage
from tidemark.model.interval import MOST_INTERVALS_OF_RUN

if TYPE_CHECKING:
    from pendulum import DateTime

RUNS_LOOKED_AT = 10
"""How many runs that begin before a backfill are asked whether they reach into it."""


@dataclass(frozen=True)
class WideRuns:
    """How wide the runs are that backfills of one DAG make: at most `most` intervals each.

    For a DAG that catches up until an end the scheduler asks the timetable in the words of a backfill. `own_end`, that
    end, distinguishes the two: whoever asks up to it is taken for the scheduler, whose runs have one interval each.
    InvalidUsage where `most` is not between 1 and 1,000.
    """

    dag_id: str
    most: int
    own_end: datetime | None = None

    def __post_init__(self) -> None:
        if not 1 <= self.most <= MOST_INTERVALS_OF_RUN:
            raise InvalidUsage(
                f"backfill_intervals is {self.most}; a run of a backfill has 1 to {MOST_INTERVALS_OF_RUN:,}"
            )

    @classmethod
    def deserialize(cls, data: Mapping[str, Any] | None) -> WideRuns | None:
        """As `serialize` wrote it; None of a DAG that an earlier release serialized."""
        if not data:
            return None
        own_end = data["own_end"] and datetime.fromisoformat(data["own_end"])
        return cls(data["dag_id"], data["most"], own_end)

    def serialize(self) -> dict[str, Any]:
        """For Airflow's database."""
        return {"dag_id": self.dag_id, "most": self.most, "own_end": self.own_end and self.own_end.isoformat()}

    def asked_by_backfill(self, restriction: TimeRestriction) -> bool:
        """Whether a backfill asks, and not the scheduler."""
        dates = restriction.earliest, restriction.latest
        return restriction.catchup and None not in dates and restriction.latest != self.own_end

    def run_from(
        self, start: DateTime, latest: DateTime, following: Callable[[DateTime], DateTime], *, is_first: bool
    ) -> DagRunInfo | None:
        """The run of a backfill whose first interval begins at `start`, a boundary: wide, or the one that exists there.

        None where `start` is behind `latest`, or its interval is not over. `following` gives the next boundary. Only of
        the first run of a backfill an earlier one is looked for, which reaches into it: the others begin where the one
        before ended.
        """
        if start > latest or following(start) >= datetime.now(UTC):
            return None
        if is_first and (reaching := self._run_into(start)) is not None:
            return DagRunInfo.interval(reaching.start, reaching.end)
        there = self._run_between(start, self._end(start, latest, following))
        if there is not None and there.start == start:
            return DagRunInfo.interval(start, max(there.end, following(start)))
        return DagRunInfo.interval(start, self._end(start, latest, following, there and there.start))

    def _end(
        self,
        start: DateTime,
        latest: DateTime,
        following: Callable[[DateTime], DateTime],
        before: DateTime | None = None,
    ) -> DateTime:
        """Where a run from `start` ends: after `most` intervals that begin by `latest`, are over, and begin below
        `before`. It has one at least."""
        end, now = following(start), datetime.now(UTC)
        for _ in range(self.most - 1):
            upper = following(end)
            if end > latest or upper >= now or (before is not None and end >= before):
                break
            end = upper
        return end

    def _run_into(self, start: DateTime) -> DataInterval | None:
        """The run that begins before `start` and ends behind it. Runs by hand about other times may be between."""
        before = self._runs(lambda of: (of.logical_date < start, of.logical_date.desc()), RUNS_LOOKED_AT)
        return next((run for run in before if run.end > start), None)

    def _run_between(self, start: DateTime, end: DateTime) -> DataInterval | None:
        """The first run that begins in `[start, end)`."""
        found = self._runs(lambda of: ((of.logical_date >= start) & (of.logical_date < end), of.logical_date), 1)
        return found[0] if found else None

    def _runs(self, chosen: Callable[[Any], tuple[Any, Any]], most: int) -> list[DataInterval]:
        """The first runs, in an order, of those that are chosen; of one by hand that is about another time than its
        logical date says, that date alone."""
        from airflow.models.dagrun import DagRun
        from airflow.utils.session import create_session
        from sqlalchemy import select

        where, order = chosen(DagRun)
        asked = select(DagRun.logical_date, DagRun.data_interval_start, DagRun.data_interval_end)
        asked = asked.where(DagRun.dag_id == self.dag_id, where).order_by(order).limit(most)
        with create_session(scoped=False) as session:  # not that of whoever asks: it would be committed with this one
            found = session.execute(asked).all()
        return [_interval(*(None if date is None else pendulum.instance(date) for date in dates)) for dates in found]


def _interval(begin: DateTime | None, lower: DateTime | None, upper: DateTime | None) -> DataInterval:
    assert begin is not None
    return DataInterval(begin, upper if upper is not None and lower == begin else begin)
