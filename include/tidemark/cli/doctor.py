"""Asking a store whether collections may live in it."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from tidemark.cli import output
from tidemark.cli.command import Call, register


def add_to(app: typer.Typer) -> None:
    """Make the question a command of `app`."""
    register(app, "doctor", panel="Collections")(doctor)


def doctor(
    call: Call,
    collection: Annotated[
        str | None,
        typer.Argument(
            metavar="COLLECTION", help="Test the store of this collection, and keep the certificate with it."
        ),
    ] = None,
    fix: Annotated[
        bool, typer.Option("--fix", help="End holds for derived collections that are not there any more.")
    ] = False,
) -> None:
    """Test the store below --root for the guarantees that commits rely on, and look for holds that nobody needs.

    First that of several creates of one key exactly one succeeds. Small objects are created and deleted. A store that
    breaks a guarantee is refused by its name.

    Holds that keep history for derived collections which were removed, or have other inputs now, are listed.
    """
    from tidemark.jobs.queries.promises import as_dict, promises_of_collection, promises_of_root
    from tidemark.storage.probe.probe import leftover

    said: list[str] = []
    document: dict[str, Any] = {}
    if collection is None:
        proof = promises_of_root(call.root)
    else:
        proof, since = promises_of_collection(call.job(collection, step="doctor"))
        document = {"collection": collection, "certified_since": since}
        said.append(f"collection {collection} keeps a certificate since {since}")
    needless = [pair for name in _looked_at(call, collection) for pair in _needless_holds(call, name, fix=fix)]
    ends = "has ended" if fix else "can go: `tidemark doctor --fix` ends it"
    said += [f"hold {hold} on {name} keeps history for nobody, and {ends}" for name, hold in needless]
    document["needless_holds"] = [{"collection": name, "hold": hold} for name, hold in needless]
    if proof.left:
        output.note(leftover(proof))
    promises = [(str(one), one.promise) for one in proof.guarantees]
    headline = f"{proof.address} may hold collections: it kept {len(promises)} of {len(promises)} guarantees"
    call.emit({**as_dict(proof), **document}, headline, output.facts(promises), *said)


def _looked_at(call: Call, collection: str | None) -> list[str]:
    from tidemark.jobs.queries.locate import collections

    return collections(call.root) if collection is None else [collection]


def _needless_holds(call: Call, name: str, *, fix: bool) -> list[tuple[str, str]]:
    """The holds on a collection that nobody needs, each with its name.

    With `fix` they end. None of one that cannot be read, of which `status` says why.
    """
    from tidemark.errors import TidemarkError
    from tidemark.jobs.queries.dependents import needless_holds
    from tidemark.jobs.queries.locate import collections
    from tidemark.jobs.steps.retain import drop_hold

    job = call.job(name, step="doctor")
    try:
        holds = list(needless_holds(job, job.log.load().state, collections(call.root)))
    except TidemarkError as error:
        output.note(f"{name} cannot be read, so its holds were not looked at: {error}")
        return []
    for hold in holds if fix else ():
        drop_hold(job, hold.name, missing_ok=True)
    return [(name, hold.name) for hold in holds]
