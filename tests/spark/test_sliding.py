"""Sliding windows built without a query: what the law says, and update for update what the queries give, whether the
driver builds them or executors do.

Where a session is refused, nothing but the driver can have computed what comes out; what is left to Spark asks for one.
"""

from __future__ import annotations

import random
from collections import Counter
from contextlib import nullcontext
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any, NoReturn

import pyarrow as pa
import pyarrow.parquet
import pytest

from tests.spark.support import HOUR, Made
from tests.spark.test_data_driven_windows import updates_of
from tests.spark.test_derived import Deriving
from tests.spark.test_windows import REPROCESSED, event_rows
from tests.spark.ways import by_executors, by_queries
from tests.support.reading import as_of
from tidemark.definition.ways import Place
from tidemark.errors import TidemarkError
from tidemark.jobs.app import NeedsSpark
from tidemark.jobs.job import Job, fresh_id
from tidemark.jobs.queries.definition import verify_definition
from tidemark.jobs.steps.correct import correct
from tidemark.model.derived import Definition, Derived
from tidemark.model.instant import from_datetime
from tidemark.model.window.aggregate import Aggregate, Function
from tidemark.model.window.evaluate import window_rows
from tidemark.model.window.happened import Happened
from tidemark.model.window.kinds import Sliding
from tidemark.model.window.windows import Windows

pytestmark = pytest.mark.spark
READINGS = """\
name: readings
key: [who, id]
value: [t, moment, day, n, price, ok, note]
columns: {who: string, id: int, t: int, moment: timestamp, day: date, n: int, price: "decimal(12, 2)", ok: bool,
          note: string, learned: timestamp}
start: 2024-01-01
time: {column: learned}
source: {path: "{{ landing }}/readings/{{ ds }}/*.parquet", format: parquet, envelope: updates, diff: change}
"""
INSTANT = pa.timestamp("us", "UTC")
TYPES = {
    "who": pa.string(), "id": pa.int64(), "t": pa.int64(), "moment": INSTANT, "day": pa.date32(), "n": pa.int64(),
    "price": pa.decimal128(12, 2), "ok": pa.bool_(), "note": pa.string(), "learned": INSTANT, "change": pa.int64(),
}  # fmt: skip
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
DAYS = 86_400_000_000
ALL = (
    Aggregate("rows", Function.COUNT),
    Aggregate("noted", Function.COUNT, "note"),
    Aggregate("total", Function.SUM, "n"),
    Aggregate("prices", Function.SUM, "price"),
    Aggregate("least", Function.MIN, "n"),
    Aggregate("dearest", Function.MAX, "price"),
    Aggregate("yes", Function.MAX, "ok"),
    Aggregate("newest", Function.MAX, "moment"),
    Aggregate("earliest", Function.FIRST, "n"),
    Aggregate("latest", Function.LAST, "day"),
    Aggregate("mean", Function.AVG, "n"),
)
WINDOWS = {
    "by_who": Windows(("who",), "t", Sliding(9), ALL, early=True),
    "of_all": Windows((), "moment", Sliding(4, clamp_start_at_zero=True), ALL[:5], early=True),
    "by_day": Windows(("ok", "who"), "day", Sliding(2 * DAYS), ALL, early=True),
    "closing": Windows(("day",), "moment", Sliding(54 * 365 * DAYS + 14 * DAYS), ALL[2:4], grace=60_000_000),
}
LEFT = {
    "other_rows": Windows((), "t", Sliding(9), ALL[:1], where="upper(note) > 'A'", early=True),
    "other_values": Windows((), "t", Sliding(9), (Aggregate("total", Function.SUM, "ascii(note)"),), early=True),
    "conditions": Windows((), "t", Sliding(9), (Aggregate("some", Function.COUNT, "n", "ln(n) > 2"),), early=True),
    "bounded_lateness": Windows((), "t", Sliding(9), ALL[:1], max_lateness=5),
}


def no_spark() -> NoReturn:
    """Where a session is asked for."""
    raise NeedsSpark


def refused(*_: Any) -> NoReturn:
    """In place of a way to compute that is not to be gone."""
    raise AssertionError("computed another way")


def readings(chance: random.Random, count: int) -> list[dict[str, Any]]:
    """Rows, some of them several times there, many at one instant, some at none."""
    made: list[dict[str, Any]] = []
    for number in range(count):
        at = chance.choice([None, *range(-30, 60)])
        made.append(
            {
                "who": chance.choice(["ann", "bob", "", "ü"]),
                "id": number,
                "t": at,
                "moment": EPOCH + timedelta(microseconds=chance.randrange(-9, 40)),
                "day": None if chance.random() < 0.1 else date(1969, 12, 25) + timedelta(days=chance.randrange(20)),
                "n": chance.choice([None, 0, 7, -3, 2**40]),
                "price": chance.choice([None, Decimal("0.25"), Decimal("-1234567890.12")]),
                "ok": chance.choice([True, False, None]),
                "note": chance.choice([None, "x", ""]),
                "learned": datetime(2024, 1, 1, 12, tzinfo=UTC),
                "change": chance.choice([1, 1, 1, 2]),
            }
        )
    return made


def landed(folder: Path, rows: list[dict[str, Any]]) -> Made:
    made = Made(folder, READINGS)
    day = made.landing / "readings" / "2024-01-01"
    day.mkdir(parents=True)
    pyarrow.parquet.write_table(pa.Table.from_pylist(rows, pa.schema(list(TYPES.items()))), day / "0.parquet")
    made.moved(1)
    made.step("trace", 1)
    return made


def declared(events: Made, spark: Any, name: str, windows: Windows) -> Deriving:
    one = Deriving(events, spark, name, Derived((events.name,), Definition(windows=windows)))
    one.declared()
    return one


def here(one: Deriving) -> Job:
    """A job that is refused a session."""
    job = one.job()
    return Job(job.store, job.log, no_spark, fresh_id())


def law(windows: Windows, events: Made) -> Counter[tuple[Any, ...]]:
    rows = as_of(events.store, events.log.load().state).to_pylist()
    happened = [
        Happened(
            tuple(row[name] for name in windows.by),
            tuple(row.items()),
            micros(row[windows.on]),
            0,
            row["_multiplicity"],
        )
        for row in rows
        if row[windows.on] is not None
    ]
    found = window_rows(windows, happened, lambda one, row: dict(row)[one.of])
    return Counter((*key, *window, *map(micros_of_moment, values)) for key, window, values in found)


def micros(at: Any) -> Any:
    """An instant, or the midnight of a day, in microseconds."""
    if isinstance(at, datetime):
        return from_datetime(at)
    return (at - EPOCH.date()).days * DAYS if isinstance(at, date) else at


def micros_of_moment(value: Any) -> Any:
    return from_datetime(value) if isinstance(value, datetime) else value


def net_rows(one: Deriving) -> Counter[tuple[Any, ...]]:
    names = [column.name for column in one.job().log.load().state.collection.columns]
    found: Counter[tuple[Any, ...]] = Counter()
    for row in updates_of(one.job()):
        found[tuple(micros_of_moment(row[name]) for name in names)] += row["diff"]
    return found


def test_windows_are_what_the_law_says_and_the_queries_give(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    events = landed(tmp_path, readings(random.Random(7), 300))
    made = {name: declared(events, spark, name, windows) for name, windows in WINDOWS.items()}
    reports = {name: correct(here(one)) for name, one in made.items()}
    for name, windows in WINDOWS.items():
        assert reports[name]["mode"] == "whole"
        if windows.early:
            assert net_rows(made[name]) == law(windows, events), name
    for way in ("executors", "shuffle", "queries"):
        executors = nullcontext() if way == "queries" else by_executors(ranges=way == "executors")
        with executors, pytest.MonkeyPatch.context() as patch:
            if way == "queries":
                by_queries(patch)
            for name, windows in WINDOWS.items():
                if way == "shuffle" and name != "by_who":
                    continue  # so they went before, as their key does not lead that of the rows
                other = declared(events, spark, f"{name}_by_{way}", windows)
                again = correct(other.job())
                assert updates_of(made[name].job()) == updates_of(other.job()), (name, way)
                if way == "executors":
                    assert again["way"]["place"] == (Place.KEY_RANGES if name == "by_who" else Place.SHUFFLE), name
                same = ("added", "retracted", "unplaced", "rows", "rows_read", "late")
                assert [again[one] for one in same] == [reports[name][one] for one in same], (name, way)
    assert reports["by_who"]["unplaced"] > 0
    assert len({row["_event_time"] for row in updates_of(made["closing"].job())}) > 1, "some close later than others"
    assert verify_definition(made["by_day"].job(), every=True).sound


def test_what_is_not_plain_is_left_to_spark(spark: Any, tmp_path: Path) -> None:
    events = landed(tmp_path, readings(random.Random(8), 20))
    for name, windows in LEFT.items():
        with pytest.raises(NeedsSpark):
            correct(here(declared(events, spark, name, windows)))
    wide = declared(events, spark, "of_all", WINDOWS["of_all"])
    correct(here(wide))
    with pytest.raises(NeedsSpark):  # what it holds is to be compared with
        correct(here(wide), whole=True)


def test_windows_on_event_times_are_left_to_the_queries(spark: Any, tmp_path: Path) -> None:
    events = Made(tmp_path, REPROCESSED)
    file = events.landing / "events/2024-01-01/0.parquet"
    file.parent.mkdir(parents=True)
    pyarrow.parquet.write_table(event_rows(1, 60), file)
    events.moved(1)
    events.step("trace", 1)
    plain = Windows(("kind",), "event_time", Sliding(2 * HOUR), (ALL[0],), early=True)
    slid, other = (
        declared(events, spark, name, windows)
        for name, windows in (("slid", plain), ("other", replace(plain, where="id > -1")))
    )
    with pytest.raises(NeedsSpark):
        correct(here(slid))
    for one in (slid, other):
        correct(one.job())
    assert net_rows(slid) == net_rows(other) != Counter()


def test_rows_that_are_not_little_are_left_to_spark(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    events = landed(tmp_path, [one | {"change": 40} for one in readings(random.Random(9), 20)])
    one = declared(events, spark, "by_who", WINDOWS["by_who"])
    with monkeypatch.context() as few:
        few.setattr("tidemark.spark.derive.here.rows.MOST_BUILT", 400)  # as many as there are, being repeated
        with pytest.raises(NeedsSpark):
            correct(here(one))
    with monkeypatch.context() as few:
        few.setattr("tidemark.spark.derive.here.rows.BUILT_BYTES", 100)
        with pytest.raises(NeedsSpark):
            correct(here(one))
    with monkeypatch.context() as few:
        few.setattr("tidemark.spark.derive.here.rows.ONE_KEY", 39)
        with pytest.raises(NeedsSpark):
            correct(here(one))
    monkeypatch.setattr("tidemark.spark.derive.here.rows.AT_A_TIME", 41)
    assert correct(here(one))["added"] == sum(net_rows(one).values())
    assert net_rows(one) == law(WINDOWS["by_who"], events)


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"change": -1}, "holds a row of key"),
        ({"n": 2**62}, "a sum of whole numbers is beyond 64 bits"),
        ({"t": 2**62}, "beyond 2\\^61"),
    ],
)
def test_what_is_wrong_is_said_by_the_queries(spark: Any, tmp_path: Path, changed: dict[str, int], said: str) -> None:
    rows = [
        one | {"who": "ann", "t": at, "change": 1} | changed for at, one in enumerate(readings(random.Random(4), 9))
    ]
    one = declared(landed(tmp_path, rows), spark, "by_who", WINDOWS["by_who"])
    with pytest.raises(NeedsSpark):
        correct(here(one))
    with pytest.raises(TidemarkError, match=said):
        correct(one.job())


def test_no_rows_are_no_windows(spark: Any, tmp_path: Path) -> None:
    events = landed(tmp_path, [one | {"t": None} for one in readings(random.Random(3), 5)])
    one = declared(events, spark, "by_who", WINDOWS["by_who"])
    report = correct(here(one))
    assert net_rows(one) == Counter()
    assert report["unplaced"] == sum(
        row["_multiplicity"] for row in as_of(events.store, events.log.load().state).to_pylist()
    )
