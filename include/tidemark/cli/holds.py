"""Holds: whoever reads history keeps `since` from passing it, by name."""

from __future__ import annotations

from typing import Annotated

import typer

from tidemark.cli import output
from tidemark.cli.command import Call, CollectionArgument, UsageError, register
from tidemark.cli.options import duration, instant
from tidemark.errors import InvalidUsage, listed

PANEL = "Steps by hand"


def add_to(app: typer.Typer) -> None:
    """Make the hold commands of `app`."""
    register(app, "hold", panel=PANEL)(hold)
    register(app, "release", panel=PANEL)(release)


def hold(
    call: Call,
    collection: CollectionArgument,
    name: Annotated[
        str | None, typer.Argument(metavar="NAME", help="The name of the hold; without it, list the holds.")
    ] = None,
    at: Annotated[
        int | None,
        typer.Option("--at", parser=instant, metavar="TIME", help="Reads from here on stay exact. Default: since."),
    ] = None,
    expires: Annotated[
        int | None,
        typer.Option(
            "--for", parser=duration, metavar="DURATION", help="End the hold after 30m, 12h, 7d. Default: never."
        ),
    ] = None,
) -> None:
    """Keep history readable: `since` does not pass a hold, whatever the retention says. `release` ends it.

    Example: tidemark hold flights month-end-report --at 2013-01-31 --for 7d
    """
    from tidemark.jobs.steps import retain

    job = call.job(collection)
    if name is None:
        if at is not None or expires is not None:
            raise UsageError("name the hold: tidemark hold COLLECTION NAME --at TIME")
        found = retain.holds(job, job.log.load())
        rows = [(one["hold"], one["since_text"], one["expires_text"], "yes" if one["holds"] else "no") for one in found]
        shown = output.table(("hold", "since", "expires", "holds"), rows) if rows else "no holds"
        call.emit({"collection": collection, "holds": found}, shown)
        return
    result = retain.hold(job, name, since=at, for_=expires)
    call.emit(
        {"collection": collection, **result},
        f"{result['outcome']}: {name} holds {result['since_text']}, expires {result['expires_text']}; "
        f"`tidemark release {collection} {name}` lets it go",
    )


def release(
    call: Call,
    collection: CollectionArgument,
    what: Annotated[str, typer.Argument(metavar="BATCH|HOLD", help="A quarantined batch's id, or a hold's name.")],
) -> None:
    """Put a quarantined batch back, or end a hold."""
    from tidemark.cli.steps import show
    from tidemark.jobs.steps import retain
    from tidemark.jobs.steps.quarantine import quarantined_ids
    from tidemark.jobs.steps.quarantine import release as put_back

    job = call.job(collection, step="release")
    state = job.log.load().state
    is_hold = any(hold.name == what for hold in state.holds)
    is_batch = any(batch.startswith(what) for batch in quarantined_ids(state))
    if not is_hold and not is_batch:
        holds = listed(hold.name for hold in state.holds) or "none"
        batches = listed(each.id for each in state.taken_out) or "none"
        raise InvalidUsage(f"no batch and no hold is called {what!r}; quarantined: {batches}; holds: {holds}")
    if is_hold and any(batch.id.startswith(what) for batch in state.quarantined):
        raise InvalidUsage(f"{what!r} is a hold and the beginning of a quarantined batch; write more of the batch's id")
    result = retain.drop_hold(job, what) if is_hold else put_back(job, what)
    show(call, job, {"step": "release", "collection": collection, **result}, [result])
