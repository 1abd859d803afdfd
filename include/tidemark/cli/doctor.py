"""Asking a store whether collections may live in it."""

from __future__ import annotations

from typing import Annotated

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
) -> None:
    """Test the store below --root for the guarantees that commits rely on, first that of several creates of one key
    exactly one succeeds. Small objects are created and deleted. A store that breaks a guarantee is refused by its name.
    """
    from tidemark.jobs.queries.promises import as_dict, promises_of_collection, promises_of_root
    from tidemark.storage.probe.probe import leftover

    said: list[str] = []
    document = {}
    if collection is None:
        proof = promises_of_root(call.root)
    else:
        proof, since = promises_of_collection(call.job(collection, step="doctor"))
        document = {"collection": collection, "certified_since": since}
        said.append(f"collection {collection} keeps a certificate since {since}")
    if proof.left:
        output.note(leftover(proof))
    promises = [(str(one), one.promise) for one in proof.guarantees]
    headline = f"{proof.address} may hold collections: it kept {len(promises)} of {len(promises)} guarantees"
    call.emit({**as_dict(proof), **document}, headline, output.facts(promises), *said)
