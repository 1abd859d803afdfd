"""One Spark app as one Airflow task, by either launcher: same arguments, same one-line JSON result."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.sdk.bases.hook import BaseHook
from airflow.sdk.exceptions import AirflowException, AirflowNotFoundException

from tidemark.airflow import settings
from tidemark.airflow.launch import AppRefused, InputNotReady, ResultLine, attempt_token, settle
from tidemark.airflow.small_work import SmallWork, Work
from tidemark.errors import REFUSED, InvalidUsage, NotReady, TidemarkError
from tidemark.jobs.in_process_runner import VARIABLE as SMALL_MEMORY
from tidemark.jobs.steps.declared import STEPS
from tidemark.resident.confined import CLUSTER_PARALLELISM, local_parallelism

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

    A step is planned first. What reads little is done by a child of the task's process (small_work.py), and Spark is
    asked for the rest: `spark` is `auto`, or `always`, which leaves all data to Spark; None means TIDEMARK_SPARK_WHEN,
    and without it `auto` where the master is `local[…]`, else `always`. A step with nothing to read, and a gate of
    little data, never need Spark. An `application` of one's own is always launched.

    `launcher` says how Spark is asked: `submit` (a spark-submit, with the project's zip) or `resident` (the machine's
    warm Spark); None means TIDEMARK_LAUNCHER, and without it `submit`. The master is that of the Spark connection in
    both, or TIDEMARK_SPARK_MASTER where there is no `spark_default`. However the task ends, killed, timed out or with
    its process, the app ends too: with its whole process tree, or as a child of the resident server.

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
        spark: str | None = None,
        conn_id: str = CONNECTION,
        **kwargs: Any,
    ) -> None:
        kwargs = {"name": f"tidemark-{app}", "durable": False, **kwargs}
        super().__init__(conn_id=conn_id, **kwargs)
        if launcher not in (None, *LAUNCHERS):
            raise ValueError(f"launcher must be one of {', '.join(LAUNCHERS)}, not {launcher!r}")
        if spark not in (None, *settings.SPARK_WHEN):
            raise ValueError(f"spark must be one of {', '.join(settings.SPARK_WHEN)}, not {spark!r}")
        self.app = app
        self.app_args = list(app_args)
        self.launcher = launcher
        self.spark = spark
        self.result: Mapping[str, Any] = {}
        self.failure_details: Mapping[str, Any] = {}
        self._small: SmallWork | None = None
        self._resident: Any = None
        self._asked_master: str | None = None
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
            result = self._without_spark(argv, launcher)
            if result is None:
                self._refuse_if_killed()
                result = self._reside(argv) if launcher == "resident" else self._submit(context, argv)
        except TidemarkError as e:
            message = f"{self.app}: {e.kind}: {e}"
            if isinstance(e, NotReady):
                raise InputNotReady(message) from None
            if e.exit_code == REFUSED:
                raise self._refused(AppRefused(message, e.kind, getattr(e, "details", None))) from e
            raise AirflowException(message) from e
        except BaseException as error:  # a time-out too: nothing of the app may outlive this call
            self._end()
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
        self._end()

    def _end(self) -> None:
        """End whatever of the app still runs."""
        if self._small is not None:
            self._small.kill()
        if self._resident is not None:
            self._resident.cancel()
        if self._hook is not None:
            self._hook.on_kill()

    def _without_spark(self, argv: list[str], launcher: str) -> dict[str, Any] | None:
        """The result of a step that needs no Spark (0010, 0071); None if the app has to run."""
        if self.app not in STEPS or self.application:
            return None
        parallelism = self._parallelism()
        if parallelism is None and launcher == "resident" and self._resident_client().is_warm():
            return None  # it has imported already what a child would import here
        variables = self._variables(on_spark=False)
        self._small = small = SmallWork(self.log.info)
        self._refuse_if_killed()
        result = small.run(Work(self.app, tuple(argv), variables, parallelism))
        if result is not None:
            self._say_what_has_no_effect("No Spark was needed", ("conf", *SUBMIT_ONLY))
        return result

    def _variables(self, *, on_spark: bool) -> dict[str, str]:
        """What the app's environment has beside this process's. One that is `on_spark` always does nothing itself."""
        always = on_spark and self._parallelism() is None
        return {**({SMALL_MEMORY: "0"} if always else {}), **{k: str(v) for k, v in (self.env_vars or {}).items()}}

    def _parallelism(self) -> int | None:
        """How many tasks the master runs at once; None where Spark is to read all data."""
        if (when := settings.spark_when(self.spark)) == "always":
            return None
        try:
            local = local_parallelism(self._master())
        except InvalidUsage:  # the launchers refuse it, if Spark is needed
            local = None
        return local if when is None else local or CLUSTER_PARALLELISM

    def _master(self) -> str:
        """The master that both launchers use, asked for once: the connection's, or without `spark_default` the
        deployment's. Without that it is an error here; the stock hook would silently go to yarn."""
        if self._asked_master is None:
            self._asked_master = self._deployment_master() or self._get_hook()._connection["master"]
        return self._asked_master

    def _deployment_master(self) -> str | None:
        """TIDEMARK_SPARK_MASTER where there is no connection; None: there is one. InvalidUsage without either."""
        try:
            BaseHook.get_connection(self._conn_id)
            return None
        except AirflowNotFoundException:
            master = settings.spark_master() if self._conn_id == CONNECTION else None
        if master is None:
            raise InvalidUsage(
                f"there is no connection {self._conn_id}: set AIRFLOW_CONN_{self._conn_id.upper()} to"
                ' {"conn_type": "spark", "host": "local[2]"}, or make it in the UI'
            )
        self.log.info("No connection %s: the master is TIDEMARK_SPARK_MASTER, %s", self._conn_id, master)
        return master

    def _say_what_has_no_effect(self, why: str, names: Sequence[str]) -> None:
        if ignored := [name for name in names if getattr(self, name, None) or getattr(self, f"_{name}", None)]:
            self.log.warning("%s, so these have no effect: %s", why, ", ".join(ignored))

    def _submit(self, context: Any, argv: list[str]) -> dict[str, Any]:
        from tidemark.resident.server_folder import zip_of

        zipped = zip_of(os.environ)
        file, application_args = self._app(argv)
        python = {"PYSPARK_PYTHON": os.environ.get("PYSPARK_PYTHON") or sys.executable}
        submitted = {
            "application": str(file),
            "application_args": application_args,
            "py_files": ",".join(filter(None, [str(zipped), self.py_files])),
            "env_vars": {**python, **self._variables(on_spark=True)},
        }
        with _changed(self, submitted):
            self._hook = hook = self._get_hook()
            if hook._connection["deploy_mode"] == "cluster":
                raise InvalidUsage(f"deploy-mode of {self._conn_id} must be client: the app's result is its output")
            try:
                super().execute(context)
            except FileNotFoundError:
                raise AirflowException("spark-submit is not on the PATH of this worker: pip install pyspark") from None
            except AirflowException:
                if not hook.exit_code:  # it did not reach the end of a spark-submit
                    raise
        code = hook.exit_code or 0
        return settle(self.app, max(code, 0), max(-code, 0), hook.seen)

    def _resident_client(self) -> Any:
        from tidemark.resident.client import Resident
        from tidemark.resident.server_folder import Settings

        if self._resident is None:
            self._resident = Resident(Settings.from_environ(os.environ, master=self._master()))
        return self._resident

    def _reside(self, argv: list[str]) -> dict[str, Any]:
        resident = self._resident_client()
        self._say_what_has_no_effect("The resident Spark is running already", SUBMIT_ONLY)
        self._refuse_if_killed()
        seen = ResultLine()

        def out(line: str) -> None:
            seen.see(line)
            self.log.info(line)

        file, words = self._app(argv)
        ended = resident.run(
            file,
            words,
            cwd=settings.home(),
            env=self._variables(on_spark=True),
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

    def _get_hook(self) -> Any:
        from tidemark.airflow.submit_hook import AppSubmitHook

        hook = AppSubmitHook.of(super()._get_hook())
        hook._connection["master"] = self._deployment_master() or hook._connection["master"]
        return hook


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
def _changed(operator: Any, attributes: Mapping[str, Any]) -> Iterator[None]:
    """An operator with other attributes for a while: it may run again, and then these are its user's."""
    before = {name: getattr(operator, name) for name in attributes}
    operator.__dict__.update(attributes)
    try:
        yield
    finally:
        operator.__dict__.update(before)
