"""A dataset gives every reader the rows that `as_of` has, whatever columns and filters the reader pushes down."""

from __future__ import annotations

import pickle
import random
from collections import Counter
from collections.abc import Callable, Iterable
from datetime import timedelta
from pathlib import Path
from typing import Any

import duckdb
import polars
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pytest

import tidemark
from simulation.random_days import ENVELOPES, FIRST, History
from support.budget import budget
from support.typed import CASES, IN_TURN, Typed, TypedWorld
from support.world import DAY, World, collection, interval
from tidemark.api.dataset import CollectionDataset
from tidemark.api.opened import OpenCollection
from tidemark.arrow import bag, repeated
from tidemark.arrow.kernels import merge
from tidemark.arrow.parts.reader import OpenedPart
from tidemark.arrow.parts.writer import PartWriter
from tidemark.errors import InvalidUsage
from tidemark.jobs.steps.drain import drain
from tidemark.jobs.steps.ingest import ingest
from tidemark.jobs.steps.seal import seal
from tidemark.model.collection import Envelope, Layout
from tidemark.storage.stores.memory import MemoryStore

pytestmark = pytest.mark.simulation


@pytest.fixture(autouse=True)
def row_groups_of_few_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(PartWriter.__init__.__kwdefaults__, "group_rows", 3)
    monkeypatch.setattr(merge, "ROW_GROUP_ROWS", 3)
    monkeypatch.setattr(bag, "PIECE_ROWS", 6)
    monkeypatch.setattr(repeated, "MOST_ROWS", 6)


def counted(rows: Iterable[tuple[Any, ...]]) -> Counter[Any]:
    """Rows as often as they come; NaN is equal to itself."""
    return Counter(tuple("NaN" if value != value else value for value in row) for row in rows)


def of_table(table: pa.Table) -> Counter[Any]:
    return counted(zip(*(column.to_pylist() for column in table.columns), strict=True))


def as_a_table(table: pa.Table) -> pa.Table:
    """What `as_of` answers, each row as often as its multiplicity says: what a dataset is compared with."""
    times = table["_multiplicity"].to_pylist()
    places = [place for place, count in enumerate(times) for _ in range(count)]
    return table.drop_columns(["_multiplicity"]).take(pa.array(places, pa.int64()))


def filters(dice: random.Random) -> Iterable[pc.Expression]:
    """Filters on the columns of random days."""
    k, n, v, d, s = (pc.field(name) for name in "knvds")
    number, at = dice.randrange(-4, 12), FIRST + timedelta(hours=dice.randrange(48))
    yield k == dice.randrange(8)
    yield (k > 2) & (n <= number)
    yield (n >= number) | (v == "a")
    yield s < at
    yield (d == at.date()) & n.is_valid()
    yield k.isin([1, 5]) & ~(v == "b")
    yield n.is_null()


@pytest.mark.parametrize(
    ("envelope", "layout"),
    [
        *((envelope, None) for envelope in ENVELOPES),
        (Envelope.APPEND, Layout("n", 3)),
        (Envelope.APPEND, Layout("s", 3_600_000_000 * 7)),
    ],
    ids=lambda each: each.name if isinstance(each, Envelope) else f"by {each.by}" if each else "by key",
)
@pytest.mark.parametrize("seed", range(budget(ci=1, deep=3)))
def test_every_version_gives_the_rows_of_as_of(
    envelope: Envelope, layout: Layout | None, seed: int, tmp_path: Path
) -> None:
    dice = random.Random(seed)
    for opened in History(tmp_path, envelope, seed, layout).versions():
        counts = opened.dataset(multiplicity=True)
        answer = opened.as_of().to_arrow()
        assert sums(counts.to_table()) == sums(answer)
        dataset = opened.dataset()
        for filter in [ds.scalar(True), *filters(dice)]:
            columns = dice.sample(dataset.schema.names, dice.randrange(1, 5))
            if (fits := answer.filter(filter)).num_rows and min(fits["_multiplicity"].to_pylist()) < 0:
                with pytest.raises(InvalidUsage, match="which no table can show; read it with its multiplicity"):
                    dataset.to_table(columns=columns, filter=filter)
                with pytest.raises(InvalidUsage, match="which no table can show"):
                    dataset.count_rows(filter=filter)
                continue
            table = as_a_table(fits)
            scanned = dataset.to_table(columns=columns, filter=filter)
            assert scanned.column_names == columns
            assert of_table(scanned) == of_table(table.select(columns))
            assert dataset.count_rows(filter=filter) == table.num_rows
            assert of_table(dataset.filter(filter).to_table(columns=columns)) == of_table(scanned)
        fits = answer.filter(pc.field("n") > 2)
        if min(fits["_multiplicity"].to_pylist(), default=1) > 0:
            where = opened.dataset(where="n > 2", columns=["v", "k"]).to_table()
            assert of_table(where) == of_table(as_a_table(fits).select(["v", "k"]))


def sums(table: pa.Table) -> Counter[Any]:
    """The multiplicity of each row."""
    found: Counter[Any] = Counter()
    for *row, count in zip(*(column.to_pylist() for column in table.columns), strict=True):
        found[tuple(row)] += count
    return found


PREDICATES = (
    "{c} = {x}",
    "{c} <> {x}",
    "{c} < {x}",
    "{c} >= {y}",
    "{c} BETWEEN {x} AND {y}",
    "{c} BETWEEN {y} AND {x}",
    "{c} IN ({x}, {y})",
    "{c} NOT IN ({x})",
    "{c} IS NULL",
    "{c} IS NOT NULL",
    "NOT ({c} = {x})",
    "{c} = {x} OR {c} IS NULL",
    "{c} IS DISTINCT FROM {x}",
    "{c} > {x} AND {other} IS NOT NULL",
)


@pytest.mark.parametrize("case", budget(ci=IN_TURN, deep=CASES), ids=str)
def test_duckdb_and_polars_filter_every_type_as_they_filter_a_table(case: Typed, tmp_path: Path) -> None:
    world = TypedWorld(tmp_path, case)
    world.put(0, "a", case.rows())
    world.ingested()
    world.moved()
    opened = tidemark.open(world.root, "tides")
    dataset, table = opened.dataset(), as_a_table(opened.as_of().to_arrow())
    column, other = ("k", "v") if case.role == "key" else ("v", "k")
    values = [value for value in table[column].to_pylist() if value is not None]
    connection = in_duckdb(dataset, table)
    for predicate in PREDICATES:
        where = predicate.format(c=column, other=other, x="$x", y="$y")
        given = {name: value for name, value in zip("xy", values, strict=True) if f"${name}" in where}
        found = [
            connection.execute(f"SELECT {other} FROM {source} WHERE {where}", given).fetchall()
            for source in ("dataset", '"table"')
        ]
        assert counted(found[0]) == counted(found[1]), where
    lazy, eager = dataset.to_polars(), polars.DataFrame(table)
    for wanted in polars_predicates(polars.col(column), *values):
        assert counted(lazy.filter(wanted).select(other).collect().rows()) == counted(
            eager.filter(wanted).select(other).rows()
        ), wanted


def in_duckdb(dataset: CollectionDataset, table: pa.Table) -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect()
    connection.execute("SET TimeZone = 'UTC'")
    connection.register("dataset", dataset)
    connection.register("table", table)
    return connection


def polars_predicates(column: polars.Expr, x: Any, y: Any) -> list[polars.Expr]:
    plain = [column == x, column != x, column.is_in([x, y]), column.is_null(), column.is_not_null()]
    ordered = [column < x, column >= y, column.is_between(polars.lit(x), polars.lit(y))]
    return plain if isinstance(x, bool) else [*plain, *ordered]


def test_duckdb_and_polars_find_what_is_no_number(tmp_path: Path) -> None:
    """NaN is above all numbers in DuckDB and polars, and equal to itself; Arrow thinks otherwise."""
    case = next(each for each in CASES if str(each).startswith("float-value-append"))
    world = TypedWorld(tmp_path, case)
    world.put(
        0, "a", [{**case.row(0), "k": at, "v": value} for at, value in enumerate([1.5, float("nan"), None, -0.0])]
    )
    world.ingested()
    world.moved()
    dataset = tidemark.open(world.root, "tides").dataset()
    table = dataset.to_table()
    assert table.num_rows == 4
    connection = in_duckdb(dataset, table)
    for where in ("v > 1", "v = 'NaN'::DOUBLE", "v >= 'NaN'::DOUBLE", "v <> 1.5", "v = 0", "v <= 0", "isnan(v)"):
        found = [
            connection.sql(f"SELECT k FROM {source} WHERE {where} ORDER BY k").fetchall()
            for source in ("dataset", '"table"')
        ]
        assert found[0] == found[1], where
    v, nan = polars.col("v"), float("nan")
    for wanted in [v > 1, v == nan, v != nan, v < nan, v >= nan, v == v, v + 1 > 2, ~v.is_in([1.5]), v.is_nan()]:
        eager = polars.DataFrame(table).filter(wanted)
        assert dataset.to_polars().filter(wanted).select("k").collect()["k"].to_list() == eager["k"].to_list(), wanted
    lazy = tidemark.open(world.root, "tides").as_of().to_polars(lazy=True)
    assert lazy.filter(v > 1).select(polars.len()).collect().item() == 2


def loaded(folder: Path, name: str, rows: list[dict[str, Any]], batches: int = 1) -> OpenCollection:
    """The rows in some batches, which share keys."""
    root = f"memory://{name}"
    world = World(folder, collection(Envelope.APPEND), truth=MemoryStore.named(f"{root}/tides"))
    for day in range(batches):
        world.land(day, "a", [{**row, "t": day * DAY + row["t"]} for row in rows[day::batches]])
        world.run(lambda job, day=day: ingest(job, interval(day), landing_root=str(world.landing)))
        for step in (seal, drain):
            world.run(lambda job, step=step, day=day: step(job, interval(day)))
    return tidemark.open(root, "tides")


@pytest.fixture
def opened_chunks(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The row groups that are read, as they are."""
    read: list[int] = []
    before = OpenedPart.read

    def noted(self: OpenedPart, groups: Any, schema: Any = None) -> pa.RecordBatch:
        read.extend(groups)
        return before(self, groups, schema)

    monkeypatch.setattr(OpenedPart, "read", noted)
    return read


ASKED: dict[str, Callable[[CollectionDataset], Any]] = {
    "arrow": lambda dataset: dataset.to_table(columns=["v"], filter=pc.field("k") == 301)["v"].to_pylist(),
    "duckdb": lambda dataset: [row[0] for row in duckdb.sql("SELECT v FROM dataset WHERE k = 301").fetchall()],
    "duckdb, in": lambda dataset: [row[0] for row in duckdb.sql("SELECT v FROM dataset WHERE k IN (301)").fetchall()],
    "polars": lambda dataset: dataset.to_polars().filter(polars.col("k") == 301).select("v").collect()["v"].to_list(),
}


@pytest.mark.parametrize("asked", ASKED)
def test_a_filter_on_the_key_opens_the_row_groups_of_the_key(
    asked: str, tmp_path: Path, opened_chunks: list[int]
) -> None:
    rows = [{"k": at, "v": f"v{at}", "t": 1, "e": 1} for at in range(600)]
    dataset = loaded(tmp_path, f"pushed{asked}", rows).dataset()
    assert ASKED[asked](dataset) == ["v301"]
    assert set(opened_chunks) <= {99, 100, 101}


def test_all_rows_of_a_bag_are_read_as_they_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a merge, and what is known to count once without its count."""

    def no_merge(*_: Any, **__: Any) -> Any:
        raise AssertionError("a bag needs no merge")

    monkeypatch.setattr(bag, "rows_as_of", no_merge)
    rows = [{"k": at % 40, "v": f"v{at}", "t": 1, "e": 1} for at in range(600)]
    dataset = loaded(tmp_path, "bag", rows, batches=3).dataset()
    assert sorted(dataset.to_table()["v"].to_pylist()) == sorted(row["v"] for row in rows)


def test_a_row_of_a_high_multiplicity_comes_as_often_in_bounded_batches(tmp_path: Path) -> None:
    rows = [{"k": 1, "v": "same", "t": 1, "e": 1}] * 100 + [{"k": 2, "v": "other", "t": 1, "e": 1}]
    dataset = loaded(tmp_path, "often", rows).dataset()
    assert Counter(dataset.to_table()["v"].to_pylist()) == {"same": 100, "other": 1}
    assert dataset.count_rows() == 101
    assert dataset.to_polars().select(polars.len()).collect().item() == 101
    assert dataset.to_polars().head(7).collect().height == 7
    assert max(batch.num_rows for batch in dataset.to_batches()) <= repeated.MOST_ROWS
    assert duckdb.sql("SELECT count(*) FROM dataset").fetchall() == [(101,)]


def test_a_masked_value_is_in_no_refusal(tmp_path: Path) -> None:
    declared = collection(Envelope.UPDATES, masked=("v",))
    world = World(tmp_path, declared, truth=MemoryStore.named("memory://masked/tides"))
    world.land(0, "a", [{"k": 1, "v": "secret", "t": 1, "e": 1, "d": -1}])
    for step in (
        lambda job: ingest(job, interval(0), landing_root=str(world.landing)),
        lambda job: seal(job, interval(0)),
    ):
        world.run(step)
    with pytest.raises(InvalidUsage, match="the row k 1, v masked has the multiplicity -1") as refused:
        tidemark.open("memory://masked", "tides").dataset().to_table()
    assert "secret" not in str(refused.value)


def test_another_process_reads_the_same_version(tmp_path: Path) -> None:
    opened = loaded(tmp_path, "pickled", [{"k": 1, "v": "a", "t": 1, "e": 1}])
    dataset = opened.dataset(where={"k": 1}).filter(pc.field("v") == "a")
    again = pickle.loads(pickle.dumps(dataset))
    assert again.to_table() == dataset.to_table()
    assert (again.collection, again.version) == ("tides", opened.version)
    assert "tides as known at" in repr(again)


def test_what_is_no_column_is_refused(tmp_path: Path) -> None:
    opened = loaded(tmp_path, "refused", [{"k": 1, "v": "a", "t": 1, "e": 1}])
    with pytest.raises(InvalidUsage, match="did you mean 'v'"):
        opened.dataset(columns=["vv"])
    with pytest.raises(InvalidUsage, match="there is no column 'vv'; did you mean 'v'"):
        opened.dataset().to_table(columns=["vv"])
    with pytest.raises(InvalidUsage, match="multiplicity"):
        opened.dataset(multiplicity="no")  # type: ignore[arg-type]


def test_what_would_go_around_the_scanner_says_so(tmp_path: Path) -> None:
    dataset = loaded(tmp_path, "around", [{"k": 1, "v": "a", "t": 1, "e": 1}]).dataset()
    for name in ("get_fragments", "join", "join_asof", "sort_by", "replace_schema"):
        with pytest.raises(InvalidUsage, match="scan it, or take to_table"):
            getattr(dataset, name)("k")
    with pytest.raises(FileNotFoundError, match="is read by its own scanner"):
        ds.Scanner.from_dataset(dataset).to_table()


def test_expressions_by_name_read_what_they_look_at(tmp_path: Path) -> None:
    dataset = loaded(tmp_path, "named", [{"k": 1, "v": "a", "t": 1, "e": 1}]).dataset()
    asked = {"twice": pc.field("k") * 2}
    assert dataset.to_table(columns=asked, filter=pc.field("v") == "a").to_pylist() == [{"twice": 2}]
