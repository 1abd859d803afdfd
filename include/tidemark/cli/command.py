"""What every command shares: the global options, opening a collection, and reporting errors in one line."""

from __future__ import annotations

import inspect
import os
import sys
from collections.abc import Callable
from contextlib import redirect_stdout, suppress
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any, TextIO

import typer

from tidemark.cli import output
from tidemark.cli.declared import parameters, values
from tidemark.errors import InvalidUsage, TidemarkError, Unavailable, Uncertified, Unwritable, shortened

if TYPE_CHECKING:
    from rich.console import RenderableType

    from tidemark.api.opened import OpenCollection
    from tidemark.jobs.in_process_runner import BySize
    from tidemark.jobs.job import Job, Runner
    from tidemark.jobs.steps.step import Step
    from tidemark.storage import ObjectStore

USAGE = 2
"""Exit code: the command line itself is wrong."""
INTERRUPTED = 130
"""Exit code: somebody pressed Ctrl-C."""

RootOption = Annotated[
    str | None,
    typer.Option("--root", metavar="ROOT", help="Where collections live: a path or s3://… (env TIDEMARK_ROOT)"),
]
LandingOption = Annotated[
    str | None,
    typer.Option("--landing", metavar="FOLDER", help="Where delta files land: a path or s3://… (env TIDEMARK_LANDING)"),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON document on stdout and nothing else.")]
CollectionArgument = Annotated[str, typer.Argument(metavar="COLLECTION", help="The collection's name.")]
SparkOption = Annotated[
    str | None,
    typer.Option(
        "--spark",
        metavar="MASTER",
        help="Read all data on this Spark master. Without it little data is read in this process, and more on the "
        "master of TIDEMARK_SPARK (local[*]).",
    ),
]
LOCAL_SPARK = "local[*]"
"""The master where neither --spark nor TIDEMARK_SPARK names one."""


class UsageError(InvalidUsage):
    """The options of a command do not fit together."""


class Interrupted(TidemarkError):
    """Somebody pressed Ctrl-C."""


@dataclass
class Settings:
    """The global options as given before the command, and what a test puts in place of Spark. `own_process`: nothing
    but the command runs in this process."""

    root: str | None = None
    landing: str | None = None
    as_json: bool = False
    runner: Callable[[ObjectStore], Runner] | None = None
    own_process: bool = False


@dataclass
class Call:
    """One command being run. `out` is the real stdout: while a command works, other prints go to stderr."""

    settings: Settings
    out: TextIO
    collection: str = ""
    done: list[dict[str, Any]] = field(default_factory=list)
    _by_size: BySize | None = None

    @property
    def root(self) -> str:
        """The root; UsageError if none was given."""
        root = _said(self.settings.root, os.environ.get("TIDEMARK_ROOT"))
        if not root:
            raise UsageError("no root: pass --root or set TIDEMARK_ROOT to a path or s3://bucket/prefix")
        return root

    @property
    def landing(self) -> str:
        """The landing; UsageError if none was given."""
        landing = _said(self.settings.landing, os.environ.get("TIDEMARK_LANDING"))
        if not landing:
            raise UsageError("no landing: pass --landing or set TIDEMARK_LANDING to the folder where delta files land")
        return landing

    @property
    def has_landing(self) -> bool:
        """Whether a landing was given."""
        return bool(_said(self.settings.landing, os.environ.get("TIDEMARK_LANDING")))

    def job(
        self,
        collection: str,
        *,
        spark: str | None = None,
        step: str = "read",
        create: bool = False,
        dropped: bool = False,
    ) -> Job:
        """A job on a collection, which must exist unless it is to be created, or may have been `dropped`.

        Steps read little data in this process; Spark starts for more, for other questions, and for all data if the
        option --spark was given (`spark`).
        """
        from tidemark.jobs.app import open_job
        from tidemark.jobs.computer import here_or_on_spark
        from tidemark.jobs.queries.locate import check_root

        check_root(self.root)
        self.collection = collection
        job = open_job(self.root, collection, cache(lambda: self._runner(job, spark, step)))
        job.note = output.note
        if spark is None:
            job.computer_on = here_or_on_spark
        if not create and not (job.log.newest_version() if dropped else job.log.exists()):
            raise InvalidUsage(self._absent(collection))
        return job

    def opened(self, collection: str) -> OpenCollection:
        """A collection to read, which must exist."""
        from tidemark.api.opening import open

        self.collection = collection
        return open(self.root, collection)

    def emit(self, document: dict[str, Any], *shown: RenderableType) -> None:
        """The command's answer: the document as JSON, with what the `work` of kernels took, or what is shown to
        people."""
        if self.settings.as_json:
            work = self._by_size.work if self._by_size else None
            output.print_json({**document, **({"work": work.document()} if work else {})}, self.out)
            return
        for renderable in shown:
            if isinstance(renderable, str):
                print(renderable, file=self.out, flush=True)  # as it is: a wrapped line cannot be searched
            else:
                output.console(self.out).print(renderable)

    def _runner(self, job: Job, spark: str | None, step: str) -> Runner:
        if self.settings.runner is not None:
            return self.settings.runner(job.store)
        from argparse import Namespace

        from tidemark.jobs.app import spark_runner
        from tidemark.jobs.in_process_runner import BySize
        from tidemark.jobs.steps.declared import STEPS
        from tidemark.resident.confined import CLUSTER_PARALLELISM, local_parallelism

        master = spark or os.environ.get("TIDEMARK_SPARK") or LOCAL_SPARK

        @cache  # it is asked for as often as a step computes, and says so
        def on_spark() -> Runner:
            os.environ.setdefault("PYSPARK_SUBMIT_ARGS", f"--master {master} pyspark-shell")
            output.note(f"starting Spark on {master}")
            return spark_runner(step, Namespace(root=self.root, collection=self.collection))

        if spark is not None or step not in (*STEPS, "advance"):
            return on_spark()
        self._by_size = BySize(job.store, on_spark, local_parallelism(master) or CLUSTER_PARALLELISM, output.note)
        return self._by_size

    def collections(self) -> list[str]:
        """The collections below the root, by name. InvalidUsage if there are none."""
        from tidemark.jobs.queries.locate import check_root, collections

        check_root(self.root)
        if existing := collections(self.root):
            return existing
        raise InvalidUsage(self._absent(""))

    def _absent(self, collection: str) -> str:
        from tidemark.jobs.queries.locate import absent, collections

        return absent(self.root, collection, collections(self.root))


def register(
    app: typer.Typer, name: str, *, landing: bool = False, panel: str | None = None, step: Step | None = None
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Make `function(call, …)` the command `name`: it gets the global options besides its own, and its errors become
    one line on stderr and an exit code.

    Of a `step` the command has the help, and the arguments as they are declared: the function gets their values.
    """

    def registered(function: Callable[..., None]) -> Callable[..., None]:
        def command(ctx: typer.Context, **options: Any) -> None:
            given = ctx.ensure_object(Settings)
            settings = Settings(
                _said(options.pop("root"), given.root),
                _said(options.pop("landing", None), given.landing),
                options.pop("json") or given.as_json,
                given.runner,
                given.own_process,
            )
            call = Call(settings, sys.stdout)
            raise typer.Exit(run(call, lambda call: function(call, **_values(step, options))))

        shared = {"root": RootOption, **({"landing": LandingOption} if landing else {}), "json": JsonOption}
        _adopt_signature(command, parameters(function, step), shared)
        command.__doc__ = step.help if step else function.__doc__
        command.__name__ = function.__name__
        app.command(name, rich_help_panel=panel)(command)
        return function

    return registered


def _said(option: str | None, otherwise: str | None) -> str | None:
    """What an option says, be that nothing, and only without it what else says so: `--root "$UNSET"` is a mistake."""
    return otherwise if option is None else option


def _values(step: Step | None, options: dict[str, Any]) -> dict[str, Any]:
    try:
        return values(step, options)
    except InvalidUsage as error:
        raise UsageError(str(error)) from None


def run(call: Call, body: Callable[[Call], None]) -> int:
    """Run a command's body; the exit code. Unexpected errors keep their traceback, those raised on purpose never do."""
    try:
        with redirect_stdout(sys.stderr):
            body(call)
    except UsageError as error:
        return report(call, error, USAGE)
    except Unavailable as error:
        return report(call, Unavailable(f"{error}{_advice(error)}"), 1)
    except TidemarkError as error:
        return report(call, error, 1)
    except typer.Exit as finished:
        return int(finished.exit_code)
    except BrokenPipeError:
        raise  # whoever read our output has seen enough
    except KeyboardInterrupt:
        return report(
            call, Interrupted("interrupted; what was committed stays, run it again for the rest"), INTERRUPTED
        )
    except Exception as error:
        return report(call, _outside(error), 1)
    return 0


def report(call: Call, error: Exception, code: int) -> int:
    """Say what went wrong: one line on stderr, and under --json a document too."""
    message = shortened(output.one_line(str(error))) or type(error).__name__
    kind = error.kind if isinstance(error, TidemarkError) else type(error).__name__
    described = {"kind": kind, "message": message}
    if isinstance(error, Uncertified) and error.gate:
        described["run"] = f"tidemark gate {call.collection} {error.gate}"
        message += f": `{described['run']}`"
    if call.settings.as_json:
        done = {"done": call.done} if call.done else {}
        with suppress(OSError):  # it may be what went wrong
            output.print_json({"error": described, **done}, call.out)
    print(f"error: {message}", file=sys.stderr, flush=True)
    return code


def _advice(error: Unavailable) -> str:
    """What to do where storage, a file or memory could not be had, if the error does not say so."""
    if isinstance(error, Unwritable):
        return "; nothing happened, run it again when there is room and leave to write"
    return "" if "again" in str(error) else "; nothing happened, run it again"


def _outside(error: Exception) -> Exception:
    """Storage or the system failing is no bug of ours and needs no traceback; anything else does."""
    from tidemark.errors import CommitUnknown, out_of_memory
    from tidemark.storage.stores.store import Indeterminate, Missing

    if isinstance(error, MemoryError):
        return out_of_memory("the command", error)
    if isinstance(error, Indeterminate):
        return CommitUnknown(f"storage did not say whether a write happened: {error}; running it again is safe")
    if isinstance(error, Missing):
        return InvalidUsage(f"storage holds no object {error}; run `tidemark verify`")
    if isinstance(error, OSError):
        where = f"{error.filename}: " if error.filename else ""
        return InvalidUsage(f"{where}{error.strerror or error}")
    import traceback

    traceback.print_exception(error)
    return error


def _adopt_signature(command: Callable[..., None], own: list[inspect.Parameter], shared: dict[str, Any]) -> None:
    """Give `command` its own options and the shared ones; all by keyword."""
    keyword = inspect.Parameter.KEYWORD_ONLY
    adopted = [inspect.Parameter("ctx", keyword, annotation=typer.Context)]
    adopted += [parameter.replace(kind=keyword) for parameter in own]
    for name, annotation in shared.items():
        default = False if name == "json" else None
        adopted.append(inspect.Parameter(name, keyword, annotation=annotation, default=default))
    command.__annotations__ = {parameter.name: parameter.annotation for parameter in adopted}
    command.__signature__ = inspect.Signature(adopted)  # type: ignore[attr-defined]
