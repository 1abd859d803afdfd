"""Groups that the driver builds, and recomputes, by itself, compared bit by bit with those that Spark computes of all
rows: a session is refused where the driver is to do it, so nothing else can have."""

from __future__ import annotations

import math
import random
import struct
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import replace
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import pytest

from tests.spark.support import DAY, INSTANT, Made, day_of, into_the_trace, no_spark
from tests.spark.test_derived import Deriving
from tests.spark.ways import by_executors, by_queries, interpreted, not_here, queried
from tests.support.budget import budget
from tests.support.reading import as_of
from tidemark.arrow.parts.writer import PartWriter
from tidemark.arrow.read import updates_of
from tidemark.errors import InvalidUsage
from tidemark.jobs.queries.definition import Judge, verify_definition
from tidemark.jobs.queries.explain import explain
from tidemark.jobs.steps.correct import correct
from tidemark.model.derived import Definition, Derived, Refresh
from tidemark.model.window.aggregate import Aggregate, Function
from tidemark.model.window.calendar import Unit
from tidemark.model.window.kinds import Calendar, Cumulate, Hopping, Tumbling
from tidemark.model.window.windows import WINDOW_END, WINDOW_START, Windows
from tidemark.plan.read import plan_updates, read_tasks
from tidemark.spark import read
from tidemark.spark.derive.executors import key_ranges
from tidemark.spark.derive.here import rows as rows_here
from tidemark.spark.derive.kinds import groups_shuffled
from tidemark.storage.sidecars import parts_table

pytestmark = pytest.mark.spark

FILE = """\
name: {name}
key: [{key}]
value: [{value}kind, sold, whole, ratio, price, note, seen, since, good]
columns: {{shop: string, id: int, kind: int, sold: timestamp, whole: int, ratio: float, price: "decimal(28, 3)",
          note: string, seen: date, since: timestamp, good: bool, at: timestamp{more}}}
start: 2024-01-01
live_batches: 2
time: {{column: at}}
source: {{path: "{{{{ landing }}}}/{name}/{{{{ ds }}}}/*.parquet", format: parquet, {envelope}}}
"""
UPSERT = FILE.format(
    name="sales",
    key="shop, id",
    value="",
    more=", gone: bool",
    envelope='envelope: upsert, delete_when: "gone = TRUE"',
)
UPDATES = FILE.format(name="moves", key="shop", value="id, ", more="", envelope="envelope: updates, diff: change")
NUMBERS = ("whole", "ratio")
OF = ("whole", "ratio", "price", "note", "seen", "since", "good")
COLUMNS = ", ".join(
    [
        "count(*) AS n",
        "sum(price) AS sum_price",
        *(f"{name}({of}) AS {name}_{of}" for name in ("sum", "avg") for of in NUMBERS),
        *(f"{name}({of}) AS {name}_{of}" for name in ("min", "max", "count") for of in OF),
        *(f"count(DISTINCT {of}) AS different_{of}" for of in ("ratio", "price", "note")),
    ]
)
TYPES = {
    "shop": pa.string(),
    "id": pa.int64(),
    "kind": pa.int64(),
    "sold": INSTANT,
    "whole": pa.int64(),
    "ratio": pa.float64(),
    "price": pa.decimal128(28, 3),
    "note": pa.string(),
    "seen": pa.date32(),
    "since": INSTANT,
    "good": pa.bool_(),
    "gone": pa.bool_(),
    "change": pa.int64(),
    "at": INSTANT,
}
RATIOS = [None, 0.0, -0.0, math.nan, math.inf, -math.inf, 0.1, 1e16, -1e16, 1e-30, 5e-324, 1.7976931348623157e308, 3.5]
PRICES = [None, Decimal(0), Decimal("0.001"), Decimal("-0.002"), Decimal("9" * 25 + ".999"), Decimal(7)]
SAME = ("added", "retracted", "unplaced", "rows", "rows_read", "late")
Row = dict[str, Any]


def drawn(chance: random.Random, day: int, number: int) -> Row:
    shop = chance.choice(["a", "b", "", "ü", "\uffee", "\U0001f600"])
    tame = shop in ("a", "b")  # a group with an infinity says little of sums
    return {
        "shop": shop,
        "id": number,
        "kind": number % 3,
        "sold": day_of(day).lower + chance.randrange(-DAY, 2 * DAY),
        "whole": chance.choice([None, 0, 7, -3, 2**53 + 1, -(2**53) - 3]),
        "ratio": chance.choice([0.1, 1e16, -1e16, 1e-30, 3.3, None] if tame else RATIOS),
        "price": chance.choice(PRICES),
        "note": chance.choice([None, "", "x", "ü", "xü", "\uffee", "\U0001f600"]),
        "seen": chance.choice([None, date(1, 1, 1), date(2024, 2, 29), date(9999, 12, 31)]),
        "since": chance.choice([None, -1, 0, 1_700_000_000_000_001]),
        "good": chance.choice([None, True, False]),
        "gone": chance.random() < 0.2,
        "change": chance.choice([1, 1, 2, 3]),
        "at": day_of(day).lower + chance.randrange(1000),
    }


def land(made: Made, day: int, rows: list[Row]) -> None:
    folder = made.landing / made.name / f"2024-01-{day:02d}"
    folder.mkdir(parents=True)
    columns = {
        name: pa.array([row[name] for row in rows], pa.int64() if of == INSTANT else of).cast(of)
        for name, of in TYPES.items()
    }
    pyarrow.parquet.write_table(pa.table(columns), folder / "0.parquet")
    made.moved(day)
    made.step("trace", day)


def retracted(chance: random.Random, rows: list[Row], day: int) -> list[Row]:
    """Some of the rows that there are, one time less each."""
    return [{**row, "change": -1, "at": day_of(day).lower} for row in chance.sample(rows, len(rows) // 3)]


def refreshed(one: Deriving, *, here: bool) -> dict[str, Any]:
    """What a correction reports, by no session where this process is to do it; then brought into the trace."""
    job = one.job()
    report = correct(replace(job, runner=no_spark) if here else job)
    into_the_trace(one.job)
    return report


def bits(one: Deriving) -> Mapping[Any, Any]:
    """The current rows, by key, such that only the same values are equal, to the last bit."""
    job = one.job()
    rows = as_of(job.store, job.log.load().state)
    assert set(rows.column("_multiplicity").to_pylist()) <= {1}
    keyed = [column.name for column in job.log.load().state.collection.key]

    def exact(value: Any) -> Any:
        return struct.pack(">d", value) if isinstance(value, float) else value

    return {
        tuple(row[name] for name in keyed): {name: exact(value) for name, value in sorted(row.items())}
        for row in rows.to_pylist()
    }


def built_by_spark(one: Deriving) -> dict[str, Any]:
    """The same by queries."""
    with pytest.MonkeyPatch.context() as patch:
        by_queries(patch)
        interpreted(patch)
        return refreshed(one, here=False)


def followed(made: Made, spark: Any, definition: Definition, key: tuple[str, ...], days: int) -> None:
    """A collection that the driver builds and refreshes holds what one holds that Spark computes whole: after the first
    day, and after the last. Windows are what their law says after the last."""
    chance = random.Random(f"{key} {made.name} {definition}")
    few = Deriving(made, spark, "few", Derived((made.name,), definition), key)
    whole = Deriving(made, spark, "whole", Derived((made.name,), definition, refresh=Refresh.WHOLE), key)
    compared = (1, days) if definition.windows is None else (1,)
    there: list[Row] = []
    for day in range(1, days + 1):
        new = [drawn(chance, day, number) for number in chance.sample(range(200), 120 if day == 1 else 12)]
        land(made, day, [*new, *(retracted(chance, there, day) if made.name == "moves" else [])])
        there = new
        if day == 1:
            for one in (few, whole):
                one.declared()
        report = refreshed(few, here=True)
        assert report["mode"] == ("by_key" if day > 1 else "whole")
        if day in compared:
            of_spark = built_by_spark(whole)
            assert day > 1 or [report.get(one) for one in SAME] == [of_spark.get(one) for one in SAME]
            assert bits(few) == bits(whole) != {}
    if definition.windows is not None:
        assert bits(few) != {}
        (last,) = verify_definition(few.job()).frontiers
        assert (last.differing, last.judged_by, last.left) == ((), Judge.LAW, "")


@pytest.mark.parametrize(
    ("text", "by"), [(UPSERT, "shop"), *budget(ci=[], deep=[(UPSERT, "kind, shop"), (UPDATES, "kind")])]
)
def test_what_the_driver_computes_is_what_spark_computes_of_all(spark: Any, tmp_path: Path, text: str, by: str) -> None:
    made = Made(tmp_path, text)
    definition = Definition(f"SELECT {by}, {COLUMNS} FROM {made.name} GROUP BY {by}")
    followed(made, spark, definition, tuple(by.split(", ")), 3)


ADDED = ", ".join(
    [
        "count(*) AS n",
        "count(note) AS notes",
        *(f"{name}({of}) AS {name}_{of}" for name, of in (("sum", "whole"), ("avg", "whole"), ("sum", "price"))),
    ]
)


def at_rest(one: Deriving) -> list[str]:
    """All updates, hidden columns too: texts that are the same for the same bits."""
    job = one.job()
    state = job.log.load().state
    names = [column.name for column in (*state.collection.columns, *state.collection.hidden)]
    tasks = read_tasks(*parts_table.opened_read(job.store, plan_updates(state)))
    return [repr(row) for task in tasks for rows in updates_of(job.store, task, names) for row in rows.to_pylist()]


@pytest.mark.parametrize("query", [f"shop, {ADDED} FROM moves GROUP BY shop", "DISTINCT kind, shop FROM moves"])
def test_what_grows_later_is_built_with_all_that_it_grows_by(spark: Any, tmp_path: Path, query: str) -> None:
    made, chance = Made(tmp_path, UPDATES), random.Random(5)
    land(made, 1, [*(drawn(chance, 1, number) for number in range(150)), row(150, shop="of nothing")])
    here, other = (
        Deriving(made, spark, name, Derived((made.name,), Definition(f"SELECT {query}"))) for name in ("here", "other")
    )
    for one in (here, other):
        one.declared()
    refreshed(here, here=True)
    built_by_spark(other)
    assert at_rest(here) == at_rest(other) != []
    land(made, 2, [drawn(chance, 2, number) for number in range(151, 170)])
    for one in (here, other):
        assert refreshed(one, here=False)["mode"] == "by_key"
    assert at_rest(here) == at_rest(other)


COUNTS = (Aggregate("n", Function.COUNT), Aggregate("total", Function.SUM, "whole"))
EXTREMES = (
    *COUNTS,
    Aggregate("most", Function.MAX, "ratio"),
    Aggregate("least", Function.MIN, "note"),
    Aggregate("mean", Function.AVG, "ratio"),
    Aggregate("notes", Function.COUNT_DISTINCT, "note"),
)
ROWS = "(whole >= -3 OR whole IS NULL) AND note <> 'x'"


def only(aggregates: tuple[Aggregate, ...]) -> tuple[Aggregate, ...]:
    """The same, every second over some rows only."""
    conditions = ("ratio > 0.5 OR ratio IS NULL", "note IN ('', 'ü') OR good", "since < '2024-01-01'")
    return tuple(replace(one, where=conditions[at % 3]) if at % 2 == 0 else one for at, one in enumerate(aggregates))


WINDOWS = {
    "counted": (UPDATES, Windows(("shop",), "sold", Tumbling(DAY // 4, 7), COUNTS, grace=5)),
    "tumbling": (UPSERT, Windows(("shop",), "sold", Tumbling(DAY // 4, 7), only(EXTREMES), ROWS, grace=5)),
    "hopping": (UPDATES, Windows((), "sold", Hopping(DAY, DAY // 2), EXTREMES, early=True)),
    "cumulate": (UPSERT, Windows(("kind",), "id", Cumulate(40, 10), EXTREMES)),
    "calendar": (UPSERT, Windows(("shop",), "sold", Calendar(Unit.DAY, "America/Sao_Paulo"), EXTREMES, early=True)),
    "weeks": (UPDATES, Windows((), "sold", Calendar(Unit.WEEK, "Europe/Lisbon"), COUNTS)),
}


@pytest.mark.parametrize("name", budget(ci=["counted", "tumbling", "calendar"], deep=list(WINDOWS)))
def test_aligned_windows_are_those_that_spark_computes_of_all(spark: Any, tmp_path: Path, name: str) -> None:
    """Those of rows that are stored ahead are there once they close, too."""
    text, windows = WINDOWS[name]
    made = Made(tmp_path, text)
    followed(made, spark, Definition(windows=windows), (*windows.by, WINDOW_START, WINDOW_END), 3)


def test_what_executors_compare_with_stored_rows_is_what_the_driver_does(spark: Any, tmp_path: Path) -> None:
    """A first build, all again, and twice what changes reach, once of one shop alone; few rows at once."""
    text, windows = WINDOWS["tumbling"]
    made, chance, each = Made(tmp_path, text), random.Random("tumbling5"), dict[str, Deriving]()
    for day in range(1, 5):
        rows = [drawn(chance, day, number) for number in chance.sample(range(200), 120 if day == 1 else 12)]
        land(made, day, [one | {"shop": "a"} for one in rows] if day == 3 else rows)
        if day == 1:
            each = {way: unbuilt(made, spark, Definition(windows=windows), way) for way in ("here", "there")}
        report = refreshed(each["here"], here=True)
        with by_executors(5):
            again = correct(each["there"].job(), whole=day == 2)
        into_the_trace(each["there"].job)
        assert again["mode"] == ("by_key" if day > 2 else "whole")
        assert [again.get(of) for of in SAME[:3]] == [report.get(of) for of in SAME[:3]], day
        assert at_rest(each["there"]) == at_rest(each["here"]) != [], day


def test_what_executors_compare_with_stored_sums_is_what_queries_do(spark: Any, tmp_path: Path) -> None:
    """Where they grow that is done otherwise: so of all; all rows at once."""
    text, windows = WINDOWS["counted"]
    made, chance, there = Made(tmp_path, text), random.Random("counted131072"), list[Row]()
    each = {
        way: Deriving(
            made,
            spark,
            way,
            Derived((made.name,), Definition(windows=windows), refresh=Refresh.WHOLE),
            (*windows.by, WINDOW_START, WINDOW_END),
        )
        for way in ("executors", "queries")
    }
    for day in (1, 2):
        rows = [drawn(chance, day, number) for number in chance.sample(range(200), 120 if day == 1 else 12)]
        land(made, day, [*rows, *retracted(chance, there, day)])
        there = rows
        if day == 1:
            for one in each.values():
                one.declared()
        report = built_by_spark(each["queries"])
        with by_executors():
            again = refreshed(each["executors"], here=False)
        assert again["mode"] == "whole"
        assert [again.get(of) for of in SAME[:3]] == [report.get(of) for of in SAME[:3]], day
        assert at_rest(each["executors"]) == at_rest(each["queries"]) != [], day


def test_windows_that_executors_cannot_write_are_left_to_the_queries(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a row is there fewer times than none, or rows that belong together are too many."""
    monkeypatch.setattr(key_ranges, "AT_ONCE", 1)
    most = Aggregate("most", Function.MAX, "whole")
    good = Windows(("shop",), "sold", Tumbling(DAY), (most,), early=True)
    cases: dict[str, tuple[Windows, Row, str | None]] = {
        "room": (good, row(1, whole=3), None),
        "alike": (good, row(1, whole=3), None),
        "times": (good, row(1, whole=3, change=-1), "-1 times"),
    }
    monkeypatch.setattr(groups_shuffled, "MOST_BYTES", 0)
    limits = {"room": (key_ranges, "MOST_BYTES", 0), "alike": (read, "LEAST_TASK_ROWS", 1)}
    not_here(monkeypatch)
    asked = queried(monkeypatch)
    for name, (windows, one, says) in cases.items():
        made = Made(tmp_path / name, UPDATES)
        land(made, 1, [one, {**one, "id": 2}])
        derived = unbuilt(made, spark, Definition(windows=windows), name)
        with monkeypatch.context() as limit, pytest.raises(InvalidUsage, match=says) if says else nullcontext():
            if name in limits:
                limit.setattr(*limits[name])
            assert refreshed(derived, here=False)["added"] == 1
    assert asked == list(cases)


@pytest.mark.parametrize("of", ["whole", "note"])
def test_wide_rows_are_built_by_executors_a_few_at_a_time(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, of: str
) -> None:
    """Together they take more than may be kept at once; of the columns that no window reads nothing is kept."""
    made = Made(tmp_path, UPDATES)
    shops = ["a", "b", "c"]
    land(
        made, 1, [row(number, shop=shops[number // 8], whole=number, note=f"{number:02}" * 999) for number in range(24)]
    )
    windows = Windows(("shop",), "sold", Hopping(DAY, DAY // 2), (Aggregate("most", Function.MAX, of),), early=True)
    one = unbuilt(made, spark, Definition(windows=windows), "wide")
    monkeypatch.setattr(key_ranges, "MOST_BYTES", 40_000 if of == "note" else 2_000)
    with by_executors():
        assert refreshed(one, here=False)["added"] == 6
    names = [column.name for column in one.job().log.load().state.collection.columns]
    rows = (dict(zip(names, values, strict=True)) for values in one.rows())
    largest = {(found["shop"], found["most"] if of == "whole" else int(found["most"][:2])) for found in rows}
    assert largest == {("a", 7), ("b", 15), ("c", 23)}


def sales_of(tmp_path: Path, spark: Any, rows: list[Row], text: str = UPSERT) -> tuple[Made, Deriving]:
    made = Made(tmp_path, text)
    land(made, 1, rows)
    select = f"SELECT shop, max(id) AS most, sum(whole) AS total FROM {made.name} GROUP BY shop"
    one = Deriving(made, spark, "few", Derived((made.name,), Definition(select)))
    one.declared()
    refreshed(one, here=False)
    return made, one


def row(number: int, **more: Any) -> Row:
    at = {"at": day_of(1).lower, "gone": False, "change": 1}
    return {**dict.fromkeys(TYPES), "shop": "a", "kind": 1, "sold": 0, "id": number, **at, **more}


def unbuilt(made: Made, spark: Any, definition: Definition, name: str) -> Deriving:
    one = Deriving(made, spark, name, Derived((made.name,), definition))
    one.declared()
    return one


def next_rows(made: Made, *rows: Row) -> None:
    land(made, 2, [{**one, "at": day_of(2).lower} for one in rows])


def test_groups_that_go_are_retracted(spark: Any, tmp_path: Path) -> None:
    made, one = sales_of(tmp_path, spark, [row(1, whole=3), row(2, shop="b", whole=4)])
    next_rows(made, row(1, gone=True), row(3, shop="c"))
    report = refreshed(one, here=True)
    assert (report["added"], report["retracted"]) == (1, 1)
    assert one.rows() == {("b", 2, 4): 1, ("c", 3, None): 1}


def test_rows_that_will_be_too_many_are_known_from_an_eighth_of_what_is_looked_at() -> None:
    eighth = pa.record_batch({"whole": pa.array(range(read.LEAST_TASK_ROWS // 4))})
    looked_at = 8 * eighth.num_rows
    assert rows_here.RowBudget(looked_at).is_full(eighth.num_rows, eighth)
    assert not rows_here.RowBudget(looked_at).is_full(eighth.num_rows - 1, eighth), "that says nothing yet"
    assert not rows_here.RowBudget(looked_at).is_full(eighth.num_rows, eighth.slice(0, 1000))
    all_of_them = rows_here.RowBudget(looked_at)
    assert not any(all_of_them.is_full(looked_at // 4, eighth) for _ in range(4)), "as many as may be kept"
    assert all_of_them.is_full(1, eighth.slice(0, 1))


@pytest.mark.parametrize(
    ("definition", "most"),
    [
        (Definition("SELECT shop, max(whole) AS top FROM sales GROUP BY shop"), 1 + 9 + 6),
        (Definition("SELECT shop, count(*) AS n, sum(whole) AS total FROM sales GROUP BY shop"), 1 + 6),
        (Definition("SELECT kind, max(whole) AS top FROM sales GROUP BY kind"), 1 + 37 + 3),
        (Definition(windows=Windows(("shop",), "sold", Tumbling(DAY), (Aggregate("n", Function.COUNT),))), 1 + 9 + 6),
    ],
)
def test_explain_says_how_many_rows_a_refresh_reads_and_it_reads_row_groups_of_touched_keys_only(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, definition: Definition, most: int
) -> None:
    monkeypatch.setitem(PartWriter.__init__.__kwdefaults__, "group_rows", 3)  # type: ignore[arg-type]
    made, chance = Made(tmp_path, UPSERT), random.Random(1)
    constant = {"gone": False, "whole": 1, "sold": day_of(1).lower}
    land(made, 1, [drawn(chance, 1, at) | constant | {"shop": "abcdef"[at // 6]} for at in range(36)])
    derived = Deriving(made, spark, "some", Derived(("sales",), definition))
    derived.declared()
    refreshed(derived, here=True)
    land(made, 2, [drawn(chance, 2, 99) | constant | {"shop": "c", "kind": 0}])
    said = explain(derived.job())["next"]
    report = refreshed(derived, here=True)
    assert (report["mode"], report["rows_read"]) == (said["mode"], said["rows_read"])
    assert report["rows_read"] <= most
