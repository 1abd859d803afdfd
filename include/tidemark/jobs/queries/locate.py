"""Which collections there are below a root."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tidemark.errors import InvalidUsage
from tidemark.model.collection import NAME
from tidemark.storage import open_store


def collections(root: str) -> list[str]:
    """The names of the collections below a root, ascending; none if the root does not exist.

    Raises InvalidUsage for a root that is no folder or may not be read.
    """
    store = open_store(root)
    return [name for name in folders(root) if store.folders(f"{name}/versions/")]


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


def absent(root: str, collection: str, existing: Sequence[str]) -> str:
    """Why a collection cannot be read, and what to do, in one line."""
    address = open_store(root).url
    if existing:
        return f"no collection {collection} under {address}; existing: {', '.join(existing)}"
    if is_absent(root):
        return f"root {address} does not exist; pass another root, or create a collection with `tidemark init FILE`"
    what = f"collection {collection}, nor any other," if collection else "collection"
    return f"no {what} under {address}; create one with `tidemark init FILE`"
