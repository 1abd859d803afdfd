"""The steps by hand: the same jobs the DAG runs. Strict: a step whose gate has not passed is refused, not gated."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tidemark.cli import output
from tidemark.cli.command import Call, CollectionArgument, SparkOption, UsageError, register
from tidemark.cli.declared import as_parameter, declared
from tidemark.cli.options import DateOption, FromOption, LowerOption, ToOption, UpperOption, chosen, within
from tidemark.errors import InvalidUsage
from tidemark.jobs.intervals import in_turn
from tidemark.jobs.steps.declared import LANDING, STEPS
from tidemark.jobs.steps.step import Intervals, Step
from tidemark.model.interval import Interval

if TYPE_CHECKING:
    from tidemark.jobs.job import Job
    from tidemark.model.arrangement import Arrangement

BatchArgument = Annotated[str, typer.Argument(metavar="BATCH", help="A batch's id, or the beginning of it.")]
PANEL = "Steps by hand"
SHOWN_ELSEWHERE = {"collect": "collect", "replay": "late replay", "audit": "verify"}
"""Steps whose commands show more than a line of what came of them, with the words of those commands."""
SPAN = {"lower": LowerOption, "upper": UpperOption, "date": DateOption, "first": FromOption, "last": ToOption}
"""The options that name intervals, in the order in which `chosen` takes their values."""
Span = tuple[Any, ...]
_COUNTS = ("rows", "files", "merges", "rules")
"""What is said even where it is nothing; other counts only where there is something to count."""
_IDENTITY = re.compile(r"[0-9a-f]{32}")


def add_to(app: typer.Typer) -> None:
    """Make the steps commands of `app`: each is shown in the same way, but for those in SHOWN_ELSEWHERE."""
    for step in STEPS.values():
        if step.name not in SHOWN_ELSEWHERE:
            register(app, step.name, landing=LANDING in step.arguments, panel=PANEL, step=step)(command_of(step))
    register(app, "quarantine", panel=PANEL)(quarantine)


def command_of(step: Step) -> Callable[..., None]:
    """The command of a step, as a function with its parameters."""

    def command(call: Call, collection: str, **options: Any) -> None:
        spark = options.pop("spark", None)
        span = tuple(options.pop(name, None) for name in SPAN)
        given = {**options, **({LANDING.name: call.landing} if LANDING in step.arguments else {})}
        job = call.job(collection, spark=spark, step=step.name)
        perform(call, job, step, span, step.values(given))

    keyword = inspect.Parameter.KEYWORD_ONLY
    own = [inspect.Parameter("collection", keyword, annotation=CollectionArgument)]
    own += [as_parameter(argument) for argument in declared(step).values() if argument.required]
    if step.intervals not in (Intervals.UNUSED, Intervals.NONE):
        own += [inspect.Parameter(name, keyword, annotation=of, default=None) for name, of in SPAN.items()]
    own += [as_parameter(argument) for argument in declared(step).values() if not argument.required]
    if step.reads_data:
        own.append(inspect.Parameter("spark", keyword, annotation=SparkOption, default=None))
    command.__name__ = step.name
    command.__annotations__ = {parameter.name: parameter.annotation for parameter in own}
    call = inspect.Parameter("call", inspect.Parameter.POSITIONAL_ONLY)
    command.__signature__ = inspect.Signature([call, *own])  # type: ignore[attr-defined]
    return command


def perform(call: Call, job: Job, step: Step, span: Span, values: Mapping[str, Any]) -> None:
    """Do a step for the intervals that the options name, and show what came of it."""
    if step.origin is not None:
        step.check_origin(job.log.load().state.collection)
    if step.intervals in (Intervals.EACH, Intervals.SEVERAL, Intervals.NAMES_RUN):
        state = job.log.load().state
        some = chosen(state.collection, *span) or _all(step, state)
        return _run(call, job, step.name, some, lambda job, interval: step.function(job, interval, **values))
    within_span = {}
    if step.intervals is Intervals.CHOICE:
        within_span = {"intervals": within(job.log.load().state.collection, *span)}
    about = " ".join([*(str(values[a.parameter]) for a in step.arguments if a.required), step.name])
    with output.working(f"{about} of {call.collection}"):
        result = step.function(job, **within_span, **values)
    show(call, job, {"step": step.name, "collection": call.collection, **result}, [result])


def _all(step: Step, state: Arrangement) -> list[Interval]:
    """What a step is about where nobody says for which intervals. UsageError where it must be said."""
    if step.intervals is Intervals.SEVERAL:
        return [_complete(state)]
    if step.intervals is Intervals.NAMES_RUN:
        return [_everything(state)]
    raise UsageError("which interval? give --date 2013-01-02, --from and --to, or --lower and --upper")


def quarantine(call: Call, collection: CollectionArgument, batch: BatchArgument) -> None:
    """Take out an unsealed batch and free its source files, so that corrected files can be ingested."""
    from tidemark.jobs.steps.quarantine import quarantine as step

    job = call.job(collection, step="quarantine")
    result = step(job, batch)
    document = {"step": "quarantine", "collection": collection, **result}
    if (again := _ingest_of(job.log.load().state, result["batch"])) is None:
        return show(call, job, document, [result])
    call.emit({**document, "next_step": again}, line_of(result), f"next: mend its files, then {again}")


def _ingest_of(state: Arrangement, batch: str) -> str | None:
    """The command that takes in again what a quarantined batch holds; None where no file of its own landed."""
    from tidemark.model.local_time import clock

    lower = next((each.interval.lower for each in state.taken_out if each.id == batch), None)
    if lower is None or state.collection.is_derived:
        return None
    day = clock(lower, state.collection.zone).date()
    return f"tidemark ingest {state.collection.name} --date {day}"


def _complete(state: Arrangement) -> Interval:
    """From the collection's start to the first interval that was not ingested."""
    from tidemark.jobs.queries.status import next_ingest

    if state.collection.is_derived:
        return _everything(state)
    start = state.collection.landed.start
    complete = state.ingested.complete_from(start)
    if complete == start:
        hole = "its first interval was not ingested" if state.ingested.members else "nothing was ingested yet"
        raise InvalidUsage(f"{hole}; run `{next_ingest(state)}`, or give --date or --upper to say how far to seal")
    return Interval(start, complete)


def _everything(state: Arrangement) -> Interval:
    return Interval(0, max(1, state.seal))


def _next(job: Job) -> str:
    from tidemark.jobs.queries.whole_status import next_step_among

    return next_step_among(job.log.load().state, lambda name: job.neighbour(name).log.load())


def _run(
    call: Call,
    job: Job,
    name: str,
    intervals: Sequence[Interval],
    step: Callable[[Job, Interval], dict[str, Any]],
) -> None:
    """The step for each interval in turn. What was done is shown where some fail, too."""
    failed, derived = True, job.log.load().state.collection.is_derived

    def do(interval: Interval) -> None:
        about = {} if derived else {"interval": str(interval)}  # of a derived one it names nothing
        call.done.append({**about, **step(job, interval)})

    try:
        with output.working(name, len(intervals)) as advance:
            in_turn(
                intervals,
                do,
                lambda one, number: advance(name if derived else f"{name} {one}", number - 1, len(intervals)),
            )
        failed = False
    finally:
        if failed and call.done and not call.settings.as_json:
            call.emit({}, *(line_of(result) for result in call.done))
    show(call, job, {"step": name, "collection": call.collection, "results": call.done}, call.done)


def show(call: Call, job: Job, document: dict[str, Any], results: Sequence[dict[str, Any]]) -> None:
    """A step's results, one line each, and the step that is due next."""
    following = _next(job)
    call.emit({**document, "next_step": following}, *(line_of(result) for result in results), f"next: {following}")


def line_of(result: dict[str, Any]) -> str:
    """A step's result in one line: its outcome, then what else there is to say."""
    if "consumed" in result or "waits_for" in result:
        return _corrected(result)
    silent = {"outcome", "interval", "step", "collection", "version", "docs", "changed", "cut"}
    silent |= {name.removesuffix("_text") for name in result if name.endswith("_text")}
    if "cut_text" in result:
        silent |= {"keys", "bytes", "row_bytes", "open_seconds"}
    if changed := result.get("changed"):  # which says these in words
        silent |= {"corrected", "added", "retracted", "event_times"}
    said = {name: value for name, value in result.items() if name not in silent and (value or name in _COUNTS)}
    about = f" {result['interval']}" if "interval" in result else ""
    return f"{result['outcome']}{about}: " + ", ".join(
        ([changed] if changed else [])
        + [f"{name.removesuffix('_text').replace('_', ' ')} {_word(value)}" for name, value in said.items()]
        + [f"version {result['version']}"]
    )


def _corrected(result: dict[str, Any]) -> str:
    """What `correct` came to: how far, how, what it wrote, and who it waits for."""
    phrases = []
    if result.get("commits"):
        how = _modes(result["modes"], result.get("why", ""))
        wrote = f"{result['retracted']:,} retracted and {result['added']:,} added"
        several = f" in {result['commits']:,} commits" if result["commits"] > 1 else ""
        phrases.append(
            f"corrected to {result['upper_text']}{several}, {how}: {result['rows_read']:,} rows read, {wrote}"
        )
    elif "upper_text" in result:
        phrases.append(f"its inputs have nothing new beyond {result['upper_text']}")
    if "repaired" in result:
        phrases.append(f"{result['repaired']:,} rows repaired" if result["repaired"] else "nothing to repair")
    if waits := result.get("waits_for"):
        phrases.append(f"waits for {waits}: {result.get('waits', '')}")
    return f"{result['outcome']}: " + ", ".join([*phrases, f"version {result['version']}"])


def _modes(modes: Mapping[str, int], why: str) -> str:
    """How commits were computed, with how many where it was not all in one way; `why` belongs to those that were
    whole."""
    phrases = []
    for mode, commits in modes.items():
        count = f"{commits:,} " if len(modes) > 1 else ""
        because = f" ({why})" if why and mode == "whole" else ""
        phrases.append(f"{count}{mode.replace('_', ' ')}{because}")
    return " and ".join(phrases)


def _word(value: Any) -> str:
    if isinstance(value, str) and _IDENTITY.fullmatch(value):
        from tidemark.jobs.queries.history import SHORT_ID

        return value[:SHORT_ID]
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, list):
        return "; ".join(_word(item) for item in value)
    if isinstance(value, dict):
        return " ".join(str(item) for item in value.values() if item)
    return str(value)
