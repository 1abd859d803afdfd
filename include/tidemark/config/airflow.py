"""The section of a collection file that says how Airflow runs the collection: `airflow`.

The string below a field is its text in docs/reference/collection-file.md, as those of config/declaration.py are.
Airflow itself is not imported: whoever makes DAGs takes what is declared here. Functions are named, and never imported
here.
"""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field, model_validator

from tidemark.config.section import STRICT
from tidemark.config.values import ColumnName, Duration, Schedule, checked, function_name
from tidemark.errors import InvalidUsage
from tidemark.model.interval import MOST_INTERVALS_OF_RUN

Label = Annotated[str, Field(min_length=1, max_length=100, pattern=r"^[^\x00-\x1f\x7f]+$")]
"""What Airflow shows in a list: one line of at most a hundred characters."""
FunctionName = Annotated[str, checked(function_name)]
OWN_TASKS = re.compile(r"ingest|correct|seal|drain|compact|publish_tables|published|gate_.*")
"""Names of tasks that a collection's DAG has already."""
MOST_CALLS = 20
"""Functions that one event calls, and arguments that one of them is given."""


def _calls(value: Any) -> Any:
    """`my_alerts:page` is short for `[{call: my_alerts:page}]`."""
    given = value if isinstance(value, list) else [value]
    if not given or len(given) > MOST_CALLS:
        raise InvalidUsage(f"name 1 to {MOST_CALLS} functions, as my_module:my_function")
    return [{"call": one} if isinstance(one, str) else one for one in given]


def _arguments(value: Any) -> Any:
    """Texts, numbers and flags, by name."""
    if not isinstance(value, dict) or len(value) > MOST_CALLS:
        raise InvalidUsage(f"write at most {MOST_CALLS} arguments as a mapping, {{channel: data}}")
    for name, given in value.items():
        if not isinstance(name, str) or not name.isidentifier():
            raise InvalidUsage(f"{name!r} is no name of an argument")
        if not isinstance(given, str | int | float | bool):
            raise InvalidUsage(f"argument {name} is {given!r}; write a text, a number, true or false")
    return value


class CallSection(BaseModel):
    """A function of yours, or one of Airflow's notifiers, `{call: my_alerts:page, with: {channel: data}}`;
    `my_alerts:page` for short."""

    model_config = STRICT

    call: FunctionName
    """`module:name`, of a module that Airflow's processes can import: a function, which is called with a `Notice`, or a
    class or object of Airflow's notifiers, which finds it in the context as `tidemark`."""
    arguments: Annotated[dict[str, Any], checked(_arguments), Field(alias="with")] = {}
    """Further arguments of the function or the class, by name. Of a notifier texts are templates, as `"{{ tidemark.text
    }}"`."""


Calls = Annotated[list[CallSection], checked(_calls)]


class NotifySection(BaseModel):
    """Who is notified of what: a function, or a list of functions. One that fails is logged, and fails no task."""

    model_config = STRICT

    failure: Calls = []
    """A task of the collection failed, and is not tried again."""
    question: Calls = []
    """A gate asks what to do. There is no `failure` for it."""
    overdue: Calls = []
    """An interval is overdue (`overdue`): sent once for each interval that becomes the oldest one."""
    correction: Calls = []
    """A run changed what had been published before."""


class TaskSection(BaseModel):
    """A task of a function of yours, `{call: my_reports:refresh, form: pandas}`; `my_reports:refresh` for short."""

    model_config = STRICT

    call: FunctionName
    """`module:function`, of a module that Airflow's workers can import. Its argument is what it is handed."""
    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9_.-]{1,100}$")] | None = None
    """What the task is called; the function's name without it."""
    hands: Literal["changes", "as_of"] = "changes"
    """What is handed over: the `changes` that were newly published, or all that the collection holds (`as_of`)."""
    form: Literal["arrow", "pandas", "polars", "reader", "answer"] = "arrow"
    """How: an Arrow table, a data frame, batches as they are read, or the answer itself, of which `to_spark(session)`
    makes a Spark data frame."""
    columns: list[ColumnName] | None = None
    """Only these columns."""
    where: str | None = None
    """Only rows that meet this condition, `status = 'late'`, or have this value, `status=late`."""

    @property
    def task_id(self) -> str:
        return self.name or self.call.partition(":")[2]


class AfterSection(BaseModel):
    """Tasks of yours behind the collection's. They are skipped where their run published nothing."""

    model_config = STRICT

    seal: Annotated[list[TaskSection], checked(_calls)] = []
    """Functions that are handed what a run newly published; they run side by side."""

    @model_validator(mode="after")
    def _names(self) -> AfterSection:
        names = [task.task_id for task in self.seal]
        for at, name in enumerate(names):
            if OWN_TASKS.fullmatch(name):
                raise InvalidUsage(f"a task {name} is there already; write another name: {{name: my_{name}}}")
            if name in names[:at]:
                raise InvalidUsage(f"two tasks are called {name}; give one a name: {{name: {name}_2}}")
        return self


class AirflowSection(BaseModel):
    """How Airflow runs the collection. What is left out is the deployment's, or Tidemark's."""

    model_config = STRICT

    owner: Label | None = None
    """Who is shown as the owner of the DAG and its tasks."""
    tags: list[Label] = []
    """Tags of the DAG, beside `tidemark` and what kind of collection it is."""
    pool: Label | None = None
    """The pool that the tasks take a slot of."""
    retries: Annotated[int, Field(ge=0, le=100)] | None = None
    """How often a task is tried again after a failure that may pass; 5 without it. What cannot pass is not tried
    again."""
    retry_delay: Duration | None = None
    """How long before it is tried again, each time; without it 15 s, then twice as long each time."""
    spark: Literal["auto", "always"] | None = None
    """When Spark is asked: `auto`, for what the task's own process would take long for; `always`, for all that reads
    data. TIDEMARK_SPARK_WHEN without it; without that `auto` where Spark's master is `local[…]`, else `always`."""
    max_active_runs: Annotated[int, Field(ge=1, le=1000)] | None = None
    """How many runs of the DAG there may be at a time. Their order is kept whatever that is."""
    backfill_intervals: Annotated[int, Field(ge=1, le=MOST_INTERVALS_OF_RUN)] | None = None
    """How many intervals a run of a backfill is about at most; TIDEMARK_BACKFILL_INTERVALS, 31, without it."""
    overdue: Duration | None = None
    """How long after its end an interval may be unsealed, `3h`; after that it is overdue, and the DAG
    `tidemark_overdue` is red until it is sealed. Of a derived collection the intervals of its inputs count."""
    partitions: Schedule | None = None
    """Of which intervals the asset `tidemark://<name>/intervals` has an event each, once they are complete: a schedule,
    mostly the collection's own, `"@daily"`; without it there is no such asset."""
    notify: NotifySection = NotifySection()
    """Who is notified of a failure, a question, an overdue interval, a correction."""
    after: AfterSection = AfterSection()
    """Functions of yours that are handed what a run published."""


SECTIONS: dict[str, type[BaseModel]] = {
    "airflow": AirflowSection,
    "notify": NotifySection,
    "after": AfterSection,
}
"""By the field that holds it."""
LISTED: dict[str, type[BaseModel]] = {
    **dict.fromkeys(NotifySection.model_fields, CallSection),
    "seal": TaskSection,
}
"""What each element of a list is, by the field that holds the list."""
