"""What the unsealed gate makes of corrections: of how much of an interval they replace, and of whether it was there."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from support.relanded import relanded
from support.world import World, certify, collection, interval
from tidemark.errors import GateFailed
from tidemark.jobs.steps.drain import drain
from tidemark.jobs.steps.gate import gate
from tidemark.jobs.steps.ingest import ingest
from tidemark.jobs.steps.quarantine import quarantine
from tidemark.jobs.steps.seal import seal
from tidemark.model.arrangement import Fence
from tidemark.model.change import Attempted, Redefined, Refused
from tidemark.model.collection import Collection, Column, ColumnType, Envelope, Gate
from tidemark.model.evolution import evolved
from tidemark.quality.results import Results
from tidemark.storage.sidecars import ledger
from tidemark.storage.stores.private import open_private

pytestmark = pytest.mark.quality
ROWS = 20


@pytest.fixture(autouse=True)
def docs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TIDEMARK_DOCS", str(tmp_path / "docs"))
    return tmp_path / "docs"


def row(k: int, v: str = "a", **more: Any) -> dict[str, Any]:
    return {"k": k, "v": v, "t": 3, "e": 3, "o": 1, "gone": False} | more


def made(folder: Path, envelope: Envelope = Envelope.APPEND, **landed: Any) -> World:
    return World(folder / "landing", collection(envelope, reprocess_for=1000, **landed))


KINDS = pytest.mark.parametrize("envelope", [Envelope.APPEND, Envelope.UPSERT])


def run(world: World, day: int = 0, columns: tuple[str, ...] = ()) -> dict[str, Any]:
    return world.run(lambda job: ingest(job, interval(day), landing_root=str(world.landing), columns=columns))


def landed(
    world: World, rows: list[dict[str, Any]], *, day: int = 0, name: str = "a", columns: tuple[str, ...] = ()
) -> None:
    world.land(day, name, rows)
    run(world, day, columns)


def drained(world: World, day: int = 0) -> None:
    gate(world.job(), Gate.UNSEALED)
    world.run(lambda job: seal(job, interval(day)))
    certify(world.job(), Gate.FRONTIER)
    world.run(lambda job: drain(job, interval(day)))


def found(docs: Path) -> dict[str, str]:
    """What the newest run of the gate saw of corrections, by rule."""
    results = Results(open_private(str(docs)))
    name = next(results.names("tides", "unsealed"))
    document = results.load("tides", "unsealed", name)
    assert document is not None
    about = ("corrected share", "corrected share, usual", "retracted rows were contributed")
    return {result["rule"]: result["observed"] for result in document["results"] if result["rule"] in about}


def warned(world: World) -> dict[str, str]:
    return {warning["rule"]: warning["message"] for warning in gate(world.job(), Gate.UNSEALED).get("warnings", [])}


@pytest.mark.parametrize("drains", [False, True])
def test_more_than_usual_is_a_warning_where_nothing_is_declared(tmp_path: Path, docs: Path, drains: bool) -> None:
    world = made(tmp_path)
    landed(world, [row(k) for k in range(ROWS)])
    if drains:
        drained(world)
    assert warned(world) == {}
    landed(world, [row(k, "b" if k < 2 else "a") for k in range(ROWS)])
    assert warned(world) == {}, "a tenth is usual"
    assert found(docs)["corrected share, usual"] == "corrected_share_undeclared 0.1"
    landed(world, [row(k, "b" if k < 5 else "a") for k in range(ROWS)])
    assert warned(world) == {
        "corrected share, usual": "retracts 3 of 20 rows, 15.0%, and the collection file does not say how much a "
        "correction may: corrected_share"
    }
    assert found(docs)["retracted rows were contributed"] == "rows_not_contributed 0"
    assert all(world.state.is_certified(batch) for batch in world.state.unsealed), "a warning stops nothing"


@KINDS
def test_more_than_is_declared_stops_the_run_and_raising_it_lets_it_pass(tmp_path: Path, envelope: Envelope) -> None:
    world = made(tmp_path, envelope, corrected_share=0.2)
    landed(world, [row(k) for k in range(ROWS)])
    drained(world)
    landed(world, [row(k, "b" if k < 4 else "a") for k in range(ROWS)])
    assert warned(world) == {}, "just as much is allowed"
    landed(world, [row(k) for k in range(ROWS - 5)])
    (refused,) = (batch for batch in world.state.unsealed if not world.state.is_certified(batch))
    with pytest.raises(GateFailed) as failed:
        gate(world.job(), Gate.UNSEALED)
    said = "retracts 9 of 20 rows, 45.0%; corrected_share allows 20.0%: where the correction is right, raise it in"
    assert said in str(failed.value)
    assert f"quarantine tides {refused.id[:12]}`" in str(failed.value)
    declare(world, relanded(world.state.collection, corrected_share=0.45))
    assert warned(world) == {}
    assert world.state.is_certified(refused)


@pytest.mark.parametrize("envelope", list(Envelope))
def test_only_what_differs_beside_the_columns_that_are_filled_counts(
    tmp_path: Path, docs: Path, envelope: Envelope
) -> None:
    """All 20 rows are retracted and stated with the new column, which no share forbids; beside it one changed."""
    world = made(tmp_path, envelope, corrected_share=0.0)
    rows = [row(k, d=1, at=k) for k in range(ROWS)]
    landed(world, rows)
    drained(world)
    now = world.state.collection
    declare(world, evolved(now, replace(now, value=(Column("at", ColumnType.INT), *now.value))))
    landed(world, rows, columns=("at",))
    assert warned(world) == {}
    assert (found(docs)["corrected share"], world.state.unsealed[-1].rows) == (
        "corrected_share_allowed 0.0, corrected_share 0.0",
        2 * ROWS,
    )
    batch = world.state.unsealed[-1].id
    world.run(lambda job: quarantine(job, batch))
    landed(world, [*rows[1:], row(0, "b", d=1, at=0)], columns=("at",))
    with pytest.raises(GateFailed, match=r"retracts 1 of 20 rows, 5\.0%"):
        gate(world.job(), Gate.UNSEALED)


@pytest.mark.parametrize("envelope", list(Envelope))
def test_a_column_that_was_dropped_makes_no_row_another(tmp_path: Path, envelope: Envelope) -> None:
    world = made(
        tmp_path, envelope, corrected_share=0.05, value=(Column("v", ColumnType.STRING), Column("at", ColumnType.INT))
    )
    rows = [row(k, d=1, at=k) for k in range(ROWS)]
    landed(world, rows)
    drained(world)
    now = world.state.collection
    declare(world, evolved(now, replace(now, value=now.value[:1])))
    landed(world, [*rows[1:], row(0, "b", d=1, at=0)])
    assert warned(world) == {}


def test_the_share_is_of_the_interval_and_not_of_the_file(tmp_path: Path) -> None:
    """Other files of the day count, whether they came with this one or in a batch of their own; other days do not."""
    world = made(tmp_path, corrected_share=0.1)
    for name, first in (("a", 0), ("b", 10)):
        world.land(0, name, [row(k) for k in range(first, first + 10)])
    run(world)
    drained(world)
    landed(world, [row(k) for k in range(20, 40)], name="c")
    drained(world)
    landed(world, [row(k, t=13, e=13) for k in range(1000, 2000)], day=1)
    landed(world, [row(k) for k in range(4, 10)])
    assert warned(world) == {}
    landed(world, [row(k) for k in range(10)])
    landed(world, [row(k) for k in range(5, 10)])
    with pytest.raises(GateFailed, match=r"retracts 5 of 40 rows, 12\.5%"):
        gate(world.job(), Gate.UNSEALED)


@pytest.mark.parametrize("drains", [False, True])
def test_new_rows_of_negative_diff_take_nothing_back(tmp_path: Path, docs: Path, drains: bool) -> None:
    """Two of them beside one row that stays took "2 of 1 rows, 200 %"."""
    world = made(tmp_path, Envelope.UPDATES, corrected_share=0.0)
    landed(world, [row(1, d=1)])
    if drains:
        drained(world)
    landed(world, [row(1, d=1), row(2, d=-1), row(3, d=-1)])
    assert warned(world) == {}
    assert found(docs)["corrected share"] == "corrected_share_allowed 0.0, corrected_share 0.0"
    assert world.state.unsealed[-1].rows == 2
    landed(world, [row(1, d=1), row(2, d=-1), row(3, d=-1), row(4, d=-7)])
    assert warned(world) == {}


@KINDS
def test_what_was_never_contributed_cannot_be_retracted(tmp_path: Path, envelope: Envelope) -> None:
    """The ledger has lost what the file contributed at first: nothing is there for the correction to take."""
    world = made(tmp_path, envelope)
    landed(world, [row(k) for k in range(ROWS)])
    drained(world)
    landed(world, [row(k) for k in range(1, ROWS)])
    (entry,) = ledger.known(world.truth, world.state.ledger, ["0/a.jsonl"]).values()
    assert entry.correctable is not None
    lost = replace(entry, correctable=replace(entry.correctable, contributed=entry.contributed[-1:]))
    log, fence = world.log(), Fence("ingest", interval(0), "forger")
    log.commit(log.load(), Attempted(fence))
    log.commit(log.load(), Refused(ledger.save_run(world.truth, "ledger/forged.json", [lost]), fence))
    with pytest.raises(GateFailed, match="retracts 1 rows that its files had not contributed, of 1 in all"):
        gate(world.job(), Gate.UNSEALED)


def declare(world: World, asked: Collection) -> None:
    log = world.log()
    log.commit(log.load(), Redefined(asked))


def test_a_declared_share_is_part_of_the_suite(tmp_path: Path) -> None:
    """What was certified under another share is looked at again; where none is declared, nothing changes."""
    of = collection(Envelope.APPEND, reprocess_for=1000)
    suites = {relanded(of, corrected_share=share).suite(Gate.UNSEALED) for share in (None, 0.1, 0.2)}
    assert len(suites) == 3
    assert of.suite(Gate.UNSEALED) == relanded(of, reprocess_for=0).suite(Gate.UNSEALED)
    assert len({relanded(of, corrected_share=share).suite(Gate.TRACE) for share in (None, 0.1)}) == 1
