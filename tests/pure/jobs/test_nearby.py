"""Small work runs in this process, other work on the other runner; either is said once, with the reason."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from support.world import World, collection, interval
from tidemark.errors import InvalidUsage
from tidemark.jobs import in_process_runner as nearby
from tidemark.jobs.in_process_runner import BySize, InProcess
from tidemark.jobs.steps.ingest import ingest
from tidemark.model.batch import ObjectRef, Part
from tidemark.model.collection import Format
from tidemark.plan.tasks import ChecksumTask, InspectTask
from tidemark.storage.stores.memory import MemoryStore


@dataclass
class Other:
    """A runner that says what it was given."""

    parallelism: int = 3
    tasks: list[Any] = field(default_factory=list)
    spark: str = "a session"

    def run(self, name: str, tasks: Sequence[Any]) -> list[Any]:
        self.tasks += tasks
        return ["other"] * len(tasks)


def task(rows: int) -> InspectTask:
    part = Part(ObjectRef("data/p", 10 * rows, ""), rows, 0, (((1,), rows),), (1,), 0, 1, 0, 1)
    return InspectTask(collection(), part, False)


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What was run in this process."""
    ran: list[Any] = []

    def run(self: Any, name: str, tasks: Sequence[Any]) -> list[Any]:
        ran.extend(tasks)
        return ["here"] * len(tasks)

    monkeypatch.setattr(nearby.InProcess, "run", run)
    return ran


def test_the_place_follows_from_what_all_tasks_take(here: list[Any]) -> None:
    other, noted = Other(), list[str]()
    runner = BySize(MemoryStore(), lambda: other, 3, noted.append)
    assert runner.run("inspect", []) == []
    assert runner.work is None
    third = 20_000_000
    assert runner.run("inspect", [task(third)] * 2) == ["here"] * 2
    assert (runner.work and runner.work.document()["runner"]) == "process"
    assert runner.run("inspect", [task(third)] * 6) == ["other"] * 6
    assert runner.run("checksum", [ChecksumTask(("late/a",))]) == ["other"]
    assert (len(here), len(other.tasks)) == (2, 7)
    assert [line.partition(",")[0] for line in noted] == [
        "inspect runs in this process",
        "inspect took 0.0 s of CPU in this process",
        "inspect runs on Spark",
    ]
    assert "work up to 15 s of CPU" in noted[0]
    assert runner.work is not None
    assert runner.work.document() == {
        "runner": "spark",
        "estimated_cpu_s": None,
        "estimated_peak_mib": None,
        "cpu_s": pytest.approx(0, abs=0.1),
    }


def test_a_deployment_says_how_much_memory_small_work_has(here: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    noted = list[str]()
    runner = BySize(MemoryStore(), Other, 3, noted.append)
    monkeypatch.setenv(nearby.VARIABLE, "0")
    assert runner.run("inspect", [task(1)]) == ["other"]
    assert noted == ["inspect runs on Spark, as TIDEMARK_SMALL_MEMORY is 0"]
    monkeypatch.setenv(nearby.VARIABLE, "1MiB")
    assert [runner.run("inspect", [task(rows)]) for rows in (1, 1_000_000)] == [["here"], ["other"]]
    monkeypatch.setenv(nearby.VARIABLE, "much")
    with pytest.raises(InvalidUsage, match="TIDEMARK_SMALL_MEMORY is 'much'; write bytes"):
        runner.run("inspect", [task(1)])


def test_work_is_cut_as_for_the_other_runner_which_is_not_started() -> None:
    def refused() -> Other:
        raise AssertionError("the other runner was started")

    assert BySize(MemoryStore(), refused, 7, print).parallelism == 7
    assert BySize(MemoryStore(), Other, None, print).parallelism == 3
    assert BySize(MemoryStore(), Other, 7, print).spark == "a session"


def _of_one_long_text(path: Path, rows: int) -> None:
    """A file of hundreds of bytes a row in memory, and of hardly any at rest."""
    text = pa.DictionaryArray.from_arrays(pa.array([0] * rows, pa.int32()), pa.array(["x" * 1_000]))
    times = {name: pa.array([1] * rows, pa.int64()) for name in ("t", "e")}
    pq.write_table(pa.table({"k": pa.array(range(rows)), "v": text, **times}), path, compression="zstd")


@pytest.mark.parametrize("is_sampled", [True, False])
def test_a_file_that_decodes_to_a_hundred_times_its_size_is_for_the_other_runner(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_sampled: bool
) -> None:
    if is_sampled:
        monkeypatch.setattr("tidemark.arrow.kernels.density.SAMPLED_BYTES", 1)
    monkeypatch.setenv(nearby.VARIABLE, "24MiB")
    world, noted, other = World(tmp_path, collection(format=Format.PARQUET)), list[str](), list[str]()
    file = tmp_path / "0" / "a.parquet"
    file.parent.mkdir()
    _of_one_long_text(file, 100_000)
    assert file.stat().st_size * 100 < 100_000 * 1_000
    job = world.job()

    def make() -> InProcess:
        other.append("made")
        return InProcess(job.store, 2)

    runner = BySize(job.store, make, 2, noted.append)
    job.runner = lambda: runner
    result = ingest(job, interval(0), landing_root=str(tmp_path), as_landed=True)
    assert (result["rows"], other) == (100_000, ["made"])
    given_up = [line for line in noted if "given up" in line]
    assert bool(given_up) != is_sampled, noted
