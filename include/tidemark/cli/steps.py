"""The steps by hand: the same jobs the DAG runs. Strict: a step whose gate has not passed is refused, not gated."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tidemark.cli import output
from tidemark.cli.command import LOCAL_SPARK, Call, CollectionArgument, SparkOption, UsageError, register
from tidemark.cli.options import DateOption, FromOption, LowerOption, ToOption, UpperOption, chosen
from tidemark.errors import InvalidUsage
from tidemark.model.collection import Gate
from tidemark.model.interval import Interval

if TYPE_CHECKING:
    from tidemark.jobs.job import Job
    from tidemark.model.arrangement import Arrangement

Step = Callable[["Job", Interval], dict[str, Any]]
BatchArgument = Annotated[str, typer.Argument(metavar="BATCH", help="A batch's id, or the beginning of it.")]
PANEL = "Steps by hand"
_COUNTS = ("rows", "files", "merges", "rules")
"""What is said even where it is nothing; other counts only where there is something to count."""
_IDENTITY = re.compile(r"[0-9a-f]{32}")


def add_to(app: typer.Typer) -> None:
    """Make the steps commands of `app`."""
    register(app, "ingest", landing=True, panel=PANEL)(ingest)
    register(app, "gate", panel=PANEL)(gate)
    register(app, "seal", panel=PANEL)(seal)
    register(app, "drain", panel=PANEL)(drain)
    register(app, "compact", panel=PANEL)(compact)
    register(app, "quarantine", panel=PANEL)(quarantine)


def ingest(
    call: Call,
    collection: CollectionArgument,
    lower: LowerOption = None,
    upper: UpperOption = None,
    date: DateOption = None,
    first: FromOption = None,
    last: ToOption = None,
    spark: SparkOption = LOCAL_SPARK,
) -> None:
    """Read the delta files of data intervals. Each file is counted once, however often this is run.

    Example: tidemark ingest flights --from 2013-01-01 --to 2013-01-07
    """
    from tidemark.jobs.ingest import ingest as step

    landing = call.landing
    job = call.job(collection, spark=spark, step="ingest")
    some = chosen(job.log.load().state.collection, lower, upper, date, first, last)
    if not some:
        raise UsageError("which interval? give --date 2013-01-02, --from and --to, or --lower and --upper")
    _run(call, job, "ingest", some, lambda job, interval: step(job, interval, landing_root=landing))


def gate(
    call: Call,
    collection: CollectionArgument,
    gate: Annotated[Gate, typer.Argument(metavar="GATE", help="unsealed, frontier, trace or compaction.")],
    spark: SparkOption = LOCAL_SPARK,
) -> None:
    """Check what a gate has not vouched for yet: unsealed, frontier, trace or compaction."""
    from tidemark.jobs.gate import gate as step

    job = call.job(collection, spark=spark, step="gate")
    with output.working(f"{gate} gate of {collection}"):
        result = step(job, gate)
    show(call, job, {"step": "gate", "collection": collection, **result}, [result])


def seal(
    call: Call,
    collection: CollectionArgument,
    lower: LowerOption = None,
    upper: UpperOption = None,
    date: DateOption = None,
    first: FromOption = None,
    last: ToOption = None,
) -> None:
    """Promise that no more comes below a frontier: the interval's end; without one, all ingested without a hole."""
    from tidemark.jobs.seal import seal as step

    job = call.job(collection, step="seal")
    state = job.log.load().state
    some = chosen(state.collection, lower, upper, date, first, last) or [_complete(state)]
    _run(call, job, "seal", some, step)


def drain(
    call: Call,
    collection: CollectionArgument,
    lower: LowerOption = None,
    upper: UpperOption = None,
    date: DateOption = None,
    first: FromOption = None,
    last: ToOption = None,
    spark: SparkOption = LOCAL_SPARK,
) -> None:
    """Move all that is sealed into the trace. The interval only names the run."""
    from tidemark.jobs.drain import drain as step

    job = call.job(collection, spark=spark, step="drain")
    state = job.log.load().state
    some = chosen(state.collection, lower, upper, date, first, last) or [_everything(state)]
    _run(call, job, "drain", some, step)


def compact(
    call: Call,
    collection: CollectionArgument,
    lower: LowerOption = None,
    upper: UpperOption = None,
    date: DateOption = None,
    first: FromOption = None,
    last: ToOption = None,
    spark: SparkOption = LOCAL_SPARK,
) -> None:
    """Move `since` by the retention, then run every compaction that is due. The interval only names the run."""
    from tidemark.jobs.compact import compact as step

    job = call.job(collection, spark=spark, step="compact")
    state = job.log.load().state
    some = chosen(state.collection, lower, upper, date, first, last) or [_everything(state)]
    _run(call, job, "compact", some, step)


def quarantine(call: Call, collection: CollectionArgument, batch: BatchArgument) -> None:
    """Take an unsealed batch out and free its source files, so that mended ones can be ingested."""
    from tidemark.jobs.quarantine import quarantine as step

    job = call.job(collection, step="quarantine")
    result = step(job, batch)
    show(call, job, {"step": "quarantine", "collection": collection, **result}, [result])


def _complete(state: Arrangement) -> Interval:
    """From the collection's start to the first interval that was not ingested."""
    from tidemark.jobs.status import next_ingest

    start = state.collection.landed.start
    complete = state.ingested.complete_from(start)
    if complete == start:
        hole = "its first interval was not ingested" if state.ingested.members else "nothing was ingested yet"
        raise InvalidUsage(f"{hole}; run `{next_ingest(state)}`, or give --date or --upper to say how far to seal")
    return Interval(start, complete)


def _everything(state: Arrangement) -> Interval:
    return Interval(0, max(1, state.seal))


def _next(state: Arrangement) -> str:
    from tidemark.jobs.status import next_step

    return next_step(state)


def _run(call: Call, job: Job, name: str, intervals: Sequence[Interval], step: Step) -> None:
    """The step for each interval in turn. What was done before one fails is shown, too."""
    failed = True
    try:
        with output.working(name, len(intervals)) as advance:
            for at, interval in enumerate(intervals):
                advance(f"{name} {interval}", at, len(intervals))
                call.done.append({"interval": str(interval), **step(job, interval)})
        failed = False
    finally:
        if failed and call.done and not call.settings.as_json:
            call.emit({}, *(_line(result) for result in call.done))
    show(call, job, {"step": name, "collection": call.collection, "results": call.done}, call.done)


def show(call: Call, job: Job, document: dict[str, Any], results: Sequence[dict[str, Any]]) -> None:
    """A step's results, one line each, and the step that is due next."""
    following = _next(job.log.load().state)
    call.emit({**document, "next_step": following}, *(_line(result) for result in results), f"next: {following}")


def _line(result: dict[str, Any]) -> str:
    """A step's result in one line: its outcome, then what else there is to say."""
    silent = {"outcome", "interval", "step", "collection", "version", "seal", "docs"}
    said = {name: value for name, value in result.items() if name not in silent and (value or name in _COUNTS)}
    about = f" {result['interval']}" if "interval" in result else ""
    return f"{result['outcome']}{about}: " + ", ".join(
        [f"{name.removesuffix('_text').replace('_', ' ')} {_word(value)}" for name, value in said.items()]
        + [f"version {result['version']}"]
    )


def _word(value: Any) -> str:
    if isinstance(value, str) and _IDENTITY.fullmatch(value):
        from tidemark.jobs.history import SHORT_ID

        return value[:SHORT_ID]
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, list):
        return "; ".join(_word(item) for item in value)
    if isinstance(value, dict):
        return " ".join(str(item) for item in value.values() if item)
    return str(value)
