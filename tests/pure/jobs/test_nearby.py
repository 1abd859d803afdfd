"""Little work runs in this process, more on the other runner; either is said once, with the reason."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from support.world import collection
from tidemark.jobs import in_process_runner as nearby
from tidemark.jobs.in_process_runner import BYTES_HERE, ROWS_HERE, BySize, is_small, total_size
from tidemark.model.batch import ObjectRef, Part
from tidemark.plan.task_size import Size
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


def task(rows: int, size: int = 10) -> InspectTask:
    part = Part(ObjectRef("data/p", size, ""), rows, 0, (((1,), rows),), (1,), 0, 1, 0, 1)
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


def test_the_place_follows_from_rows_and_bytes_together(here: list[Any]) -> None:
    other, noted = Other(), list[str]()
    runner = BySize(MemoryStore(), lambda: other, 3, noted.append)
    half = ROWS_HERE // 2
    assert runner.run("inspect", [task(half), task(half)]) == ["here"] * 2
    assert runner.run("inspect", [task(half), task(half), task(1)]) == ["other"] * 3
    assert runner.run("inspect", [task(1, BYTES_HERE + 1)]) == ["other"]
    assert runner.run("checksum", [ChecksumTask(("late/a",))]) == ["other"]
    assert runner.run("inspect", []) == []
    assert (len(here), len(other.tasks)) == (2, 5)
    assert [line.partition(",")[0] for line in noted] == ["inspect runs in this process", "inspect runs on Spark"]
    assert "200,001 rows" in noted[1]
    assert "more than 200,000 rows" in noted[1]


def test_work_is_cut_as_for_the_other_runner_which_is_not_started() -> None:
    def refused() -> Other:
        raise AssertionError("the other runner was started")

    assert BySize(MemoryStore(), refused, 7, print).parallelism == 7
    assert BySize(MemoryStore(), Other, 7, print).spark == "a session"


def test_a_size_is_known_only_if_that_of_every_task_is() -> None:
    assert total_size([task(2), task(3)]) == Size(5, 20)
    assert total_size([task(2), ChecksumTask(("late/a",))]) is None
    assert (is_small(Size(ROWS_HERE, BYTES_HERE)), is_small(None)) == (True, False)
