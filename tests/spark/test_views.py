"""Collections by name in Spark SQL: the rows of the Python API, each as often as its multiplicity says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException

import tidemark
from tests.spark.support import APPEND, HOUR, START, UPDATES, UPSERT, Made
from tests.spark.test_read import land_keys, rows_of_frame
from tests.spark.test_source import each
from tidemark.errors import InvalidUsage
from tidemark.model.instant import format_instant
from tidemark.plan.read import plan_as_of
from tidemark.plan.size import size_of
from tidemark.storage.sidecars import parts_table

pytestmark = pytest.mark.spark
NOON = format_instant(START + 12 * HOUR)


@pytest.fixture
def filled(tmp_path: Path) -> Made:
    """Events and people, two days of each: drained rows beside such that are only sealed."""
    for text in (APPEND, UPSERT):
        made = Made(tmp_path, text)
        for day in (1, 2):
            made.land(day, 200, keys=40)
            made.moved(day, "ingest", "seal")
        made.moved(1, "drain")
    return Made(tmp_path, APPEND)


@pytest.fixture(autouse=True)
def no_other_views(spark: Any) -> Any:
    """Neither from tests before, as all share a session, nor for those that follow."""
    dropped(spark)
    yield
    dropped(spark)


def dropped(spark: Any) -> None:
    for view in spark.catalog.listTables():
        spark.catalog.dropTempView(view.name)


def views(spark: Any) -> list[str]:
    return sorted(view.name for view in spark.catalog.listTables())


def test_all_collections_are_views_and_join(spark: Any, filled: Made) -> None:
    stock = Made(filled.folder, UPDATES)
    stock.land(1, 50, keys=9)
    stock.step("ingest", 1)
    with pytest.warns(UserWarning, match="no view of stock: nothing is sealed there yet"):
        versions = tidemark.register(spark, filled.root)
    opened = {name: tidemark.open(filled.root, name) for name in ("events", "people")}
    assert versions == {name: one.version for name, one in opened.items()}
    assert views(spark) == ["events", "people"]
    rows = {name: one.as_of().to_arrow() for name, one in opened.items()}
    for name, table in rows.items():
        frame = spark.table(name)
        assert frame.columns == table.column_names[:-1]
        assert rows_of_frame(frame, frame.columns) == each(table)
    people = {row["id"]: row["kind"] for row in rows["people"].to_pylist()}
    pairs = [people[row["id"]] for row in rows["events"].to_pylist() if row["id"] in people]
    [found] = spark.sql("SELECT count(*) AS n, count(p.kind) AS k FROM events e JOIN people p ON e.id = p.id").collect()
    times = {row["id"]: 0 for row in rows["events"].to_pylist()}
    for row in rows["events"].to_pylist():
        times[row["id"]] += row["_multiplicity"]
    assert found.n == sum(times[id] for id in people if id in times) >= len(pairs) > 20
    assert found.k == sum(times[id] for id, kind in people.items() if id in times and kind is not None)


def test_some_collections_as_of_a_time_behind_a_prefix(spark: Any, filled: Made) -> None:
    made = tidemark.register(spark, filled.root, ["events"], prefix="then_", time=NOON, event_time=NOON)
    assert views(spark) == list(made) == ["then_events"]
    table = tidemark.open(filled.root, "events").as_of(NOON, NOON).to_arrow()
    frame = spark.table("then_events")
    assert rows_of_frame(frame, frame.columns) == each(table)
    assert table.num_rows > 20
    assert tidemark.register(spark, filled.root, "events") == {"events": made["then_events"]}
    assert spark.sql("SELECT count(*) AS n FROM events").collect()[0].n > frame.count()


def test_a_view_stays_until_it_is_registered_again(spark: Any, tmp_path: Path) -> None:
    made = Made(tmp_path, APPEND)
    for day in (1, 2):
        made.land(day, 100, keys=10)
    made.moved(1)
    tidemark.register(spark, made.root)
    made.moved(2)
    count = "SELECT count(*) AS n FROM events"
    assert spark.sql(count).collect()[0].n == 100
    tidemark.register(spark, made.root)
    assert spark.sql(count).collect()[0].n == 200


def test_a_row_at_rest_is_as_many_rows_as_its_multiplicity(spark: Any, tmp_path: Path) -> None:
    """Rows of one instant whose keys nobody shares are read by Spark itself, with the columns and conditions that it
    wants; they hold how often each is there. One with a negative multiplicity ends the query."""
    made = Made(tmp_path, UPDATES)
    land_keys(made, 1, 0)
    made.moved(1, "ingest", "seal", "drain")
    tidemark.register(spark, made.root)
    table = tidemark.open(made.root, made.name).as_of().to_arrow()
    frame = spark.table("stock")
    assert len(frame.inputFiles()) == 1
    multiplicities = {row["id"]: row["_multiplicity"] for row in table.to_pylist()}
    positive = [id for id, times in multiplicities.items() if times > 0]
    assert {multiplicities[id] for id in positive} == {1, 2}
    with pytest.raises(PySparkException, match="a row has the multiplicity -1, which no table can show"):
        frame.select("kind").collect()
    some = ", ".join(map(str, positive))
    assert spark.sql(f"SELECT count(*) AS n FROM stock WHERE id IN ({some})").collect()[0].n == sum(
        map(multiplicities.get, positive)
    )
    plan = spark.sql("SELECT sum(price) FROM stock WHERE id = 7")._jdf.queryExecution().executedPlan().toString()
    assert "EqualTo(id,7)" in plan, plan
    read = plan[plan.index("ReadSchema") :].splitlines()[0]
    assert "price" in read, plan
    assert "kind" not in read, plan


def test_what_cannot_be_a_view_is_refused_and_none_is_made(spark: Any, filled: Made, tmp_path: Path) -> None:
    none: Any = None
    empty = tmp_path / "empty"
    empty.mkdir()
    refused: list[tuple[tuple[Any, ...], dict[str, Any], str]] = [
        ((none, filled.root), {}, "spark is None (NoneType); give a SparkSession"),
        ((spark, filled.root, ["events", "event"]), {}, "no collection event under"),
        ((spark, filled.root), {"time": "2031-01-01"}, "the newest readable is"),
        ((spark, filled.root), {"prefix": "a b"}, "prefix is 'a b'; it is the beginning of a name"),
        ((spark, none, ["events"]), {}, "root is missing"),
        ((spark, tmp_path / "nowhere"), {}, "does not exist"),
    ]
    for given, named, message in refused:
        with pytest.raises(InvalidUsage) as error:
            tidemark.register(*given, **named)
        assert message in str(error.value)
        assert views(spark) == []
    assert tidemark.register(spark, empty) == {}
    assert tidemark.register(spark) == {}


@pytest.mark.parametrize("text", [APPEND, UPDATES, UPSERT])
def test_rows_that_are_only_sealed_are_counted_once(tmp_path: Path, text: str) -> None:
    """By how many there are it is decided who reads them."""
    made = Made(tmp_path, text)
    made.land(1, 200, keys=40)
    made.moved(1, "ingest", "seal")
    state, store = made.job().log.load().state, made.store
    request, parts = parts_table.opened_read(store, plan_as_of(state, state.seal - 1))
    rows, _ = size_of(request, parts)
    assert 0 < rows <= sum(batch.rows for batch in state.unsealed)
