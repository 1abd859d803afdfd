"""Kernels over executors: each answer once, whatever Spark runs twice; an error as it was; a dead worker replaced."""

from __future__ import annotations

import os
import signal
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from py4j.protocol import Py4JJavaError

from tests.spark.support import ALL, Made
from tests.support.inprocess import InProcessRunner
from tidemark.arrow.kernels.registry import kernel
from tidemark.errors import Corruption, InvalidUsage, TidemarkError, Unavailable, Uncertified
from tidemark.jobs.queries.verify import verify
from tidemark.model.batch import Part
from tidemark.storage import ObjectStore
from tidemark.storage.sidecars import parts_table

pytestmark = pytest.mark.spark


class Troubled:
    """A SparkRunner whose kernels meet `trouble(store, at, answer)` when they are done, before they answer."""

    def __init__(self, spark: Any, store: ObjectStore, trouble: Any) -> None:
        from tidemark.spark.runner import SparkRunner

        self._runner = SparkRunner(spark, store.url)
        self._trouble = trouble
        self.parallelism = self._runner.parallelism

    def run(self, name: str, tasks: Sequence[Any]) -> list[Any]:
        from tidemark.spark import runner

        genuine, trouble = runner.run_encoded, self._trouble

        def troubled(store: ObjectStore, name: str, task: bytes) -> bytes:
            from tidemark.arrow.kernels.registry import run_encoded

            answer = run_encoded(store, name, task)
            trouble(name, task)
            return answer

        # The executors' function is pickled with what its globals hold now: this reaches them, in whatever process.
        runner.run_encoded = troubled
        try:
            return self._runner.run(name, tasks)
        finally:
            runner.run_encoded = genuine


def first_time_only(folder: Path, act: Any) -> Any:
    """Trouble on the first attempt at each task: a marker file made by one attempt tells the next."""
    place = str(folder)

    def trouble(name: str, task: bytes) -> None:
        import hashlib
        from pathlib import Path

        try:
            (Path(place) / f"{name}-{hashlib.sha256(task).hexdigest()}").touch(exist_ok=False)
        except FileExistsError:
            return
        act()

    return trouble


def fail() -> None:
    raise OSError("injected: the task fails after it has written")


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def named(made: Made) -> set[str]:
    """The data files the newest state names."""
    state = made.log.load().state
    return {part.file.key for part in parts_table.parts_of(made.store, state.batches)}


def written(made: Made) -> set[str]:
    return {info.key for info in made.store.list("data/") if info.key.endswith(".parquet")}


@pytest.mark.parametrize("act", [fail, die], ids=["task fails", "worker is killed"])
def test_a_retried_task_counts_once_and_leaves_orphans_only(spark: Any, tmp_path: Path, act: Any) -> None:
    marks = tmp_path / "marks"
    marks.mkdir()
    trouble = first_time_only(marks, act)
    made = Made(tmp_path / "a", ALL["updates"], lambda store: Troubled(spark, store, trouble))
    calm = Made(tmp_path / "b", ALL["updates"])
    for one in (made, calm):
        one.land(1, 300, keys=20)
        one.moved(1, "ingest", "seal", "drain")
    kinds = {path.name.split("-")[0] for path in marks.iterdir()}
    assert {"ingest", "inspect", "merge"} <= kinds, "no attempt met trouble: nothing was tested"
    ours, theirs = made.log.load().state, calm.log.load().state
    assert [(b.rows, b.digest) for b in ours.trace] == [(b.rows, b.digest) for b in theirs.trace]
    assert sum(entry.entries for entry in ours.ledger) == sum(entry.entries for entry in theirs.ledger) == 2
    drained = len(written(calm) - named(calm))
    assert len(written(made) - named(made)) == drained + 3, "two tasks of the ingest and one of the drain wrote twice"
    assert named(made) <= written(made)
    assert verify(Made(made.folder, made.text).job(), data=True).findings == ()


def test_an_error_of_ours_arrives_as_itself_and_is_not_retried(spark: Any, tmp_path: Path) -> None:
    from tidemark.plan.tasks import InspectTask
    from tidemark.spark.runner import SparkRunner

    made = Made(tmp_path, ALL["append"])
    made.land(1, 50, keys=5)
    made.moved(1, "ingest")
    state = made.log.load().state
    part: Part = parts_table.parts_of(made.store, state.unsealed)[0]
    (made.root / "events" / part.file.key).unlink()
    runner = SparkRunner(spark, made.store.url)
    with pytest.raises(Corruption, match=part.file.key) as raised:
        runner.run("inspect", [InspectTask(state.collection, part, False)])
    with pytest.raises(Corruption) as local:
        InProcessRunner(made.store).run("inspect", [InspectTask(state.collection, part, False)])
    assert str(raised.value) == str(local.value)


@pytest.mark.parametrize(
    "error",
    [InvalidUsage("a: 1, not 2"), Uncertified("run the gate", "trace"), Corruption("x" * 3000 + "\nü")],
    ids=repr,
)
def test_every_error_keeps_its_kind_and_words_and_its_task_runs_once(
    spark: Any, tmp_path: Path, error: TidemarkError
) -> None:
    from tidemark.plan.tasks import InspectTask

    made = Made(tmp_path, ALL["append"])
    made.land(1, 50, keys=5)
    made.moved(1, "ingest")
    state = made.log.load().state
    tasks = [InspectTask(state.collection, part, False) for part in parts_table.parts_of(made.store, state.unsealed)]
    runs = str(tmp_path / "runs")

    def refuse(name: str, task: bytes) -> None:
        with open(runs, "a") as file:  # noqa: PTH123 - runs in a worker
            file.write("x")
        raise error

    with pytest.raises(type(error)) as raised:
        Troubled(spark, made.store, refuse).run("inspect", tasks)
    assert (str(raised.value), raised.value.kind, raised.value.exit_code) == (str(error), error.kind, error.exit_code)
    assert getattr(raised.value, "gate", None) == getattr(error, "gate", None)
    assert len(Path(runs).read_text()) == len(tasks), "a refusal was retried"


def test_what_fails_every_time_is_not_hidden(spark: Any, tmp_path: Path) -> None:
    def trouble(name: str, task: bytes) -> None:
        raise OSError("injected: always")

    made = Made(tmp_path, ALL["append"], lambda store: Troubled(spark, store, trouble))
    made.land(1, 50, keys=5)
    with pytest.raises(Exception, match="injected: always") as raised:
        made.moved(1, "ingest")
    assert not isinstance(raised.value, TidemarkError)
    assert made.log.load().state.unsealed == ()


def test_answers_come_in_the_order_of_the_tasks(spark: Any, tmp_path: Path) -> None:
    from tidemark.plan.tasks import InspectTask
    from tidemark.spark.runner import SparkRunner

    made = Made(tmp_path, ALL["append"])
    made.land(1, 90, keys=50, files=9)
    made.moved(1, "ingest")
    state = made.log.load().state
    parts = parts_table.parts_of(made.store, state.unsealed)
    tasks = [InspectTask(state.collection, part, False) for part in [*parts, *reversed(parts)]]
    answers = SparkRunner(spark, made.store.url).run("inspect", tasks)
    assert [answer.file.key for answer in answers] == [task.part.file.key for task in tasks]
    assert answers == InProcessRunner(made.store).run("inspect", tasks)
    assert SparkRunner(spark, made.store.url).run("inspect", []) == []
    assert kernel("inspect").answer is type(answers[0])


def test_tasks_of_many_bytes_go_to_executors_in_waves(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every executor's process is sent all tasks of a wave: of a million files together they would be 200 MB."""
    from tidemark.plan.tasks import InspectTask
    from tidemark.spark import runner

    made = Made(tmp_path, ALL["append"])
    made.land(1, 90, keys=50, files=9)
    made.moved(1, "ingest")
    state = made.log.load().state
    parts = parts_table.parts_of(made.store, state.unsealed)
    tasks = [InspectTask(state.collection, part, False) for part in [*parts, *reversed(parts)]]
    sent: list[int] = []
    mapped = runner._mapped

    def noted(session: Any, url: str, name: str, wave: list[bytes]) -> Any:
        sent.append(len(wave))
        return mapped(session, url, name, wave)

    monkeypatch.setattr(runner, "_mapped", noted)
    whole = runner.SparkRunner(spark, made.store.url).run("inspect", tasks)
    monkeypatch.setattr(runner, "WAVE_BYTES", 1)
    assert runner.SparkRunner(spark, made.store.url).run("inspect", tasks) == whole
    assert sent == [len(tasks), *[1] * len(tasks)]
    assert len(tasks) > 1


def test_a_wave_is_as_full_as_it_may_be(monkeypatch: pytest.MonkeyPatch) -> None:
    from tidemark.spark import runner

    monkeypatch.setattr(runner, "WAVE_BYTES", 4)
    waves = list(runner.in_waves([b"aa", b"bb", b"c", b"dddddd", b"e", b"f"]))
    assert waves == [[b"aa", b"bb"], [b"c"], [b"dddddd"], [b"e", b"f"]]
    assert list(runner.in_waves([])) == []


class OfTheJvm(Py4JJavaError):
    """What Java threw, as Python shows it: asked for its words, the JVM is asked for them."""

    def __init__(self, words: str | None) -> None:
        self.words = words

    def __str__(self) -> str:
        if self.words is None:
            raise ConnectionRefusedError(111, "Connection refused")
        return self.words


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (None, "Spark's JVM ended during the work"),
        ("Job aborted: java.lang.OutOfMemoryError: Java heap space", "JVM ran out of memory; give it more (spark.dr"),
        ("Python worker exited unexpectedly (crashed)", "a Python worker of Spark's ended"),
    ],
)
def test_what_died_is_named_even_where_its_own_words_are_gone_with_it(words: str | None, said: str) -> None:
    from tidemark.spark.lost import worker_loss_as_unavailable

    with pytest.raises(Unavailable) as raised, worker_loss_as_unavailable():
        raise OfTheJvm(words)
    assert said in str(raised.value)


def test_what_else_fails_stays_as_it_is() -> None:
    from tidemark.spark.lost import worker_loss_as_unavailable

    with pytest.raises(OfTheJvm), worker_loss_as_unavailable():
        raise OfTheJvm("a disk is full")
