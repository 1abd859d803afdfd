"""From a collection file that is valid in itself, and the types of its columns, to the collection it declares."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import date, datetime
from functools import partial
from typing import Any

from tidemark.config import debezium, readings
from tidemark.config.declaration import Common, Declaration
from tidemark.config.document import Loc
from tidemark.config.schedule import Schedule, check_bounds
from tidemark.config.template import pattern_of
from tidemark.errors import InvalidUsage
from tidemark.model import only
from tidemark.model.batching.cutting import check_parts
from tidemark.model.collection import Collection, Column, ColumnType, Envelope, Landed, Late, Source, ValueType
from tidemark.model.condition.text import parse
from tidemark.model.condition.tree import check_types
from tidemark.quality.constants import number
from tidemark.quality.expectations import WrongExpectation, check_owner_expectations
from tidemark.quality.refusal import shown


class Builder:
    """Builds the Collection field by field, so that what a field breaks is refused at that field's line.

    `columns` are all that are read from the source, `types` those of each; `refusal` makes the error for what is wrong
    at a field.
    """

    def __init__(
        self,
        declared: Declaration,
        columns: Sequence[str],
        types: Mapping[str, ValueType],
        refusal: Callable[[Loc, str], InvalidUsage],
    ) -> None:
        self._declared, self._names, self._types, self._refusal = declared, columns, types, refusal

    def build(self) -> Collection:
        declared = self._declared
        with self._at("source"):
            source = self._source()
        with self._at("key"):
            collection = Collection("unnamed", self._columns(declared.key), (), Landed(source))
        with self._at("value"):
            collection = replace(collection, value=self._columns(declared.value))
        with self._at("columns"):
            landed = Landed(
                source,
                time=declared.time_column,
                event_time=declared.event_time_column,
                inputs=self._inputs(),
            )
            collection = replace(collection, origin=landed)
            self._check_coordinates(collection)
            debezium.check_units(collection)
            debezium.check_decimals(collection)
        for name in {**declared.columns, **declared.units}:
            with self._at("columns", name):
                readings.check(collection, name)
        with self._at("source", "delete_when"):
            if source.delete_when:
                check_types(parse(source.delete_when), collection.type_of)
        with self._at("source", "only"):
            if source.only:
                check_types(only.parsed(source.only), collection.type_of, "only")
        with self._at("late"):
            late = Late(*declared.late_policy)
            _check_late_facts(collection, late)
        with self._at("end"):
            landed = replace(landed, start=declared.start, end=declared.end, timezone=declared.timezone)
            collection = replace(collection, origin=landed)
        with self._at("timelines"):
            collection = replace(collection, timelines=tuple(declared.timelines))
        with self._at("name"):
            collection = replace(collection, name=declared.name)
        with self._at("layout"):
            collection = replace(collection, layout=declared.laid_out)
        built = replace(
            collection,
            origin=replace(landed, schedule=declared.schedule, grace=declared.grace, late=late),
            quality=expectations_of(declared, self._refusal),
            compact_ahead=declared.compact_ahead,
            live_batches=declared.live_batches,
            max_rows_if_unsorted=declared.chunks.max_rows_if_unsorted,
            retention=declared.retention,
            renames=tuple((old, new) for new, old in declared.renames.items()),
            masked=declared.masked,
            publish=declared.destinations,
        )
        with self._at("reprocess_for"):
            built = replace(built, origin=replace(built.landed, reprocess_for=declared.reprocess_for))
        with self._at("corrected_share"):
            if declared.corrected_share is not None and not declared.reprocess_for:
                raise InvalidUsage(
                    f"corrected_share is {declared.corrected_share:g}, but no file may be corrected; "
                    "declare reprocess_for, or remove corrected_share"
                )
            built = replace(built, origin=replace(built.landed, corrected_share=declared.corrected_share))
        with self._at("batches"):
            batching = declared.batches.batching if declared.batches else None
            built = replace(built, origin=replace(built.landed, batching=batching))
        with self._at("schedule"):
            schedule = Schedule.of(built.landed)
            first = schedule.following(declared.start) - declared.start
        with self._at("start"):
            check_bounds(replace(built, origin=replace(built.landed, end=None)))
        with self._at("end"):
            check_bounds(built)
        with self._at("source", "path"):
            _check_repeated_hours(built.landed)
        with self._at("batches"):
            if batching is not None:
                longest = partial(schedule.longest_from, declared.start)
                check_parts(batching, first, longest, declared.schedule)
        try:
            check_owner_expectations(built)
        except WrongExpectation as error:
            raise self._refusal(error.loc, str(error)) from None
        return built

    def _source(self) -> Source:
        declared = self._declared.source
        return Source(
            declared.path,
            declared.file_format,
            Envelope(declared.envelope),
            tuple(declared.order_by) if isinstance(declared.order_by, list) else declared.order_by,
            declared.diff or "diff",
            declared.delete_when,
            declared.ready.marker,
            declared.bad_files,
            tuple(self._declared.units.items()),
            readings.stored(declared.decimals) or "",
            declared.min_share,
            only=declared.only,
            column_decimals=readings.decimals_of(self._declared),
            beyond=readings.beyond_of(self._declared),
            duplicate_files=declared.duplicate_files,
            csv=declared.dialect,
            compression=declared.compression,
            rows=declared.rows or "",
            from_fields=tuple(self._declared.fields.items()),
            from_paths=readings.said(self._declared, "from_path"),
            optional=tuple(name for name, _ in readings.said(self._declared, "optional")),
            timezones=readings.said(self._declared, "timezone"),
            ambiguous=tuple(pair for pair in readings.said(self._declared, "ambiguous") if pair[1] != "refuse"),
            formats=readings.said(self._declared, "format"),
            unavailable=declared.unavailable or "",
        )

    def _columns(self, names: list[str]) -> tuple[Column, ...]:
        return tuple(Column(name, self._types[name]) for name in names)

    def _inputs(self) -> tuple[Column, ...]:
        stored = {*self._declared.key, *self._declared.value}
        others = [name for name in self._names if name not in stored]
        return tuple(Column(name, self._types.get(name) or debezium.implied(self._declared, name)) for name in others)

    def _check_coordinates(self, collection: Collection) -> None:
        landed = collection.landed
        for role, name in (("time", landed.time), ("event_time", landed.event_time)):
            if name and (of := collection.type_of(name)) not in (ColumnType.TIMESTAMP, ColumnType.INT):
                raise InvalidUsage(
                    f"{role} column {name} is of type {of}; a time is a timestamp or an int of microseconds"
                )

    @contextmanager
    def _at(self, *loc: str | int) -> Iterator[None]:
        try:
            yield
        except InvalidUsage as error:
            raise self._refusal(loc, str(error)) from None


def _check_repeated_hours(landed: Landed) -> None:
    """Raise InvalidUsage where a path has one name for both intervals of an hour that clocks repeat.

    Whichever is read first would take the files of both.
    """
    schedule = Schedule.of(landed)
    if (repeated := schedule.repeated_hour(landed.start, landed.end)) is None:
        return
    before, first, again = [(each, pattern_of(landed, each, "/landing")) for each in repeated]
    if before[1] != first[1] == again[1]:
        raise InvalidUsage(
            f"schedule {schedule} has two intervals of one hour where clocks are put back, {first[0]} and {again[0]}, "
            f"and source.path names both {first[1]}; write {{{{ data_interval_start.strftime('%H%z') }}}}, which has "
            "the offset from UTC, or leave timezone out"
        )


def _check_late_facts(collection: Collection, late: Late) -> None:
    """Raise InvalidUsage where a late fact would win over a newer one: without event times it would count as having
    happened when it is learned (docs/decisions/0049)."""
    if collection.kind.facts and collection.landed.event_time is None and late.policy == "reemit":
        raise InvalidUsage(
            f"late: reemit needs event_time for {collection.landed.source.envelope}: without it a late row would win "
            "over newer ones of its key; declare event_time: {column: ...}, the column that says when a row happened, "
            "or write late: discard, or late: next_window if late rows are meant to win"
        )


def expectations_of(declared: Common, refusal: Callable[[Loc, str], InvalidUsage]) -> tuple[str, ...]:
    """A file's expectations as they are stored. What cannot be is refused at its line."""
    written = []
    for at, expectation in enumerate(declared.quality):
        try:
            written.append(_canonical(expectation))
        except InvalidUsage as error:
            raise refusal(("quality", at), str(error)) from None
    return tuple(written)


def _canonical(expectation: dict[str, Any]) -> str:
    """As it is stored: JSON with sorted names. Raises InvalidUsage for what JSON does not have."""
    return json.dumps(_plain(expectation), sort_keys=True, separators=(",", ":"))


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        if odd := [name for name in value if not isinstance(name, str)]:
            raise InvalidUsage(f"quality: the name {shown(odd[0])} is no text; quote it")
        return {name: _plain(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if isinstance(value, date | datetime):
        return value.isoformat()
    if value is None or isinstance(value, bool | str) or number(value):
        return value
    raise InvalidUsage(f"quality: {shown(value)} cannot be written as JSON; quote it")
