"""Derived collections by Spark, through the real step: each mode once, against a calculation of the test's own."""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pyspark
import pytest
from pyspark import SparkContext
from pyspark.errors import PySparkException, PythonException
from pyspark.sql import functions

from tests.spark.support import APPEND, Made, day_of, into_the_trace
from tests.support.inprocess import InProcessRunner
from tests.support.reading import as_of
from tidemark.arrow.rows.schema import sort_columns
from tidemark.definition.recipe import DIFF, EVENT_TIME, TIME
from tidemark.errors import InvalidUsage
from tidemark.jobs.app import gated
from tidemark.jobs.derived import Shape, opened, shaped
from tidemark.jobs.job import Job, collection_store, fresh_id
from tidemark.jobs.queries.definition import verify_definition
from tidemark.jobs.queries.explain import explain
from tidemark.jobs.steps.compact import compact
from tidemark.jobs.steps.correct import correct
from tidemark.jobs.steps.drain import drain
from tidemark.jobs.steps.gate import gate
from tidemark.jobs.steps.init import declare_collection
from tidemark.jobs.steps.seal import seal
from tidemark.model.collection import Collection, Column, ColumnType, Gate
from tidemark.model.derived import Definition, Derived, Validity
from tidemark.model.window.aggregate import Function
from tidemark.spark.derive.columns import check_fits
from tidemark.spark.derive.here.diff import bounded
from tidemark.spark.derive.muted import muted_task_errors
from tidemark.spark.derive.parts import in_order
from tidemark.spark.derive.queries.by_row import while_valid
from tidemark.spark.derive.raised import DATA, Raised, is_about_rows, naming
from tidemark.spark.derive.settings import with_settings
from tidemark.spark.derive.touched import FEW
from tidemark.spark.derive.under_names import repeated
from tidemark.storage.log.log import StateLog

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]
Row = dict[str, Any]
SHAPES: dict[str, Shape] = {}
"""By a definition and its inputs."""


class OnSpark(InProcessRunner):
    """Kernels here, definitions on Spark."""

    def __init__(self, store: Any, spark: Any) -> None:
        super().__init__(store)
        self.spark = spark


@dataclass
class Deriving:
    """A derived collection beside a landed one."""

    events: Made
    spark: Any
    name: str
    origin: Derived
    key: tuple[str, ...] = ()

    def job(self) -> Job:
        store = collection_store(str(self.events.root), self.name)
        return Job(store, StateLog(store, fresh_id), lambda: OnSpark(store, self.spark), fresh_id())

    def declared(self) -> Collection:
        """As `init` does."""
        made = self.shaped()
        declare_collection(self.job(), made)
        return made

    def shaped(self) -> Collection:
        """What is declared."""
        shape = self._shape()
        key = self.key or shape.key or ()
        windows = self.origin.definition.windows
        listed = {one.name for one in windows.aggregates if one.function is Function.COLLECT} if windows else set()
        types = {
            column.name: Column(column.name, ColumnType.JSON if column.name in listed else column.type)
            for column in shape.columns
        }  # a list is JSON, as in a collection's file
        value = tuple(types[column.name] for column in shape.columns if column.name not in key)
        return Collection(self.name, tuple(types[name] for name in key), value, self.origin, hidden=shape.hidden)

    def _shape(self) -> Shape:
        """What the definition says, which Spark is asked once about the same over the same columns; but a function,
        whose text may be another one."""
        job = self.job()
        inputs = [one.state.collection for one in opened(job, self.origin) if one.state is not None]
        asked = repr((self.origin, inputs))
        if asked in SHAPES and not self.origin.definition.function:
            return SHAPES[asked]
        SHAPES[asked] = shaped(job, self.name, self.origin)
        return SHAPES[asked]

    def corrected(self, **asked: Any) -> dict[str, Any]:
        """A run of its DAG."""
        report = correct(self.job(), **asked)
        gate(self.job(), Gate.UNSEALED)
        for step in (seal, drain, compact):
            call: Callable[[Job], Any] = lambda job, step=step: step(job, day_of(1))  # noqa: E731
            job = self.job()
            gated(job, lambda job=job, call=call: call(job))
        gate(self.job(), Gate.TRACE)
        return report

    def ungated(self) -> dict[str, Any]:
        """The same as if its gates had been passed, which recompute what was computed."""
        report = correct(self.job())
        into_the_trace(self.job)
        return report

    def rows(self) -> Counter[tuple[Any, ...]]:
        """What it holds now."""
        job = self.job()
        rows = as_of(job.store, job.log.load().state).to_pylist()
        return Counter({tuple(row.values())[:-1]: row["_multiplicity"] for row in rows})


@pytest.fixture
def events(tmp_path: Path) -> Made:
    made = Made(tmp_path, APPEND)
    made.land(1, 300, keys=30)
    made.moved(1)
    made.step("trace", 1)
    return made


def next_day(events: Made, day: int = 2) -> None:
    """Another day, of which some rows are late."""
    events.land(day, 300, keys=30)
    events.moved(day)
    events.step("trace", day)


def rows_of(events: Made) -> list[Row]:
    """The events there are, each as often as it is there."""
    rows = as_of(events.store, events.log.load().state).to_pylist()
    return [row for row in rows for _ in range(row["_multiplicity"])]


def select(text: str, *inputs: str, **more: Any) -> Derived:
    return Derived(inputs or ("events",), Definition(text), **more)


def by_kind(rows: list[Row]) -> dict[Any, list[Row]]:
    found = defaultdict(list)
    for row in rows:
        if row["kind"] is not None:
            found[row["kind"]].append(row)
    return found


def _summed(rows: list[Row]) -> Counter[tuple[Any, ...]]:
    sums: dict[int, float] = defaultdict(float)
    for row in rows:
        sums[row["id"]] += row["amount"]
    return Counter(sums.items())


DERIVED: dict[str, tuple[str, Callable[[list[Row]], Counter[tuple[Any, ...]]]]] = {
    "by_row": (
        "SELECT id, upper(kind) AS kind FROM events WHERE id % 3 = 0",
        lambda rows: Counter(
            (row["id"], None if row["kind"] is None else row["kind"].upper()) for row in rows if row["id"] % 3 == 0
        ),
    ),
    "by_key": (
        "SELECT kind, count(*) AS n, sum(id) AS total FROM events WHERE kind IS NOT NULL GROUP BY kind",
        lambda rows: Counter((kind, len(some), sum(r["id"] for r in some)) for kind, some in by_kind(rows).items()),
    ),
    "floats": (
        (
            "SELECT id, sum(amount) AS amount FROM events WHERE amount IN (CAST(0.5 AS double), CAST(-1 AS double)) "
            "GROUP BY id"
        ),
        lambda rows: _summed([row for row in rows if row["amount"] in (0.5, -1.0)]),
    ),
    "whole": (
        "SELECT count(*) AS n, max(id) AS most, 'all' AS what FROM events",
        lambda rows: Counter([("all", len(rows), max(row["id"] for row in rows))]),
    ),
}


LITTLE, TOUCHED = "tidemark.spark.derive.here.diff", "tidemark.spark.derive.touched"
KEYS = {"by_row": ("id",), "by_key": ("kind",), "floats": ("id",), "whole": ("what",)}
MODES = {"floats": "by_key"}


def test_each_mode_gives_what_its_definition_says(spark: Any, events: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    made = {mode: Deriving(events, spark, mode, select(text), KEYS[mode]) for mode, (text, _) in DERIVED.items()}
    for mode, one in made.items():
        one.declared()
        assert explain(one.job())["mode"] == MODES.get(mode, mode)
        run = one.corrected()
        assert (run["mode"], run["why"], run["commits"]) == ("whole", "first build", 1)
        assert one.rows() == DERIVED[mode][1](rows_of(events))
    next_day(events)
    for mode, one in made.items():
        run = one.corrected()
        assert (run["mode"], run["outcome"]) == (MODES.get(mode, mode), "applied")
        assert one.rows() == DERIVED[mode][1](rows_of(events))
        report = verify_definition(one.job(), every=True)
        assert (report.sound, report.checked) == (True, 2)
        assert correct(one.job(), check=True)["repaired"] == 0
    next_day(events, 3)
    for limit, mode in ((f"{LITTLE}.LOOKED_AT_ROWS", "floats"), (f"{TOUCHED}.FEW", "by_key")):
        monkeypatch.setattr(limit, 0)  # what is not little executors compare
        assert made[mode].corrected()["mode"] == "by_key"
        assert made[mode].rows() == DERIVED[mode][1](rows_of(events))
    assert spark._jsparkSession.sharedState().cacheManager().isEmpty(), "nothing is kept of what was computed"


def test_rows_that_were_over_before_they_came_are_none_also_when_all_is_compared(spark: Any, events: Made) -> None:
    over = Validity(valid_from="began", valid_for=1)
    one = Deriving(events, spark, "valid", select("SELECT id, kind, 0L AS began FROM events", validity=over))
    one.declared()
    one.corrected()  # and its gate, which recomputes some keys
    assert not one.rows()
    assert verify_definition(one.job(), every=True).sound
    assert correct(one.job(), check=True)["repaired"] == 0


KINDS = """
from pyspark.sql import functions as F


def counts(frames):
    lower = F.udf(lambda kind: kind.lower(), "string")  # runs on executors, which know no such file
    return frames["events"].where("kind IS NOT NULL").groupBy(lower("kind").alias("kind")).agg(F.count("*").alias("n"))


def chance(frames):
    return frames["events"].select("id", F.rand().alias("r"))


def first(frames):
    return frames["events"].limit(3).select("id")


def clock(frames):
    return frames["events"].select("id", F.lit("now").cast("timestamp").alias("at"))


def written(frames):
    return frames["events"].where(F.lit("2024-01-01").cast("date") > F.to_date(F.concat(F.lit("to"), F.lit("day"))))


def breaks(frames):
    return frames["nothing"]
"""


def test_a_function_of_frames_is_a_definition(
    spark: Any, events: Made, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By some columns, and whole where it does not say by which; what is not the same every time is refused."""
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "kinds.py").write_text(KINDS)
    monkeypatch.setenv("TIDEMARK_DEFINITIONS", str(tmp_path / "mine"))

    def made(function: str, *by: str) -> Deriving:
        origin = Derived(("events",), Definition(function=f"kinds:{function}", version="1", by=by))
        return Deriving(events, spark, f"{function}{len(by)}", origin, ("kind",))

    def counted() -> Counter[tuple[Any, ...]]:
        return Counter((kind, len(some)) for kind, some in by_kind(rows_of(events)).items())

    some, whole = made("counts", "kind"), made("counts")
    for one in (some, whole):
        one.declared()
        one.corrected()
        assert one.rows() == counted()
    next_day(events)
    assert [one.corrected()["mode"] for one in (some, whole)] == ["by_key", "whole"]
    assert some.rows() == whole.rows() == counted()
    for function, said in {
        "chance": "not the same every time",
        "first": "the first rows of no order",
        "clock": "the definition of clock0 depends on the time it is",
        "written": "the definition of written0 depends on the time it is",
        "breaks": "raises KeyError: 'nothing'",
        "nothing": "has no function 'nothing'",
    }.items():
        with pytest.raises(InvalidUsage, match=said):
            made(function).declared()


def test_what_says_itself_what_to_do_gets_no_other_advice() -> None:
    said = 'collection moves holds a row of key {"id":2} -2 times; correct the input'
    with pytest.raises(Raised) as raised, naming("d", str):
        raise PySparkException(f"[USER_RAISED_EXCEPTION] {said} SQLSTATE: P0001")
    assert str(raised.value) == f"the definition of d raises: {said}"


@pytest.mark.parametrize(
    "text",
    [
        "[INVALID_DRIVER_MEMORY] System memory 1 must be at least 2. SQLSTATE: F0000",
        "[INVALID_BUCKET_FILE] Invalid bucket file: x.parquet. SQLSTATE: 58030",
        "[KRYO_BUFFER_OVERFLOW] Kryo serialization failed: Buffer overflow. SQLSTATE: 54006",
        "[FAILED_READ_FILE.NO_HINT] Encountered error while reading file x. SQLSTATE: KD001",
        "[INTERNAL_ERROR] The Spark SQL phase optimization failed with an internal error. SQLSTATE: XX000",
        "[UNEXPECTED_V2_EXPRESSION] Expression x is not supported as a V2 expression. SQLSTATE: XX000",
        "Job aborted due to stage failure: Lost task 0.0: java.io.IOException: disk 3 [DIVIDE_BY_ZERO] failed",
    ],
)
def test_what_is_no_rows_doing_is_not_reported_as_a_verdict_on_rows(text: str) -> None:
    with pytest.raises(PySparkException, match="^" + re.escape(text[:20])), naming("d", str):
        raise PySparkException(text)


def test_conditions_that_rows_bring_about_are_those_of_this_spark() -> None:
    (jar,) = (Path(pyspark.__file__).parent / "jars").glob("spark-common-utils_*.jar")
    with ZipFile(jar) as archive:
        known = json.loads(archive.read("error/error-conditions.json"))
    assert known.keys() >= DATA
    assert {known[name]["sqlState"][:2] for name in DATA} == {"21", "22", "23", "54", "P0"}
    for text in (
        "[CAST_INVALID_INPUT] The value 'x' of the type STRING cannot be cast. SQLSTATE: 22018",
        "[INVALID_PARAMETER_VALUE.PATTERN] The value of parameter(s) `regexp` is invalid. SQLSTATE: 22023",
        "Job aborted: Lost task 0.0 (x): org.apache.spark.SparkArithmeticException: [DIVIDE_BY_ZERO] Division by zero.",
    ):
        assert is_about_rows(PySparkException(text))


def test_what_a_function_of_a_definition_raises_on_an_executor_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TIDEMARK_DEFINITIONS", "/x/definitions")
    at = 'Traceback (most recent call last):\n  File "{}/mine.py", line 7, in f\n    return 1 // x\n           ~~^^~~'
    text = f"An exception was thrown from the Python worker: {at}\nZeroDivisionError: by zero\n SQLSTATE: 38000"
    with pytest.raises(Raised) as raised, naming("d", str):
        raise PythonException(text.format("/x/definitions"))
    assert str(raised.value) == "the definition of d raises ZeroDivisionError: by zero for a row; filter such rows out"
    with pytest.raises(PythonException), naming("d", str):
        raise PythonException(text.format("/x/tidemark"))


WIDER = "or compute it in a wider type, as CAST(… AS decimal(38, 0))"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "[ARITHMETIC_OVERFLOW] long overflow. Use 'try_add' to tolerate overflow and return NULL instead.",
            f"ARITHMETIC_OVERFLOW: long overflow.; filter such rows out, {WIDER}",
        ),
        (
            "[DIVIDE_BY_ZERO] Division by zero. SQLSTATE: 22012",
            "DIVIDE_BY_ZERO: Division by zero.; filter such rows out, or use try_…",
        ),
        (
            "[INVALID_TIMEZONE] The timezone: Mars is invalid. SQLSTATE: 22009",
            "INVALID_TIMEZONE: The timezone: Mars is invalid.; filter such rows out",
        ),
    ],
)
def test_what_a_row_raises_is_reported_with_what_helps_and_nothing_that_does_not(text: str, message: str) -> None:
    with pytest.raises(Raised) as raised, naming("d", str):
        raise PySparkException(text)
    assert str(raised.value) == f"the definition of d raises {message}"


def test_columns_that_do_not_fit_are_named_without_what_is_hidden() -> None:
    declared = Collection(
        "d",
        (Column("kind", ColumnType.STRING),),
        (Column("n", ColumnType.INT),),
        select("SELECT kind, count(*) AS n FROM events GROUP BY kind"),
        hidden=(Column("_rows", ColumnType.INT),),
    )
    other = [Column("kind", ColumnType.STRING), Column("n", ColumnType.FLOAT)]
    with pytest.raises(InvalidUsage, match="gives the columns kind string, n float now, and d has kind string, n int:"):
        check_fits(declared, other)


def test_of_texts_no_more_comes_to_the_driver_than_it_can_hold(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    text = Column("text", ColumnType.STRING)
    declared = Collection("d", (Column("id", ColumnType.INT),), (text,), select("SELECT id, text FROM events"))
    frame = spark.createDataFrame([(1, "a" * 100), (2, None)], "id long, text string")
    assert bounded(declared, frame, ["text"]) is frame, "a touched value was there before"
    assert sorted(bounded(declared, frame, ["id"]).collect()) == sorted(frame.collect())
    monkeypatch.setattr("tidemark.spark.derive.here.diff.MOST_BYTES", 50)
    assert bounded(declared, frame, ["id"]).count() > FEW


def test_parts_are_in_order_of_columns_as_they_came_not_as_they_are_shown() -> None:
    """A column that was added in front of others, and behind hidden ones, is behind all of them at rest."""
    shown = (Column("new", ColumnType.INT, 4), Column("n", ColumnType.INT, 2))
    one = Collection(
        "d",
        (Column("kind", ColumnType.STRING, 1),),
        shown,
        select("SELECT kind, count(*) AS n, sum(id) AS new FROM events GROUP BY kind"),
        hidden=(Column("_rows", ColumnType.INT, 3),),
        dropped=(Column("old", ColumnType.INT, 5),),
    )
    names = [column.name for column in in_order(one)]
    assert names == ["kind", "n", "_rows", "new"]
    assert [name for name in sort_columns(one, facts=False) if name in names] == names


def test_a_gate_that_is_the_first_to_need_spark_starts_it(
    spark: Any, events: Made, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As by hand, in a process of its own: the kernels of a gate run without Spark, so that nothing started it."""
    query = "SELECT kind, to_json(sort_array(collect_set(id))) AS ids FROM events WHERE kind IS NOT NULL GROUP BY kind"
    made = Deriving(events, spark, "d", select(query), ("kind",))
    made.declared()
    correct(made.job())
    there = SparkContext._active_spark_context

    class Starting(InProcessRunner):
        @property
        def spark(self) -> Any:
            SparkContext._active_spark_context = there
            return spark

    monkeypatch.setattr(SparkContext, "_active_spark_context", None)
    store = made.job().store
    report = gate(Job(store, StateLog(store, fresh_id), lambda: Starting(store), fresh_id()), Gate.UNSEALED)
    assert report["outcome"] == "applied"
    assert SparkContext._active_spark_context is there, "it was never asked for"


def test_json_is_compared_as_it_is_at_rest(spark: Any, events: Made) -> None:
    """Spark writes numbers as JSON otherwise than they are kept: the gates, and a run that has nothing to do, agree."""
    query = "SELECT id, to_json(array(id * 1e10D, CAST(id AS decimal(9, 2)), -0D)) AS j FROM events"
    made = Deriving(events, spark, "d", select(query), ("id",))
    shape = shaped(made.job(), "d", made.origin)
    key, value = Column("id", shape.columns[0].type), Column("j", ColumnType.JSON)
    declare_collection(made.job(), Collection("d", (key,), (value,), made.origin, hidden=shape.hidden))
    made.corrected()
    assert correct(made.job(), whole=True)["outcome"] == "nothing to do"
    assert {row[:2] for row in made.rows()} >= {(7, "[70000000000,7,0]")}


def test_what_a_definition_raises_names_the_row(spark: Any, events: Made, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("DEBUG", "tidemark")
    made = Deriving(events, spark, "d", select("SELECT id, 10 DIV (id - 7) AS share FROM events"), ("id",))
    made.declared()
    with pytest.raises(InvalidUsage, match=r"the definition of d raises DIVIDE_BY_ZERO: .* for the row id 7, "):
        made.corrected()
    assert "Exception in task" in caplog.text, "what Spark logs of it was not suppressed"


def test_what_spark_logs_of_a_row_that_raises_is_not_shown_and_of_all_else_is(
    spark: Any, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level("DEBUG", "tidemark")
    raising = spark.range(1).selectExpr("1 DIV id AS share")
    with pytest.raises(Raised, match="DIVIDE_BY_ZERO"), muted_task_errors(), naming("d", str):
        raising.collect()
    assert "Exception in task" in caplog.text
    assert not capsys.readouterr().err
    with pytest.raises(PySparkException), muted_task_errors():
        raising.collect()
    assert "Exception in task" in capsys.readouterr().err


@pytest.mark.parametrize("adaptive", ["true", "false"])
def test_what_a_row_raises_is_one_line_also_where_it_is_broadcast(spark: Any, adaptive: str) -> None:
    raising = functions.broadcast(spark.range(3).selectExpr("id", "1 DIV id AS share"))
    with (
        with_settings(spark, {"spark.sql.adaptive.enabled": adaptive}),
        pytest.raises(Raised, match="definition of d raises DIVIDE_BY_ZERO: Division by zero"),
        muted_task_errors(),
        naming("d", str),
    ):
        raising.join(spark.range(3), "id").toArrow()


VALID = [
    (Validity(valid_from="a", valid_to="b"), {(1, 20, 20): 1, (1, 30, 30): -1, (2, 7, 5): 1, (3, 50, 50): 0}),
    (Validity(valid_to="b"), {(1, 7, 5): 1, (1, 30, 30): -1, (2, 7, 5): 1, (3, 7, 5): 1, (3, 40, 40): -1}),
    (Validity(valid_from="a", valid_for=4), {(1, 20, 20): 1, (1, 24, 24): -1, (3, 50, 50): 1, (3, 54, 54): -1}),
]


def test_a_row_is_there_from_when_it_begins_until_it_ends(spark: Any) -> None:
    """Learned at 7, happened at 5; bounds before that are no bounds, one that ends before it begins never was."""
    rows = [(1, 20, 30), (2, None, None), (3, 50, 40)]
    updates = [(*row, 7, 5, sign) for row in rows for sign in (1, 1, -1)]
    frame = spark.createDataFrame(updates, f"k long, a long, b long, {TIME} long, {EVENT_TIME} long, {DIFF} long")
    for validity, expected in VALID:
        found: Counter[tuple[int, ...]] = Counter()
        for row in while_valid(frame, validity).collect():
            found[row["k"], row[TIME], row[EVENT_TIME]] += row[DIFF]
        wanted = {at: diff for at, diff in {(2, 7, 5): 1, **expected}.items() if diff}
        assert {at: diff for at, diff in found.items() if diff} == wanted


def test_a_row_that_is_there_fewer_times_than_never_is_named(spark: Any) -> None:
    frame = spark.createDataFrame([(1, 2), (7, -1)], "id long, many long")
    with pytest.raises(Exception, match=r'collection d holds a row of key \{"id":7\} -1 times; a definition sees'):
        repeated(frame, "d", ["id"], "many").collect()


def test_columns_that_are_others_by_now_are_named_with_those_there_were() -> None:
    declared = Collection("d", (Column("id", ColumnType.INT),), (), select("SELECT id FROM events"))
    check_fits(declared, declared.columns)
    with pytest.raises(InvalidUsage, match="gives the columns id string now, and d has id int: change the definition"):
        check_fits(declared, (Column("id", ColumnType.STRING),))
    with pytest.raises(InvalidUsage, match="gives the columns id int, more int now, and d has id int"):
        check_fits(declared, (*declared.columns, Column("more", ColumnType.INT)))
