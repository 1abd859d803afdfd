"""The records of the vectors, and drawn ones, in windows of each kind, through `correct` with Spark: what is there is
what the law says. One input holds all cases, and each collection of windows has a row for each case's windows.

An instant of the vectors is a day here, so that rows are judged late by days of the input's schedule as the vectors
judge by the time of their stream.
"""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet
import pytest

from tests.conformance.runner import Case, cases
from tests.conformance.window_emitted import Stream
from tests.conformance.window_script import Script
from tests.spark.support import DAY, INSTANT, Made
from tests.spark.test_data_driven_windows import updates_of
from tests.spark.test_derived import OnSpark
from tests.spark.ways import by_executors
from tests.support.world import certify
from tidemark.definition.computation import shape_of
from tidemark.definition.ways import Place
from tidemark.definition.windows.analysed import analysed_windows
from tidemark.jobs.job import Job, collection_store, fresh_id
from tidemark.jobs.steps.correct import correct
from tidemark.jobs.steps.drain import drain
from tidemark.jobs.steps.ingest import ingest
from tidemark.jobs.steps.init import declare, declare_collection
from tidemark.jobs.steps.seal import seal
from tidemark.model.collection import Collection, Column, ColumnType, Gate
from tidemark.model.derived import Definition, Derived
from tidemark.model.interval import Interval
from tidemark.model.window.aggregate import Aggregate, Function
from tidemark.model.window.contents import Rule
from tidemark.model.window.evaluate import window_rows
from tidemark.model.window.happened import Happened
from tidemark.model.window.kinds import Cumulate, Hopping, Session, Sliding, Tumbling
from tidemark.model.window.lateness import judge, lateness
from tidemark.model.window.windows import Late, Windows
from tidemark.storage.log.log import StateLog

pytestmark = pytest.mark.spark
VECTORS = Path(__file__).resolve().parents[1] / "conformance" / "vectors"
MOST = 1000
"""The last instant of the cases that are taken: so many days has the input."""
RECORDS = """\
name: records
key: [sample, number]
value: [at, key, value]
columns: {sample: string, number: int, at: int, key: string, value: string, learned: timestamp}
start: 1970-01-01
live_batches: 2
time: {column: learned}
source: {path: "{{ landing }}/records/{{ ds }}/*.parquet", format: parquet, envelope: append, ready: always}
"""
INT, TEXT = ColumnType.INT, ColumnType.STRING
TYPES = {"sample": TEXT, "key": TEXT, "window_start": INT, "window_end": INT, "rows": INT, "most": TEXT, "total": INT}
AGGREGATES = (
    Aggregate("rows", Function.COUNT),
    Aggregate("most", Function.MAX, "value"),
    Aggregate("total", Function.SUM, "number"),  # of the numbers of records: which ones there are
)
WHERE = "key IS NOT NULL AND value IS NOT NULL"
BEFORE = -(2**60)
"""Nothing is complete before the first day is: what comes on it is never late."""
FOR_EVER = {
    "tumbling": Tumbling(10 * DAY, 5 * DAY),
    "hopping": Hopping(10 * DAY, 5 * DAY),
    "cumulate": Cumulate(6 * DAY, 2 * DAY),
    "sliding": Sliding(10 * DAY),
    "session": Session(10 * DAY),
}
FOR_A_WHILE = {
    "tumbling": (Tumbling(10 * DAY), 0),
    "tumbling_long": (Tumbling(500 * DAY), 0),
    "hopping": (Hopping(10 * DAY, 5 * DAY), 2),
    "hopping_long": (Hopping(10 * DAY, 5 * DAY), 90),
    "cumulate": (Cumulate(6 * DAY, 2 * DAY), 0),
    "sliding": (Sliding(10 * DAY, clamp_start_at_zero=True), 5),
    "session": (Session(10 * DAY), 1),
}
"""Kinds, and their grace in days."""
OWN = {
    "tumbling_long": "kafka/cogroup_tumble",
    "hopping": "own.two_windows_late",
    "hopping_long": "kafka/expired_window",
    "cumulate": "own.cumulate_records",
}
"""Cases whose own rule this is: of these windows are as the vectors say, too."""


class Row(NamedTuple):
    """A record: of which case, when it happened, and up to where the stream had come with it, in days."""

    sample: str
    number: int
    key: str | None
    value: str | None
    at: int
    learned: int


def samples() -> dict[str, list[Row]]:
    """The records of the vectors, each case by itself, and as many drawn cases."""
    found = {}
    for path in sorted(VECTORS.glob("windows*.json")):
        for case in cases(path):
            rows = came_in(case)
            if rows and max(row.at for row in rows if row.at is not None) < MOST:
                found[case.name] = rows_of(case.name, rows)
    chance = random.Random(5)
    for number in range(len(found)):
        records = [[chance.choice("ab"), chance.choice("xyz"), chance.randrange(-5, 60)] for _ in range(9)]
        found[f"drawn {number}"] = rows_of(f"drawn {number}", Stream(records).rows)
    return found


def came_in(case: Case) -> list[Happened]:
    """The rows of a case that has records, or a script."""
    if "records" in case.content:
        stream = Stream(case.content["records"])
        return [*stream.rows, *stream.without]
    if "script" not in case.content or case.kind == "triggers":
        return []
    script = Script(case.kind, case.content)
    for step in case.content["script"]:
        script.step(step)
    return [*script.panes.rows]


def rows_of(sample: str, rows: list[Happened]) -> list[Row]:
    return [Row(sample, row.batch, row.key, _text(row.value), row.at or 0, max(row.learned, 0)) for row in rows]


def _text(value: Any) -> str | None:
    return None if value is None else str(value)


@pytest.fixture(scope="module")
def records(tmp_path_factory: pytest.TempPathFactory) -> tuple[Made, list[Row]]:
    """The input with all cases, complete and drained."""
    made, rows = Made(tmp_path_factory.mktemp("vectors"), RECORDS), [row for some in samples().values() for row in some]
    for day in sorted({row.learned for row in rows}):
        folder = made.landing / "records" / str(_date(day))
        folder.mkdir(parents=True)
        pyarrow.parquet.write_table(_table([row for row in rows if row.learned == day]), folder / "0.parquet")
    declare(made.job(), str(made.file))
    every, complete = Interval(0, MOST * DAY), 0
    for day in sorted({row.learned for row in rows}):
        for lower, upper in ((complete, day), (day, day + 1)):
            if lower < upper:  # days without files are ingested together
                ingest(made.job(), Interval(lower * DAY, upper * DAY), landing_root=str(made.landing))
        complete = day + 1
    ingest(made.job(), Interval(complete * DAY, every.upper), landing_root=str(made.landing))
    certify(made.job(), Gate.UNSEALED)
    seal(made.job(), every)
    certify(made.job(), Gate.FRONTIER)
    drain(made.job(), every)
    certify(made.job(), Gate.TRACE)
    return made, rows


def _date(day: int) -> Any:
    return pa.scalar(day, pa.date32()).as_py()


def _table(rows: list[Row]) -> pa.Table:
    return pa.table(
        {
            "sample": pa.array([row.sample for row in rows], pa.string()),
            "number": pa.array([row.number for row in rows], pa.int64()),
            "at": pa.array([row.at * DAY for row in rows], pa.int64()),
            "key": pa.array([row.key for row in rows], pa.string()),
            "value": pa.array([row.value for row in rows], pa.string()),
            "learned": pa.array([row.learned * DAY + DAY // 2 for row in rows], pa.int64()).cast(INSTANT),
        }
    )


def computed(spark: Any, made: Made, name: str, windows: Windows) -> tuple[dict[str, Any], Counter[tuple[Any, ...]]]:
    """What `correct` reported, and the windows that it wrote."""
    input_ = made.log.load().state.collection
    recipe = analysed_windows(windows, shape_of(input_.name, input_))
    key, value = ([Column(one, TYPES[one]) for one in some] for some in (recipe.columns[:4], recipe.columns[4:]))
    origin = Derived((input_.name,), Definition(windows=windows))
    store = collection_store(str(made.root), name)
    job = Job(store, StateLog(store, fresh_id), lambda: OnSpark(store, spark), fresh_id())
    declare_collection(job, Collection(name, tuple(key), tuple(value), origin, hidden=recipe.hidden))
    report, found = correct(job), Counter[tuple[Any, ...]]()
    for row in updates_of(job):
        found[tuple(row[name] for name in TYPES)] += row["diff"]
    return report, Counter({row: count for row, count in found.items() if count})


def law(windows: Windows, rows: list[Row]) -> Counter[tuple[Any, ...]]:
    found = window_rows(windows, happened(rows), lambda one, row: getattr(row, one.of))
    return Counter((*key, *window, *values) for key, window, values in found)


def happened(rows: list[Row]) -> list[Happened]:
    return [
        Happened((row.sample, row.key), row, row.at * DAY, row.learned * DAY if row.learned else BEFORE)
        for row in rows
        if row.key is not None and row.value is not None
    ]


def test_windows_that_take_late_rows_for_ever_are_those_of_the_law(spark: Any, records: tuple[Made, list[Row]]) -> None:
    made, rows = records
    assert len({row.sample for row in rows}) >= 40, "cases of each kind"
    for name, kind in FOR_EVER.items():
        windows = Windows(("sample", "key"), "at", kind, AGGREGATES, WHERE, early=True)
        with by_executors():
            report, found = computed(spark, made, name, windows)
        assert found == law(windows, rows), name
        assert report["way"]["place"] in (Place.KEY_RANGES, Place.SHUFFLE), report["way"]


def test_windows_that_take_late_rows_for_a_while_are_those_of_the_law(
    spark: Any, records: tuple[Made, list[Row]]
) -> None:
    made, rows = records
    for name, (kind, grace) in FOR_A_WHILE.items():
        windows = Windows(("sample", "key"), "at", kind, AGGREGATES, WHERE, grace * DAY, Late.DISCARD, early=True)
        report, found = computed(spark, made, f"{name}_for_a_while", windows)
        assert found == law(windows, rows), name
        late = lateness(judge(Rule.of(windows), happened(rows)))
        assert report["late"] == asdict(late), name
        assert late.rows_late_for_all > 0, name
        if name in OWN:
            assert counts(found, OWN[name]) == wanted(OWN[name]), name


def counts(found: Counter[tuple[Any, ...]], sample: str) -> dict[tuple[Any, ...], int]:
    """How many rows each window of a case has, by its key and its bounds in days."""
    return {(key, start // DAY, end // DAY): rows for name, key, start, end, rows, *_ in found if name == sample}


def wanted(sample: str) -> dict[tuple[Any, ...], int]:
    """The same as the vectors have it."""
    (case,) = (case for path in VECTORS.glob("windows*.json") for case in cases(path) if case.name == sample)
    return {
        (one["key"], one["start"], one["end"]): one.get("count") or len(one["values"])
        for one in case.content["windows"]
    }
