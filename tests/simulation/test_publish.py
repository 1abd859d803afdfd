"""Published tables hold what the collection holds, by every reader; and what is refused is refused in one line."""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from simulation.script import row, steps
from support.budget import budget
from support.publishing import (
    COPIED,
    DELTA,
    ICEBERG,
    agree,
    by_deltalake,
    by_pyiceberg,
    delta_of,
    duckdb_iceberg,
    files_of,
    is_in_catalog,
    kept_rows,
    names_no_lost_file,
    ours,
    published,
    root_of,
    scripted,
    stage,
    table_of,
)
from support.world import World, interval
from tidemark import errors
from tidemark.errors import InvalidUsage, MissingExtra, TidemarkError, Unavailable
from tidemark.jobs.steps.compact import compact
from tidemark.jobs.steps.drain import drain
from tidemark.jobs.steps.ingest import ingest
from tidemark.jobs.steps.init import declare_collection
from tidemark.jobs.steps.publish import unpublish
from tidemark.jobs.steps.quarantine import quarantine
from tidemark.jobs.steps.seal import seal
from tidemark.model.collection import Column, ColumnType, Envelope
from tidemark.model.publication import Destination, TableFormat, of_format
from tidemark.model.retention import Retention
from tidemark.plan.publish import marked

pytestmark = pytest.mark.simulation
KINDS = [Envelope.APPEND, Envelope.UPSERT, Envelope.DEBEZIUM, Envelope.SNAPSHOT]
DUCKDB_WITH_ICEBERG = Path(__file__).resolve().parents[2] / "build" / "duckdb-iceberg"
"""Where `make test` puts a DuckDB that has its own reader of Iceberg, if it can be had: it reads the tables, too."""


def in_turn(kinds: list[Envelope]) -> list[Any]:
    """Some pairs of a kind and a destination; in make test-deep all."""
    named = {"iceberg": ICEBERG, "copied": COPIED, "delta": DELTA}
    every = [pytest.param(kind, to, id=f"{kind}-{name}") for kind in kinds for name, to in named.items()]
    return every[:: budget(ci=5, deep=1)]


def day(world: World, number: int, rows: list[dict[str, Any]]) -> None:
    """A day through all steps."""
    world.land(number, "a", rows)
    at = interval(number)
    world.run(lambda job: ingest(job, at, landing_root=str(world.landing)))
    for step in (seal, drain, compact):
        world.run(lambda job, step=step: step(job, at))


def ways(world: World, numbers: int, rows: Any) -> list[str]:
    """What publishing says of each of some days."""
    said = []
    for number in range(numbers):
        day(world, number, rows(number))
        done = published(world)
        said.append(done.get("iceberg", done.get("delta", "")).partition("Z: ")[2])
        agree(world)
    return said


@pytest.mark.parametrize(("envelope", "destination"), in_turn(KINDS))
def test_after_every_step_the_table_holds_what_the_collection_holds(
    tmp_path: Path, envelope: Envelope, destination: Destination
) -> None:
    world, outcomes, trace = scripted(tmp_path, envelope, destination), Counter[str](), None
    for step in steps(world.landing):
        world.run(step)
        done = published(world)
        if world.state.trace_upper == 0:
            assert done["outcome"] == "waits"
            continue
        outcomes[done["outcome"]] += 1
        if done["outcome"] == "applied" or world.state.trace != trace:
            agree(world)
            version = world.log().newest_version()
            assert published(world)["outcome"] == "nothing to do", "once per seal"
            assert world.log().newest_version() == version
        trace = world.state.trace
    assert outcomes["applied"] == 4, "of each drain"
    if destination.format is TableFormat.ICEBERG:
        names_no_lost_file(world)
        found = duckdb_iceberg(DUCKDB_WITH_ICEBERG, world)
        assert found in (None, Counter(kept_rows(world)))


def test_what_is_appended_is_named_not_copied(tmp_path: Path) -> None:
    world = stage(tmp_path, Envelope.APPEND, ICEBERG, live_batches=3)
    said = ways(world, 7, lambda at: [row(10 * at + n, "a", at * 10 + 1) for n in range(5)])
    # The whole is named again where batches were merged: metadata, and no row.
    assert {text.partition(" ")[2].removesuffix("s named").removesuffix(" named") for text in said} == {"part"}
    table = table_of(world)
    assert ours(world, files_of(table))
    assert len(ours(world, files_of(table))) == len(files_of(table))
    assert not list((root_of(world) / "_published" / "iceberg").rglob("*.parquet")), "no row was copied"
    assert table.properties["gc.enabled"] == "false"
    mark = marked(table.properties)
    assert mark is not None
    assert (mark.seal, mark.complete_below, mark.collection) == (world.state.seal, world.state.complete_below, "tides")


def test_rows_of_a_multiplicity_above_one_are_copied_and_what_comes_after_is_named(tmp_path: Path) -> None:
    world = stage(tmp_path, Envelope.UPDATES, ICEBERG, live_batches=9)
    said = ways(world, 3, lambda at: [row(at, "a", at * 10 + 1, d=3 if at == 0 else 1)])
    assert said == ["written whole", "1 part named", "1 part named"]
    assert sorted(kept_rows(world).values()) == [1, 1, 3]


def test_keys_that_change_are_merged_into_delta(tmp_path: Path) -> None:
    world = stage(tmp_path, Envelope.UPSERT, DELTA)

    def rows(at: int) -> list[dict[str, Any]]:
        if at == 0:
            return [row(k, "a", 1) for k in range(20)]
        return [row(at, "b", at * 10 + 1), row(30 + at, "new", at * 10 + 1), row(at + 1, None, at * 10 + 2, gone=True)]

    assert ways(world, 3, rows) == ["written whole", "changed keys merged", "changed keys merged"]


def test_of_keys_that_change_what_nothing_touches_is_named(tmp_path: Path) -> None:
    """The rows of batches that a retraction can meet are copied, unless a compaction has merged it with
    what it retracts."""
    world = stage(tmp_path, Envelope.UPSERT, ICEBERG, live_batches=5)
    some = [(range(10), "a"), (range(20, 30), "a"), (range(25, 26), "b"), (range(26, 27), "b"), (range(3, 4), "c")]

    def rows(at: int) -> list[dict[str, Any]]:
        keys, value = some[at]
        return [row(k, value, at * 10 + 1) for k in keys]

    named, mixed = "1 part named", "1 part named, all other rows copied"
    assert ways(world, 4, rows) == [named, named, mixed, mixed]
    assert len(ours(world, files_of(table_of(world)))) == 1, "of the first day, which nothing met"
    copied = sum(task.file.record_count for task in table_of(world).scan().plan_files()) - 10
    assert copied == 10, "the rows of the others"
    for at in (4, 5):
        day(world, at, [row(3, f"v{at}", at * 10 + 1)])
        published(world)
        agree(world)
    merged = stage(tmp_path, Envelope.UPSERT, ICEBERG, live_batches=2, retention=Retention("full_merge"))
    assert ways(merged, 3, rows) == [named] * 3, "a key changed, and the compaction had merged its history by then"


@pytest.mark.parametrize("destination", [ICEBERG, COPIED, DELTA], ids=["iceberg", "copied", "delta"])
def test_of_two_that_publish_at_once_one_commits(
    tmp_path: Path, destination: Destination, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other finds the table changed when it commits, and that there is nothing left to do."""
    from pyiceberg.catalog.sql import SqlCatalog

    from tidemark.publish import delta

    world = stage(tmp_path, Envelope.APPEND, destination, live_batches=9)
    for at in range(3):
        day(world, at, [row(at, "a", at * 10 + 1)])
        said: list[str] = []

        def beside(call: Any) -> Any:
            def first(*args: Any, **asked: Any) -> Any:
                if not said:  # noqa: B023
                    said.append("")  # noqa: B023
                    said[0] = published(world)["outcome"]  # noqa: B023
                return call(*args, **asked)

            return first

        with monkeypatch.context() as patch:
            patch.setattr(SqlCatalog, "commit_table", beside(SqlCatalog.commit_table))
            patch.setattr(delta, "write_deltalake", beside(delta.write_deltalake))
            assert published(world, attempts=1)["outcome"] == "nothing to do"
        assert said == ["applied"]
        agree(world)
        if destination.format is TableFormat.ICEBERG:
            names_no_lost_file(world)
            assert table_of(world).current_snapshot().sequence_number == at + 1
        else:
            assert delta_of(world).version() == at


def test_what_is_sealed_and_can_still_be_taken_out_is_not_published(tmp_path: Path) -> None:
    world = stage(tmp_path, Envelope.APPEND, ICEBERG, DELTA)
    day(world, 0, [row(1, "a", 1)])
    world.land(1, "a", [row(2, "wrong", 11)])
    world.run(lambda job: ingest(job, interval(1), landing_root=str(world.landing)))
    world.run(lambda job: seal(job, interval(1)))
    assert world.state.seal == 20
    published(world)
    agree(world)
    world.run(lambda job: quarantine(job, world.state.pending[-1].id))
    world.run(lambda job: drain(job, interval(1)))
    published(world)
    agree(world)
    assert sum(kept_rows(world).values()) == 1


def test_of_history_that_was_merged_past_it_the_table_is_written_whole(tmp_path: Path) -> None:
    from tidemark.model.change import CompactionAllowed

    world = stage(tmp_path, Envelope.APPEND, COPIED, live_batches=9)
    day(world, 0, [row(1, "a", 1)])
    published(world)
    day(world, 1, [row(2, "a", 11)])
    log = world.log()
    log.commit(log.load(), CompactionAllowed(19))
    assert published(world)["iceberg"].endswith("written whole")
    agree(world)


@pytest.mark.parametrize(("envelope", "destination"), in_turn([Envelope.APPEND, Envelope.UPSERT]))
def test_columns_that_change(tmp_path: Path, envelope: Envelope, destination: Destination) -> None:
    """Added, renamed, widened and dropped, and a name that comes back: the table follows."""
    world = stage(tmp_path, envelope, destination, live_batches=9)
    day(world, 0, [row(1, "a", 1), row(2, "b", 2)])
    published(world)
    k, v, t = (
        Column(name, of) for name, of in (("k", ColumnType.INT), ("v", ColumnType.STRING), ("n", ColumnType.INT))
    )
    declarations: list[dict[str, Any]] = [
        {"value": (v, t)},
        {"value": (v, replace(t, name="m")), "renames": (("n", "m"),)},
        {"value": (v, Column("m", ColumnType.FLOAT))},
        {"value": (Column("m", ColumnType.FLOAT),)},
        {"value": (Column("m", ColumnType.FLOAT), v)},
    ]
    assert k.name == "k"
    for at, changes in enumerate(declarations, start=1):
        asked = replace(world.collection, **changes)
        world.run(lambda job, asked=asked: declare_collection(job, asked))
        world.forget()
        published(world)
        agree(world)
        names = [column.name for column in world.state.collection.columns]
        more = {name: at for name in names if name in ("n", "m")}
        day(world, at, [row(at + 2, f"x{at}", at * 10 + 1, **more), row(1, "again", at * 10 + 2, **more)])
        published(world)
        agree(world)
        if destination.format is TableFormat.ICEBERG:
            assert [field.name for field in table_of(world).schema().fields] == names
            names_no_lost_file(world)
            for snapshot in table_of(world).metadata.snapshots:
                by_pyiceberg(world, snapshot.snapshot_id)  # what was is still read, in the columns of then
        else:
            assert [field.name for field in delta_of(world).schema().fields] == names


@pytest.mark.parametrize("envelope", KINDS)
def test_without_any_row_there_is_an_empty_table(tmp_path: Path, envelope: Envelope) -> None:
    world = stage(tmp_path, envelope, ICEBERG, DELTA)
    day(world, 0, [])
    for _ in range(2):
        published(world)
        agree(world)
    assert table_of(world).scan().to_arrow().num_rows == 0
    day(world, 1, [row(1, "a", 11)])
    published(world)
    agree(world)


@pytest.mark.parametrize(("package", "extra"), [("pyiceberg", "iceberg"), ("deltalake", "delta")])
def test_without_its_package(tmp_path: Path, package: str, extra: str, monkeypatch: pytest.MonkeyPatch) -> None:
    world = stage(tmp_path, Envelope.APPEND, ICEBERG if extra == "iceberg" else DELTA)
    day(world, 0, [row(1, "a", 1)])
    find = errors.find_spec
    monkeypatch.setattr(errors, "find_spec", lambda name: None if name == package else find(name))
    with pytest.raises(MissingExtra, match=rf"{package} is not installed: pip install '\.\[{extra}\]' \(in a checkout"):
        published(world)


def test_a_row_of_a_negative_multiplicity(tmp_path: Path) -> None:
    world = stage(tmp_path, Envelope.UPDATES, ICEBERG)
    day(world, 0, [row(7, "a", 1, d=-1)])
    with pytest.raises(InvalidUsage, match=r"the row k 7, v a has the multiplicity -1, which no table can show"):
        published(world)


class TestSomebodyElse:
    def test_changed_an_iceberg_table(self, tmp_path: Path) -> None:
        world = stage(tmp_path, Envelope.APPEND, ICEBERG)
        day(world, 0, [row(1, "a", 1)])
        published(world)
        was = table_of(world).current_snapshot().snapshot_id
        table_of(world).append(pa.table({"k": [9], "v": ["theirs"]}))
        now = table_of(world).current_snapshot().snapshot_id
        with pytest.raises(InvalidUsage, match=rf"snapshot {now}, and tides was published as {was}; .*--again"):
            published(world)
        day(world, 1, [row(2, "a", 11)])
        with pytest.raises(InvalidUsage, match="was changed by others"):
            published(world)
        assert published(world, again=True)["outcome"] == "applied"
        agree(world)
        day(world, 2, [row(3, "a", 21)])
        published(world)
        agree(world)

    def test_has_a_table_of_that_name(self, tmp_path: Path) -> None:
        world = stage(tmp_path, Envelope.APPEND, ICEBERG, DELTA)
        day(world, 0, [row(1, "a", 1)])
        published(world)
        other = World(
            tmp_path / "l2", replace(world.collection, name="ebbs", publish=(ICEBERG,)), _beside(world, "ebbs")
        )
        other.land(0, "a", [row(1, "a", 1)])
        day(other, 0, [row(1, "a", 1)])
        for again in (False, True):
            with pytest.raises(
                InvalidUsage, match=r"db\.tides exists, and it holds the collection tides; publish ebbs"
            ):
                published(other, again=again)
        path = str(tmp_path / "foreign")
        write_deltalake(path, pa.table({"x": [1]}))
        strange = World(
            tmp_path / "l3",
            replace(world.collection, name="eddies", publish=(replace(DELTA, table=path),)),
            _beside(world, "eddies"),
        )
        day(strange, 0, [row(1, "a", 1)])
        with pytest.raises(InvalidUsage, match=r"foreign exists, and Tidemark did not make it; publish eddies"):
            published(strange)

    def test_dropped_it(self, tmp_path: Path) -> None:
        world = stage(tmp_path, Envelope.APPEND, ICEBERG)
        day(world, 0, [row(1, "a", 1)])
        published(world)
        table_of(world).catalog.drop_table("db.tides")
        day(world, 1, [row(2, "a", 11)])
        with pytest.raises(InvalidUsage, match=r"db\.tides is gone, where tides was published as \d+; .*--again"):
            published(world)
        published(world, again=True)
        agree(world)
        assert of_format(world.state.publications, TableFormat.ICEBERG).sequence == 1

    def test_changed_a_delta_table_or_only_cleaned_it_up(self, tmp_path: Path) -> None:
        world = stage(tmp_path, Envelope.APPEND, replace(DELTA, copy_above=0.0))
        for at in (0, 1):
            day(world, at, [row(1, "a", at * 10 + 1)])
            published(world)
        delta_of(world).vacuum(retention_hours=0, enforce_retention_duration=False, dry_run=False)
        assert delta_of(world).version() == 3, "its commits are there"
        day(world, 2, [row(2, "a", 21)])
        published(world)
        agree(world)
        write_deltalake(delta_of(world), pa.table({"k": [9], "v": ["theirs"]}), mode="append")
        with pytest.raises(InvalidUsage, match=r"it has version 5, and tides was published as 4; .*--again"):
            published(world)
        published(world, again=True)
        agree(world)


def _beside(world: World, name: str) -> Any:
    from tidemark.storage.stores.local import LocalStore

    return LocalStore(str(root_of(world) / name))


class TestUnpublish:
    def test_a_table_that_names_parts_is_taken_out_of_its_catalog(self, tmp_path: Path) -> None:
        world = stage(tmp_path, Envelope.APPEND, ICEBERG, DELTA)
        day(world, 0, [row(1, "a", 1)])
        published(world)
        done = world.run(lambda job: unpublish(job))
        assert done["iceberg"] == "db.tides was taken out of its catalog"
        assert done["delta"].endswith("tides stays, on its own")
        assert not is_in_catalog(world)
        assert by_deltalake(world) == kept_rows(world)
        assert world.state.publications == ()
        with pytest.raises(InvalidUsage, match="tides is not published"):
            world.run(lambda job: unpublish(job))
        published(world)
        agree(world)

    def test_a_table_of_others_that_took_its_name_stays(self, tmp_path: Path) -> None:
        world = stage(tmp_path, Envelope.APPEND, ICEBERG)
        day(world, 0, [row(1, "a", 1)])
        published(world)
        table = table_of(world)
        table.catalog.drop_table("db.tides")
        table.catalog.create_table("db.tides", table.schema())
        with pytest.raises(InvalidUsage, match=r"table db.tides is another one than tides was published to; say --le"):
            world.run(lambda job: unpublish(job))
        assert is_in_catalog(world)
        assert world.run(lambda job: unpublish(job, leave=True))["outcome"] == "applied"

    def test_another_table_is_declared(self, tmp_path: Path) -> None:
        world = stage(tmp_path, Envelope.APPEND, ICEBERG)
        day(world, 0, [row(1, "a", 1)])
        published(world)
        moved = replace(world.collection, publish=(replace(ICEBERG, table="db.other"),))
        world.run(lambda job: declare_collection(job, moved))
        with pytest.raises(
            InvalidUsage, match=r"table db\.tides, and its file says db\.other; first run `tidemark unpub"
        ):
            published(world)
        with pytest.raises(InvalidUsage, match=r"declare db\.tides again"):
            world.run(lambda job: unpublish(job))
        world.run(lambda job: declare_collection(job, replace(moved, publish=())))
        with pytest.raises(InvalidUsage, match=r"does not declare any more; .* or say --leave"):
            world.run(lambda job: unpublish(job))
        done = world.run(lambda job: unpublish(job, leave=True))
        assert done["iceberg"] == "db.tides was left, and may name files that are gone"
        assert is_in_catalog(world)
        assert world.state.publications == ()
        with pytest.raises(InvalidUsage, match=r"declares no table; write publish: \{iceberg: \{table: db\.tides\}\}"):
            published(world)

    def test_a_table_that_was_left_is_written_whole(self, tmp_path: Path) -> None:
        world = stage(tmp_path, Envelope.APPEND, ICEBERG)
        day(world, 0, [row(1, "a", 1)])
        published(world)
        world.run(lambda job: unpublish(job, leave=True))
        assert published(world)["outcome"] == "applied"
        names = set(marked(table_of(world).properties).names)
        assert names == {pin.name for each in world.state.publications for pin in each.pins}
        assert published(world)["outcome"] == "nothing to do"
        agree(world)

    @pytest.mark.parametrize("call", ["create_table", "commit_table", "drop_table"])
    @pytest.mark.parametrize("times", [0, 1])
    @pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
    def test_beside_one_that_publishes(
        self, tmp_path: Path, call: str, times: int, after: bool, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Whatever comes first, no table is left that names parts which are not pinned."""
        from pyiceberg.catalog.sql import SqlCatalog

        world, beside = stage(tmp_path, Envelope.APPEND, ICEBERG), list[str]()
        for at in range(times + 1):
            day(world, at, [row(at, "a", at * 10 + 1)])
            if at < times:
                published(world)
        original = getattr(SqlCatalog, call)

        def other(*args: Any, **asked: Any) -> Any:
            result = original(*args, **asked) if after else None
            if not beside:
                beside.append("")
                with suppress(TidemarkError):
                    if call == "drop_table":
                        published(world, attempts=1, again=True)
                    else:
                        world.run(lambda job: unpublish(job), attempts=1)
            return result if after else original(*args, **asked)

        if call == "drop_table" and not times:
            published(world)
        with monkeypatch.context() as patch:
            patch.setattr(SqlCatalog, call, other)
            with suppress(TidemarkError):
                if call == "drop_table":
                    world.run(lambda job: unpublish(job), attempts=1)
                else:
                    published(world, attempts=1)
        assert beside or (call == "create_table" and times)
        pinned = {pin.name for each in world.state.publications for pin in each.pins}
        if is_in_catalog(world):
            assert set(marked(table_of(world).properties).names) <= pinned
        published(world, again=True)
        agree(world)

    def test_a_copy_stays_and_is_gone_on_from(self, tmp_path: Path) -> None:
        world = stage(tmp_path, Envelope.APPEND, COPIED)
        day(world, 0, [row(1, "a", 1)])
        published(world)
        assert world.run(lambda job: unpublish(job, format=TableFormat.ICEBERG))["iceberg"].endswith("on its own")
        day(world, 1, [row(2, "a", 11)])
        published(world)
        agree(world)


@pytest.mark.parametrize(
    ("catalog", "error", "said"),
    [
        ((("type", "rest"), ("uri", "http://127.0.0.1:9")), Unavailable, "did not answer"),
        ((("type", "sql"), ("uri", "sqlite:////nowhere/at/all.db")), Unavailable, "did not answer"),
        ((("name", "nobody_knows_it"),), InvalidUsage, "cannot be opened"),
        ((("type", "odd"),), InvalidUsage, "cannot be opened"),
    ],
)
def test_a_catalog_that_cannot_be_asked(
    tmp_path: Path, catalog: tuple[tuple[str, str], ...], error: type[Exception], said: str
) -> None:
    world = stage(tmp_path, Envelope.APPEND, replace(ICEBERG, catalog=catalog), DELTA)
    day(world, 0, [row(1, "a", 1)])
    with pytest.raises(error, match=said) as refused:
        world.run(lambda job: published_by(job), attempts=1)
    assert "\n" not in str(refused.value)
    assert by_deltalake(world) == kept_rows(world), "the other table is published all the same"


def published_by(job: Any) -> dict[str, Any]:
    from tidemark.jobs.steps.publish import publish

    return publish(job)


def test_a_root_with_a_space_in_it(tmp_path: Path) -> None:
    world = stage(tmp_path / "a b", Envelope.APPEND, ICEBERG, DELTA)
    day(world, 0, [row(1, "a", 1)])
    published(world)
    agree(world)
    encoded = stage(tmp_path / "a%20b", Envelope.APPEND, ICEBERG, DELTA)
    day(encoded, 0, [row(1, "a", 1)])
    with pytest.raises(InvalidUsage, match="has a % in its path, which deltalake decodes"):
        published(encoded)
    assert by_pyiceberg(encoded) == kept_rows(encoded)


def test_keys_of_several_columns_are_merged(tmp_path: Path) -> None:
    key = (Column("k", ColumnType.INT), Column("and", ColumnType.STRING), Column("Third", ColumnType.BOOL))
    world = stage(tmp_path, Envelope.UPSERT, DELTA, key=key)

    def rows(at: int) -> list[dict[str, Any]]:
        some = [row(k, f"v{at}", at * 10 + 1) | {"and": text, "Third": k > 5} for k in range(12) for text in "ab"]
        return some if at == 0 else [some[at], some[at + 5] | {"gone": True}, some[at + 1] | {"k": 99}]

    assert ways(world, 3, rows) == ["written whole", "changed keys merged", "changed keys merged"]
