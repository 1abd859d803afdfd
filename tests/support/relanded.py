"""A collection as it would be if its rows landed otherwise."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tidemark.model.collection import Collection


def relanded(collection: Collection, **changes: Any) -> Collection:
    """The collection with other fields of its origin."""
    return replace(collection, origin=replace(collection.landed, **changes))
