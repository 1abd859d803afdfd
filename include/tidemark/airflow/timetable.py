"""When a collection's runs are: every interval of its schedule from start to end, none outside; of a derived one,
whenever one of its inputs has more."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, time
from typing import TYPE_CHECKING, Any

import pendulum
from airflow.serialization.encoders import encode_asset_like
from airflow.timetables.base import DagRunInfo, DataInterval, TimeRestriction
from airflow.timetables.interval import CronDataIntervalTimetable
from airflow.timetables.simple import AssetTriggeredTimetable

from tidemark.airflow.wide_runs import WideRuns
from tidemark.config.schedule import Schedule, check_bounds
from tidemark.errors import InvalidUsage
from tidemark.model.collection import Collection
from tidemark.model.instant import EPOCH, MICROSECOND, from_datetime
from tidemark.model.local_time import first_instant

if TYPE_CHECKING:
    from pendulum import DateTime


class CollectionTimetable(CronDataIntervalTimetable):
    """The intervals of a schedule that are in `[start, end)`; both are boundaries of it, None is no end.

    The boundaries are those of the collection (config/schedule.py), by the clock of its zone. Airflow's own timetable
    differs where clocks show a midnight twice: it takes the second one.

    What the scheduler starts and what a backfill may ask for is bounded here, and not by the DAG's `start_date` and
    `end_date`: outside those Airflow makes a manual run without any task, and calls it successful. A run of the
    scheduler is one interval; `wide` says how many a run of a backfill may be (None: one, too).
    """

    def __init__(
        self, schedule: Schedule, start: datetime, end: datetime | None = None, wide: WideRuns | None = None
    ) -> None:
        super().__init__(schedule.expression, schedule.zone)
        self.schedule = Schedule(schedule.expression, schedule.zone)
        self.start = pendulum.instance(start)
        self.end = None if end is None else pendulum.instance(end)
        self.wide = wide

    @classmethod
    def of(
        cls, collection: Collection, schedule: str | None = None, wide: WideRuns | None = None
    ) -> CollectionTimetable:
        """The timetable of a collection, or of another schedule between its bounds. InvalidUsage for a schedule that is
        none, and for a collection that starts or ends between two intervals of its own."""
        check_bounds(collection)
        end = None if collection.landed.end is None else moment(collection.landed.end)
        by = Schedule(schedule or collection.landed.schedule, collection.landed.timezone)
        return cls(by, moment(collection.landed.start), end, wide)

    @classmethod
    def deserialize(cls, data: dict[str, Any]) -> CollectionTimetable:
        """As `serialize` wrote it."""
        end = data["end"] and datetime.fromisoformat(data["end"])
        wide = WideRuns.deserialize(data.get("wide"))
        schedule = Schedule(data["expression"], data.get("timezone", "UTC"))  # none of a DAG of an earlier release
        return cls(schedule, datetime.fromisoformat(data["start"]), end, wide)

    def serialize(self) -> dict[str, Any]:
        """For Airflow's database."""
        return {
            "expression": self._expression,
            "timezone": self.schedule.zone,
            "start": self.start.isoformat(),
            "end": self.end and self.end.isoformat(),
            "wide": self.wide and self.wide.serialize(),
        }

    def __eq__(self, other: object) -> bool:
        return isinstance(other, CollectionTimetable) and self.serialize() == other.serialize()

    def __hash__(self) -> int:
        return hash((self.schedule, self.start, self.end, self.wide))

    def _get_next(self, current: DateTime) -> DateTime:
        return pendulum.instance(moment(self.schedule.following(from_datetime(current))))

    def _get_prev(self, current: DateTime) -> DateTime:
        return pendulum.instance(moment(self.schedule.latest(from_datetime(current) - 1)))

    def next_dagrun_info(
        self, *, last_automated_data_interval: DataInterval | None, restriction: TimeRestriction
    ) -> DagRunInfo | None:
        """The next run within the bounds; None if there is none left. Of a backfill it is wide."""
        is_backfill = self.wide is not None and self.wide.asked_by_backfill(restriction)
        if is_backfill:
            first, last = (date and self._local(date) for date in (restriction.earliest, restriction.latest))
            restriction = TimeRestriction(first, last, restriction.catchup)
        earliest = max(self.start, restriction.earliest or self.start)
        last = self.end and self._get_prev(self.end)
        latest = min(filter(None, (last, restriction.latest)), default=None)
        info = super().next_dagrun_info(
            last_automated_data_interval=last_automated_data_interval,
            restriction=TimeRestriction(earliest, latest, restriction.catchup),
        )
        if self.wide is None or latest is None or not is_backfill:
            return info
        if info is None or info.data_interval is None:
            return info
        is_first = last_automated_data_interval is None
        return self.wide.run_from(info.data_interval.start, latest, self._get_next, is_first=is_first)

    def _local(self, date: DateTime) -> DateTime:
        """Return when the day of a bound of a backfill begins in the collection's zone.

        Airflow has a date without a time as midnight UTC. Any other time, and one at which an interval begins, stays.
        """
        at = from_datetime(date)
        if date.time() != time() or self.schedule.latest(at) == at:
            return date
        return pendulum.instance(moment(first_instant(date.date(), self.schedule.zone)))

    def infer_manual_data_interval(self, *, run_after: DateTime) -> DataInterval:
        """The interval a manual run of that logical date is about.

        A date on a boundary names the interval that begins there, as it does for scheduled runs, whose place the manual
        run takes, if it is over; any other date, in particular now, the last interval that was over then.
        """
        if self._align_to_prev(run_after) == run_after and (end := self._get_next(run_after)) <= datetime.now(UTC):
            return DataInterval(run_after, end)
        return super().infer_manual_data_interval(run_after=run_after)


class InputsTimetable(AssetTriggeredTimetable):
    """Runs whenever an event of any of some assets says that there is more; and never of itself.

    Airflow refuses a backfill of a DAG that only assets trigger, as it is not periodic. This one is: a backfill of a
    range of dates has runs of some days each (`wide`; None: of one), whose end says until when to correct.
    """

    description = "When an input has more; a backfill has runs of some days each"
    periodic = True

    def __init__(self, assets: Any, wide: WideRuns | None = None) -> None:
        super().__init__(assets)
        self.wide = wide

    @classmethod
    def of(cls, inputs: Sequence[str], wide: WideRuns | None = None) -> InputsTimetable:
        """The timetable of a collection that is computed from others, by their names."""
        from airflow.sdk import AssetAny

        from tidemark.airflow.asset import asset_of

        assets: Any = AssetAny(*(asset_of(name) for name in inputs))  # which Airflow takes in DAG files, too
        return cls(assets, wide)

    @classmethod
    def deserialize(cls, data: dict[str, Any]) -> InputsTimetable:
        """As `serialize` wrote it."""
        from airflow.serialization.decoders import decode_asset_like

        return cls(decode_asset_like(data["asset_condition"]), WideRuns.deserialize(data.get("wide")))

    def serialize(self) -> dict[str, Any]:
        """For Airflow's database."""
        return {**super().serialize(), "wide": self.wide and self.wide.serialize()}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, InputsTimetable) and self.serialize() == other.serialize()

    def __hash__(self) -> int:
        return hash(str(encode_asset_like(self.asset_condition)))

    @property
    def summary(self) -> str:
        return "Inputs"

    def next_dagrun_info(
        self, *, last_automated_data_interval: DataInterval | None, restriction: TimeRestriction
    ) -> DagRunInfo | None:
        """Some days of the range a backfill asks for; None for the scheduler, which asks without an end."""
        if not restriction.catchup or restriction.latest is None or restriction.earliest is None:
            return None
        if self.wide is not None and not self.wide.asked_by_backfill(restriction):
            return None
        if last_automated_data_interval is None:
            start = _DAYS._align_to_next(restriction.earliest)
        else:
            start = last_automated_data_interval.end
        if self.wide is None:
            return None if start > restriction.latest else DagRunInfo.interval(start, _DAYS._get_next(start))
        is_first = last_automated_data_interval is None
        return self.wide.run_from(start, restriction.latest, _DAYS._get_next, is_first=is_first)


_DAYS = CronDataIntervalTimetable("0 0 * * *", "UTC")
"""The days of a backfill."""


def moment(time: int) -> datetime:
    """A time as Airflow takes it."""
    try:
        return EPOCH + time * MICROSECOND
    except OverflowError:
        raise InvalidUsage(f"{time} µs is beyond the year 9999, which Airflow cannot schedule") from None
