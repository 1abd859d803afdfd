"""Opening an appender: of which collection, into which landing, by which rules, as which producer."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path

from tidemark.api.appender import Appender, Target
from tidemark.api.appender import clock as machine_clock
from tidemark.api.opening import address_of
from tidemark.api.pinned import pinned
from tidemark.api.times import Duration, lasting
from tidemark.errors import InvalidUsage
from tidemark.jobs.job import fresh_id
from tidemark.model.chunk.cuts import CutRules
from tidemark.model.collection import Collection, Envelope, Format
from tidemark.storage import landing as landings

LEAST_UNSORTED = 1024
"""A smaller limit would make many small files of rows in no order."""
_PRODUCER = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
_NOT_APPENDED = {
    Envelope.SNAPSHOT: "a full snapshot is all rows of its interval together; write whole files",
    Envelope.DEBEZIUM: "its files are messages of a connector; declare the envelope upsert or append",
}


def appender(
    root: str | os.PathLike[str],
    name: str,
    *,
    landing: str | os.PathLike[str] | None = None,
    producer: str | None = None,
    rows: int | None = None,
    bytes: int = 8 * 2**20,
    age: Duration = "1m",
    unsorted_rows: int = 16_384,
    clock: Callable[[], int] | None = None,
) -> Appender:
    """Open a way into the landing folder of the collection `name` below `root`, for a program that has rows.

    `landing` is where its files land (None: TIDEMARK_LANDING). A chunk of rows ends, and becomes a file, when it has
    `rows` rows (None: however many) or `bytes` bytes, when it was open for `age`, when the next row is on other
    timelines, and when it has `unsorted_rows` rows whose times on some timeline are in no order, or would be with the
    next row. The file is one of the interval that goes on when it is written, by `clock` (microseconds since 1970;
    None: this machine's); in the last ten seconds of an interval, of the next.

    With a `producer`, a name that no other running program has, rows are numbered: `position` says how many have
    landed, and a program that goes on with that row after a crash adds none twice and leaves none out. The files of
    the producer that landed last must still be there for that. Without one, a name is made up that is never used again.

    Raises InvalidUsage for a collection that is derived, holds full snapshots or change messages, or whose path does
    not say where a new file goes.
    """
    collection = pinned(address_of(root), name).state.collection
    _check_appended(collection)
    where = os.environ.get("TIDEMARK_LANDING") if landing is None else os.fspath(landing)
    if not where:
        raise InvalidUsage("the landing is not known: pass landing=, or set TIDEMARK_LANDING")
    if producer is not None and not _PRODUCER.fullmatch(producer):
        raise InvalidUsage(f"producer {producer!r} must match {_PRODUCER.pattern}: it is part of files' names")
    landings.check_root(None if "://" in where else str(Path(where).expanduser()))
    limits = CutRules(
        None if rows is None else _limit("rows", rows, 1),
        _limit("bytes", bytes, 1),
        _limit("unsorted_rows", unsorted_rows, LEAST_UNSORTED),
        age=lasting(age, "age"),
    )
    target = Target(collection, where, producer or fresh_id(), clock or machine_clock)
    target.place(0, 1)  # refused now rather than with the first file
    return Appender(target, limits, target.landed_rows() if producer else 0)


def _check_appended(collection: Collection) -> None:
    source = collection.landed.source
    if (why := _NOT_APPENDED.get(source.envelope)) is not None:
        raise InvalidUsage(f"nothing can be appended to {collection.name}: {why}")
    said = (*source.from_fields, *source.from_paths, *source.timezones, *source.formats)
    if written := [str(pair[0]) for pair in said]:
        words = "from, from_path, timezone or format"
        raise InvalidUsage(
            f"nothing can be appended to {collection.name}: column {written[0]} has {words}; write files"
        )
    fields = [column.name for column in collection.landed.inputs if "." in column.name]
    if fields and source.format is Format.JSONL:
        raise InvalidUsage(f"nothing can be appended to {collection.name}: column {fields[0]} is a field of an object")


def _limit(name: str, given: int, least: int) -> int:
    if isinstance(given, bool) or not isinstance(given, int) or given < least:
        raise InvalidUsage(f"{name} is {given!r}; it must be a whole number, {least:,} or more")
    return given
