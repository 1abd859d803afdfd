"""Tasks of one's own that are handed what was newly sealed: a function of a table.

@with_changes("flights", columns=["carrier", "status"])
def count(changes):                       # a pyarrow.Table
    return changes.num_rows

flights.get_task("published") >> count()
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import wraps
from typing import TYPE_CHECKING, Any, Literal

from airflow.sdk import get_current_context, task
from airflow.sdk.exceptions import AirflowSkipException

from tidemark.airflow import settings
from tidemark.airflow.location import no_data
from tidemark.airflow.publish import PublishOperator
from tidemark.airflow.steps import task_failure
from tidemark.airflow.window import window_of
from tidemark.errors import InvalidUsage, TidemarkError
from tidemark.model.instant import parse_duration, parse_instant
from tidemark.model.interval import Interval

if TYPE_CHECKING:
    from tidemark.api.answer import Answer
    from tidemark.api.opened import OpenCollection

Form = Literal["arrow", "pandas", "polars", "reader", "answer"]
FORMS: Mapping[str, Callable[[Answer], Any]] = {
    "arrow": lambda answer: answer.to_arrow(),
    "pandas": lambda answer: answer.to_pandas(),
    "polars": lambda answer: answer.to_polars(),
    "reader": lambda answer: answer.reader(),
    "answer": lambda answer: answer,
}
"""What a function is handed: a table, a data frame, batches as they are read (for more rows than a worker holds), or
the answer itself, of which `to_spark(session)` makes a Spark data frame."""
LASTS = "6h"
"""How long the hold of a task lasts that dies without letting it go."""


def with_changes(
    collection: str,
    *,
    columns: Sequence[str] | None = None,
    where: Any = None,
    form: Form = "arrow",
    root: str | None = None,
    **task_options: Any,
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """A task of a function whose first argument is what the collection newly learned: `changes` of the span that is
    sealed and readable now and was not before (`OpenCollection.changes_within`).

    Behind `published` in the collection's DAG that span is what this run published, and in a DAG that the collection's
    asset triggers what its events say; of any other run it is `window_of`. Spans follow each other without gap or
    overlap, and a task that is cleared is handed the same again, also where retention merged it meanwhile. The first
    run of a derived collection is handed the rows with which its history begins as insertions, and then the changes.
    The task is skipped where its run published nothing. While the function runs a hold keeps what it reads.

    `columns` and `where` are those of `changes`, `form` says what is handed over, `root` replaces the
    deployment's, `task_options` are those of `airflow.sdk.task`. InvalidUsage for a function without an argument, and
    for an unknown form.
    """

    def asked(flights: OpenCollection, span: Interval) -> Answer:
        return flights.changes_within(span.lower, span.upper, columns, where)

    return _handing(collection, asked, form, root, task_options)


def with_as_of(
    collection: str,
    *,
    columns: Sequence[str] | None = None,
    where: Any = None,
    form: Form = "arrow",
    root: str | None = None,
    **task_options: Any,
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """As `with_changes`; the function gets all rows of the collection at the end of the span."""

    def asked(flights: OpenCollection, span: Interval) -> Answer:
        time = span.upper - 1
        return flights.readable_at(time).as_of(time, columns=columns, where=where)

    return _handing(collection, asked, form, root, task_options)


def tidemark_task(
    function: Callable[..., Any] | None = None,
    *,
    changes: str | None = None,
    as_of: str | None = None,
    **options: Any,
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """`@task.tidemark(changes="flights")` is `with_changes("flights")`, `@task.tidemark(as_of="flights")` is
    `with_as_of`, with their options: where Tidemark is installed as a package, not where it is a folder on Python's
    path. InvalidUsage where not exactly one of both names a collection."""
    if function is not None or (changes is None) == (as_of is None):
        raise InvalidUsage(
            'say what the function is handed: @task.tidemark(changes="flights") or @task.tidemark(as_of="flights")'
        )
    return with_changes(changes, **options) if changes is not None else with_as_of(str(as_of), **options)


def _handing(
    collection: str,
    asked: Callable[[OpenCollection, Interval], Answer],
    form: str,
    root: str | None,
    task_options: Mapping[str, Any],
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    if form not in FORMS:
        raise InvalidUsage(f"form is {form!r}; write one of {', '.join(FORMS)}")

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(function)
        def handed(*args: Any, **kwargs: Any) -> Any:
            context = get_current_context()
            try:
                span = span_published(context, collection)
                with _under_hold(context, collection, span, root or settings.root()) as opened:
                    return function(FORMS[form](asked(opened, span)), *args, **kwargs)
            except TidemarkError as error:
                raise task_failure(error) from None

        signature = inspect.signature(function)
        if not signature.parameters:
            raise InvalidUsage(f"{function.__name__} takes no argument; its first is what it is handed")
        # Airflow asks which arguments a call of the task must give: not the first.
        handed.__signature__ = signature.replace(parameters=list(signature.parameters.values())[1:])  # type: ignore[attr-defined]
        made: Callable[..., Any] = task(**task_options)(handed)
        return made

    return decorate


def span_published(context: Any, collection: str) -> Interval:
    """What was newly sealed by the time of a task. AirflowSkipException where its run published nothing; InvalidUsage
    as `window_of`."""
    before = context["task"].get_flat_relatives(upstream=True)
    published = next(
        (one for one in before if isinstance(one, PublishOperator) and one.location.name == collection), None
    )
    if published is None:
        return window_of(context)
    bounds = context["ti"].xcom_pull(task_ids=published.task_id)
    if not bounds:
        raise AirflowSkipException(f"this run published nothing of {collection}")
    return Interval(parse_instant(bounds["lower"]), parse_instant(bounds["upper"]))


@contextmanager
def _under_hold(context: Any, collection: str, span: Interval, root: str) -> Iterator[OpenCollection]:
    """The collection, opened under a hold of the time before the span, or of where history begins by now."""
    from tidemark.api.opening import open as opened
    from tidemark.jobs.app import open_job
    from tidemark.jobs.steps.retain import drop_hold, hold, hold_name

    job = open_job(root, collection, no_data)
    ti = context["ti"]
    name = hold_name(f"{context['dag'].dag_id}.{ti.task_id}.{context['run_id']}")
    hold(job, name, since=max(0, span.lower - 1), or_later=True, for_=parse_duration(LASTS))
    try:
        yield opened(root, collection)
    finally:
        drop_hold(job, name, missing_ok=True)
