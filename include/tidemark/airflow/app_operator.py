"""One Spark app as one Airflow task, by either launcher: same arguments, same one-line JSON result."""

from __future__ import annotations

import contextlib
import io
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.sdk.exceptions import AirflowException, AirflowNotFoundException

from tidemark.airflow import settings
from tidemark.airflow.launch import AppRefused, InputNotReady, ResultLine, attempt_token, settle
from tidemark.errors import REFUSED, InvalidUsage, NotReady, TidemarkError
from tidemark.jobs.steps.declared import STEPS

LAUNCHERS = ("submit", "resident")
CONNECTION = "spark_default"
SUBMIT_ONLY = (
    *("driver_memory", "executor_memory", "executor_cores", "num_executors", "total_executor_cores"),
    *("jars", "packages", "files", "archives", "properties_file", "proxy_user"),
)
ANY_STEP = "step.py"
"""The app that takes a step's name before its arguments: for steps without a file of their own."""
PARSING_CONTEXT = "_AIRFLOW_PARSING_CONTEXT_"
"""What begins the names of the variables in which Airflow says which DAG a process is to parse, and leaves it there."""


class AppOperator(SparkSubmitOperator):
    """Runs `spark_apps/<app>.py` of the project with `app_args` and a token of this attempt, and returns its result.
    A declared step (jobs/steps/declared.py) needs no file of its own: without one `spark_apps/step.py` runs it.

    A step with nothing to read is done in the task itself before a Spark is started for it. `launcher` is `submit` (a
    spark-submit, with the project's zip) or `resident` (the machine's warm Spark); None means TIDEMARK_LAUNCHER, and
    without it `submit`. The master is that of the Spark connection in both, or
    TIDEMARK_SPARK_MASTER where there is no `spark_default`. However the task ends, killed, timed out or
    with its process, the app ends too: with its whole process tree, or as a child of the resident server.

    Raises AppRefused (an AirflowFailException) where a retry cannot help, else AirflowException. All other arguments
    are those of SparkSubmitOperator; with `resident`, `conf` may only hold what a Spark session can set.
    """

    template_fields: Sequence[str] = (*SparkSubmitOperator.template_fields, "app_args")

    def __init__(
        self,
        *,
        app: str,
        app_args: Sequence[str] = (),
        launcher: str | None = None,
        conn_id: str = CONNECTION,
        **kwargs: Any,
    ) -> None:
        kwargs = {"name": f"tidemark-{app}", "durable": False, **kwargs}
        super().__init__(conn_id=conn_id, **kwargs)
        if launcher not in (None, *LAUNCHERS):
            raise ValueError(f"launcher must be one of {', '.join(LAUNCHERS)}, not {launcher!r}")
        self.app = app
        self.app_args = list(app_args)
        self.launcher = launcher
        self.result: Mapping[str, Any] = {}
        self.failure_details: Mapping[str, Any] = {}
        self._resident: Any = None
        self._killed = False

    def execute(self, context: Any) -> Any:
        """Run the app."""
        return self.run_app(context)

    def run_app(self, context: Any) -> Any:
        """Run the app, also in the task of another operator. What it starts does not see which DAG this process was to
        parse."""
        with _no_parsing_context():
            return self._execute(context)

    def _execute(self, context: Any) -> Any:
        argv = [*map(str, self.app_args), "--attempt", attempt_token(context)]
        launcher = self.launcher or os.environ.get("TIDEMARK_LAUNCHER") or "submit"
        try:
            if launcher not in LAUNCHERS:
                raise InvalidUsage(f"TIDEMARK_LAUNCHER must be one of {', '.join(LAUNCHERS)}, not {launcher!r}")
            result = self._reside(argv) if launcher == "resident" else self._submit(context, argv)
        except TidemarkError as e:
            message = f"{self.app}: {e.kind}: {e}"
            if isinstance(e, NotReady):
                raise InputNotReady(message) from None
            if e.exit_code == REFUSED:
                raise self._refused(AppRefused(message, e.kind, getattr(e, "details", None))) from e
            raise AirflowException(message) from e
        except BaseException as error:  # a time-out too: nothing of the app may outlive this call
            self.on_kill()
            if isinstance(error, AppRefused):
                self._refused(error)
            raise
        self.result = result
        self.log.info("%s: %s", self.app, result)
        if isinstance(changed := result.get("changed"), str):
            self.log.info("%s of what had been read before: %s", self.app, changed)
        return result

    def _refused(self, refused: AppRefused) -> AppRefused:
        """The error, whose details are kept for whoever asks what became of the task."""
        self.failure_details = refused.details
        return refused

    def on_kill(self) -> None:
        self._killed = True
        if self._resident is not None:
            self._resident.cancel()
        if self._hook is not None:
            self._hook.on_kill()

    def _without_spark(self, argv: list[str]) -> dict[str, Any] | None:
        """The result of a step that needs no Spark (0010); None if the app has to run."""
        from tidemark.jobs import app

        if self.app not in STEPS:
            return None
        with _environment(self.env_vars or {}), _noted(self.log.info):
            try:
                return app.without_spark(self.app, argv)
            except SystemExit:  # argparse has said why, in the lines before
                raise InvalidUsage(f"{self.app} does not take the arguments {argv}") from None

    def _submit(self, context: Any, argv: list[str]) -> dict[str, Any]:
        if (result := self._without_spark(argv)) is not None:
            return result
        from tidemark.resident.server_folder import zip_of

        zipped = zip_of(os.environ)
        file, self.application_args = self._app(argv)
        self.application = str(file)
        self.py_files = ",".join(filter(None, [str(zipped), self.py_files]))
        self.env_vars = {"PYSPARK_PYTHON": os.environ.get("PYSPARK_PYTHON") or sys.executable, **(self.env_vars or {})}
        self._hook = hook = self._get_hook()
        if self._connection(hook)["deploy_mode"] == "cluster":
            raise InvalidUsage(f"deploy-mode of {self._conn_id} must be client: the app's result is its output")
        self._refuse_if_killed()
        try:
            super().execute(context)
        except FileNotFoundError:
            raise AirflowException("spark-submit is not on the PATH of this worker: pip install pyspark") from None
        except AirflowException:
            if not hook.exit_code:  # it did not reach the end of a spark-submit
                raise
        code = hook.exit_code or 0
        return settle(self.app, max(code, 0), max(-code, 0), hook.seen)

    def _reside(self, argv: list[str]) -> dict[str, Any]:
        from tidemark.resident.client import Resident
        from tidemark.resident.server_folder import Settings

        master = self._connection(self._get_hook())["master"]
        self._resident = Resident(Settings.from_environ(os.environ, master=master))
        # A warm server has imported what trying without Spark would import here: it is tried only to start no server.
        if not self._resident.is_warm() and (result := self._without_spark(argv)) is not None:
            return result
        if ignored := [name for name in SUBMIT_ONLY if getattr(self, name, None) or getattr(self, f"_{name}", None)]:
            self.log.warning("The resident Spark is running already, so these have no effect: %s", ", ".join(ignored))
        self._refuse_if_killed()
        seen = ResultLine()

        def out(line: str) -> None:
            seen.see(line)
            self.log.info(line)

        file, words = self._app(argv)
        ended = self._resident.run(
            file,
            words,
            cwd=settings.home(),
            env={k: str(v) for k, v in (self.env_vars or {}).items()},
            conf={k: str(v) for k, v in (self.conf or {}).items()},
            needs=STEPS[self.app].imports if self.app in STEPS else (),
            out=out,
            err=self.log.info,
        )
        return settle(self.app, ended.code, ended.signal, seen)

    def _app(self, argv: list[str]) -> tuple[Path, list[str]]:
        """The file to run, and its arguments."""
        apps = settings.home() / "spark_apps"
        file = Path(self.application or apps / f"{self.app}.py")
        if not self.application and not file.is_file() and self.app in STEPS:
            file, argv = apps / ANY_STEP, [self.app, *argv]
        if not file.is_file():
            raise InvalidUsage(f"there is no app {file}: TIDEMARK_HOME is {settings.home()}")
        return file, argv

    def _refuse_if_killed(self) -> None:
        if self._killed:
            raise AirflowException(f"{self.app} was killed before it began")

    def _connection(self, hook: Any) -> dict[str, Any]:
        """What the connection says, and of a missing `spark_default` the deployment's master. Without that it is an
        error here; the hook would silently go to yarn."""
        connection: dict[str, Any] = hook._connection
        try:
            hook.get_connection(self._conn_id)
        except AirflowNotFoundException:
            master = settings.spark_master() if self._conn_id == CONNECTION else None
            if master is None:
                raise InvalidUsage(
                    f"there is no connection {self._conn_id}: set AIRFLOW_CONN_{self._conn_id.upper()} to"
                    ' {"conn_type": "spark", "host": "local[2]"}, or make it in the UI'
                ) from None
            self.log.info("No connection %s: the master is TIDEMARK_SPARK_MASTER, %s", self._conn_id, master)
            connection["master"] = master
        return connection

    def _get_hook(self) -> Any:
        from tidemark.airflow.submit_hook import AppSubmitHook

        return AppSubmitHook.of(super()._get_hook())


@contextlib.contextmanager
def _no_parsing_context() -> Iterator[None]:
    """The process's environment without what Airflow leaves in it of the DAG file's parsing. A child that parses DAG
    files, or asks for them, would make the DAGs of this task alone."""
    variables = {name: os.environ.pop(name) for name in list(os.environ) if name.startswith(PARSING_CONTEXT)}
    try:
        yield
    finally:
        os.environ.update(variables)


@contextlib.contextmanager
def _noted(note: Callable[[str], object]) -> Iterator[None]:
    """Standard error as notes, line by line: steps say there what they do, and Airflow shows it as errors."""
    lines = _Lines(note)
    with contextlib.redirect_stderr(lines):
        try:
            yield
        finally:
            lines.end()


class _Lines(io.TextIOBase):
    def __init__(self, note: Callable[[str], object]) -> None:
        self._note, self._begun = note, ""

    def write(self, text: str) -> int:
        *lines, self._begun = (self._begun + text).split("\n")
        for line in lines:
            self._note(line)
        return len(text)

    def end(self) -> None:
        if self._begun:
            self._note(self._begun)


@contextlib.contextmanager
def _environment(variables: Mapping[str, Any]) -> Iterator[None]:
    """The process's environment with the task's variables, as the app would see it."""
    before = dict(os.environ)
    os.environ.update({k: str(v) for k, v in variables.items()})
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)
