"""`tidemark drop`: end a collection, and bring it back."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tidemark.cli.command import Call, CollectionArgument, UsageError, register

PANEL = "Collections"


def add_to(app: typer.Typer) -> None:
    """Make `drop` a command of `app`."""
    register(app, "drop", panel=PANEL)(drop)


def drop(
    call: Call,
    collection: CollectionArgument,
    *,
    undo: Annotated[
        bool, typer.Option("--undo", help="Bring a dropped collection back, while its objects are there.")
    ] = False,
    break_derived: Annotated[
        bool, typer.Option("--break-derived", help="Drop it although collections are computed from it.")
    ] = False,
    break_tables: Annotated[
        bool, typer.Option("--break-tables", help="Drop it although published tables name its files.")
    ] = False,
    break_holds: Annotated[
        bool, typer.Option("--break-holds", help="Drop it although somebody holds its history.")
    ] = False,
    collections: Annotated[
        str | None,
        typer.Option(
            "--collections",
            metavar="FOLDER",
            help="Where collection files are, none of which may declare it any more (env TIDEMARK_COLLECTIONS).",
        ),
    ] = None,
) -> None:
    """End a collection whose file was removed. `collect` removes its objects later; until then --undo brings it back.

    Example: tidemark drop flights
    """
    from tidemark.config.folder import collections_folder
    from tidemark.jobs.queries.locate import collections as existing
    from tidemark.jobs.steps import drop as job_of

    flags = {"derived": break_derived, "tables": break_tables, "holds": break_holds}
    breaks = [kind for kind, is_set in flags.items() if is_set]
    if undo and (breaks or collections):
        raise UsageError("--undo brings all back; it takes no other option")
    job = call.job(collection, step="drop", dropped=True)
    if undo:
        result = job_of.undo(job, collection)
        back = "is back" if result["outcome"] == "applied" else "is there, so there was nothing to undo"
        said = [f"{collection} {back}, as of version {result['was']}"]
    else:
        folder = Path(collections) if collections else collections_folder()
        result = job_of.drop(job, collection, others=existing(call.root), folder=folder, breaks=breaks)
        what = "was dropped before" if result["outcome"] == "nothing to do" else "is dropped"
        listing = f"`tidemark collect {collection}`, or the DAG tidemark_maintenance,"
        said = [
            f"{collection} {what}; {result['bytes']:,} bytes go once {listing} has listed them for its grace",
            f"`tidemark drop {collection} --undo` brings it back until then",
        ]
        said += [f"its hold on {name} has ended" for name in result["released"]]
    call.emit({"step": "drop", "collection": collection, **result}, *said)
