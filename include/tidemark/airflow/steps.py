"""The steps of a collection as Airflow tasks: an app, then the gate that certifies what it wrote."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from airflow.sdk.exceptions import AirflowException, AirflowFailException, AirflowSkipException

from tidemark.airflow import settings
from tidemark.airflow.app_operator import AppOperator
from tidemark.airflow.landing import landing_of_run
from tidemark.airflow.launch import InputNotReady
from tidemark.airflow.location import Location
from tidemark.airflow.window import intervals_of, span_of, until_of
from tidemark.config.schedule import Schedule
from tidemark.errors import REFUSED, InvalidUsage, TidemarkError
from tidemark.jobs.steps.declared import COLUMNS, LANDING, step_of
from tidemark.jobs.steps.step import Argument, Intervals, Step
from tidemark.model.collection import Collection
from tidemark.model.instant import format_duration, format_instant, parse_instant
from tidemark.model.interval import NOT_OVER, Interval

if TYPE_CHECKING:
    from tidemark.airflow.ready import LandingTrigger

STEP_DEFAULTS: Mapping[str, Any] = {
    "retries": 5,
    "retry_delay": timedelta(seconds=15),
    "retry_exponential_backoff": 2.0,
    "max_retry_delay": timedelta(minutes=30),
    "execution_timeout": timedelta(hours=6),
}
"""Five retries, with 15 s to 4 min between them: time for a lost race or a store that is away for a while. What a retry
cannot help is not retried. A step of more than six hours hangs; at 100,000 rows/s it would have read 2 billion."""


LOWER = Argument("lower", "Only what came with intervals from here.", parse=parse_instant, metavar="TIME")
UPPER = Argument("upper", "And below here.", parse=parse_instant, metavar="TIME")

LEAST_WAIT = timedelta(minutes=10)
"""Files of an interval long past are hardly on their way: a backfill waits this long for each, and no longer."""


def with_step_defaults(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """What an operator was given, and STEP_DEFAULTS for what its user says nothing of: neither there nor in the
    `default_args` of the DAG and the groups around it, which Airflow has put among the arguments by then.

    Whoever sets `retry_delay` sets the pace: ours neither stretches nor caps it.
    """
    said = {**(arguments.get("default_args") or {}), **arguments}
    pace = ("retry_exponential_backoff", "max_retry_delay") if "retry_delay" in said else ()
    ours = {name: value for name, value in STEP_DEFAULTS.items() if name not in said and name not in pace}
    return {**ours, **arguments}


def _is_template(value: Any) -> bool:
    """Whether a value is still to be made, by Jinja or by another task."""
    return any(mark in str(value) for mark in ("{{", "{%"))


def declared_by(step: Step) -> dict[str, Argument]:
    """The arguments an operator of a step takes, by name. Its landing is the deployment's or the run's."""
    bounds = (LOWER, UPPER) if step.intervals is Intervals.CHOICE else ()
    return {argument.name: argument for argument in (*bounds, *step.arguments) if argument is not LANDING}


class StepOperator(AppOperator):
    """One step of one collection, over the run's intervals of the collection's schedule if it has any (`intervals_of`).

    Takes the arguments its step declares (jobs/steps/declared.py) by name: values, their text, or templates of it.
    Idempotent:
    running it again, after whatever end, does what is left to do. Returns the app's result. Skipped where the asset
    events that triggered the run completed no interval. InvalidUsage for an argument that is none of its values.
    """

    overwrite_rtif_after_execution = True  # shows the interval among the rendered arguments

    def __init__(self, *, location: Location, step: str, **kwargs: Any) -> None:
        self.location = location
        self.step = step_of(step)
        takes = declared_by(self.step)
        given = {name: kwargs.pop(name) for name in takes if name in kwargs}
        file = ["--file", location.file] if self.step.declares and location.file else []
        self.fixed_args = ["--root", location.store_root, "--collection", location.name, *file]
        super().__init__(app=step, app_args=self.fixed_args, **with_step_defaults(kwargs))
        for name, argument in takes.items():
            value = given.get(name)
            if not _is_template(value):
                argument.value(value)
            if argument.required and value is None:
                raise InvalidUsage(f"step {step} of {location.name} needs {name}: {argument.help}")
            setattr(self, name, value)
        self.template_fields = (*type(self).template_fields, *takes)
        self.app_args = [*self.fixed_args, *self.declared_args()]

    def execute(self, context: Any) -> Any:
        """Run the app. AirflowFailException (no retry) where the run names no interval."""
        try:
            self.app_args = [*self.fixed_args, *self.declared_args(), *self.args_of_run(context)]
        except TidemarkError as error:
            raise task_failure(error) from None
        return super().execute(context)

    def get_openlineage_facets_on_complete(self, task_instance: Any) -> Any:
        """What the step read and wrote: Airflow's OpenLineage provider asks, where it is installed."""
        return self._lineage()

    def get_openlineage_facets_on_failure(self, task_instance: Any) -> Any:
        """As `get_openlineage_facets_on_complete`; of a gate also which checks failed."""
        return self._lineage()

    def _lineage(self) -> Any:
        from tidemark.airflow.lineage import lineage_of_step, operator_lineage

        return operator_lineage(lineage_of_step(self.location, self.app, self.result, failed=self.failure_details))

    def args_of_run(self, context: Any) -> list[str]:
        """The arguments only the run knows. A collection that was declared in Python is created by now."""
        if self.step.declares and self.location.file is None:
            self.location.declare()
        return self.bounds_of(context) if self.step.intervals.of_run else []

    def bounds_of(self, context: Any) -> list[str]:
        """The interval of the run, as arguments. Raises as `span_of`."""
        span = self.span_of(context)
        return ["--lower", format_instant(span.lower), "--upper", format_instant(span.upper)]

    def span_of(self, context: Any) -> Interval:
        """The interval that the run is about. Raises as `span_of_run`."""
        return span_of_run(context, self.location)

    def declared_args(self) -> list[str]:
        """The arguments the step declares; of a template what it made, once it is rendered."""
        given = [(argument, getattr(self, name)) for name, argument in declared_by(self.step).items()]
        # Whether a flag is given is not known of a template.
        known = [(argument, value) for argument, value in given if not (argument.flag and _is_template(value))]
        return [word for argument, value in known for word in argument.words(value)]


class IngestOperator(StepOperator):
    """A step that reads files which land: the ingest. It creates the collection first, or redefines it where its file
    changed.

    The param `landing` of a run replaces the landing of the deployment, within what the deployment allows
    (`landing_of_run`); for the param `columns` files that were read before are read again. Where files have not landed
    (the source's `ready`), the task is deferred, which takes no worker, until they have: at most until `ready_within`
    after the end of the interval (TIDEMARK_READY_WITHIN, 12h), and of one long past ten minutes. Then it fails, without
    a retry.
    """

    def __init__(
        self, *, location: Location, step: str = "ingest", ready_within: timedelta | None = None, **kwargs: Any
    ) -> None:
        super().__init__(location=location, step=step, **kwargs)
        self.ready_within = ready_within

    def execute(self, context: Any) -> Any:
        """Run the app, and wait for what it reads where that is not there yet."""
        return self._ingest_or_wait(context, time.time())

    def _lineage(self) -> Any:
        from tidemark.airflow.lineage import lineage_of_step, operator_lineage

        landing = landing_of_run(None, self.location.landing)
        return operator_lineage(lineage_of_step(self.location, self.app, self.result, landing))

    def landed(self, context: Any, event: Mapping[str, Any]) -> Any:
        """Go on after a wait. AirflowFailException if nothing came."""
        if not event["ready"]:
            interval, path, error = event["missing"]
            from tidemark.storage import landing

            ready = event.get("awaited", self.location.collection.landed.source.ready)
            last = f"; the last look said: {error}" if error else ""
            what = f"{interval} of {self.location.name} has not landed: {landing.awaited(path, ready)}{last}"
            raise _gave_up(what, event["since"])
        return self._ingest_or_wait(context, event["since"])

    def args_of_run(self, context: Any) -> list[str]:
        columns = COLUMNS.words(context["params"].get(COLUMNS.name))
        over = [] if self.cut or self.not_over else self.over(context)  # type: ignore[attr-defined]
        return [*super().args_of_run(context), *over, "--landing", self.landing_of(context), *columns]

    def over(self, context: Any) -> list[str]:
        """The argument by which the app does not ask its own clock whether the run's intervals are over.

        Raises:
            InvalidUsage: One is not; of a scheduled run Airflow says that its one is.
        """
        last = intervals_of_run(context, self.location.collection)[-1]
        run_type = getattr(context.get("dag_run"), "run_type", None)
        if run_type != "scheduled" and not last.is_over(time.time_ns() // 1000):
            raise InvalidUsage(f"{last} {NOT_OVER}; trigger the run for intervals before it")
        return ["--not-over"]

    def landing_of(self, context: Any) -> str:
        """Where the files of a run are. InvalidUsage where it may not read there."""
        return landing_of_run(context["params"].get("landing"), self.location.landing)

    def _ingest_or_wait(self, context: Any, since: float) -> Any:
        try:
            return super().execute(context)
        except InputNotReady as why:
            said = str(why)
        try:
            trigger = self._trigger(context, since)
        except TidemarkError as error:
            raise task_failure(error) from None
        if time.time() >= trigger.until:  # also where the triggerer sees what the app does not
            raise _gave_up(said, since)
        self.log.info("%s; waiting without a worker until %s", said, format_instant(int(trigger.until) * 1_000_000))
        self.defer(trigger=trigger, method_name="landed")

    def _trigger(self, context: Any, since: float) -> LandingTrigger:
        """What waits for the run's intervals, which began at `since`."""
        from tidemark.airflow.ready import LandingTrigger
        from tidemark.config.neighbours import ready_of
        from tidemark.config.template import pattern_of

        landed, landing = self.location.collection.landed, self.landing_of(context)
        some = intervals_of_run(context, self.location.collection)
        limit = settings.ready_within() if self.ready_within is None else self.ready_within
        until = max(some[-1].upper / 1_000_000 + limit.total_seconds(), since + min(limit, LEAST_WAIT).total_seconds())
        patterns = {str(interval): pattern_of(landed, interval, landing) for interval in some}
        ready = {str(interval): ready_of(landed, interval, landing) for interval in some}
        return LandingTrigger(patterns, ready, landing, since, until)


def _gave_up(what: str, since: float) -> AirflowFailException:
    waited = format_duration(int(time.time() - since) * 1_000_000)
    return AirflowFailException(
        f"{what}; waited {waited}. When it is there, clear this task; TIDEMARK_READY_WITHIN sets how long after an "
        "interval's end to wait"
    )


class CorrectOperator(StepOperator):
    """A step that makes a derived collection what its definition says of its inputs.

    How far it goes is the run's (`until_of`), and so are `whole` and `check`, unless arguments say so. Skipped, saying
    which input lags, where it has to wait for one and the run has nothing else to do; who is waited for is also the
    XCom `waits_for`.
    """

    def execute(self, context: Any) -> Any:
        """Run the app; AirflowSkipException where it waits, and nothing is left for the tasks behind it."""
        result = super().execute(context)
        if waits := result.get("waits_for"):
            context["ti"].xcom_push(key="waits_for", value=waits)
            message = f"{self.location.name} waits for {waits}: {result.get('waits', '')}"
            self.log.info("%s", message)  # of what is skipped Airflow's log says no more than that
            if not result.get("unfinished"):
                raise AirflowSkipException(message)
        return result

    def args_of_run(self, context: Any) -> list[str]:
        params, until = context.get("params") or {}, until_of(context)
        words = ["--until", format_instant(until)] if until is not None and not self.until else []  # type: ignore[attr-defined]
        asked = [f"--{name}" for name in ("whole", "check") if params.get(name) and not getattr(self, name)]
        return [*super().args_of_run(context), *words, *asked]


def span_of_run(context: Any, location: Location) -> Interval:
    """The interval that a run is about, of one or several intervals of the schedule; of a derived collection one that
    names the run. Raises as `intervals_of_run`."""
    if location.derived is not None:
        return span_of(context)
    some = intervals_of_run(context, location.collection)
    return Interval(some[0].lower, some[-1].upper).in_zone(location.collection.zone)


def intervals_of_run(context: Any, collection: Collection) -> list[Interval]:
    """The intervals of its schedule for which a run moves a collection on, in order, at least one.

    Raises InvalidUsage as `intervals_of` and for what is outside the collection's start and end, AirflowSkipException
    where asset events completed none.
    """
    start, end = collection.landed.start, collection.landed.end
    by = Schedule.of(collection.landed)
    some = intervals_of(context, schedule=by.text, timezone=by.zone, start=start, end=end)
    if not some:
        raise AirflowSkipException(f"what triggered this run completes no interval of {collection.name} yet")
    if some[0].lower < start or (end is not None and some[-1].upper > end):
        ends = "never ends" if end is None else f"ends at {by.text_of(end)}"
        raise InvalidUsage(
            f"{Interval(some[0].lower, some[-1].upper).in_zone(by.zone)} is outside {collection.name}, which starts at "
            f"{by.text_of(start)} and {ends}; trigger the run with params lower and upper in between"
        )
    return some


def task_failure(error: TidemarkError) -> AirflowException:
    """What a task raises for an error: retried only where that helps."""
    kind: type[AirflowException] = AirflowFailException if error.exit_code == REFUSED else AirflowException
    return kind(f"{error.kind}: {error}")


def for_each(steps: Sequence[Step], arguments: Mapping[str, Any]) -> Iterator[tuple[Step, dict[str, Any]]]:
    """The steps, each with what it takes of arguments meant for all: those it declares, and those that none of them
    does, which are every task's."""
    declared = {name for step in steps for name in declared_by(step)}
    for step in steps:
        own = declared_by(step)
        yield step, {name: value for name, value in arguments.items() if name in own or name not in declared}
