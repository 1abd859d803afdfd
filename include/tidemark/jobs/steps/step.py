"""What a step is, and what an argument of one: declarations from which the apps, the commands, the operators and what
people read of them follow (`jobs/steps/declared.py` holds the steps)."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from enum import Enum, auto
from importlib import import_module
from pkgutil import resolve_name
from types import ModuleType
from typing import Any, Literal

from tidemark.errors import InvalidUsage
from tidemark.model.collection import Collection, Gate
from tidemark.model.instant import format_duration

_NAME = re.compile(r"[a-z][a-z_]*")
COMMON = ("root", "collection", "attempt")
"""Every app takes these options; no step declares them."""
_SET, _NOT_SET = ("true", "yes", "1"), ("false", "no", "0", "none", "")
"""What a template may make of a flag."""


class Intervals(Enum):
    """What a data interval is to a step; each says how its job is called."""

    EACH = auto()
    """`job(job, interval, …)`, once for each interval of the schedule that the run's interval consists of."""
    SEVERAL = auto()
    """`job(job, interval, …)`, once; the interval may be several of the schedule, and is refused between two."""
    NAMES_RUN = auto()
    """`job(job, interval, …)`: the interval names the run, and nothing depends on it."""
    UNUSED = auto()
    """`job(job, …)`: the app gets the run's interval as the others of the run do, and needs none."""
    CHOICE = auto()
    """`job(job, intervals=[…], …)`: none, or one to choose by."""
    NONE = auto()
    """`job(job, …)`: a run has no interval."""

    @property
    def of_run(self) -> bool:
        """Whether the app must be given the interval of its run."""
        return self not in (Intervals.CHOICE, Intervals.NONE)


class When(Enum):
    """When Airflow runs a step of itself."""

    EACH_RUN = auto()
    """In each run of the collection's DAG, in the order of declaration, its gate behind it."""
    BEHIND = auto()
    """As the gate behind those."""
    MAINTENANCE = auto()
    """In the maintenance DAG, for each collection."""
    ASKED = auto()
    """Never: somebody asks for it."""


@dataclass(frozen=True)
class Argument:
    """One argument of a step: the option `--a-name` of its app and its command, the parameter `a_name` of its operator.

    `parse` makes its value of text and raises InvalidUsage; an enumeration parses to its members and names the choices.
    `default` is text, over which the environment variable `environ` takes precedence. A `flag` is given or not. What is
    `required` is a positional argument in a shell; where it has an `environ` too, the app takes it from there.
    `parameter` is the job's name for it and `shell_option` a shell's, where these differ.
    """

    name: str
    help: str
    parse: Callable[[str], Any] = str
    metavar: str = "TEXT"
    flag: bool = False
    required: bool = False
    default: str | None = None
    environ: str | None = None
    parameter: str = ""
    shell_option: str = ""

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            raise InvalidUsage(f"argument name {self.name!r} must match {_NAME.pattern}")
        if not self.parameter:
            object.__setattr__(self, "parameter", self.name)

    @property
    def option(self) -> str:
        """The app's option; a shell's too, unless it has a name of its own there."""
        return f"--{self.name.replace('_', '-')}"

    @property
    def choices(self) -> type[Enum] | None:
        """The enumeration of its possible values, if there is one."""
        return self.parse if isinstance(self.parse, type) and issubclass(self.parse, Enum) else None

    def initial(self, environ: Mapping[str, str] = os.environ) -> str | None:
        """The text that applies where none is given."""
        return (environ.get(self.environ) if self.environ else None) or self.default

    def value(self, given: Any) -> Any:
        """The value of what was given: text, or a value already. InvalidUsage for text that is none."""
        if self.flag:
            return self._is_set(given)
        if not isinstance(given, str):
            return given
        try:
            return self.parse(given)
        except ValueError as error:
            raise InvalidUsage(f"{self.option}: {error}") from None

    def words(self, given: Any) -> list[str]:
        """The words of an app's command line for a value, or for its text as a template made it."""
        if self.flag:
            return [self.option] if self._is_set(given) else []
        if given is None or given == "":
            return []
        text = format_duration(given // timedelta(microseconds=1)) if isinstance(given, timedelta) else str(given)
        text = ",".join(map(str, given)) if isinstance(given, list | tuple) else text
        # What begins with a dash would be taken for an option.
        return [f"{self.option}={text}"] if text.startswith("-") else [self.option, text]

    def _is_set(self, given: Any) -> bool:
        said = str(given).strip().lower()
        if said not in (*_SET, *_NOT_SET):
            raise InvalidUsage(f"{self.option} is given or not: {given!r} is neither {_SET[0]} nor {_NOT_SET[0]}")
        return said in _SET


@dataclass(frozen=True)
class Step:
    """One step of a collection, declared once.

    `job` is the function that does it, as `module:name`, imported when it is called: it gets a Job, intervals as
    `intervals` says and the arguments by name, is idempotent, and returns JSON values with at least `outcome` and
    `version`. `help` is for who types it, `docs` (Markdown) for who finds its task in Airflow. `gate` certifies what it
    wrote (quality/gates.py). `kernels` (arrow/kernels/registry.py) read and write its data: a step without any needs no
    Spark, and small work of one runs in the step's own process (jobs/in_process_runner.py). `imports` are slow modules
    of others that the step needs; a warm server has them ready. A step that `declares` creates the collection, or
    redefines it where its file changed, before it begins. One `on_spark` is computed by Spark itself, beside what
    kernels do. `origin` says of which collections it is: those that land, or those that are derived (None: all).
    """

    name: str
    job: str
    intervals: Intervals
    help: str
    docs: str
    arguments: tuple[Argument, ...] = ()
    gate: Gate | None = None
    when: When = When.ASKED
    kernels: tuple[str, ...] = ()
    imports: tuple[str, ...] = ()
    declares: bool = False
    on_spark: bool = False
    origin: Literal["landed", "derived"] | None = None

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            raise InvalidUsage(f"step name {self.name!r} must match {_NAME.pattern}")
        names = [argument.name for argument in self.arguments]
        taken = {
            *COMMON,
            *(("file",) if self.declares else ()),
            *(() if self.intervals is Intervals.NONE else ("lower", "upper")),
        }
        if twice := [name for at, name in enumerate(names) if name in taken or name in names[:at]]:
            raise InvalidUsage(f"step {self.name} declares {', '.join(twice)}, which it has already")
        if self.when is When.EACH_RUN and not self.intervals.of_run:
            raise InvalidUsage(f"step {self.name} belongs to each run, and takes no interval of its own")
        if self.when is When.MAINTENANCE and self.intervals.of_run:
            raise InvalidUsage(f"step {self.name} belongs to the maintenance DAG, whose runs have no interval")

    @property
    def module(self) -> ModuleType:
        """The module of its job, imported now."""
        return import_module(self.job.partition(":")[0])

    @property
    def function(self) -> Callable[..., dict[str, Any]]:
        """Its job, imported now."""
        function: Callable[..., dict[str, Any]] = resolve_name(self.job)
        return function

    @property
    def reads_data(self) -> bool:
        """Whether it may need Spark."""
        return bool(self.kernels) or self.on_spark

    def check_origin(self, collection: Collection) -> None:
        """Raise InvalidUsage, naming the step to run instead, for a collection of the other origin."""
        kind, name = collection.origin.kind, collection.name
        if self.origin not in (None, kind):
            instead = (
                f"is derived, no file of its own lands: run `tidemark correct {name}`"
                if kind == "derived"
                else f"is not derived, its rows land as files: run `tidemark ingest {name}`"
            )
            raise InvalidUsage(f"{self.name}: {name} {instead}")

    def argument(self, name: str) -> Argument | None:
        return next((argument for argument in self.arguments if argument.name == name), None)

    def values(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """What the job is called with, of arguments given by name. InvalidUsage where a required one is missing, or a
        text is none of its values."""
        for argument in self.arguments:
            if argument.required and given.get(argument.name) in (None, ""):
                or_set = f" or set {argument.environ}" if argument.environ else ""
                raise InvalidUsage(f"no {argument.name}: pass {argument.option}{or_set}")
        return {argument.parameter: argument.value(given.get(argument.name)) for argument in self.arguments}
