"""Derived collections: what one is of its inputs, and how far these were consumed.

A derived collection D has inputs, each a collection, and a definition, a query over them. The step `correct` is to it
what `ingest` is to a landed one: it writes what differs between what the definition says now and what D holds. Each
commit of it records a *consumption*: D's frontier u, and of each input how far it was consumed, its frontier c_i. Then

    D.as_of(u - 1) = definition(input_i.as_of(c_i - 1))

for ever, under the definition then in force.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

from tidemark.errors import InvalidUsage


class Refresh(StrEnum):
    """What an owner asks for: `auto`, the cheapest mode that is right; `incremental`, which is refused where only the
    whole can be computed; `whole`, always all of it."""

    AUTO = "auto"
    INCREMENTAL = "incremental"
    WHOLE = "whole"


class Mode(StrEnum):
    """How a run computes what differs: from the changed input rows alone (`by_row`), from the groups or join keys they
    touch (`by_key`), or from all (`whole`). All three give the same rows."""

    BY_ROW = "by_row"
    BY_KEY = "by_key"
    WHOLE = "whole"


@dataclass(frozen=True)
class Definition:
    """A query over the inputs by their names: `select`, of Spark SQL; or `function`, `module:name` of a function of
    DataFrames, told from its earlier self by `version`, which can be computed for some values of the columns `by` alone
    (none: only whole)."""

    select: str = ""
    function: str = ""
    version: str = ""
    by: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if bool(self.select) == bool(self.function):
            raise InvalidUsage("a definition is a select or a python function, exactly one of them")
        if self.function and not self.version:
            raise InvalidUsage(f"python definition {self.function} has no version; write version: '1', and raise it")
        if self.select and (self.version or self.by):
            raise InvalidUsage("version and by belong to python definitions; a select is its own version")

    @property
    def fingerprint(self) -> str:
        """Another one for another definition."""
        text = json.dumps([self.select, self.function, self.version, self.by], separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()[:16]


@dataclass(frozen=True)
class Validity:
    """Between which times a row is there: from `valid_from` (a column; None: as it is learned) until `valid_to` (a
    column; None: for ever), or for so many microseconds (`valid_for`). A null `valid_to` never ends."""

    valid_from: str | None = None
    valid_to: str | None = None
    valid_for: int | None = None


@dataclass(frozen=True)
class Derived:
    """The origin of a collection that is computed from others.

    `inputs` are names of collections, as the definition calls them. `history` (µs) is the distance of the frontiers of
    a first build (0: one frontier, the newest). `max_lag` (µs): the inputs' history is held for it no longer than this
    after it was corrected last (None: as long as it exists).
    """

    inputs: tuple[str, ...]
    definition: Definition
    refresh: Refresh = Refresh.AUTO
    history: int = 0
    max_lag: int | None = None
    validity: Validity | None = None
    kind: Literal["derived"] = "derived"


@dataclass(frozen=True)
class Root:
    """How far a landed collection was consumed, by whatever ways: its changes below `upper`."""

    collection: str
    upper: int


@dataclass(frozen=True)
class Consumed:
    """How far one input was consumed: its changes below `upper`, as its state of that `version` had them.
    `incarnation` tells a collection from another of the same name; `roots` are the landed collections below it."""

    input: str
    upper: int
    version: int
    incarnation: str
    roots: tuple[Root, ...] = ()


@dataclass(frozen=True)
class Consumption:
    """What one commit of `correct` records: D is `upper` (u), and complete below `complete_below`, having consumed the
    inputs so far, under the definition of that fingerprint. `batch` is what it wrote (None: nothing differed)."""

    upper: int
    complete_below: int
    inputs: tuple[Consumed, ...]
    definition: str
    batch: str | None = None

    @property
    def roots(self) -> tuple[Root, ...]:
        """The landed collections below all inputs, each once: inputs agree on those they share."""
        return tuple(sorted({root for held in self.inputs for root in held.roots}, key=lambda root: root.collection))
