"""Finding collections below a root."""

from __future__ import annotations

import os
from pathlib import Path

from tidemark.api.opened import OpenCollection
from tidemark.api.pinned import pinned
from tidemark.errors import InvalidUsage
from tidemark.jobs.queries import locate


def open(root: str | os.PathLike[str], name: str | None = None, version: int | None = None) -> OpenCollection:
    """Open the collection `name` below `root`, a folder or `s3://bucket/prefix`, to read it.

    Without a name `root` is the address of the collection itself. It is opened at its newest version, or at `version`,
    which must still be kept. S3 takes its credentials and endpoint from the usual AWS environment.

    Raises InvalidUsage if there is no such collection, with those there are, or no such version any more; MissingExtra
    for `s3://` without the extra `s3`.
    """
    address = address_of(root)
    if name is None:
        address, _, name = address.rstrip("/").rpartition("/")
    if not isinstance(name, str):
        raise InvalidUsage(f"the name of a collection is text, not {name!r} ({type(name).__name__})")
    if version is not None and (isinstance(version, bool) or not isinstance(version, int)):
        raise InvalidUsage(
            f"version is {version!r} ({type(version).__name__}); it is a whole number, None is the newest"
        )
    return OpenCollection(pinned(address, name, version))


def collections(root: str | os.PathLike[str]) -> list[str]:
    """The names of the collections below a root, ascending. InvalidUsage for a folder that is not there."""
    address = address_of(root)
    locate.check_root(address)
    found = locate.collections(address)
    if not found and locate.is_absent(address):
        raise InvalidUsage(locate.absent(address, "", []))
    return found


def address_of(root: str | os.PathLike[str]) -> str:
    """A root as an address that is the same in every process. InvalidUsage for what is none."""
    address = os.fspath(root) if isinstance(root, str | os.PathLike) else None
    if not isinstance(address, str) or not address or "\0" in address:
        raise InvalidUsage(f"root is {root!r} ({type(root).__name__}); write a folder or s3://bucket/prefix")
    # Absolute, so that it is the same folder in a process that works in another one.
    return address if "://" in address else str(Path(address).expanduser().absolute())
