"""Which collections there are below a root."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tidemark.errors import InvalidUsage, listed
from tidemark.model.collection import NAME
from tidemark.model.nearest import similar
from tidemark.storage import open_store

if TYPE_CHECKING:
    from tidemark.storage.log.versions import Versions


def collections(root: str) -> list[str]:
    """The names of the collections below a root, ascending; none if the root does not exist.

    Raises InvalidUsage for a root that is no folder or may not be read.
    """
    return [name for name in folders(root) if _versions(root, name).exist()]


def dropped(root: str) -> list[str]:
    """The names below a root of which there is no collection any more, but what a collector has not removed yet."""
    return [name for name in folders(root) if _is_dropped(root, name)]


def _is_dropped(root: str, name: str) -> bool:
    versions = _versions(root, name)
    return versions.newest() > 0 and not versions.exist()


def _versions(root: str, name: str) -> Versions:
    from tidemark.storage.log.versions import Versions

    return Versions(open_store(f"{root.rstrip('/')}/{name}"))


def folders(root: str) -> list[str]:
    """The names below a root that may be those of collections: one listing, and none is looked into."""
    return [name for name in open_store(root).folders("") if NAME.fullmatch(name)]


def check_root(root: str) -> None:
    """Raise InvalidUsage for a root that is there and is no folder."""
    address = open_store(root).url
    if "://" not in address and Path(address).exists() and not Path(address).is_dir():
        raise InvalidUsage(f"root {address} is not a folder; pass another root")


def is_absent(root: str) -> bool:
    """Whether the root is a folder that is not there. A bucket's prefix is there as soon as something has it."""
    address = open_store(root).url
    return "://" not in address and not Path(address).exists()


def dropped_words(root: str, collection: str) -> str:
    """That a collection was dropped, and how it comes back; "" where it was not."""
    if not NAME.fullmatch(collection) or not _is_dropped(root, collection):
        return ""
    undo = f"`tidemark drop {collection} --undo` brings it back, as long as its objects are there"
    return f"collection {collection} was dropped; {undo}"


def absent(root: str, collection: str, existing: Sequence[str]) -> str:
    """Why a collection cannot be read, and what to do, in one line."""
    address = open_store(root).url
    if words := dropped_words(root, collection):
        return words
    if existing:
        near = similar(collection, [*existing])
        meant = f"; did you mean {near!r}?" if near else ""
        return f"no collection {collection} under {address}; existing: {listed(existing)}{meant}"
    if is_absent(root):
        return f"root {address} does not exist; pass another root, or create a collection with `tidemark init FILE`"
    what = f"collection {collection}, nor any other," if collection else "collection"
    return f"no {what} under {address}; create one with `tidemark init FILE`"
