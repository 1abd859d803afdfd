"""A step that dies at any point is run again, and nothing is lost or counted twice.

The points are enumerated and not slept for: tests/support/killing_app.py names them. A driver is killed there, or its
client, or the resident server, or the child of a task that does small work, or that task; or it is stopped there and
goes on when a newer attempt has finished. Then the ordinary app runs again, and everything must be as in a run that
nothing happened to.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import pyarrow as pa
import pytest

from tests.launch.conftest import PROJECT
from tests.launch.support import context, eventually, is_dead
from tests.spark.support import DAY, HOUR, START, UPSERT, Made, day_of
from tests.support.killing import Killing
from tests.support.reading import as_of, changes
from tidemark.jobs.queries.verify import verify
from tidemark.model.arrangement import Arrangement
from tidemark.model.batch import ObjectRef
from tidemark.model.instant import format_instant
from tidemark.resident.client import Resident
from tidemark.resident.server_folder import Settings
from tidemark.storage.sidecars import ledger, parts_table

pytestmark = pytest.mark.spark

TASKS = ("ingest", "unsealed", "seal", "frontier", "drain", "trace", "compact", "compaction")
"""A run's tasks in order; those that are no step are gates."""
FINAL = {"ingest": "ingested", "seal": "sealed", "drain": "drained", "compact": "compacted"}
DATA_POINTS = ("planned", "first file", "last file", "uncommitted", "committed")
ALL_POINTS = [
    (task, point)
    for task in TASKS
    for point in (DATA_POINTS if task in ("ingest", "drain", "compact") else ("uncommitted", "committed"))
]
LAST = 3
"""The day whose tasks are killed: with the two before it there are more batches than the budget."""
ROWS, KEYS = 40_000, 15_000
"""Enough for several row groups, hence several tasks and files, of every step."""


@dataclass(frozen=True)
class Undisturbed:
    """The store of a collection before each task of its last day, and how everything is at the end."""

    before: dict[str, Path]
    landing: Path
    end: dict[str, Any]


@pytest.fixture
def processes() -> Iterator[list[subprocess.Popen[str]]]:
    """Processes to be ended with the test, whatever became of it."""
    started: list[subprocess.Popen[str]] = []
    yield started
    for process in started:
        process.kill()
        process.wait()


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Undisturbed:
    folder = tmp_path_factory.mktemp("undisturbed")
    made = Made(folder, UPSERT)
    for day, rows in ((1, ROWS), (2, 100), (3, ROWS)):
        made.land(day, rows, keys=KEYS)
    for day in (1, 2):
        for task in TASKS:
            made.step(task, day)
    before = {}
    for task in TASKS:
        before[task] = folder / "before" / task
        shutil.copytree(made.root, before[task])
        made.step(task, LAST)
    assert len([batch for batch in made.log.load().state.trace if batch.rows]) == 1, "nothing was compacted"
    return Undisturbed(before, made.landing, everything(made))


def everything(made: Made) -> dict[str, Any]:
    """All that must not depend on what died: answers, totals, frontiers, and that the store is sound."""
    state = made.log.load().state
    store, last = made.store, START + LAST * DAY - 1
    entries = sorted((e.path, e.rows, e.rows_late_applied, e.rows_late_discarded) for e in _entries(made, state))
    ingested = [record.change for record in made.log.history() if record.change.kind == "ingested"]
    return {
        "now": _plain(as_of(store, state)),
        "then": _plain(as_of(store, state, time=START + DAY - 1, event_time=START + DAY - HOUR)),
        "at the seal": _plain(as_of(store, state, time=last, event_time=last - DAY)),
        "changes": _plain(changes(store, state, after=-1)),
        "frontiers": (state.seal, state.trace_upper, state.since, state.ingested),
        "trace": [(batch.rows, batch.digest, batch.description, batch.level) for batch in state.trace],
        "unsealed": [(batch.rows, batch.digest) for batch in state.unsealed],
        "files": entries,
        "ingests": sorted((change.batch.rows, change.rows_late_applied) for change in ingested),
        "certified": all(state.is_certified(batch) for batch in state.batches),
        "findings": verify(made.job(), data=True).findings,
    }


def _entries(made: Made, state: Arrangement) -> list[Any]:
    return list(ledger.entries(made.store, state.ledger))


def _plain(table: pa.Table) -> pa.Table:
    """With floats as text: no NaN equals another."""
    for at, field in enumerate(table.schema):
        if pa.types.is_floating(field.type):
            table = table.set_column(at, field.name, table.column(at).cast(pa.string()))
    return table


def assert_as_undisturbed(made: Made, undisturbed: Undisturbed) -> None:
    found = everything(made)
    assert found.keys() == undisturbed.end.keys()
    for name, value in undisturbed.end.items():
        assert found[name] == value, f"{name} is not as in an undisturbed run"


def before(undisturbed: Undisturbed, task: str, folder: Path) -> Made:
    shutil.copytree(undisturbed.before[task], folder / "root")
    return Made(folder, UPSERT)


def objects(made: Made) -> set[str]:
    return {info.key for info in made.store.list("")}


def named(made: Made) -> set[str]:
    """The objects the newest state names, and all versions."""
    state = made.log.load().state
    tables = {batch.parts.key for batch in state.batches if isinstance(batch.parts, ObjectRef)}
    parts = {part.file.key for part in parts_table.parts_of(made.store, state.batches)}
    runs = {run.object.key for run in state.ledger}
    late = {entry.late.key for entry in _entries(made, state) if entry.late}
    return tables | parts | runs | late | {key for key in objects(made) if key.startswith("versions/")}


def is_step(task: str) -> bool:
    return task in FINAL


def arguments(made: Made, undisturbed: Undisturbed, task: str) -> list[str]:
    interval = day_of(LAST)
    words = ["--root", str(made.root), "--collection", made.name]
    words += ["--lower", format_instant(interval.lower), "--upper", format_instant(interval.upper)]
    if task == "ingest":
        words += ["--landing", str(undisturbed.landing)]
    return words if is_step(task) else [*words, "--gate", task]


def run(
    made: Made,
    undisturbed: Undisturbed,
    task: str,
    *,
    launcher: str,
    ordinary: bool = True,
    number: int = 2,
    spark: str = "always",
) -> dict[str, Any]:
    """One try of a task, as Airflow would make it. `ordinary` takes the project's app, else the one that can be hit.
    The launcher `child` is none: the step is small work (see `hit_children`)."""
    from tidemark.airflow.app_operator import AppOperator

    app = task if is_step(task) else "gate"
    child = launcher == "child"
    application = str(PROJECT / "spark_apps" / f"{app}.py") if ordinary and not child else None
    words, how = (
        arguments(made, undisturbed, task),
        {"spark": "auto"} if child else {"launcher": launcher, "spark": spark},
    )
    operator = AppOperator(task_id=task, app=app, application=application, app_args=words, **how)
    result: dict[str, Any] = operator.execute(context(number))
    return result


def finished(made: Made, undisturbed: Undisturbed, task: str) -> None:
    """The rest of the day."""
    for left in TASKS[TASKS.index(task) + 1 :]:
        made_with_landing(made, undisturbed).step(left, LAST)


def made_with_landing(made: Made, undisturbed: Undisturbed) -> Made:
    if not made.landing.exists():
        made.landing.symlink_to(undisturbed.landing)
    return made


def new_changes(made: Made, version: int) -> list[str]:
    return [record.change.kind for record in made.log.history() if record.version > version][::-1]


def check_leftovers(made: Made, before: set[str], task: str, point: str) -> None:
    """What the dead driver left is either named by the state or an orphan of the kind this point leaves."""
    orphans = objects(made) - before - named(made)
    files = {key for key in orphans if key.endswith(".parquet")}
    tables = {key for key in orphans if "/parts-" in key}
    runs = {key for key in orphans if key.startswith("ledger/")}
    assert orphans == files | tables | runs
    if point in ("planned", "committed") or task not in ("ingest", "drain", "compact"):
        assert not orphans
    elif point == "first file":
        assert (len(files), len(tables), len(runs)) == (1, 0, 0)
    else:
        assert len(files) > 1, "the step wrote one file: first and last are the same"
        assert len(tables) == (1 if point == "uncommitted" else 0)
    assert list(made.root.rglob(".tmp-*")) == []


def resident() -> Resident:
    return Resident(Settings.from_environ(os.environ, master="local[2]"))


def warm() -> int:
    """Have the resident Spark up, so that a step is not first tried in this process; the server's pid."""
    server = resident()
    pid: int = server.start()["pid"]
    eventually("the resident Spark is up", server.is_warm, within=90)
    return pid


def killed(killing: Killing, made: Made, undisturbed: Undisturbed, task: str, point: str, *, launcher: str) -> None:
    """Run a task that is killed at a point, and look at what it left."""
    from airflow.sdk.exceptions import AirflowException, AirflowFailException

    if launcher == "resident":
        warm()
    before, version = objects(made), made.log.newest_version()
    killing.plan(task if is_step(task) else "gate", point)
    with pytest.raises(AirflowException) as raised:
        run(made, undisturbed, task, launcher=launcher, ordinary=False)
    assert not isinstance(raised.value, AirflowFailException), "a killed step must be run again"
    assert is_dead(killing.hit(within=1)), "the driver was hit at no point"
    assert launcher == "submit" or "signal 9" in str(raised.value)
    fence = ["attempted"] if task in ("ingest", "drain", "compact") else []
    final = [FINAL.get(task, "certified")] if point == "committed" else []
    assert new_changes(made, version) == fence + final
    check_leftovers(made, before, task, point)


@pytest.fixture
def hit_children(killing: Killing, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the children of tasks be hit as the plan says. This process is forked although it has threads: none of them
    has a lock then."""
    from tests.support import killing_app
    from tidemark.airflow import small_work
    from tidemark.jobs import small_work as child

    main = child.main

    def hit(step: str, argv: Sequence[str], parallelism: int | None) -> int:
        killing_app.prepare(step, argv)
        return main(step, argv, parallelism)

    monkeypatch.setattr(child, "main", hit)
    monkeypatch.setattr(small_work, "_has_one_thread", lambda: True)


def killed_and_run_again(
    killing: Killing, undisturbed: Undisturbed, folder: Path, task: str, point: str, *, launcher: str
) -> None:
    made = before(undisturbed, task, folder)
    killed(killing, made, undisturbed, task, point, launcher=launcher)
    again = run(made, undisturbed, task, launcher="resident" if launcher == "submit" else launcher)
    assert again["outcome"] == ("nothing to do" if point == "committed" else "applied")
    finished(made, undisturbed, task)
    assert_as_undisturbed(made, undisturbed)


def at(*points: tuple[str, str]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize(("task", "point"), points, ids=[" ".join(pair) for pair in points])


IN_CHILDREN = (("ingest", "uncommitted"), ("drain", "first file"))
ON_THE_SERVER = (("compact", "last file"), ("unsealed", "committed"))
"""Points in `make test`; all others are in a deep part."""


@pytest.mark.usefixtures("hit_children")
@at(*IN_CHILDREN)
def test_a_killed_child_of_a_task(
    killing: Killing, undisturbed: Undisturbed, tmp_path: Path, task: str, point: str
) -> None:
    killed_and_run_again(killing, undisturbed, tmp_path, task, point, launcher="child")


@pytest.mark.usefixtures("hit_children")
@at(*(pair for pair in ALL_POINTS if pair not in IN_CHILDREN))
def test_a_child_of_a_task_killed_at_any_other_point(
    killing: Killing, undisturbed: Undisturbed, tmp_path: Path, task: str, point: str
) -> None:
    killed_and_run_again(killing, undisturbed, tmp_path, task, point, launcher="child")


@pytest.mark.usefixtures("hit_children")
@pytest.mark.parametrize(("task", "point"), [("drain", "first file"), ("ingest", "uncommitted")])
def test_a_killed_task_takes_its_child_along_at_any_point(
    killing: Killing, undisturbed: Undisturbed, tmp_path: Path, task: str, point: str
) -> None:
    made = before(undisturbed, task, tmp_path)
    version = made.log.newest_version()
    killing.plan(task, point, "wait")
    if (process := os.fork()) == 0:
        try:
            run(made, undisturbed, task, launcher="child")
        finally:
            os._exit(1)
    child = killing.hit()
    os.kill(process, signal.SIGKILL)
    os.waitpid(process, 0)
    eventually("the child is dead", lambda: is_dead(child), within=5)
    killing.go()
    assert new_changes(made, version) == ["attempted"]
    run(made, undisturbed, task, launcher="child")
    finished(made, undisturbed, task)
    assert_as_undisturbed(made, undisturbed)


@at(*ON_THE_SERVER)
def test_a_killed_child_of_the_resident_server(
    killing: Killing, undisturbed: Undisturbed, tmp_path: Path, task: str, point: str
) -> None:
    killed_and_run_again(killing, undisturbed, tmp_path, task, point, launcher="resident")


@pytest.mark.usefixtures("killing")
@pytest.mark.parametrize(("spark", "runner"), [("always", "spark"), ("auto", "process")])
def test_with_always_an_app_leaves_small_work_to_executors(
    undisturbed: Undisturbed, tmp_path: Path, spark: str, runner: str
) -> None:
    warm()
    made = before(undisturbed, "drain", tmp_path)
    work = run(made, undisturbed, "drain", launcher="resident", spark=spark)["work"]
    assert (work["runner"], work["cpu_s"] > 0) == (runner, runner == "process")


@at(*(pair for pair in ALL_POINTS if pair not in ON_THE_SERVER))
def test_a_child_of_the_resident_server_killed_at_any_other_point(
    killing: Killing, undisturbed: Undisturbed, tmp_path: Path, task: str, point: str
) -> None:
    killed_and_run_again(killing, undisturbed, tmp_path, task, point, launcher="resident")


@at(("ingest", "first file"), ("drain", "uncommitted"), ("compact", "committed"))
def test_a_killed_driver_of_spark_submit(
    killing: Killing, undisturbed: Undisturbed, tmp_path: Path, task: str, point: str
) -> None:
    """The other launcher may finish it."""
    killed_and_run_again(killing, undisturbed, tmp_path, task, point, launcher="submit")


def waiting_client(
    killing: Killing,
    made: Made,
    undisturbed: Undisturbed,
    task: str,
    point: str,
    processes: list[subprocess.Popen[str]],
) -> tuple[subprocess.Popen[str], int]:
    """A client in a process of its own, and the pid of its driver, which waits at the point."""
    killing.plan(task, point, "wait")
    app = killing.home / "spark_apps" / f"{task}.py"
    command: Sequence[str] = [sys.executable, "-m", "tidemark.resident.client", "run", str(app)]
    client = subprocess.Popen([*command, *arguments(made, undisturbed, task)], text=True, stderr=subprocess.DEVNULL)
    processes.append(client)
    return client, killing.hit()


@pytest.mark.measured
@pytest.mark.parametrize("victim", ["client", "server"])
@pytest.mark.parametrize(("task", "point"), [("drain", "first file"), ("ingest", "uncommitted")])
def test_a_killed_client_or_server_takes_the_driver_along_at_any_point(
    killing: Killing,
    undisturbed: Undisturbed,
    tmp_path: Path,
    processes: list[subprocess.Popen[str]],
    victim: str,
    task: str,
    point: str,
) -> None:
    made = before(undisturbed, task, tmp_path)
    version = made.log.newest_version()
    server = warm()
    client, driver = waiting_client(killing, made, undisturbed, task, point, processes)
    if victim == "client":
        client.kill()
    else:
        os.kill(server, signal.SIGKILL)
    eventually("the driver is dead", lambda: is_dead(driver), within=5)
    killing.go()
    assert client.wait(10) != 0
    assert new_changes(made, version) == ["attempted"]
    run(made, undisturbed, task, launcher="resident")
    finished(made, undisturbed, task)
    assert_as_undisturbed(made, undisturbed)


@pytest.mark.parametrize(
    ("launcher", "task", "point", "end"),
    [
        # Planned again after it lost, an ingest finds its files counted: it need not even be refused.
        ("resident", "ingest", "uncommitted", "nothing to do"),
        ("resident", "drain", "last file", "Fenced"),
        ("resident", "compact", "uncommitted", "Fenced"),
        ("submit", "drain", "first file", "Fenced"),
        ("child", "drain", "last file", "Fenced"),
        ("child", "ingest", "uncommitted", "nothing to do"),
    ],
    ids=lambda word: word.replace(" ", "_"),
)
@pytest.mark.usefixtures("hit_children")
def test_a_stopped_driver_that_goes_on_after_a_newer_attempt_commits_nothing(
    killing: Killing, undisturbed: Undisturbed, tmp_path: Path, launcher: str, task: str, point: str, end: str
) -> None:
    made = before(undisturbed, task, tmp_path)
    ends: list[BaseException | dict[str, Any]] = []

    def first_attempt() -> None:
        try:
            ends.append(run(made, undisturbed, task, launcher=launcher, ordinary=False))
        except Exception as error:
            ends.append(error)

    if launcher == "resident":
        warm()
    killing.plan(task, point, "stop")
    thread = threading.Thread(target=first_attempt)
    thread.start()
    driver = killing.hit()
    try:
        stopped = psutil.Process(driver)
        eventually("the driver has stopped", lambda: stopped.status() == psutil.STATUS_STOPPED)
        second = "child" if launcher == "child" else "resident"
        assert run(made, undisturbed, task, launcher=second)["outcome"] == "applied"
        version = made.log.newest_version()
        assert not ends
    finally:
        os.kill(driver, signal.SIGCONT)
    thread.join(60)
    assert end in str(ends[0]), f"the stale attempt ended with {ends[0]!r}"
    assert new_changes(made, version) == [], "the stale attempt has committed something"
    finished(made, undisturbed, task)
    assert_as_undisturbed(made, undisturbed)
