"""The collections of formats 2 and 3 that every later version must read, and what they must answer.

Builds whose formats these were wrote them, with fixed ids, names and clock; what is there stays so. They hold what
format 1 did not have: a derived collection, corrections, decimals, bytes and JSON, tables of parts and leaves of the
ledger both in the state and as objects, and declared timelines, of which format 2 recorded nothing.
`tools/run python -m tests.compat.make_v2` writes the same collections in the format of today, to a folder of their own.
"""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from decimal import Decimal
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "include"))
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # as pytest has them

import pyarrow as pa
import pyarrow.parquet as pq

from simulation.plain_definitions import COUNTS, derived
from simulation.sea import Sea
from support.world import DAY, World, certify, collection, interval
from tests.compat.make_v1 import ANSWERS, answers, files, rows_of
from tidemark.arrow.kernels import ingest as ingest_kernel
from tidemark.arrow.parts import writer
from tidemark.arrow.rows.schema import arrow_type
from tidemark.jobs.steps.collect import AT_ONCE, collect
from tidemark.jobs.steps.compact import compact
from tidemark.jobs.steps.drain import drain
from tidemark.jobs.steps.ingest import ingest
from tidemark.jobs.steps.init import declare_collection
from tidemark.jobs.steps.seal import seal
from tidemark.model.collection import Collection, Column, ColumnType, DecimalType, Envelope, Format, Gate, Late
from tidemark.model.retention import Retention, Step
from tidemark.storage import landing
from tidemark.storage.documents.upgrade import FORMAT
from tidemark.storage.sidecars import parts_table
from tidemark.storage.stores.local import LocalStore

V2, V3 = Path(__file__).parent / "v2", Path(__file__).parent / "v3"
DAYS = {"tides": 6, "counted": 6, "updated": 6, "upserted": 6, "messages": 3, "dumped": 5, "typed": 3}
"""How many days each lives; the day after is what a later version adds to a copy."""
DERIVED = "counted"
SEPARATE = ("tides", "counted", "upserted")
"""The collections whose tables of parts and leaves of the ledger are objects, however small."""
VALUE = (Column("v", ColumnType.STRING), Column("w", ColumnType.INT))
RENAMED = (Column("u", ColumnType.STRING), Column("w", ColumnType.INT))
TYPES = (*(Column(f"a_{each}", each) for each in ColumnType), Column("a_decimal", DecimalType(38, 6)))

COLLECTIONS: dict[str, Collection] = {
    "tides": collection(Envelope.APPEND, value=VALUE, timelines=("w",), late=Late("reemit", 25), live_batches=3),
    "counted": derived("counted", COUNTS, timelines=("most",)),
    "updated": collection(
        Envelope.UPDATES,
        reprocess_for=4 * DAY,
        live_batches=2,
        retention=Retention("ladder", steps=(Step(None, 15), Step(5))),
    ),
    "upserted": collection(Envelope.UPSERT, reprocess_for=4 * DAY, late=Late("reemit", 25), live_batches=3),
    "messages": collection(Envelope.DEBEZIUM, late=Late("discard")),
    "dumped": collection(Envelope.SNAPSHOT, reprocess_for=2 * DAY, live_batches=2),
    "typed": collection(
        Envelope.UPDATES,
        format=Format.PARQUET,
        key=(Column("k", ColumnType.INT), Column("s", ColumnType.STRING), Column("m", DecimalType(12, 2))),
        value=TYPES,
        timelines=("a_timestamp", "a_int"),
    ),
}


def opened(root: Path, name: str, scratch: Path, ids: Iterator[int]) -> Sea:
    """A collection below `root`, and the one that it is derived from."""
    sea = Sea(scratch, ids=ids)
    for each in dict.fromkeys(("tides", name) if name == DERIVED else (name,)):
        store = LocalStore(str(root / each))
        sea.worlds[each] = World(scratch / each, COLLECTIONS[each], store, clock=sea.clock, ids=sea.ids)
    return sea


def reader(folder: Path, name: str, scratch: Path = Path()) -> World:
    """A collection that is there already; its ids begin where v2 has none."""
    return opened(folder.parent, name, scratch, count(90_000)).worlds[name]


def live(sea: Sea, name: str) -> None:
    """Its days, the last of them sealed and not drained."""
    world = sea.worlds[name]
    for day in range(DAYS[name]):
        if name == "upserted" and day in (2, 4):
            asked = replace(world.collection, value=VALUE if day == 2 else RENAMED)
            renames = (("v", "u"),) if day == 4 else ()
            world.run(
                lambda job, asked=asked, renames=renames: declare_collection(job, replace(asked, renames=renames))
            )
        pass_day(sea, name, day)
        for _ in range(2) if (name, day) == ("dumped", 3) else ():  # what the first plans the second removes
            world.run(lambda job: collect(job, keep=0, graces=AT_ONCE))
        if world.collection.is_derived or not world.collection.landed.reprocess_for or day not in (2, 3):
            continue
        world.land(day - 1, "a", landed(world, name, day - 1)["a"][1:])  # a row of the day before is gone
        world.run(lambda job, day=day: ingest(job, interval(day - 1), landing_root=str(world.landing)))
        world.run(lambda job, day=day: seal(job, interval(day)))


def pass_day(sea: Sea, name: str, day: int) -> None:
    last = day == DAYS[name] - 1
    if name == DERIVED:
        pass_day(sea, "tides", day)
        sea.correct(name, until="seal" if last else "compact")
        return
    world = sea.worlds[name]
    for file, rows in landed(world, name, day).items():
        world.land(day, file, rows)
    if name == "typed":
        land_typed(world, day)
    world.run(lambda job: ingest(job, interval(day), landing_root=str(world.landing)))
    world.run(lambda job: seal(job, interval(day)))
    if not last:
        world.run(lambda job: drain(job, interval(day)))
        world.run(lambda job: certify(job, Gate.TRACE))
        world.run(lambda job: compact(job, interval(day)))


def landed(world: World, name: str, day: int) -> dict[str, list[dict[str, Any]]]:
    """The files of a day. Of full snapshots: the rows at its end."""
    if name == "typed":
        return {}
    if name == "dumped":
        return {"a": [{"k": k, "v": "ab"[(k + day) % 2]} for k in range(day, day + 3)] * (1 + day % 2)}
    names = {column.name for column in world.state.collection.columns}
    rows = rows_of(day)
    for at, each in enumerate(rows):
        each |= {"w": None if at == 2 else day * at, "u": each["v"]} if "w" in names else {}
    if "u" in names:
        rows = [{column: cell for column, cell in each.items() if column != "v"} for each in rows]
    return {"a": rows} if day else {"a": rows[:3], "b": rows[3:]}


def land_typed(world: World, day: int) -> None:
    """Every type, with the values that are hard to keep: nulls, NaN, −0.0, the ends of the ranges."""
    cells: dict[str, list[Any]] = {
        "k": [day, -day],
        "s": ["é", ""],
        "m": [1_250 + day, -1],
        "t": [day * DAY + 1] * 2,
        "e": [day * DAY] * 2,
        "d": [1, 2],
        "a_bool": [None, True],
        "a_int": [-(2**63), 2**63 - 1],
        "a_float": [float("nan"), -0.0],
        "a_string": ["", "\U0001f30a nine"],
        "a_date": [None, 19_000 + day],
        "a_timestamp": [-1, 1_700_000_000_000_001 + day],
        "a_bytes": [None, b"\xff\x00"],
        "a_json": ['{"b": 1.0, "a": [1e3]}', None],
        "a_decimal": [None, 10**32 + day],
    }
    types = {column.name: column.type for column in (*world.collection.key, *TYPES)}
    arrays = {name: _array(values, types.get(name)) for name, values in cells.items()}
    folder = world.landing / str(day * DAY)
    folder.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(arrays), folder / "a.parquet")


def _array(values: list[Any], of: Any) -> pa.Array:
    if of is ColumnType.DATE:
        return pa.array(values, pa.int32()).cast(pa.date32())
    if of is ColumnType.TIMESTAMP:
        return pa.array(values).cast(arrow_type(of))
    if isinstance(of, DecimalType):
        return pa.array([None if v is None else Decimal(v).scaleb(-of.scale) for v in values], arrow_type(of))
    return pa.array(values)


def a_day_more(folder: Path, name: str, scratch: Path) -> dict[str, Any]:
    """What a copy answers after a later version has gone on with it: the last day drained, and another one."""
    sea = opened(folder.parent, name, scratch, count(90_000))
    pass_day(sea, name, DAYS[name])
    world = sea.worlds[name]
    return answers(world.truth, world.state, [world.state.seal - 1])


@contextmanager
def as_objects(name: str) -> Iterator[None]:
    """Where the collection is one of these, nothing is small enough to be kept in its state."""
    was = parts_table.SMALL
    parts_table.SMALL = 0 if name in SEPARATE else was
    try:
        yield
    finally:
        parts_table.SMALL = was


def make(target: Path, scratch: Path) -> None:
    """Write all collections and their answers."""
    landing._token = lambda status: f"{status.st_size} bytes"
    recorded = {}
    for name in (name for name in COLLECTIONS if name != "tides"):
        numbers = count(1)
        writer.uuid4 = ingest_kernel.uuid4 = lambda numbers=numbers: SimpleNamespace(hex=f"file{next(numbers):05}")
        with as_objects(name):
            live(opened(target, name, scratch, count(1)), name)
    for name in COLLECTIONS:
        made = reader(target / name, name)
        found = answers(made.truth, made.state)
        shutil.copytree(target, scratch / f"copy of {name}")
        more = a_day_more(scratch / f"copy of {name}" / name, name, scratch / f"landing of {name}")
        recorded[name] = {"files": files(target / name), "answers": found, "a day more": more}
    (target / ANSWERS).write_text(json.dumps(recorded, indent=None, separators=(",", ":"), allow_nan=False) + "\n")


if __name__ == "__main__":
    target = V2.with_name(f"v{FORMAT}")
    if target.exists():
        sys.exit(f"{target} is there: what was released stays as it is")
    with tempfile.TemporaryDirectory() as scratch:
        make(target, Path(scratch))
