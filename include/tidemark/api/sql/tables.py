"""The tables of a statement: collections of a root, each opened once, at the moment the statement begins."""

from __future__ import annotations

from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

from tidemark.api.committed import chosen_time
from tidemark.api.dataset import CollectionDataset
from tidemark.api.pinned import Pinned, find
from tidemark.api.rows import AnswerRows, AsOfRows, Rows
from tidemark.api.sql.statement import Source, Statement, arguments
from tidemark.api.times import micros
from tidemark.errors import InvalidUsage, TidemarkError, listed
from tidemark.jobs.queries import locate
from tidemark.model.condition.tree import Condition
from tidemark.model.nearest import nearest

if TYPE_CHECKING:
    from tidemark.api.latest import LatestAt
    from tidemark.api.reads import Changes
    from tidemark.api.windowed import WindowRows


_CLOCKS = {"committed": "time", "committed_after": "after", "committed_upto": "upto"}
"""Arguments that are times of the wall clock, and those of the schedule in whose place they are."""
_TIMES = {"time", "version", "upto", "committed", "committed_upto"}
"""Arguments that say as known when."""


class Tables:
    """The datasets of a statement by the names that they have in it.

    `read` are the collections that the statement may read, by name. A collection whose name only happens to be in the
    statement, as a column or an alias, is among them; where it cannot be read, that is an error only if DuckDB asks for
    it (`absent`).
    """

    def __init__(self, root: str, statement: Statement) -> None:
        self.statement = statement
        self.root = root
        self._folders = {*locate.folders(root)}
        self.read: dict[str, Pinned] = {}
        self._now: dict[str, Pinned] = {}
        self.datasets: dict[str, CollectionDataset] = {}
        self._unreadable: dict[str, TidemarkError] = {}
        # Those at versions of their own first: where a collection is read as it is now, too, that is what is said.
        for name, source in sorted(statement.sources.items(), key=lambda item: "version" not in item[1].arguments):
            self.datasets[name] = CollectionDataset(self._rows(source))
        names = self.collections if "show" in statement.names else statement.names
        for name in sorted({name.lower() for name in names} & self._folders):
            try:
                pinned = self._pinned(name)
                then = chosen_time(pinned, None, statement.committed)
                self.datasets[name] = CollectionDataset(AsOfRows(pinned, then))
            except TidemarkError as error:
                self._unreadable[name] = error
                if all(source.collection.lower() != name for source in statement.sources.values()):
                    self.read.pop(name, None)

    @cached_property
    def collections(self) -> list[str]:
        """The collections of the root. Each folder is looked into: asked only for all of them, and for the nearest."""
        return locate.collections(self.root)

    def _pinned(self, name: str, version: int | None = None) -> Pinned:
        """A collection, at a version, or at the one that the whole statement sees it at."""
        wanted = name.lower()
        if version is None and wanted in self._now:
            return self._now[wanted]
        found = find(self.root, wanted, version) if wanted in self._folders else None
        if found is None:
            raise self.absent(name)
        self.read[wanted] = found
        if version is None:
            self._now[wanted] = found
        return found

    def absent(self, name: str) -> TidemarkError:
        """Why there is no table of that name."""
        if (known := self._unreadable.get(name.lower())) is not None:
            return type(known)(f"{name}: {known}")
        if name.lower() in self.collections:
            return InvalidUsage(f"{name} is only in a text of the statement; write it as a name")
        if not self.collections:
            return InvalidUsage(f"there is no table {name}: there are no collections in {self.root}")
        near = nearest(name.lower(), self.collections)
        near = near if "did you mean" in near else f"; there are {listed(self.collections)}"
        return InvalidUsage(f"there is no collection {name} in {self.root}{near}")

    def failure(self) -> Exception | None:
        """The error of a read that DuckDB ran into; its own says less."""
        found = (dataset.rows.failure for dataset in self.datasets.values())
        return next((failure for failure in found if failure is not None), None)

    def _rows(self, source: Source) -> Rows:
        given = arguments(source)
        if self.statement.committed is not None and not _TIMES & given.keys():
            given["committed_upto" if source.function == "changes" else "committed"] = self.statement.committed
        version = given.pop("version", None)
        pinned = self._pinned(source.collection, version)
        for clock, name in _CLOCKS.items():
            if (moment := given.pop(clock, None)) is not None:
                by_schedule = _times(given, name).get(name)
                time = chosen_time(pinned, by_schedule, micros(moment, clock), name)
                given.update({} if time is None else {name: time})
        match source.function:
            case "changes":
                return AnswerRows(pinned, partial(_changes, pinned, _times(given, "after", "upto")))
            case "windows":
                _check(given, "open", bool)
                return AnswerRows(pinned, partial(_windows, pinned, _times(given, "time")))
            case "latest_at":
                return AnswerRows(pinned, partial(_latest, pinned, _times(given, "time", "event_time")))
        _check(given, "multiplicity", bool)
        times = _times(given, "time", "event_time")
        return AsOfRows(
            pinned, times.get("time"), times.get("event_time"), None, None, times.get("multiplicity", False)
        )


def _times(given: dict[str, Any], *names: str) -> dict[str, Any]:
    """The arguments, those of times in microseconds."""
    return {name: micros(value, name) if name in names else value for name, value in given.items()}


def _check(given: dict[str, Any], name: str, of: type) -> None:
    if name in given and not isinstance(given[name], of):
        raise InvalidUsage(f"{name} is {given[name]!r}; write TRUE or FALSE")


def _changes(pinned: Pinned, given: dict[str, Any], condition: Condition) -> Changes:
    from tidemark.api.reads import Changes

    _check(given, "net", bool)
    return Changes(pinned, given.get("after"), given.get("upto"), given.get("net", False), also=condition)


def _windows(pinned: Pinned, given: dict[str, Any], condition: Condition) -> WindowRows:
    from tidemark.api.windowed import WindowRows

    return WindowRows(pinned, given.get("time"), given.get("open", False), also=condition)


def _latest(pinned: Pinned, given: dict[str, Any], condition: Condition) -> LatestAt:
    from tidemark.api.latest import LatestAt, Question

    if not isinstance(given.get("timeline"), str):
        raise InvalidUsage("latest_at: write the name of a timeline in single quotes behind the collection")
    within, known, happened = (given.get(name) for name in ("within", "time", "event_time"))
    question = Question(given["timeline"], within=within, time=known, event_time=happened, also=condition)
    return LatestAt(pinned, question, given.get("t"))
