"""What two neighbouring intervals of a collection share in the landing: files, or only their folder."""

from __future__ import annotations

from collections.abc import Iterator

from tidemark.config.schedule import Schedule
from tidemark.config.template import pattern_of, render
from tidemark.errors import InvalidUsage
from tidemark.model.interval import Interval
from tidemark.model.landed import Landed
from tidemark.storage import landing


def shares_files_with(landed: Landed, interval: Interval, landing_root: str) -> Interval | None:
    """The neighbour of an interval for which the source's path renders as it does for that; None if both neighbours
    have files of their own.

    An hourly collection with `{{ ds }}` in its path shares the files of a day among 24 intervals; a path without any
    variable shares all files among all intervals. Whichever of them is read first takes the files.
    """
    pattern = pattern_of(landed, interval, landing_root)
    alike = (one for one in _neighbours(landed, interval) if pattern_of(landed, one, landing_root) == pattern)
    return next(alike, None)


def has_own_folder(landed: Landed, interval: Interval, landing_root: str) -> bool:
    """Whether the folder of an interval's files is that of no neighbour."""
    both = (interval, *_neighbours(landed, interval))
    patterns = [pattern_of(landed, each, landing_root) for each in both]
    own, *others = [landing.folder_of(pattern) for pattern in patterns]
    return own not in others


def ready_of(landed: Landed, interval: Interval, landing_root: str) -> str:
    """What shows that an interval has landed, as `landing.is_ready` takes it.

    A folder that intervals share shows nothing of one of them, and a path without wildcards is a file: there it is that
    a file matches. A marker's name is rendered as the path is.
    """
    source = landed.source
    if source.ready == "exists":
        pattern = pattern_of(landed, interval, landing_root)
        shows = landing.has_wildcard(pattern) and has_own_folder(landed, interval, landing_root)
        return "exists" if shows else landing.MATCHES
    if "{" not in source.ready:
        return source.ready
    return render(source.ready, interval.in_zone(landed.timezone), landing_root)


def _neighbours(landed: Landed, interval: Interval) -> Iterator[Interval]:
    """The intervals before and after one, as far as the collection has any there."""
    schedule = Schedule.of(landed)
    if interval.lower > landed.start:
        lower = max(landed.start, schedule.latest(interval.lower - 1))
        yield Interval(lower, interval.lower).in_zone(landed.timezone)
    if landed.end is None or interval.upper < landed.end:
        try:
            following = schedule.interval_from(interval.upper)
        except InvalidUsage:  # the end of time
            return
        yield following
