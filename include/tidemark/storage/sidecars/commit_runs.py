"""Objects of commit times: lines that are too many for a state."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

from tidemark.errors import Corruption
from tidemark.model.commit_times import CommitRun, CommitTimes, SealCommit, line_at
from tidemark.storage.documents.upgrade import Kind
from tidemark.storage.sidecars import sidecar
from tidemark.storage.stores.store import ObjectStore

PREFIX = "commits/"


@dataclass(frozen=True)
class StoredCommits:
    """Lines, ascending: of each by how much it differs from the one before it, of the first from 0."""

    at: tuple[int, ...]
    seals: tuple[int, ...]


def write_run(store: ObjectStore, key: str, lines: Sequence[SealCommit], *, level: int) -> CommitRun:
    """Write lines, ascending and at least one, as one run under a fresh key."""
    value = StoredCommits(_steps(line.at for line in lines), _steps(line.seal for line in lines))
    return CommitRun(sidecar.write(store, key, value), len(lines), lines[0], lines[-1], level)


def store_recent(store: ObjectStore, key: str, commits: CommitTimes) -> tuple[tuple[str, ...], CommitRun] | None:
    """Write the recent lines, with the newest runs if that is due: the keys of these, and the run. None: not yet."""
    due = commits.due()
    if due is None:
        return None
    lines = [line for run in due for line in read_run(store, run)] + [*commits.recent]
    run = write_run(store, key, lines, level=due[0].level + 1 if due else 0)
    return tuple(each.object.key for each in due), run


def read_run(store: ObjectStore, run: CommitRun) -> list[SealCommit]:
    """The lines of a run. Corruption where they are not what was recorded."""
    value: StoredCommits = sidecar.read(store, run.object, Kind.COMMITS, StoredCommits)
    if len(value.at) != len(value.seals):
        raise Corruption(f"{run.object.key} has {len(value.at)} commit times and {len(value.seals)} seals")
    lines = [SealCommit(*line) for line in zip(accumulate(value.at), accumulate(value.seals), strict=True)]
    if (len(lines), *lines[:1], *lines[-1:]) != (run.commits, run.first, run.last):
        raise Corruption(f"{run.object.key} has other commit times than recorded: {run.commits} up to {run.last}")
    return lines


def last_line(store: ObjectStore, commits: CommitTimes, at: int) -> SealCommit | None:
    """The last line at or before a time of the wall clock; opens one object at most."""
    if commits.recent and commits.recent[0].at <= at:
        return line_at(commits.recent, at)
    run = next((run for run in reversed(commits.runs) if run.first.at <= at), None)
    if run is None:
        return None
    if run.last.at <= at:
        return run.last
    return line_at(read_run(store, run), at)


def all_lines(store: ObjectStore, commits: CommitTimes) -> Iterator[SealCommit]:
    """All lines, oldest first, one object at a time."""
    for run in commits.runs:
        yield from read_run(store, run)
    yield from commits.recent


def _steps(times: Iterable[int]) -> tuple[int, ...]:
    return tuple(later - earlier for earlier, later in pairwise([0, *times]))
