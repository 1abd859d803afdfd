"""`spark.readStream.format("tidemark")`: what a collection learns, one sealed interval a micro-batch.

Spark writes an offset down before it reads the batch that ends there, and once more when the sink has it. After a crash
it asks for the batch again, by the same offset, and gets the same rows (seals.py). So a sink that takes a batch twice
as once, by its number, holds every change once.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxFiles, SupportsTriggerAvailableNow

from tidemark.datasource.options import BEGINNING, NEWEST, Options, opened, own_columns, stream_options
from tidemark.datasource.refusal import one_line
from tidemark.datasource.rows import TaskPartition, TaskReader, asked_schema, task_partitions
from tidemark.errors import CommitUnknown, Contention, InvalidUsage, TidemarkError, Unavailable

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

    from tidemark.datasource.seals import Offset, Seals
    from tidemark.model.collection import Collection

LOOK_S = 1.0
"""Seconds between two looks for a new seal: Spark asks a hundred times a second."""


class ChangesReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """The changes of a collection as a stream. The columns are those of `changes`, in a schema of Spark."""

    def __init__(self, options: Options, schema: StructType) -> None:
        stream_options(options)
        found = opened(options)
        self._options, self._names = options, list(schema.names)
        self._place = found.root, found.name
        answered = stream_schema(found.state.collection, options, self._columns(found.state.collection))
        self._tasks = TaskReader(found.store.url, asked_schema(answered, schema))
        self._local: _Local | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_local": None}

    def initialOffset(self) -> dict[str, Any]:
        """Where the option `starting` says: the same for as long as the process lives."""
        with one_line():
            local = self._here()
            if local.initial is None:
                local.initial = local.seals.start(_starting(self._options))
                self._hold(local.initial)
            return local.initial.as_json()

    def getDefaultReadLimit(self) -> ReadLimit:
        """One seal a batch, or as many as the option says."""
        return ReadMaxFiles(self._options.count("seals_per_batch", 1) or 1)

    def prepareForTriggerAvailableNow(self) -> None:
        """Go no further than what is sealed now."""
        with one_line():
            local = self._here()
            local.last_version = local.seals.newest().version

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        """The offset of the next seal; `start` where there is none yet."""
        from tidemark.datasource.seals import offset_of

        with one_line():
            local, begun = self._here(), offset_of(start)
            if local.waits_at == begun and time.monotonic() < local.waits_until:
                return start
            most = None if isinstance(limit, ReadAllAvailable) else getattr(limit, "max_files", 1)
            found = local.seals.next(begun, most, local.last_version)
            if not local.holds:
                self._hold(begun)
            if found == begun:
                local.waits_at, local.waits_until = begun, time.monotonic() + LOOK_S
                return start
            return found.as_json()

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[TaskPartition]:
        """The read tasks of a batch. It begins where its end says, which is known also of a batch that was begun by a
        process that is gone, whatever offset `starting` leads to by now."""
        from tidemark.api.reads import Changes
        from tidemark.datasource.seals import offset_of

        if start == end:
            return []
        with one_line():
            reached = offset_of(end)
            found = self._here().seals.at(reached)
            after = None if reached.after < 0 else reached.after
            columns, where = self._columns(found.state.collection), self._options.given.get("where")
            return task_partitions(Changes(found, after, reached.upto, self._options.truth("net"), columns, where))

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """The rows of a partition."""
        assert isinstance(partition, TaskPartition)
        return self._tasks.rows(partition)

    def commit(self, end: dict[str, Any]) -> None:
        """The sink has all up to an offset: the hold moves there. If it cannot be moved now, the next one moves it."""
        from tidemark.datasource.seals import offset_of

        with one_line(), suppress(Contention, Unavailable, CommitUnknown):
            self._hold(offset_of(end))

    def _columns(self, collection: Collection) -> tuple[str, ...] | None:
        """The collection's columns among those that are asked for; None: all, as none of them is."""
        from tidemark.arrow.read import changes_schema

        beside = changes_schema(collection, net=self._options.truth("net")).names[len(collection.columns) :]
        return own_columns(collection, self._options, self._names, beside) or None

    def _here(self) -> _Local:
        from tidemark.datasource.seals import Seals

        if self._local is None:
            self._local = _Local(Seals(*self._place))
        return self._local

    def _hold(self, at: Offset) -> None:
        """Keep readable what comes after an offset, if the options say so; where `since` has passed it, from there on:
        what is between the two is read in versions that are kept."""
        name = self._options.given.get("hold")
        while name is not None:
            found = opened(self._options)
            since = max(at.upto, found.state.since)
            try:
                found.hold(name, since)
                break
            except InvalidUsage:
                if found.refresh().state.since <= since:
                    raise  # else it moved on meanwhile
        self._here().holds = True


class RefusedReader(DataSourceStreamReader):
    """The reader of a stream that cannot be. Spark hides what is raised while a reader is made, so it is raised when
    the reader is asked where to start."""

    def __init__(self, refusal: TidemarkError) -> None:
        self._refusal = refusal

    def initialOffset(self) -> dict[str, Any]:
        """Raise the refusal."""
        with one_line():
            raise self._refusal

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        """Raise the refusal."""
        with one_line():
            raise self._refusal

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[TaskPartition]:
        """Raise the refusal."""
        with one_line():
            raise self._refusal

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """Nothing: there is no partition."""
        return iter(())


@dataclass
class _Local:
    """What the process that plans a stream remembers while it lives: where the stream began, whether its hold is
    placed, up to which version it goes, and until when there is no use in looking for what follows an offset."""

    seals: Seals
    initial: Offset | None = None
    holds: bool = False
    last_version: int | None = None
    waits_at: Offset | None = None
    waits_until: float = 0.0


def stream_schema(collection: Collection, options: Options, columns: Sequence[str] | None) -> pa.Schema:
    """The columns of a stream in some columns of a collection. InvalidUsage for columns and conditions that are none,
    and for options that no stream has."""
    from tidemark.api.conditions import LEARNED, NOTHING
    from tidemark.api.selection import selection
    from tidemark.arrow.read import changes_schema

    stream_options(options)
    net = options.truth("net")
    shown = selection(collection, columns, options.given.get("where"), NOTHING if net else LEARNED).shown
    return changes_schema(collection, net=net, columns=shown)


def _starting(options: Options) -> int | None:
    """The time after which changes are read: -1 the beginning, None the newest."""
    from tidemark.api.times import micros
    from tidemark.datasource.seals import BEGINNING as FROM_THE_BEGINNING

    text = options.given["starting"]
    return FROM_THE_BEGINNING if text == BEGINNING else None if text == NEWEST else micros(text, "starting")
