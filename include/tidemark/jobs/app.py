"""The spark apps' one adapter: parse arguments, call the one job, print one JSON line, answer with an exit code."""

from __future__ import annotations

import argparse
import inspect
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

from tidemark import __version__
from tidemark.errors import MAX_LINE, RETRY_SAFE, InvalidUsage, TidemarkError, shortened
from tidemark.imports import in_own_process
from tidemark.jobs.computer import Computer, here_or_on_spark, on_spark
from tidemark.jobs.job import Job, Outcome, Runner, collection_store, fresh_id, writer_name
from tidemark.jobs.steps.declared import step_of
from tidemark.jobs.steps.step import Argument, Intervals, Step
from tidemark.model.collection import Gate
from tidemark.model.instant import parse_instant
from tidemark.model.interval import Interval
from tidemark.plan.consume import Waits
from tidemark.quality.results import ran
from tidemark.storage.log.log import StateLog


class NeedsSpark(BaseException):
    """A step that was tried without Spark needs it. Not an Exception: no job may swallow it."""


def parser(step: str) -> argparse.ArgumentParser:
    """The arguments of one app, as its step declares them. InvalidUsage if there is no such step."""
    declared = step_of(step)
    arguments = argparse.ArgumentParser(prog=f"{step}.py", description=inspect.cleandoc(declared.help))
    arguments.add_argument("--root", required=True, help="where collections live: a path or s3://bucket/prefix")
    arguments.add_argument("--collection", required=True)
    if declared.intervals.of_run:
        arguments.add_argument("--lower", **_TIME, required=True, help="start of the data interval (ISO or µs)")
        arguments.add_argument("--upper", **_TIME, required=True, help="end of the data interval, exclusive")
    elif declared.intervals is Intervals.CHOICE:
        arguments.add_argument("--lower", **_TIME, help="only what came with intervals from here (ISO or µs)")
        arguments.add_argument("--upper", **_TIME, help="and below here")
    arguments.add_argument("--attempt", default=None, help="fencing token: the newest attempt at a step wins")
    if declared.declares:
        arguments.add_argument("--file", help="collection file: creates or redefines the collection first")
    for argument in declared.arguments:
        arguments.add_argument(argument.option, dest=argument.name, **_options(argument))
    return arguments


_TIME: dict[str, Any] = {"type": parse_instant, "default": None}


def _options(argument: Argument) -> dict[str, Any]:
    common = {"help": argument.help + (f" ({argument.environ})" if argument.environ else "")}
    if argument.flag:
        return {**common, "action": "store_true"}
    choices = {"choices": list(argument.choices)} if argument.choices else {"metavar": argument.metavar}
    # What the environment may give is asked for when the step is run: by then its message can say so.
    required = argument.required and argument.environ is None
    return {
        **common,
        **choices,
        "type": argument.parse,
        "default": argument.value(argument.initial()),
        "required": required,
    }


def main(step: str, argv: Sequence[str]) -> int:
    """Run one step as a process: the result as the last line of stdout, the exit code of errors.py."""
    from tidemark.resident.guard import die_with_parent

    die_with_parent()
    return answered(step, lambda: _by_spark(step, argv))


def _by_spark(step: str, argv: Sequence[str]) -> dict[str, Any]:
    args = parsed(step, argv)
    print(f"tidemark {__version__} {step} {args.collection}", file=sys.stderr)
    return run(step, args, lambda: app_runner(step, args))


def parsed(step: str, argv: Sequence[str]) -> argparse.Namespace:
    """The arguments of a step. InvalidUsage, after what argparse says on stderr, for any that it does not take."""
    try:
        return parser(step).parse_args(argv)
    except SystemExit as end:
        if not end.code:  # --help
            raise
        raise InvalidUsage(f"{step} does not take the arguments {list(argv)}") from None


def answered(step: str, result: Callable[[], dict[str, Any]]) -> int:
    """Print what `result` returns, or raises, as one line of JSON.

    The process has no other work, and its exit code is of errors.py.
    """
    in_own_process()
    try:
        document = result()
    except TidemarkError as error:
        document = {"step": step, "error": {"kind": error.kind, "message": str(error)}, **getattr(error, "details", {})}
        print(result_line(document), flush=True)
        return error.exit_code
    except Exception as error:
        import traceback

        traceback.print_exc()
        message = shortened(str(error).splitlines()[0] if str(error) else repr(error))
        print(result_line({"step": step, "error": {"kind": type(error).__name__, "message": message}}), flush=True)
        return RETRY_SAFE
    print(result_line(document), flush=True)
    return 0


def result_line(document: dict[str, Any]) -> str:
    """A result as one line of JSON that the launchers take. Where it is longer than MAX_LINE, lists lose their ends and
    texts their middles; outcome and error are always in it."""
    line = json.dumps(document)
    for items, text in ((200, 4_000), (50, 1_000), (20, 200), (5, 100)):
        if len(line) <= MAX_LINE:
            return line
        line = json.dumps({name: _trimmed(value, items, text) for name, value in document.items()})
    if len(line) > MAX_LINE:
        line = json.dumps(
            {name: document[name] for name in ("step", "collection", "outcome", "error") if name in document}
        )
    return line


def _trimmed(value: Any, items: int, text: int) -> Any:
    if isinstance(value, str):
        return shortened(value, text)
    if isinstance(value, dict):
        return {name: _trimmed(entry, items, text) for name, entry in list(value.items())[:items]}
    if isinstance(value, list | tuple):
        more = [f"… and {len(value) - items:,} more"] if len(value) > items else []
        return [_trimmed(item, items, text) for item in value[:items]] + more
    return value


def without_spark(step: str, argv: Sequence[str], *, parallelism: int | None = None) -> dict[str, Any] | None:
    """The step's result if its plan is empty or touches metadata only, or what it reads is little; None if it needs
    Spark.

    Args:
        parallelism: How many tasks Spark would run at once, so that work is cut here as there. None leaves all data
            to Spark, but for gates, which write none.

    Raises what the step raises. Nothing is lost by trying: what was planned is planned again.
    """
    from tidemark.jobs.in_process_runner import BySize

    args = parsed(step, argv)
    store = collection_store(args.root, args.collection)

    def refuse() -> Runner:
        raise NeedsSpark

    def here() -> Runner:
        return BySize(store, refuse, parallelism or 1, _to_stderr)

    little = parallelism is not None or step == "gate"
    try:
        return run(step, args, here if little else refuse, computer_on=here_or_on_spark if little else on_spark)
    except NeedsSpark:
        return None


def _to_stderr(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def run(
    step: str,
    args: argparse.Namespace,
    runner: Callable[[], Runner],
    *,
    computer_on: Callable[[Callable[[], Runner]], Computer] = on_spark,
) -> dict[str, Any]:
    """Call the step's job with parsed arguments. What no gate has certified by then is gated first (`gated`).

    Where a runner chose the place by size, the result has its `work` (jobs/in_process_runner.py).
    """
    declared, made = step_of(step), cache(runner)
    job = open_job(args.root, args.collection, made, attempt=args.attempt)
    job.computer_on = computer_on
    values, interval = declared.values(vars(args)), interval_of(declared, args)
    if declared.declares and args.file:
        from tidemark.jobs.steps.init import declare, waits_for_input

        if waits := waits_for_input(job, args.file):
            return {"step": step, "collection": args.collection, **waiting(waits)}
        declare(job, args.file)
    if declared.origin is not None and (state := job.log.load().arrangement) is not None:
        declared.check_origin(state.collection)
    result = gated(job, lambda: _called(declared, job, interval, values))
    work = getattr(made(), "work", None) if made.cache_info().currsize else None
    return {"step": step, "collection": args.collection, **result, **({"work": work.document()} if work else {})}


def waiting(waits: Waits) -> dict[str, Any]:
    """What a step answers where there is no collection yet, as it is not known what columns it has."""
    details = {"waits_for": waits.laggard, "waits": waits.reason, "unfinished": False}
    return {"outcome": str(Outcome.WAITS), "version": 0, "commits": 0, **details}


def interval_of(step: Step, args: argparse.Namespace) -> Interval | None:
    """What --lower and --upper say. InvalidUsage for one without the other."""
    if step.intervals is Intervals.NONE or (args.lower is None and args.upper is None):
        return None
    if args.lower is None or args.upper is None:
        raise InvalidUsage("--lower and --upper belong together; give both")
    return Interval(args.lower, args.upper)


def _called(step: Step, job: Job, interval: Interval | None, values: Mapping[str, Any]) -> dict[str, Any]:
    """The job's answer, called with intervals as the step says."""
    from tidemark.jobs.intervals import each_interval, scheduled

    if step.intervals is Intervals.CHOICE:
        return step.function(job, intervals=[interval] if interval else [], **values)
    if interval is None or step.intervals is Intervals.UNUSED:
        return step.function(job, **values)
    if step.intervals is Intervals.EACH:
        return each_interval(job, interval, lambda job, one: step.function(job, one, **values))
    if step.intervals is Intervals.SEVERAL:  # but it must end where one of them does
        scheduled(job.log.load().state.collection, interval)
    return step.function(job, interval, **values)


def open_job(root: str, collection: str, runner: Callable[[], Runner], *, attempt: str | None = None) -> Job:
    """A job on a collection's store. Without an attempt token it gets one of its own."""
    store = collection_store(root, collection)
    log = StateLog(store, fresh_id, writer=writer_name())
    token = attempt or fresh_id()
    return Job(store, log, runner, token, note=_to_stderr, first=ran(token).is_first)


def app_runner(step: str, args: argparse.Namespace) -> Runner:
    """What an app's tasks run on: this process for small work, else the executors of its session."""
    from tidemark.jobs.in_process_runner import BySize

    on_spark = cache(lambda: spark_runner(step, args))
    return BySize(collection_store(args.root, args.collection), on_spark, None, _to_stderr)


def spark_runner(step: str, args: argparse.Namespace) -> Runner:
    """Tasks over the executors of this app's Spark session."""
    from tidemark.spark.runner import SparkRunner
    from tidemark.spark.session import session

    return SparkRunner(session(f"tidemark {step} {args.collection}"), collection_store(args.root, args.collection).url)


def gated(job: Job, step: Callable[[], dict[str, Any]], *, rounds: int = 5) -> dict[str, Any]:
    """A step whose gate has run before it in the DAG: what came in between, or with other intervals, and is in its way
    is simply gated too, then the step goes on.

    A gate that fails raises GateFailed. The command line calls steps bare, so that there a missing gate is refused.
    """
    from tidemark.errors import Uncertified
    from tidemark.jobs.steps.gate import gate

    for _ in range(rounds):
        try:
            return step()
        except Uncertified as missing:
            job.note(f"{missing}; gating it now")
            gate(job, Gate(missing.gate), intervals=missing.intervals)
    return step()
