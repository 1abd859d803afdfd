"""The collections of format 1 that every later version must read, and what they must answer.

The release whose format was 1 wrote them, with fixed ids, names and clock; what is there stays as it is.
`tools/run python -m tests.compat.make_v1` writes the same collections in the format of today, to a folder of their own:
at its first release.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "include"))
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # as pytest has them

import pyarrow as pa
import pyarrow.parquet as pq

from support.world import DAY, World, collection, interval
from tests.support.reading import as_of, changes
from tidemark.arrow.kernels import ingest as ingest_kernel
from tidemark.arrow.parts import writer
from tidemark.arrow.rows.plain import plain_rows
from tidemark.errors import InvalidUsage
from tidemark.jobs.queries.late import late_rows
from tidemark.jobs.steps.collect import AT_ONCE, collect
from tidemark.jobs.steps.compact import compact
from tidemark.jobs.steps.drain import drain
from tidemark.jobs.steps.ingest import ingest
from tidemark.jobs.steps.init import declare_collection
from tidemark.jobs.steps.quarantine import quarantine
from tidemark.jobs.steps.replay import replay
from tidemark.jobs.steps.retain import hold
from tidemark.jobs.steps.seal import seal
from tidemark.model.arrangement import Arrangement
from tidemark.model.collection import Collection, Column, ColumnType, Envelope, Format, Late
from tidemark.model.retention import Retention, Step
from tidemark.storage import landing
from tidemark.storage.documents.upgrade import FORMAT
from tidemark.storage.stores.local import LocalStore
from tidemark.storage.stores.store import ObjectStore

V1 = Path(__file__).parent / "v1"
ANSWERS = "answers.json"
DAYS = {"appended": 6, "updated": 6, "upserted": 6, "messages": 3, "dumped": 5, "typed": 3}
"""How many days each lives; the day after is what a later version adds to a copy."""
VALUE = (Column("v", ColumnType.STRING), Column("w", ColumnType.INT))
RENAMED = (Column("u", ColumnType.STRING), Column("w", ColumnType.INT))
TYPES = tuple(Column(f"a_{each}", each) for each in list(ColumnType)[:6])

COLLECTIONS: dict[str, Collection] = {
    "appended": collection(Envelope.APPEND, late=Late("reemit", 25), live_batches=3),
    "updated": collection(
        Envelope.UPDATES, live_batches=2, retention=Retention("ladder", steps=(Step(None, 15), Step(5)))
    ),
    "upserted": collection(Envelope.UPSERT, late=Late("reemit", 25), live_batches=3),
    "messages": collection(Envelope.DEBEZIUM, late=Late("discard")),
    "dumped": collection(Envelope.SNAPSHOT, live_batches=2),
    "typed": collection(
        Envelope.UPDATES,
        format=Format.PARQUET,
        key=(Column("k", ColumnType.INT), Column("s", ColumnType.STRING)),
        value=TYPES,
    ),
}


def row(k: int, v: str | None, t: int, e: int | None = None, **more: Any) -> dict[str, Any]:
    return {"k": k, "v": v, "t": t, "e": t if e is None else e, "o": None, "gone": False, "d": 1} | more


def rows_of(day: int) -> list[dict[str, Any]]:
    """A key that changes daily, one that is deleted every other day, a tie, a new key; late rows every third day."""
    start = day * DAY
    late = [row(4, "late", start + 6, max(0, start - 12)), row(5, "too late", start + 6, max(0, start - 35))]
    return [
        *(late if day % 3 == 1 else []),
        row(1, f"v{day % 3}", start + 3),
        row(2, "é", start + 4, gone=day % 2 == 1, d=-1 if day % 2 else 1),
        row(3, "first", start + 5, o=1),
        row(3, "second", start + 5, o=0),
        row(10 + day, None, start),
        row(6, "ahead", start + 16 if day == 2 else start + 8),
    ]


def live(world: World, name: str) -> None:
    """Its days, the last of them sealed and not drained."""
    for day in range(DAYS[name]):
        if name == "upserted" and day in (2, 4):
            asked = replace(world.collection, value=VALUE if day == 2 else RENAMED)
            renames = (("v", "u"),) if day == 4 else ()
            world.run(
                lambda job, asked=asked, renames=renames: declare_collection(job, replace(asked, renames=renames))
            )
        pass_day(world, name, day)
        if name == "appended" and day == 2:
            world.land(day, "wrong", [row(9, "wrong", day * DAY + 12)])
            world.run(lambda job: ingest(job, interval(2), landing_root=str(world.landing)))
            world.run(lambda job: quarantine(job, job.log.load().state.pending[-1].id))
        if name == "appended" and day == 4:
            world.run(lambda job: hold(job, "audit", since=21))
            world.run(replay)
        if name == "dumped" and day == 3:
            for _ in range(2):  # what the first run plans the second removes: old versions, and what only they name
                world.run(lambda job: collect(job, keep=0, graces=AT_ONCE))


def pass_day(world: World, name: str, day: int) -> None:
    for file, rows in landed(world, name, day).items():
        world.land(day, file, rows)
    if name == "typed":
        land_typed(world, day)
    world.run(lambda job: ingest(job, interval(day), landing_root=str(world.landing)))
    world.run(lambda job: seal(job, interval(day)))
    if day != DAYS[name] - 1:
        world.run(lambda job: drain(job, interval(day)))
        world.run(lambda job: compact(job, interval(day)))


def landed(world: World, name: str, day: int) -> dict[str, list[dict[str, Any]]]:
    """The files of a day. Of full snapshots: the rows at its end, once no rows, and no file at all on another day."""
    if name == "typed":
        return {}
    if name == "dumped":
        current = [{"k": k, "v": "ab"[(k + day) % 2]} for k in range(day, day + 3)] * (1 + day % 2)
        return {} if day == 2 else {"a": [] if day == 3 else current}
    names = {column.name for column in world.state.collection.columns}
    rows = rows_of(day)
    for each in rows:
        each |= {"w": day, "u": each["v"]} if "w" in names else {}
    if "u" in names:
        rows = [{column: cell for column, cell in each.items() if column != "v"} for each in rows]
    return {"a": rows} if day else {"a": rows[:3], "b": rows[3:]}


def land_typed(world: World, day: int) -> None:
    """Every type, with the values that are hard to keep: nulls, NaN, −0.0, the ends of the ranges."""
    cells: dict[ColumnType, list[Any]] = {
        ColumnType.BOOL: [None, True],
        ColumnType.INT: [-(2**63), 2**63 - 1],
        ColumnType.FLOAT: [float("nan"), -0.0],
        ColumnType.STRING: ["", "\U0001f30a nine"],
        ColumnType.DATE: [None, 19_000 + day],
        ColumnType.TIMESTAMP: [-1, 1_700_000_000_000_001 + day],
    }
    columns: dict[str, Any] = {
        "k": [day, -day],
        "s": ["é", ""],
        "t": [day * DAY + 1] * 2,
        "e": [day * DAY] * 2,
        "d": [1, 2],
    }
    arrays = {name: pa.array(values) for name, values in columns.items()}
    for column in TYPES:
        array = pa.array(cells[column.type])
        if column.type is ColumnType.DATE:
            array = pa.array(cells[column.type], pa.int32()).cast(pa.date32())
        elif column.type is ColumnType.TIMESTAMP:
            array = array.cast(pa.timestamp("us", "UTC"))
        arrays[column.name] = array
    folder = world.landing / str(day * DAY)
    folder.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(arrays), folder / "a.parquet")


def answers(store: ObjectStore, state: Arrangement, times: Sequence[int] = ()) -> dict[str, Any]:
    """What can be read (at all times by default), and when nothing can."""

    def answered(ask: Callable[[], pa.Table]) -> Any:
        try:
            return [list(each) for each in plain_rows(ask())]
        except InvalidUsage:
            return "refused"

    times = times or sorted({*range(4, state.seal, 10), *range(9, state.seal, 10), state.since, state.seal - 1})
    return {
        "seal": state.seal,
        "since": state.since,
        "as_of": [
            [
                time,
                happened,
                answered(lambda time=time, happened=happened: as_of(store, state, time=time, event_time=happened)),
            ]
            for time in times
            for happened in (None, state.seal - 15)
        ],
        "changes": answered(lambda: changes(store, state, after=-1 if state.since == 0 else state.since)),
        "late": [list(each.values()) for each in late_rows(store, state, limit=100).rows],
        "quarantined": [batch.id for batch in state.quarantined],
        "holds": [[hold.name, hold.since] for hold in state.holds],
    }


def reader(folder: Path, name: str, landing: Path = Path()) -> World:
    """A collection that is there already; its ids begin where v1 has none."""
    return World(landing, COLLECTIONS[name], LocalStore(str(folder)), ids=count(90_000))


def a_day_more(folder: Path, name: str, landing: Path) -> dict[str, Any]:
    """What a copy answers after a later version has gone on with it: the last day drained, and another one."""
    world = reader(folder, name, landing)
    pass_day(world, name, DAYS[name])
    return answers(world.truth, world.state, [world.state.seal - 1])


def files(folder: Path) -> dict[str, str]:
    """Every file of a collection, with its SHA-256."""
    paths = sorted(path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest() for path in paths}


def make(target: Path, scratch: Path) -> None:
    """Write all collections and their answers."""
    landing._token = lambda status: f"{status.st_size} bytes"
    recorded = {}
    for name, declared in COLLECTIONS.items():
        numbers = count(1)
        writer.uuid4 = ingest_kernel.uuid4 = lambda numbers=numbers: SimpleNamespace(hex=f"file{next(numbers):05}")
        world = World(scratch / name, declared, LocalStore(str(target / name)))
        live(world, name)
        found = answers(world.truth, world.state)
        shutil.copytree(target / name, scratch / "copies" / name)
        more = a_day_more(scratch / "copies" / name, name, scratch / name)
        recorded[name] = {"files": files(target / name), "answers": found, "a day more": more}
    (target / ANSWERS).write_text(json.dumps(recorded, indent=None, separators=(",", ":"), allow_nan=False) + "\n")


if __name__ == "__main__":
    target = V1.with_name(f"v{FORMAT}")
    if target.exists():
        sys.exit(f"{target} is there: what was released stays as it is")
    with tempfile.TemporaryDirectory() as scratch:
        make(target, Path(scratch))
