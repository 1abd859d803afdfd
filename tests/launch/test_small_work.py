"""Small work in a child of the task: what it returns, that nothing of it outlives the task, and when Spark is asked."""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from airflow.sdk.exceptions import AirflowException, AirflowFailException, AirflowTaskTimeout

from tests.launch.apps import linger
from tests.launch.support import context, eventually, is_dead, never_commits, started
from tidemark.airflow import small_work
from tidemark.airflow.app_operator import AppOperator
from tidemark.airflow.submit_hook import AppSubmitHook
from tidemark.jobs import small_work as child
from tidemark.resident.client import Resident

pytestmark = pytest.mark.pure


def step(**options: Any) -> AppOperator:
    return AppOperator(task_id="s", app="seal", app_args=["--root", "r"], **options)


@pytest.fixture(autouse=True)
def no_spark(on_airflow: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The pytest process is forked although it has threads: none of them has a lock then."""

    def refuse(*_: Any, **__: Any) -> None:
        raise AssertionError("a launcher was used")

    monkeypatch.setattr(AppSubmitHook, "submit", refuse)
    monkeypatch.setattr(Resident, "run", refuse)
    monkeypatch.setattr(small_work, "_has_one_thread", lambda: True)
    (on_airflow / "spark_apps").mkdir()
    (on_airflow / "spark_apps" / "seal.py").touch()


@pytest.fixture
def does(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[..., int]], None]:
    """Let the child do something else than the step: `does(lambda argv, parallelism: …)`, its exit code."""

    def instead(function: Callable[[Sequence[str], int | None], int]) -> None:
        monkeypatch.setattr(child, "main", lambda step, argv, parallelism: function(argv, parallelism))

    return instead


def answers(document: dict[str, Any], code: int = 0) -> Callable[..., int]:
    def answer(argv: Sequence[str], parallelism: int | None) -> int:
        print(json.dumps({"step": "seal", **document}))
        return code

    return answer


class TestResults:
    def test_the_childs_line_is_the_result_and_its_environment_its_own(self, does: Any) -> None:
        def lives(argv: Sequence[str], parallelism: int | None) -> int:
            seen = {"argv": [*argv], "word": os.environ["WORD"], "pid": os.getpid(), "at_once": parallelism}
            os.environ["LEAKED"] = "1"
            return answers(seen)(argv, parallelism)

        does(lives)
        result = step(env_vars={"WORD": "w"}).execute(context(try_number=2))
        assert result["argv"][:3] == ["--root", "r", "--attempt"]
        assert result["argv"][3].startswith("manual__1/toy/-1/2/")
        assert (result["word"], result["at_once"]) == ("w", 2)
        assert result["pid"] != os.getpid()
        assert not {"WORD", "LEAKED"} & os.environ.keys()

    def test_what_it_says_meanwhile_is_no_error_in_the_log(self, does: Any, capsys: pytest.CaptureFixture[str]) -> None:
        """Airflow shows what a task writes on standard error as errors."""

        def says(*_: Any) -> int:
            print("draining 5 rows\nin 1 task", file=sys.stderr)
            os.write(2, b"\xff of a library\n")
            print("x" * 300_000)
            code = answers({})(*_)
            print("half a line", end="", file=sys.stderr)
            return code

        does(says)
        assert step().execute(context()) == {"step": "seal"}
        said = capsys.readouterr()
        assert "draining" not in said.err
        for line in ("draining 5 rows", "in 1 task", "\ufffd of a library", "x" * 300_000, "half a line"):
            assert line in said.out

    @pytest.mark.parametrize(("code", "retried"), [(1, False), (75, True)])
    def test_its_errors_mean_what_an_exit_code_means(self, does: Any, code: int, retried: bool) -> None:
        does(answers({"error": {"kind": "Wrong", "message": "why"}}, code))
        with pytest.raises(AirflowException, match="seal: Wrong: why") as raised:
            step().execute(context())
        assert isinstance(raised.value, AirflowFailException) != retried

    def test_an_exception_that_nobody_expected_is_retried(self, does: Any, capsys: pytest.CaptureFixture[str]) -> None:
        def breaks(*_: Any) -> int:
            raise KeyError("a bug")

        does(breaks)
        with pytest.raises(AirflowException, match="ended with exit 75 and no result"):
            step().execute(context())
        assert "KeyError: 'a bug'" in capsys.readouterr().out

    def test_wrong_arguments_are_not_retried(self) -> None:
        with pytest.raises(AirflowFailException, match="does not take the arguments"):
            AppOperator(task_id="s", app="seal", app_args=["--no-such"]).execute(context())

    def test_a_process_with_threads_starts_an_interpreter_instead(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(small_work, "_has_one_thread", lambda: False)
        monkeypatch.setattr(os, "fork", None)
        with pytest.raises(AirflowFailException, match="does not take the arguments"):
            AppOperator(task_id="s", app="seal", app_args=["--no-such"]).execute(context())

    def test_a_child_has_nothing_open_that_is_its_parents(self, does: Any, tmp_path: Path) -> None:
        """Airflow's supervisor listens at descriptors of the task: nobody else may write there."""
        theirs = (tmp_path / "theirs").open("w")

        def writes(*_: Any) -> int:
            for descriptor in range(3, 256):
                try:
                    os.write(descriptor, b"mine")
                except OSError:
                    continue
            return answers({})(*_)

        does(writes)
        with theirs:
            step().execute(context())
        assert (tmp_path / "theirs").read_text() == ""

    def test_a_stream_of_the_parent_that_owns_its_descriptor_does_not_close_it(self, does: Any, tmp_path: Path) -> None:
        """Airflow's task runner makes such ones of 1 and 2."""

        def says(*_: Any) -> int:
            print("said", file=sys.stderr)
            return answers({"outcome": "applied"})(*_)

        does(says)
        if (process := os.fork()) == 0:
            try:
                sys.stdout, sys.stderr = os.fdopen(1, "w"), os.fdopen(2, "w")
                (tmp_path / "result").write_text(json.dumps(step().execute(context())))
            finally:
                os._exit(0)
        os.waitpid(process, 0)
        assert json.loads((tmp_path / "result").read_text()) == {"step": "seal", "outcome": "applied"}


class TestKilledMeansDead:
    @pytest.fixture
    def lingers(self, does: Any, tmp_path: Path) -> Path:
        does(lambda argv, parallelism: linger.main([str(tmp_path)]))
        return tmp_path

    def test_after_on_kill_nothing_commits(self, lingers: Path) -> None:
        task, ends = step(), []

        def fails() -> None:
            with pytest.raises(AirflowException) as raised:
                task.execute(context())
            ends.append(raised.value)

        thread = threading.Thread(target=fails)
        thread.start()
        pid = started(lingers)
        task.on_kill()
        assert is_dead(pid), "it is dead when on_kill returns"
        never_commits(lingers, pid, within=0)
        thread.join(30)
        assert not isinstance(ends[0], AirflowFailException), "a killed task may be run again"

    @pytest.mark.parametrize("end", [signal.SIGTERM, signal.SIGKILL])
    def test_a_task_process_that_is_marked_failed_or_killed_takes_it_along(
        self, lingers: Path, end: signal.Signals
    ) -> None:
        """On SIGTERM Airflow's task runner calls on_kill, and goes on where it was."""
        if (task_process := os.fork()) == 0:
            try:
                task = step()
                signal.signal(signal.SIGTERM, lambda *_: task.on_kill())
                task.execute(context())
            finally:
                os._exit(1)
        pid = started(lingers)
        os.kill(task_process, end)
        os.waitpid(task_process, 0)
        never_commits(lingers, pid, within=3)

    def test_after_an_execution_timeout_nothing_commits(self, lingers: Path) -> None:
        def time_out(*_: object) -> None:
            raise AirflowTaskTimeout("execution_timeout")

        def alarm() -> None:
            started(lingers)
            os.kill(os.getpid(), signal.SIGALRM)

        before = signal.signal(signal.SIGALRM, time_out)
        threading.Thread(target=alarm).start()
        try:
            with pytest.raises(AirflowTaskTimeout):
                step().execute(context())
        finally:
            signal.signal(signal.SIGALRM, before)
        never_commits(lingers, started(lingers), within=0)

    def test_a_child_that_is_stopped_is_ended(self, lingers: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("TIDEMARK_RESIDENT_PATIENCE_S", "0.5")
        monkeypatch.setattr(small_work, "LOOK_S", 0.1)
        threading.Thread(target=lambda: os.kill(started(lingers), signal.SIGSTOP)).start()
        with pytest.raises(AirflowException, match="ended by signal 9; it is safe to run it again"):
            step().execute(context())
        never_commits(lingers, started(lingers), within=0)

    def test_a_kill_before_it_began_is_kept(self, monkeypatch: pytest.MonkeyPatch) -> None:
        task = step()
        monkeypatch.setattr(AppOperator, "_parallelism", lambda self: self.on_kill())
        with pytest.raises(AirflowException, match="was killed before it began"):
            task.execute(context())

    def test_a_kill_before_its_pid_is_known_is_kept(self, lingers: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        task, fork = step(), os.fork

        def forked() -> int:
            if pid := fork():
                task.on_kill()
            return pid

        monkeypatch.setattr(os, "fork", forked)
        began = time.monotonic()
        with pytest.raises(AirflowException, match="ended by signal 9"):
            task.execute(context())
        assert time.monotonic() - began < 60


class TestWhoDoesIt:
    @pytest.fixture
    def master(self, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
        def is_now(master: str) -> None:
            connection = {"conn_type": "spark", "host": master}
            monkeypatch.setenv("AIRFLOW_CONN_SPARK_DEFAULT", json.dumps(connection))

        return is_now

    @pytest.mark.parametrize(
        ("host", "environment", "argument", "parallelism"),
        [
            ("local[3]", None, None, 3),
            ("local", None, None, 1),
            ("local[3]", "always", None, None),
            ("local[3]", "always", "auto", 3),
            ("local[3]", "Auto", "always", None),
            ("spark://m:7077", None, None, None),
            ("local-cluster[2,1,1024]", None, None, None),
            ("spark://m:7077", "auto", None, 2),
        ],
    )
    def test_the_setting_then_the_master_say_how_much_spark_is_asked(
        self,
        master: Callable[[str], None],
        monkeypatch: pytest.MonkeyPatch,
        host: str,
        environment: str | None,
        argument: str | None,
        parallelism: int | None,
    ) -> None:
        master(host)
        if environment:
            monkeypatch.setenv("TIDEMARK_SPARK_WHEN", environment)
        assert step(spark=argument)._parallelism() == parallelism

    def test_what_is_neither_is_refused(self, monkeypatch: pytest.MonkeyPatch) -> None:
        with pytest.raises(ValueError, match="spark must be one of auto, always, not 'never'"):
            step(spark="never")
        monkeypatch.setenv("TIDEMARK_SPARK_WHEN", "never")
        with pytest.raises(AirflowFailException, match="TIDEMARK_SPARK_WHEN must be auto or always, not 'never'"):
            step().execute(context())
        monkeypatch.setenv("TIDEMARK_SPARK_WHEN", "auto")
        monkeypatch.setenv("TIDEMARK_RESIDENT_PATIENCE_S", "nan")
        with pytest.raises(AirflowFailException, match="TIDEMARK_RESIDENT_PATIENCE_S is 'nan'"):
            step().execute(context())
        monkeypatch.setenv("TIDEMARK_RESIDENT_PATIENCE_S", "soon")
        with pytest.raises(AirflowFailException, match="write seconds above 0, such as 120"):
            step().execute(context())

    def test_what_the_child_cannot_do_is_launched(self, does: Any) -> None:
        does(answers({child.NEEDS_SPARK: True}))
        for launcher in ("submit", "resident"):
            with pytest.raises(AssertionError, match="a launcher was used"):
                step(launcher=launcher).execute(context())

    def test_a_warm_server_does_what_is_sparks_anyway_for_less(
        self, does: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        does(answers({}))
        monkeypatch.setattr(Resident, "is_warm", lambda self: True)
        with pytest.raises(AssertionError, match="a launcher was used"):
            step(launcher="resident", spark="always").execute(context())
        assert step(launcher="resident", spark="auto").execute(context()) == {"step": "seal"}

    def test_an_application_of_ones_own_is_launched(self, does: Any) -> None:
        does(answers({}))
        with pytest.raises(AssertionError, match="a launcher was used"):
            step(application=linger.__file__).execute(context())

    def test_what_is_for_spark_alone_is_said_to_have_no_effect(
        self, does: Any, capsys: pytest.CaptureFixture[str]
    ) -> None:
        does(answers({}))
        step(conf={"spark.a": "b"}, jars="x.jar", driver_memory="9g").execute(context())
        assert "No Spark was needed, so these have no effect: conf, driver_memory, jars" in capsys.readouterr().out

    def test_a_missing_connection_is_refused_only_once_spark_is_needed(
        self, does: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        does(answers({}))
        assert step(conn_id="absent").execute(context()) == {"step": "seal"}
        does(answers({child.NEEDS_SPARK: True}))
        with pytest.raises(AirflowFailException, match="no connection absent"):
            step(conn_id="absent").execute(context())


def test_the_stale_end_of_a_step_is_no_result(does: Any) -> None:
    """Whoever ends without its line has failed, whatever its exit code is."""
    does(lambda *_: 0)
    with pytest.raises(AirflowException, match="ended without its result line"):
        step().execute(context())


def test_a_child_inherits_no_signal_of_the_task(does: Any, tmp_path: Path) -> None:
    """What the task does on a signal is the task's: its child just ends."""
    does(lambda *_: linger.main([str(tmp_path)]))
    before = signal.signal(signal.SIGTERM, lambda *_: (tmp_path / "handled").touch())
    try:
        threading.Thread(target=lambda: os.kill(started(tmp_path), signal.SIGTERM)).start()
        with pytest.raises(AirflowException, match="ended by signal 15"):
            step().execute(context())
    finally:
        signal.signal(signal.SIGTERM, before)
    eventually("it is dead", lambda: is_dead(started(tmp_path)))
    assert not (tmp_path / "handled").exists()
