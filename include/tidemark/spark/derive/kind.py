"""What a place asks of a kind of what a definition computes: groups, windows, joins (place.py)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol, Self

import pyarrow as pa
from pyspark.sql import DataFrame

from tidemark.definition.ways import Place
from tidemark.spark.derive.parts import Batches
from tidemark.spark.derive.views import Views


class Gathering(Protocol):
    """What all rows of an input become, as this process reads them."""

    @property
    def most(self) -> int:
        """How many rows are taken at most."""

    def updates(self, rows: Batches) -> Iterable[pa.RecordBatch]:
        """What all rows become, as updates in order of the collection's key.

        A row comes as often as the input has it. Raises InvalidUsage where what is kept of them takes too much.
        """


@dataclass(frozen=True)
class Ranged:
    """How executors compute by ranges of an input's key: of all rows that are equal in the columns `together`, which
    lead that key, `made` makes updates in order. Rows have the columns `used`, those that are null in `on`, if there is
    such a column, are left out, and one counts as so many as `windows`."""

    input: str
    together: Sequence[str]
    on: str | None
    used: Sequence[str]
    made: Callable[[pa.Table], Iterable[pa.RecordBatch]]
    windows: int = 1


@dataclass(frozen=True)
class Shuffled:
    """How executors compute after a shuffle: of each partition of `rows`, which are in order, `made` makes updates in
    order."""

    rows: DataFrame
    made: Callable[[Batches], Batches]


@dataclass(frozen=True)
class Refreshed:
    """By what the rows that few changes reach differ from those stored, in order, and where that was computed."""

    updates: list[pa.RecordBatch]
    place: Place


class Kind(Protocol):
    """How the rows of one computation become what its definition says. Each answer is None where the kind is not
    computed so, whatever the size; what is too large raises InvalidUsage or says why and is None."""

    @property
    def input(self) -> str:
        """The one input, or of several that which places read by itself."""

    @property
    def on(self) -> str | None:
        """The column of instants: rows that are null in it are in no window. None: rows are in no windows."""

    @classmethod
    def of(cls, views: Views) -> Self | None:
        """The kind, where a computation belongs to it."""

    def gathering(self) -> Gathering | None:
        """For all rows that this process reads itself."""

    def refreshed(self) -> Refreshed | None:
        """Where the computation has what changed of its inputs."""

    def opens(self) -> bool:
        """Open what `refreshed` opens, so that the views count it, and read nothing but the changes.

        Returns:
            False where only the run finds out what it opens.
        """

    def ranged(self) -> Ranged | None:
        """For executors that read the input by ranges of its key."""

    def shuffled(self) -> Shuffled | None:
        """For executors of a collection that holds nothing."""
