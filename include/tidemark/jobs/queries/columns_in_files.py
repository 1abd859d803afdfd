"""Since when files have had columns that are declared only now: asked of headers and schemas, the newest first."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

from tidemark.arrow.decode.content import BadFile, Content
from tidemark.arrow.decode.source import decode, names_of
from tidemark.config.schedule import Schedule
from tidemark.config.template import pattern_of
from tidemark.errors import TidemarkError
from tidemark.model.arrangement import Arrangement
from tidemark.model.collection import Collection
from tidemark.model.interval import Interval
from tidemark.model.local_time import format_local
from tidemark.storage import landing

MOST_FILES, MOST_INTERVALS = 1_000, 400
"""Files that are opened, and intervals whose files are listed, at most."""
FILES_OF_INTERVAL = 5


@dataclass(frozen=True)
class InFiles:
    """Since when the files that landed have a column.

    Those of the intervals from `since` on, up to `until`, have it (None: not even the newest). Of `gone` intervals
    among these no file is there any more. `zone` is the collection's.
    """

    column: str
    since: int | None
    until: int
    gone: int
    zone: str = "UTC"

    def words(self, collection: str) -> str:
        """For people, with the command that reads the files again."""
        if self.since is None:
            return f"{self.column}: the newest files that were read do not have it"
        since, until = (format_local(time, self.zone) for time in (self.since, self.until))
        gone = f", of {self.gone:,} interval{'s' * (self.gone != 1)} among them no file is left" if self.gone else ""
        way = f"tidemark backfill {collection} --lower {since} --upper {until} --again --columns {self.column}"
        return f"{self.column} is in the files from {since} on{gone}: `{way}` reads it"


def added(before: Collection, after: Collection) -> list[str]:
    """The value columns that a declaration has, and the one before did not have, by whatever name."""
    ids = {column.id for column in before.stored_value}
    return [column.name for column in after.value if column.id not in ids]


def in_files(
    state: Arrangement, columns: Sequence[str], landing_root: str, seen: Callable[[int], object] = lambda files: None
) -> list[InFiles]:
    """Since when the files of intervals that were read, and can be read again, have some columns.

    A few files of each interval are asked, the newest first, until none of the columns is left that all had. `seen`
    gets how many files were opened by then.

    Raises:
        TidemarkError: The landing cannot be looked at.
    """
    since: dict[str, int | None] = dict.fromkeys(columns)
    source = state.collection.landed.source
    waiting, gone, opened, newest = set(columns), 0, 0, 0
    missed = dict.fromkeys(columns, 0)
    for interval in _newest_first(state):
        newest = newest or interval.upper
        files = _files(state.collection, interval, landing_root)
        gone += not files
        for file in files:
            names = {*_names(state.collection, file)}
            waiting = {name for name in waiting if not names.isdisjoint(source.first_names_of(name))}
        opened += len(files)
        seen(opened)
        if files:
            since |= dict.fromkeys(waiting, interval.lower)
            missed |= dict.fromkeys(waiting, gone)
        if not waiting or opened >= MOST_FILES:
            break
    return [InFiles(name, since[name], newest, missed[name], state.collection.zone) for name in columns]


def _newest_first(state: Arrangement) -> Iterator[Interval]:
    """Intervals that were read and can be read again."""
    schedule = Schedule.of(state.collection.landed)
    members = reversed(list(state.ingested))
    for number, interval in enumerate(chain.from_iterable(reversed(schedule.split(member)) for member in members)):
        if interval.lower < state.correctable_from or number >= MOST_INTERVALS:
            return
        yield interval


def _files(collection: Collection, interval: Interval, landing_root: str) -> list[Content]:
    """A few files of an interval, unread."""
    pattern = pattern_of(collection.landed, interval, landing_root)
    within = landing_root if landing.below(pattern, landing_root) else None
    files = [file for file in landing.list_named(pattern, landing_root, within=within) if landing.is_text(file.path)]
    return [Content(file, "", file.bytes, None) for file in files[:FILES_OF_INTERVAL]]


def _names(collection: Collection, file: Content) -> list[str]:
    try:
        if collection.landed.source.only:
            next(decode(file, collection), None)
            return names_of(file, collection.landed.source, file.seen.first_rows)
        return names_of(file, collection.landed.source)
    except (BadFile, TidemarkError):  # whoever reads it says what is wrong with it
        return []
