"""The spark apps' one adapter: parse arguments, call the one job, print one JSON line, answer with an exit code."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Sequence
from typing import Any

from tidemark import __version__
from tidemark.errors import MAX_LINE, RETRY_SAFE, InvalidUsage, TidemarkError, shortened
from tidemark.jobs.job import Job, Runner, collection_store, fresh_id, writer_name
from tidemark.model.collection import Gate
from tidemark.model.instant import parse_duration, parse_instant
from tidemark.model.interval import Interval
from tidemark.quality.results import ran
from tidemark.storage.log import StateLog

STEPS = ("ingest", "seal", "drain", "compact", "gate", "replay", "collect", "audit")
WHOLE = ("replay", "collect", "audit")
"""Steps of the collection as a whole: their runs have no interval."""


class NeedsSpark(BaseException):
    """A step that was tried without Spark has data to read. Not an Exception: no job may swallow it."""


def parser(step: str) -> argparse.ArgumentParser:
    """The arguments of one app."""
    arguments = argparse.ArgumentParser(prog=f"{step}.py", description=__doc__)
    arguments.add_argument("--root", required=True, help="where collections live: a path or s3://bucket/prefix")
    arguments.add_argument("--collection", required=True)
    if step not in WHOLE:
        within: dict[str, Any] = {"required": True, "type": parse_instant}
        arguments.add_argument("--lower", **within, help="start of the data interval (ISO or µs)")
        arguments.add_argument("--upper", **within, help="end of the data interval, exclusive")
    arguments.add_argument("--attempt", default=None, help="fencing token: the newest attempt at a step wins")
    if step == "ingest":
        arguments.add_argument("--landing", default=os.environ.get("TIDEMARK_LANDING", ""))
        arguments.add_argument(
            "--file", default=None, help="collection file: creates or redefines the collection first"
        )
    if step == "gate":
        arguments.add_argument("--gate", required=True, type=Gate, choices=list(Gate))
    if step == "replay":
        within = {"default": None, "type": parse_instant}
        arguments.add_argument("--lower", **within, help="only what came with intervals from here (ISO or µs)")
        arguments.add_argument("--upper", **within, help="and below here")
        arguments.add_argument("--path", default=None, help="only of files whose path holds this")
        arguments.add_argument("--as-now", action="store_true", help="what happened too long ago applies at the seal")
    if step == "collect":
        arguments.add_argument(
            "--keep-versions",
            type=parse_duration,
            default=parse_duration(os.environ.get("TIDEMARK_KEEP_VERSIONS") or "7d"),
            help="how long superseded versions stay loadable, as 7d or 12h (TIDEMARK_KEEP_VERSIONS)",
        )
    return arguments


def main(step: str, argv: Sequence[str]) -> int:
    """Run one step as a process: the result as the last line of stdout, the exit code of errors.py."""
    from tidemark.resident.guard import die_with_parent

    die_with_parent()
    try:
        args = parser(step).parse_args(argv)
        print(f"tidemark {__version__} {step} {args.collection}", file=sys.stderr)
        result = run(step, args, lambda: app_runner(step, args))
    except TidemarkError as error:
        told = {"step": step, "error": {"kind": error.kind, "message": str(error)}, **getattr(error, "details", {})}
        print(result_line(told), flush=True)
        return error.exit_code
    except Exception as error:
        import traceback

        traceback.print_exc()
        message = shortened(str(error).splitlines()[0] if str(error) else repr(error))
        print(result_line({"step": step, "error": {"kind": type(error).__name__, "message": message}}), flush=True)
        return RETRY_SAFE
    print(result_line(result), flush=True)
    return 0


def result_line(told: dict[str, Any]) -> str:
    """A result as one line of JSON that the launchers take: what makes it longer than MAX_LINE loses the ends of its
    lists and the middles of its texts, and never what was outcome or error."""
    line = json.dumps(told)
    for items, text in ((200, 4_000), (50, 1_000), (20, 200), (5, 100)):
        if len(line) <= MAX_LINE:
            return line
        line = json.dumps({name: _trimmed(value, items, text) for name, value in told.items()})
    if len(line) > MAX_LINE:
        line = json.dumps({name: told[name] for name in ("step", "collection", "outcome", "error") if name in told})
    return line


def _trimmed(value: Any, items: int, text: int) -> Any:
    if isinstance(value, str):
        return shortened(value, text)
    if isinstance(value, dict):
        return {name: _trimmed(held, items, text) for name, held in list(value.items())[:items]}
    if isinstance(value, list | tuple):
        more = [f"… and {len(value) - items:,} more"] if len(value) > items else []
        return [_trimmed(held, items, text) for held in value[:items]] + more
    return value


def without_spark(step: str, argv: Sequence[str]) -> dict[str, Any] | None:
    """The step's result if its plan is empty or touches metadata only; None if it must read data.

    Raises what the step raises. Nothing is lost by trying: what was planned is planned again.
    """

    def refuse() -> Runner:
        raise NeedsSpark

    try:
        return run(step, parser(step).parse_args(argv), refuse)
    except NeedsSpark:
        return None


def run(step: str, args: argparse.Namespace, runner: Callable[[], Runner]) -> dict[str, Any]:
    """Call the step's job with parsed arguments."""
    job = open_job(args.root, args.collection, runner, attempt=args.attempt)
    return {"step": step, "collection": args.collection, **_call(step, job, args)}


def open_job(root: str, collection: str, runner: Callable[[], Runner], *, attempt: str | None = None) -> Job:
    """A job on a collection's store. Without an attempt token it gets one of its own."""
    store = collection_store(root, collection)
    log = StateLog(store, fresh_id, writer=writer_name())

    def note(text: str) -> None:
        print(text, file=sys.stderr, flush=True)

    token = attempt or fresh_id()
    return Job(store, log, runner, token, note=note, first=ran(token).is_first)


def app_runner(step: str, args: argparse.Namespace) -> Runner:
    """What an app's tasks run on: Spark; of a gate only where it must read more than a little."""
    if step != "gate":
        return spark_runner(step, args)
    from tidemark.jobs.nearby import FewInProcess

    return FewInProcess(collection_store(args.root, args.collection), lambda: spark_runner(step, args))


def spark_runner(step: str, args: argparse.Namespace) -> Runner:
    """Tasks over the executors of this app's Spark session."""
    from tidemark.spark.runner import SparkRunner
    from tidemark.spark.session import session

    return SparkRunner(session(f"tidemark {step} {args.collection}"), collection_store(args.root, args.collection).url)


def _call(step: str, job: Job, args: argparse.Namespace) -> dict[str, Any]:
    if step == "collect":
        from tidemark.jobs.collect import collect

        return collect(job, keep=args.keep_versions).summary()
    if step == "audit":
        from tidemark.jobs.verify import audit

        return audit(job)
    if step == "replay":
        from tidemark.jobs.replay import replay

        if (args.lower is None) != (args.upper is None):
            raise InvalidUsage("--lower and --upper belong together; give both")
        some = [] if args.lower is None else [Interval(args.lower, args.upper)]
        return replay(job, intervals=some, path=args.path, as_now=args.as_now)
    interval = Interval(args.lower, args.upper)
    if step == "ingest":
        from tidemark.jobs.ingest import ingest
        from tidemark.jobs.init import declare
        from tidemark.jobs.intervals import each_interval

        if args.file:
            declare(job, args.file)
        if not args.landing:
            raise InvalidUsage("no landing: pass --landing or set TIDEMARK_LANDING")
        return each_interval(job, interval, lambda job, one: ingest(job, one, landing_root=args.landing))
    if step == "seal":
        from tidemark.jobs.intervals import scheduled
        from tidemark.jobs.seal import seal

        scheduled(job.log.load().state.collection, interval)  # it may be several, but must end where one of them does
        return gated(job, lambda: seal(job, interval))
    if step == "drain":
        from tidemark.jobs.drain import drain

        return gated(job, lambda: drain(job, interval))
    if step == "compact":
        from tidemark.jobs.compact import compact

        return gated(job, lambda: compact(job, interval))
    from tidemark.jobs.gate import gate

    return gate(job, args.gate)


def gated(job: Job, step: Callable[[], dict[str, Any]], *, rounds: int = 5) -> dict[str, Any]:
    """A step whose gate has run before it in the DAG: what came in between is simply gated too, then the step goes on.

    A gate that fails raises GateFailed. The command line calls steps bare, so that there a missing gate is refused.
    """
    from tidemark.errors import Unvouched
    from tidemark.jobs.gate import gate

    for _ in range(rounds):
        try:
            return step()
        except Unvouched as missing:
            job.note(f"{missing}; gating it now")
            gate(job, Gate(missing.gate))
    return step()
