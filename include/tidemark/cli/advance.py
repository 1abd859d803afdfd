"""Advance: all steps and gates of a collection at once, up to a time."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from tidemark.cli import output
from tidemark.cli.command import Call, CollectionArgument, SparkOption, UsageError, register
from tidemark.cli.options import boundary
from tidemark.cli.steps import PANEL, line_of
from tidemark.jobs.steps.declared import LANDING
from tidemark.model.local_time import parse_local


def add_to(app: typer.Typer) -> None:
    """Make the command of `app`."""
    register(app, "advance", landing=True, panel=PANEL)(advance)


def advance(
    call: Call,
    collection: CollectionArgument,
    *,
    to: Annotated[
        str | None,
        typer.Option(
            "--to",
            parser=boundary,
            metavar="TIME",
            help="Until it is complete below this. Default: as far as it was ingested, or its inputs are complete.",
        ),
    ] = None,
    as_landed: Annotated[
        bool, typer.Option("--as-landed", help="With --to: files that the source's path does not match count for none.")
    ] = False,
    not_over: Annotated[
        bool,
        typer.Option("--not-over", help="With --to: also take an interval that is not over, with what has landed."),
    ] = False,
    spark: SparkOption = None,
) -> None:
    """Run all steps of a collection in order, each with its gate. Missing intervals are ingested with what has landed,
    even if that is nothing: so time advances and windows close without new data.

    Example: tidemark advance flights --to 2013-01-08, then tidemark advance departures_by_hour
    """
    from tidemark.jobs.advance import advance as job_of

    job = call.job(collection, spark=spark, step="advance")
    values: dict[str, dict[str, Any]] = {}
    declared = job.log.load().state.collection
    derived, upto = declared.is_derived, None if to is None else parse_local(to, declared.zone)
    if (as_landed or not_over) and (to is None or derived):
        raise UsageError("--as-landed and --not-over say how files are read; give --to, of a collection that lands")
    if to is not None:
        files = {LANDING.parameter: call.landing, "waits": False, "as_landed": as_landed, "not_over": not_over}
        values = {"correct": {"until": upto}} if derived else {"ingest": files}
    with output.working(f"advance {collection}"):
        result = job_of(job, upto, values)
    lines = (f"{one['step']}{' ' + one['gate'] if 'gate' in one else ''}: {line_of(one)}" for one in result["steps"])
    known = "" if result["known_up_to"] == result["complete_below"] else f", known up to {result['known_up_to_text']}"
    call.emit({"collection": collection, **result}, *lines, f"complete below {result['complete_below_text']}{known}")
