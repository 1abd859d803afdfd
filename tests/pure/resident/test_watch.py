"""What is said of Spark jobs under way, and when: over a tracker that says what the test wants."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest

from tidemark.spark.watch import PACE_S, REPEAT_S, SOON_S, WITHOUT_EXECUTOR_S, Watch

pytestmark = pytest.mark.pure


@dataclass
class Spark:
    """A context of Spark's with jobs of one stage each: of each its tasks, those done and those that run."""

    master: str = "yarn"
    jobs: dict[int, tuple[int, int, int]] = field(default_factory=dict)
    groups: Mapping[str, set[int]] = field(default_factory=dict)
    executors: int = 1
    uiWebUrl: str | None = "http://driver:4040"
    applicationId: str = "app-1"
    seconds: float = 0.0
    lines: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        scala = SimpleNamespace(statusTracker=lambda: self)
        self._jsc = SimpleNamespace(sc=lambda: scala)

    def getConf(self) -> Any:
        return SimpleNamespace(getAll=lambda: [("spark.cores.max", "2")])

    def getActiveJobIds(self) -> list[int]:
        return list(self.jobs)

    def getJobIdsForGroup(self, group: str) -> set[int]:
        return self.groups[group]

    def getExecutorInfos(self) -> list[int]:
        return [0] * (1 + self.executors)

    def getJobInfo(self, job: int) -> Any:
        return option(SimpleNamespace(stageIds=lambda: [job]))

    def getStageInfo(self, stage: int) -> Any:
        counts = self.jobs[stage]
        names = ("numTasks", "numCompletedTasks", "numActiveTasks")
        return option(SimpleNamespace(**{name: lambda n=n: n for name, n in zip(names, counts, strict=True)}))

    def watched(self, group: str | None = None) -> Watch:
        return Watch(self, self.lines.append, lambda: self.seconds, group)

    def pass_by(self, watch: Watch, seconds: float) -> list[str]:
        """What is said while time passes, with a look each second."""
        self.lines.clear()
        for _ in range(int(seconds)):
            watch.look()
            self.seconds += 1
        return list(self.lines)


def option(value: Any) -> Any:
    return SimpleNamespace(isDefined=lambda: True, get=lambda: value)


def test_nothing_is_said_of_what_is_soon_done() -> None:
    spark = Spark(jobs={1: (8, 0, 2)})
    watch = spark.watched()
    assert spark.pass_by(watch, SOON_S) == []
    spark.jobs = {2: (8, 0, 2)}
    assert spark.pass_by(watch, SOON_S) == []
    spark.jobs = {}
    assert spark.pass_by(watch, 60) == []


def test_progress_is_said_at_a_pace_and_only_when_there_is_some() -> None:
    spark = Spark(jobs={1: (8, 0, 2)})
    watch = spark.watched()
    assert spark.pass_by(watch, 60) == ["Spark's page: http://driver:4040", "task 0 of 8"]
    spark.jobs = {1: (8, 3, 2)}
    assert spark.pass_by(watch, 1) == ["task 3 of 8"]
    spark.jobs = {1: (8, 5, 2)}
    assert spark.pass_by(watch, PACE_S - 1) == []
    assert spark.pass_by(watch, 1) == ["task 5 of 8"]
    spark.jobs = {2: (4, 0, 0)}
    assert spark.pass_by(watch, 4) == ["task 0 of 4, none running: they wait for a free core"]


def test_jobs_of_others_on_the_same_spark_are_not_spoken_of() -> None:
    spark = Spark(jobs={1: (8, 1, 2), 2: (100, 50, 2)}, groups={"mine": {0, 1}, "other": {2}, "idle": set()})
    assert spark.pass_by(spark.watched("mine"), 5)[-1] == "task 1 of 8"
    assert spark.pass_by(spark.watched("idle"), 60) == []
    assert spark.pass_by(spark.watched(), 5)[-1] == "task 51 of 108"


def test_a_job_without_executors_is_said_soon_and_then_each_minute() -> None:
    spark = Spark(jobs={1: (8, 0, 0)}, executors=0)
    watch = spark.watched()
    assert spark.pass_by(watch, WITHOUT_EXECUTOR_S) == []
    page, line = spark.pass_by(watch, REPEAT_S)
    assert page == "Spark's page: http://driver:4040"
    assert line.startswith("no executor for 15 s: yarn has sent none. This run (app-1) asks for up to 2 cores")
    assert [text[:19] for text in spark.pass_by(watch, REPEAT_S)] == ["no executor for 75 "]
    spark.executors = 1
    assert spark.pass_by(watch, 60) == ["task 0 of 8, none running: they wait for a free core"]


def test_a_spark_of_this_machine_needs_no_executors() -> None:
    spark = Spark(master="local[2]", jobs={1: (8, 1, 2)}, executors=0, uiWebUrl=None)
    assert spark.pass_by(spark.watched(), 120) == ["task 1 of 8"]
