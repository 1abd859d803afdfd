"""What a publication commits: parts that the table names, rows that are copied, and what it says of itself."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from tidemark.arrow.repeated import all_once
from tidemark.jobs.job import Job
from tidemark.model.batch import Part, TraceBatch, UnsealedBatch
from tidemark.model.publication import Destination, Pin, pin_of
from tidemark.plan.publish import (
    Mark,
    Way,
    by_copy,
    changes_since,
    mark_of,
    nameable,
    only_adds,
    rows_of,
)
from tidemark.plan.read import ReadRequest, plan_as_of
from tidemark.plan.unsealed import PartsOf
from tidemark.publish.rows import (
    added_rows,
    adds_alone,
    check_footer,
    current_rows,
    footer,
    keyed_changes,
    within_years,
)
from tidemark.publish.table import Content, NamedFile, PublishedTable, Rows
from tidemark.storage.log.log import Head
from tidemark.storage.sidecars import parts_table

if TYPE_CHECKING:
    import pyarrow.parquet as pq


@dataclass(frozen=True)
class Planned:
    """What is to be committed, and the pins of the parts that it names."""

    content: Content
    mark: Mark
    pins: tuple[Pin, ...]


Opened = tuple[ReadRequest, PartsOf]


@dataclass
class Planner:
    """Finds out how a table, which says `mark` of itself, is brought to the state of a head (plan/publish.py).

    Of parts that the table does not name yet the footers are opened: they say whether each row counts once.
    """

    job: Job
    head: Head
    destination: Destination
    table: PublishedTable
    mark: Mark | None
    _footers: dict[str, pq.FileMetaData] = field(default_factory=dict)
    _there: frozenset[str] = frozenset()

    def plan(self) -> Planned:
        """The first way that is right, of those that write least."""
        store, state = self.job.store, self.head.state
        current = parts_table.opened_read(store, plan_as_of(state, state.trace_upper - 1))
        since = changes_since(state, self.mark)
        changed = None if since is None else parts_table.opened_read(store, since)
        named: Sequence[Part] = ()
        if self.destination.names_parts:
            self._there = self.table.named() if self.mark is not None else frozenset()
            named, is_all = self._named(current)
            if is_all:
                return self._naming(Way.NAME, current, named)
            if changed is not None:
                new, is_all = self._named(changed)
                if is_all:
                    return self._naming(Way.NAME_NEW, changed, new, keeps=self._names)
        way = Way.WHOLE if changed is None else self._way_to_copy(changed, rows_of(*current))
        if changed is not None and way is not Way.WHOLE:
            rows = self._within_years(partial(added_rows if way is Way.APPEND else keyed_changes, store, *changed))
            return Planned(Content(way, rows=rows), mark_of(state, self.head.version, self._names), ())
        rows = self._within_years(partial(current_rows, store, *current, named))
        return self._naming(Way.WHOLE, current, named, rows)

    def _within_years(self, rows: Rows) -> Rows:
        return partial(within_years, self.head.state.collection, self.destination.format, rows)

    @property
    def _names(self) -> tuple[str, ...]:
        return () if self.mark is None else self.mark.names

    def _named(self, opened: Opened) -> tuple[list[Part], bool]:
        """The parts that are rows of the table as they are, and whether that is all."""
        may, is_all = nameable(*opened)
        named = [part for part in may if self._path(part) in self._there or _once(self._footer(part))]
        return named, is_all and len(named) == len(may)

    def _naming(
        self, way: Way, opened: Opened, named: Sequence[Part], rows: Rows | None = None, keeps: Iterable[str] = ()
    ) -> Planned:
        kept = frozenset(path for path in map(self._path, named) if path in self._there)
        files = tuple(self._file(part) for part in named if self._path(part) not in kept)
        by_file = dict(_pins_by_file(opened))
        pins = tuple(dict.fromkeys(by_file[part.file.key] for part in named))
        names = {pin.name for pin in pins}.union(keeps)
        return Planned(Content(way, files, kept, rows), mark_of(self.head.state, self.head.version, names), pins)

    def _way_to_copy(self, changed: Opened, total: int) -> Way:
        one_value, new = self.head.state.collection.kind.one_value, rows_of(*changed)
        adds = only_adds(*changed)
        way = by_copy(self.destination, one_value, adds, new, total)
        # What was retracted may have come since as well: to find that out is cheaper than to write the table whole.
        if not adds and way is Way.WHOLE and by_copy(self.destination, one_value, True, new, total) is Way.APPEND:
            return Way.APPEND if adds_alone(self.job.store, *changed) else Way.WHOLE
        return way

    def _file(self, part: Part) -> NamedFile:
        """A part that is to be named. InvalidUsage for one with a time that the table cannot have."""
        check_footer(self.head.state.collection, self.destination.format, part, self._footer(part))
        return NamedFile(self._path(part), part.file.bytes, self._footer(part))

    def _footer(self, part: Part) -> pq.FileMetaData:
        if part.file.key not in self._footers:
            self._footers[part.file.key] = footer(self.job.store, part)
        return self._footers[part.file.key]

    def _path(self, part: Part) -> str:
        """Where others find a part."""
        url = self.job.store.url.rstrip("/")
        return f"{url}/{part.file.key}" if "://" in url else f"file://{url}/{part.file.key}"


def _once(footer: pq.FileMetaData) -> bool:
    return all_once(footer, range(footer.num_row_groups))


def _pins_by_file(opened: Opened) -> Iterator[tuple[str, Pin]]:
    """The pin of each part of a read, by its file."""
    request, parts = opened
    batches: tuple[UnsealedBatch | TraceBatch, ...] = (*request.unsealed.batches, *request.trace)
    for batch in batches:
        if batch.parts:
            pin = pin_of(batch.parts)
            yield from ((part.file.key, pin) for part in parts.get(batch.id, ()))
