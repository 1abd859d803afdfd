"""A process that is started for one read imports what it needs and no more: pandas alone would double what it takes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import support.world
import tidemark
from support.world import World, collection, interval
from tidemark.jobs.steps.drain import drain
from tidemark.jobs.steps.ingest import ingest
from tidemark.jobs.steps.seal import seal
from tidemark.model.collection import Column, ColumnType, DecimalType, Envelope
from tidemark.storage.stores.local import LocalStore

pytestmark = pytest.mark.pure
UNUSED = ("pandas", "pyspark", "sqlglot", "great_expectations", "airflow", "polars", "duckdb", "matplotlib", "boto3")
VALUES = (
    Column("v", ColumnType.STRING),
    Column("at", ColumnType.TIMESTAMP),
    Column("day", ColumnType.DATE),
    Column("n", ColumnType.INT),
    Column("f", ColumnType.FLOAT),
    Column("b", ColumnType.BOOL),
    Column("d", DecimalType(12, 2)),
    Column("x", ColumnType.BYTES),
    Column("j", ColumnType.JSON),
)
QUESTIONS = {
    "point": 'tides.as_of(where={"k": 3})',
    "all": "tides.as_of()",
    "columns": 'tides.as_of(columns=["v"])',
    "changes": 'tides.changes(where={"k": 3})',
    "net": "tides.changes(net=True)",
    "range": 'tides.range("at", "2024-01-01T00:00:00Z", "2024-01-03T00:00:00Z")',
    "in order": 'tides.range("at", datetime(2024, 1, 1, tzinfo=UTC), None, in_order=True)',
    "latest of one": 'tides.latest_at("at", "2024-01-03", where={"k": 3})',
    "latest of all": 'tides.latest_at("at", datetime(2024, 1, 3), ties=["n"])',
    "each": 'tides.latest_at("at", "2024-01-03", each=True, within="1d")',
    **{
        str(where): f"tides.as_of(where={where!r})"
        for where in (
            {"v": ["a", None], "n": 1},
            {"day": "2024-01-02", "b": True},
            {"f": 1.5},
            {"d": "2.50"},
            {"x": "AA=="},
            {"j": '{"a": 1}'},
        )
    },
}
TEXTS = (
    "n > 0 AND f < 9.5 AND v IN ('a', 'b')",
    "at >= '2024-01-01T00:00:00Z' OR day = '2024-01-02'",
    "NOT b = TRUE AND d <= 2.5 AND v IS NOT NULL",
)


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Below it two collections, each with a day in the trace and one that is sealed: of updates, and of facts."""
    folder = tmp_path_factory.mktemp("cold")
    for name, envelope in (("updates", Envelope.APPEND), ("facts", Envelope.UPSERT)):
        store = LocalStore(str(folder / "root" / name))
        declared = collection(envelope, name=name, value=VALUES, timelines=("at",))
        world = World(folder / "landing" / name, declared, truth=store)
        landing = str(world.landing)
        for day in range(2):
            world.land(day, "a", [row(k, day, keyed=envelope is Envelope.UPSERT) for k in range(6)])
            world.run(lambda job, day=day, landing=landing: ingest(job, interval(day), landing_root=landing))
            world.run(lambda job, day=day: seal(job, interval(day)))
            if day == 0:
                world.run(lambda job: drain(job, interval(0)))
    return folder / "root"


def row(k: int, day: int, *, keyed: bool) -> dict[str, Any]:
    moment = f"2024-01-0{1 + k % 3}"
    value: dict[str, Any] = {"v": "ab"[k % 2], "at": f"{moment}T00:00:00Z", "day": moment, "n": k, "f": k / 2}
    value |= {"b": k % 2 == 0, "d": f"{k / 2:.2f}", "x": "AA==", "j": {"a": 1}}
    times = {"t": 10 * day + k, "e": 10 * day + k} | ({"o": day, "gone": k == 5} if keyed else {})
    return {"k": k, **value, **times}


def fresh(script: str, *arguments: str) -> str:
    """What a script prints in an interpreter of its own."""
    folders = (Path(each.__file__).parent.parent for each in (tidemark, support.world))
    path = {"PYTHONPATH": os.pathsep.join(map(str, folders))}
    command = [sys.executable, "-c", script, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, env=os.environ | path)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def imported_by(root: Path, name: str, questions: list[str]) -> list[str]:
    """For each question what was imported when it was answered, and the rows of all."""
    lines = [
        "import sys, tidemark",
        "from datetime import UTC, datetime",
        f"tides = tidemark.open({str(root)!r}, {name!r})",
        "rows = 0",
    ]
    for question in questions:
        lines.append(f"rows += {question}.to_arrow().num_rows")
        lines.append(f"print({question!r}, [each for each in {UNUSED!r} if each in sys.modules])")
    return fresh("\n".join([*lines, "print(rows)"])).splitlines()


@pytest.mark.parametrize("name", ["updates", "facts"])
def test_a_read_imports_no_pandas(root: Path, name: str) -> None:
    questions = [*QUESTIONS.values(), *(f"tides.as_of(where={text!r})" for text in TEXTS)]
    *printed, rows = imported_by(root, name, questions)
    assert printed == [f"{question} []" for question in questions]
    assert int(rows) > 40


STEPS = """
import sys
from pathlib import Path
from support.world import World, collection, interval
from tidemark.jobs.steps import compact, drain, ingest, seal
from tidemark.model.collection import Envelope

folder, envelope = Path(sys.argv[1]), Envelope(sys.argv[2])
world = World(folder / "landing", collection(envelope))
of_envelope = {"updates": {"d": 1}, "upsert": {"o": 1, "gone": True}, "debezium": {"o": 1}}.get(envelope, {})
for day in range(2):
    world.land(day, "a", [{"k": k, "v": str(k), "t": 10 * day, "e": 10 * day, **of_envelope} for k in range(6)])
    world.land(day, "late", [{"k": 9, "v": "", "t": 0, "e": 0, **of_envelope}])
    for step in (
        lambda job: ingest.ingest(job, interval(day), landing_root=str(world.landing)),
        lambda job: seal.seal(job, interval(day)),
        lambda job: drain.drain(job, interval(day)),
        lambda job: compact.compact(job, interval(day)),
    ):
        world.run(step)
print(len(world.state.trace), [each for each in UNUSED if each in sys.modules])
"""


@pytest.mark.parametrize("envelope", Envelope)
def test_nor_does_a_step(tmp_path: Path, envelope: Envelope) -> None:
    script = STEPS.replace("UNUSED", repr(UNUSED))
    assert fresh(script, str(tmp_path), envelope) == "2 []"


def test_pandas_is_there_to_be_imported() -> None:
    """So that the tests above say something."""
    assert fresh("import pandas, sys; print('pandas' in sys.modules)") == "True"
