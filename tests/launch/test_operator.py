"""The operator over both launchers: what it returns, what it raises, and that a killed task is dead."""

from __future__ import annotations

import json
import os
import signal
import threading
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import psutil
import pytest
from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.sdk.exceptions import AirflowException, AirflowFailException, AirflowTaskTimeout

from tests.launch.support import context, eventually, is_dead, never_commits, started, toy
from tidemark.airflow.app_operator import AppOperator
from tidemark.airflow.submit_hook import AppSubmitHook
from tidemark.jobs.steps.declared import STEPS
from tidemark.resident.client import Resident
from tidemark.resident.scratch import Scratch
from tidemark.resident.server_folder import FIRST, LATER

both = pytest.mark.parametrize("launcher", ["submit", "resident"])


def operator(app: str, *args: str, **options: Any) -> AppOperator:
    return AppOperator(task_id="toy", app=app, application=toy(app), app_args=args, **options)


def fails(task: SparkSubmitOperator) -> AirflowException:
    with pytest.raises(AirflowException) as raised:
        task.execute(context())
    return raised.value


@pytest.fixture
def no_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise AssertionError("a launcher was used")

    monkeypatch.setattr(AppSubmitHook, "submit", refuse)
    monkeypatch.setattr(Resident, "run", refuse)


@pytest.fixture
def interrupted() -> Iterator[None]:
    """Let SIGALRM raise what Airflow's execution_timeout raises."""

    def time_out(*_: object) -> None:
        raise AirflowTaskTimeout("execution_timeout")

    before = signal.signal(signal.SIGALRM, time_out)
    yield
    signal.signal(signal.SIGALRM, before)


class TestResults:
    pytestmark = pytest.mark.spark

    @both
    def test_the_last_json_line_is_the_result(self, on_airflow: Path, launcher: str) -> None:
        line = json.dumps({"step": "toy", "outcome": "applied", "rows": 3})
        assert operator("answer", line, "0", launcher=launcher).execute(context()) == json.loads(line)

    @both
    def test_a_refusal_is_not_retried_and_says_why(self, on_airflow: Path, launcher: str) -> None:
        line = json.dumps({"step": "toy", "error": {"kind": "InvalidUsage", "message": "no such column: x"}})
        with pytest.raises(AirflowFailException, match="InvalidUsage: no such column: x"):
            operator("answer", line, "1", launcher=launcher).execute(context())

    @both
    def test_exit_75_is_retried(self, on_airflow: Path, launcher: str) -> None:
        line = json.dumps({"step": "toy", "error": {"kind": "Contention", "message": "lost 20 races"}})
        with pytest.raises(AirflowException, match="lost 20 races") as raised:
            operator("answer", line, "75", launcher=launcher).execute(context())
        assert not isinstance(raised.value, AirflowFailException)

    @both
    def test_every_attempt_has_a_token_of_its_own(self, on_airflow: Path, launcher: str) -> None:
        result = operator("argv", "--lower", "1", launcher=launcher).execute(context(try_number=2))
        *given, flag, token = result["argv"]
        assert given == ["--lower", "1"]
        assert flag == "--attempt"
        assert token.startswith("manual__1/toy/-1/2/")


class TestKilledMeansDead:
    """A SIGKILL of the JVM leaves its driver alive, which then commits what the task was killed for."""

    pytestmark = pytest.mark.spark

    def test_the_stock_operator_leaves_a_zombie_that_commits(self, on_airflow: Path, tmp_path: Path) -> None:
        stock = SparkSubmitOperator(
            task_id="stock", application=toy("linger"), application_args=[str(tmp_path)], env_vars=dict(os.environ)
        )
        thread = threading.Thread(target=fails, args=[stock])
        thread.start()
        pid = started(tmp_path)
        stock.on_kill()
        thread.join(30)
        assert not is_dead(pid), "the provider has mended it: this subclass can go"
        (tmp_path / "go").touch()
        eventually("the zombie commits", (tmp_path / "committed").exists)

    @pytest.mark.measured
    @both
    def test_after_on_kill_nothing_commits(self, on_airflow: Path, tmp_path: Path, launcher: str) -> None:
        task = operator("linger", str(tmp_path), launcher=launcher)
        ends: list[AirflowException] = []
        thread = threading.Thread(target=lambda: ends.append(fails(task)))
        thread.start()
        pid = started(tmp_path)
        task.on_kill()
        never_commits(tmp_path, pid, within=3)
        thread.join(30)
        assert not isinstance(ends[0], AirflowFailException), "a killed task may be run again"

    @pytest.mark.measured
    @both
    @pytest.mark.usefixtures("interrupted")
    def test_after_an_execution_timeout_nothing_commits(self, on_airflow: Path, tmp_path: Path, launcher: str) -> None:
        task = operator("linger", str(tmp_path), launcher=launcher)

        def time_out() -> None:
            started(tmp_path)
            os.kill(os.getpid(), signal.SIGALRM)

        threading.Thread(target=time_out).start()
        with pytest.raises(AirflowTaskTimeout):
            task.execute(context())
        never_commits(tmp_path, started(tmp_path), within=3)

    @pytest.mark.measured
    def test_a_guarded_driver_dies_with_its_jvm(self, on_airflow: Path, tmp_path: Path) -> None:
        task = operator("linger", str(tmp_path), "--guard", launcher="submit")
        thread = threading.Thread(target=fails, args=[task])
        thread.start()
        pid = started(tmp_path)
        psutil.Process(psutil.Process(pid).ppid()).kill()
        never_commits(tmp_path, pid, within=3)
        thread.join(30)

    @pytest.mark.measured
    def test_a_killed_task_process_takes_the_jvm_and_the_driver_along(self, on_airflow: Path, tmp_path: Path) -> None:
        task_process = os.fork()
        if task_process == 0:
            try:
                operator("linger", str(tmp_path), "--guard", launcher="submit").execute(context())
            finally:
                os._exit(1)
        pid = started(tmp_path)
        jvm = psutil.Process(pid).ppid()
        os.kill(task_process, signal.SIGKILL)
        os.waitpid(task_process, 0)
        never_commits(tmp_path, pid, within=3)
        eventually("the JVM ends", lambda: is_dead(jvm), within=3)


@pytest.mark.pure
@pytest.mark.usefixtures("no_spark")
def test_what_only_submit_can_do_is_said_to_have_no_effect(
    on_airflow: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    task = operator("argv", launcher="resident", driver_memory="9g", jars="x.jar")
    with pytest.raises(AssertionError, match="a launcher was used"):
        task.execute(context())
    assert "no effect: driver_memory, jars" in capsys.readouterr().out


@pytest.mark.pure
class TestRefusals:
    def test_a_missing_connection_does_not_go_to_yarn(self, on_airflow: Path) -> None:
        with pytest.raises(AirflowFailException, match="no connection absent: set AIRFLOW_CONN_ABSENT"):
            operator("count", conn_id="absent").execute(context())

    def test_without_a_connection_it_is_the_deployments_master(
        self, on_airflow: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.delenv("AIRFLOW_CONN_SPARK_DEFAULT")
        monkeypatch.delenv("TIDEMARK_SPARK_MASTER", raising=False)
        with pytest.raises(AirflowFailException, match="no connection spark_default: set AIRFLOW_CONN"):
            operator("count").execute(context())
        monkeypatch.setenv("TIDEMARK_SPARK_MASTER", "local[3]")
        task = operator("count")
        assert task._master() == "local[3]"
        hook = task._get_hook()
        hook._scratch = Scratch.make(on_airflow / "scratch")
        assert hook._build_spark_submit_command("x.py")[:3] == ["spark-submit", "--master", "local[3]"]
        with pytest.raises(AirflowFailException, match="no connection absent"):
            operator("count", conn_id="absent").execute(context())

    def test_a_connection_goes_before_the_deployments_master(
        self, on_airflow: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("TIDEMARK_SPARK_MASTER", "local[3]")
        task = operator("count")
        assert task._master() == "local[2]"

    def test_cluster_mode(self, on_airflow: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        connection = {"conn_type": "spark", "host": "spark://m:7077", "extra": {"deploy-mode": "cluster"}}
        monkeypatch.setenv("AIRFLOW_CONN_SPARK_DEFAULT", json.dumps(connection))
        with pytest.raises(AirflowFailException, match="must be client"):
            operator("count").execute(context())

    def test_a_missing_zip(self, on_airflow: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("TIDEMARK_ZIP", "/no/such.zip")
        with pytest.raises(AirflowFailException, match=r"no /no/such.zip: run `make zip`"):
            operator("count").execute(context())

    def test_a_missing_app(self, on_airflow: Path) -> None:
        with pytest.raises(AirflowFailException, match=r"there is no app .*/spark_apps/nothing.py"):
            AppOperator(task_id="n", app="nothing").execute(context())

    def test_an_unknown_launcher(self, on_airflow: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        with pytest.raises(ValueError, match="launcher must be one of submit, resident, not 'ssh'"):
            operator("count", launcher="ssh")
        monkeypatch.setenv("TIDEMARK_LAUNCHER", "ssh")
        with pytest.raises(AirflowFailException, match="TIDEMARK_LAUNCHER must be one of"):
            operator("count").execute(context())


@pytest.mark.pure
def test_the_hook_keeps_what_the_operator_configured(on_airflow: Path) -> None:
    task = operator("count", conf={"a": "b"}, driver_memory="2g")
    hook = task._get_hook()
    assert isinstance(hook, AppSubmitHook)
    hook._scratch = Scratch.make(on_airflow / "scratch")
    command = hook._build_spark_submit_command("x.py")
    assert command[:3] == ["spark-submit", "--master", "local[2]"]
    assert {"2g", "tidemark-count"} <= set(command)
    assert "a=b" in Path(command[command.index("--properties-file") + 1]).read_text().splitlines()


def test_what_apps_wait_for_is_what_the_server_imports() -> None:
    assert {module for step in STEPS.values() for module in step.imports} <= set(LATER)
    ours = [module for module in (*FIRST, *LATER) if module.startswith("tidemark.")]
    assert [module for module in ours if find_spec(module) is None] == []  # the server passes over missing modules
