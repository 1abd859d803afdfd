"""`spark.read.format("tidemark")` gives the rows of the Python API, each as often as its multiplicity says, at one
version."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from pyspark.errors import AnalysisException, PySparkException

import tidemark
from tests.spark.support import APPEND, HOUR, INSTANT, START, UPDATES, UPDATES_BY_TIME, UPSERT, Made
from tests.spark.test_every_type import EVENTS, land
from tests.spark.test_read import added_up, land_keys, rows_of_frame, rows_of_table
from tidemark.jobs.steps.collect import AT_ONCE, collect
from tidemark.model.instant import format_instant
from tidemark.storage.sidecars import parts_table

pytestmark = pytest.mark.spark
Row = tuple[Any, ...]
NOON = format_instant(START + 12 * HOUR)
ASKED: dict[str, list[dict[str, str]]] = {
    APPEND: [{}, {"as_of": NOON, "where": "amount > 0 OR amount IS NULL", "columns": "kind,id"}],
    UPDATES: [
        {"multiplicity": "true"},
        {"multiplicity": "true", "range": "seen", "range_from": "1960-01-01", "where": "price < 100000.25"},
    ],
    UPDATES_BY_TIME: [{"multiplicity": "true"}, {"multiplicity": "true", "where": "seen > '1975-01-01' AND id < 30"}],
    UPSERT: [{}, {"as_of": NOON, "event_time": NOON, "columns": "id,since"}, {"where": "id < 10", "columns": "kind"}],
}

COUNTED = """\
name: stock
key: [id]
value: [kind]
columns: {id: int, kind: string, at: timestamp}
start: 2024-01-01
time: {column: at}
source: {path: "{{ landing }}/stock/{{ ds }}/*.parquet", format: parquet, envelope: updates, diff: change}
"""


def read(spark: Any, made: Made, schema: str | None = None, *, of: str = "", **options: str) -> Any:
    """A frame of a collection, or of another one, `of`, below the same root."""
    reader = spark.read.format("tidemark").options(**options)
    return (reader.schema(schema) if schema else reader).load(f"{made.root}/{of or made.name}")


def each(table: pa.Table) -> list[Row]:
    """The rows of an as-of, each as often as its multiplicity says."""
    rows = (row for row in table.to_pylist() for _ in range(row.pop("_multiplicity")))
    return rows_of_table(pa.Table.from_pylist(list(rows), schema=table.schema.remove(len(table.schema) - 1)))


def answer(made: Made, options: dict[str, str]) -> pa.Table:
    """What the Python API says."""
    opened, given = tidemark.open(made.root, made.name), dict(options)
    given.pop("multiplicity", None)
    columns = given.pop("columns", None)
    names, where = columns.split(",") if columns else None, given.pop("where", None)
    if "range" in given:
        return opened.range(given["range"], given.get("range_from"), None, where, names).to_arrow()
    return opened.as_of(given.get("as_of"), given.get("event_time"), names, where).to_arrow()


@pytest.mark.parametrize("text", list(ASKED), ids=["append", "updates", "by time", "upsert"])
def test_the_rows_are_those_of_the_python_api(spark: Any, tmp_path: Path, text: str) -> None:
    """Drained rows beside such that are only sealed."""
    made = Made(tmp_path, text)
    for day in (1, 2):
        made.land(day, 200, keys=40)
        if text == UPDATES_BY_TIME:
            as_timestamps(made, day)
        made.moved(day, "ingest", "seal")
    made.moved(1, "drain")
    for options in ASKED[text]:
        table, frame = answer(made, options), read(spark, made, **options)
        plain = rows_of_table(table) if "multiplicity" in options else each(table)
        assert len(plain) >= 5, options
        assert rows_of_frame(frame, frame.columns) == plain, options
        assert frame.count() == len(plain), options
    opened = tidemark.open(made.root, made.name)
    for options, changes in [
        ({"changes_after": "beginning"}, opened.changes()),
        ({"changes_after": NOON, "net": "true", "where": "id < 20"}, opened.changes(NOON, net=True, where="id < 20")),
        ({"changes_upto": NOON, "columns": "id"}, opened.changes(upto=NOON, columns=["id"])),
    ]:
        frame, table = read(spark, made, **options), changes.to_arrow()
        assert frame.columns == table.column_names
        assert rows_of_frame(frame, frame.columns) == rows_of_table(table)
        assert table.num_rows > 20


def as_timestamps(made: Made, day: int) -> None:
    """The column of dates in the files of a day as one of times."""
    for file in (made.landing / made.name / f"2024-01-{day:02d}").iterdir():
        table = pq.read_table(file)
        at = table.schema.get_field_index("seen")
        pq.write_table(table.set_column(at, "seen", table["seen"].cast(INSTANT)), file)


def test_every_type_of_column(spark: Any, tmp_path: Path) -> None:
    """The values are those that `to_spark` gives, with the same types; also asked for by a schema, column by column."""
    made = Made(tmp_path, EVENTS)
    for day in (1, 2):
        land(made, day)
    opened = tidemark.open(made.root, made.name).as_of()
    frame, known = read(spark, made), opened.to_spark(spark).drop("_multiplicity")
    assert frame.schema == known.schema
    assert rows_of_frame(frame, frame.columns) == rows_of_frame(known, known.columns)
    for field in frame.schema:
        one = read(spark, made, f"{field.name} {field.dataType.simpleString()}")
        assert rows_of_frame(one, [field.name]) == rows_of_frame(known, [field.name]), field


def test_a_row_is_as_many_rows_as_its_multiplicity_and_a_negative_one_is_none(spark: Any, tmp_path: Path) -> None:
    made = Made(tmp_path, COUNTED)
    times = {1: 1, 2: 3, 3: 200_000}

    def put(day: int, diffs: dict[int, int]) -> None:
        folder = made.landing / made.name / f"2024-01-{day:02d}"
        folder.mkdir(parents=True)
        at = pa.array([START + (day - 1) * 24 * HOUR] * len(diffs), pa.int64()).cast(pa.timestamp("us", "UTC"))
        columns = {"id": list(diffs), "kind": ["a"] * len(diffs), "change": list(diffs.values()), "at": at}
        pq.write_table(pa.table(columns), folder / "a.parquet")
        made.moved(day, "ingest", "seal")

    put(1, times)
    frame = read(spark, made)
    assert {row.id: row["count"] for row in frame.groupBy("id").count().collect()} == times
    frame.createOrReplaceTempView("stock")
    assert spark.sql("SELECT count(*), sum(id) FROM stock").collect() == [(200_004, 600_007)]
    assert {(row.id, row._multiplicity) for row in read(spark, made, multiplicity="true").collect()} == set(
        times.items()
    )
    put(2, {1: -2})
    with pytest.raises(
        PySparkException, match=r"the row id 1, kind a has the multiplicity -1, which no table can show"
    ):
        read(spark, made).count()
    put(3, {4: 3})
    with pytest.raises(PySparkException, match=r"the row id 1, kind a has the multiplicity -1"):
        read(spark, made, columns="kind").count()
    assert read(spark, made, columns="kind", where="id > 1").count() == 200_006, "of rows that are none of it"
    assert frame.count() == 200_004, "it stays at its version"


def test_a_frame_stays_at_its_version_while_a_writer_goes_on(spark: Any, tmp_path: Path) -> None:
    """From `load` on; where the caller gave the schema Spark asks nothing at `load`: then from the first query on."""
    made = Made(tmp_path, APPEND)

    def day(number: int) -> None:
        made.land(number, 100, keys=40)
        made.moved(number)

    day(1)
    loaded = read(spark, made)
    loaded.createOrReplaceTempView("loaded")
    version = str(made.log.newest_version())
    given, asked = read(spark, made, "id long"), read(spark, made, "id long", version=version)
    day(2)
    assert loaded.count() == 100
    assert given.count() == 200
    assert asked.count() == 100
    day(3)
    assert loaded.where("id >= 0").count() == spark.sql("SELECT * FROM loaded").count() == 100
    assert loaded.union(loaded.where("id < 10")).count() == 100 + loaded.where("id < 10").count()
    assert given.select("id").count() == 200
    assert read(spark, made).count() == 300
    spark.catalog.dropTempView("loaded")


@pytest.mark.parametrize("text", [UPDATES, UPSERT], ids=["updates", "upsert"])
def test_a_condition_leaves_parts_unopened_and_a_schema_columns(spark: Any, tmp_path: Path, text: str) -> None:
    """The part whose keys do not fit may be gone. Of columns that are not asked for the bytes may be damaged."""
    made = Made(tmp_path, text.replace("live_batches: 2", "live_batches: 8"))
    for day, first_id in enumerate([0, 1000, 1100], start=1):
        land_keys(made, day, first_id)
        made.moved(day, "ingest", "seal", "drain")
    whole = tidemark.open(made.root, made.name).as_of().to_arrow()
    parts = parts_table.parts_of(made.store, [batch for batch in made.log.load().state.trace if batch.rows])
    files = [(part, made.root / made.name / part.file.key) for part in parts]
    for _, file in files:
        damage(file, "kind")
    with pytest.raises(PySparkException):
        read(spark, made, multiplicity="true").agg({"kind": "count"}).collect()
    shown = [name for name in whole.column_names if name != "kind"]
    fields = [field for field in read(spark, made, multiplicity="true").schema if field.name in shown]
    schema = ", ".join(f"{field.name} {field.dataType.simpleString()}" for field in fields)
    for frame in (
        read(spark, made, schema, multiplicity="true"),
        read(spark, made, columns=",".join(shown[:-1]), multiplicity="true"),
    ):
        assert added_up(rows_of_frame(frame, shown)) == added_up(rows_of_table(whole.select(shown)))
    next(file for part, file in files if part.last_key < (1000,)).unlink()
    expected = added_up(rows_of_table(whole.filter(pc.field("id") >= 1000).select(["id", "_multiplicity"])))
    some = {"multiplicity": "true", "columns": "id"}
    found = read(spark, made, where="id >= 1000", **some)
    assert added_up(rows_of_frame(found, found.columns)) == expected
    assert len(expected) > 10
    with pytest.raises(PySparkException, match="is missing") as refused:
        read(spark, made, where="id >= 0", **some).count()
    assert "Traceback" not in str(refused.value)


def test_a_version_that_was_collected_is_named(spark: Any, tmp_path: Path) -> None:
    """It is gone behind the planning of a query, and before that of one that has begun with `load`."""
    made = Made(tmp_path, APPEND)

    def day(number: int) -> None:
        made.land(number, 100, keys=40)
        made.moved(number)

    day(1)
    planned, loaded = read(spark, made), read(spark, made)
    assert planned.count() == 100
    for number in range(2, 7):
        day(number)
    for _ in range(2):
        collect(made.job(), keep=0, graces=AT_ONCE)
    with pytest.raises(PySparkException, match=r"version \d+ of events was collected since it was opened") as refused:
        planned.count()
    assert "Traceback" not in str(refused.value)
    with pytest.raises(PySparkException, match=r"version \d+ was collected; the oldest") as refused:
        loaded.count()
    assert "Traceback" not in str(refused.value)


def damage(file: Path, column: str) -> None:
    """Overwrite the bytes of one column of a Parquet file."""
    metadata = pq.ParquetFile(file).metadata
    data = bytearray(file.read_bytes())
    for group in range(metadata.num_row_groups):
        for at in range(metadata.num_columns):
            chunk = metadata.row_group(group).column(at)
            if chunk.path_in_schema == column:
                first = chunk.dictionary_page_offset or chunk.data_page_offset
                data[first : first + chunk.total_compressed_size] = b"\xff" * chunk.total_compressed_size
    file.write_bytes(bytes(data))


REFUSED: list[tuple[str | None, dict[str, str], str]] = [
    (None, {"asOf": NOON}, "there is no option 'asof'; did you mean 'as_of'?"),
    (None, {"Where": "idd > 1"}, "where: collection events has no column 'idd'; did you mean 'id'?"),
    (None, {"version": "99"}, "there is no version 99; the newest is"),
    (None, {"as_of": "2031-01-01"}, "the newest readable is 2024-01-01T23:59:59.999999Z"),
    (None, {"starting": "newest"}, "option starting is one of spark.readStream; this is spark.read"),
    ("id long, kond string", {}, "schema: collection events has no column 'kond'; did you mean 'kind'?"),
    ("amount string", {}, "schema: column amount is double, not string; ask for double, and cast it in the query"),
    ("kind string NOT NULL", {}, "schema: column kind may be null; leave NOT NULL out"),
    ("id long, kind string", {"columns": "id"}, "the schema asks for kind, which option columns leaves out"),
    ("id tinyint", {"where": "id > 127"}, "schema: column id is not int8: Integer value "),
]


def test_what_cannot_be_read_is_refused_in_a_line_without_a_traceback(spark: Any, tmp_path: Path) -> None:
    made = Made(tmp_path, APPEND)
    made.land(1, 400, keys=400)
    made.moved(1, "ingest", "seal")
    wanted = [(schema, options, message, made.name) for schema, options, message in REFUSED]
    for schema, options, message, name in [*wanted, (None, {}, "no collection event under", "event")]:
        with pytest.raises((AnalysisException, PySparkException)) as refused:
            read(spark, made, schema, of=name, **options).collect()
        assert message in str(refused.value), options
        assert "Traceback" not in str(refused.value), options
    by_name = spark.read.format("tidemark").options(root=str(made.root), name=made.name).load()
    assert by_name.count() == 400


def test_a_table_of_sql_a_thousand_columns_and_a_row_of_a_megabyte(spark: Any, tmp_path: Path) -> None:
    names = [f"c{number}" for number in range(1000)]
    text = APPEND.replace("value: [kind, amount]", f"value: [{', '.join(names)}]").replace(
        "kind: string, amount: float", ", ".join(f"{name}: string" for name in names)
    )
    made = Made(tmp_path, text)
    folder = made.landing / made.name / "2024-01-01"
    folder.mkdir(parents=True)
    at = pa.array([START] * 40, pa.int64()).cast(pa.timestamp("us", "UTC"))
    columns = {"id": list(range(40)), "at": at} | {name: ["x"] * 40 for name in names}
    columns["c7"] = ["ü" * 500_000] * 40
    pq.write_table(pa.table(columns), folder / "a.parquet")
    made.moved(1, "ingest", "seal")
    spark.sql(f"CREATE TEMPORARY VIEW wide USING tidemark OPTIONS (path '{made.root}/{made.name}', where 'id < 30')")
    assert spark.sql("SELECT sum(length(c7)), count(c999), max(id) FROM wide").collect() == [(15_000_000, 30, 29)]
    assert len(spark.table("wide").columns) == 1001
    spark.catalog.dropTempView("wide")
